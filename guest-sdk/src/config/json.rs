//! A JSON value and its reader: complete in what it accepts, short in what it says when it does not.

/// A JSON value. Objects keep the order they were written in.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

/// Nesting beyond this is refused, so that hostile text cannot exhaust the stack.
const DEPTH_MAX: u32 = 64;

impl Json {
    /// Reads one value that takes up the whole text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let read = reader.value(0).and_then(|value| {
            reader.space();
            if reader.at == text.len() {
                Ok(value)
            } else {
                Err("expected the end")
            }
        });
        read.map_err(|message| reader.located(message))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Read<Json> {
        if depth > DEPTH_MAX {
            return Err("nested too deeply");
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err("expected a value"),
        }
    }

    fn object(&mut self, depth: u32) -> Read<Json> {
        self.at += 1;
        let mut fields = Vec::new();
        self.space();
        if self.eat(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err("expected a key in quotes");
            }
            let key = self.string()?;
            self.space();
            if !self.eat(b':') {
                return Err("expected `:`");
            }
            let value = self.value(depth + 1)?;
            fields.push((key, value));
            self.space();
            if self.eat(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.eat(b',') {
                return Err("expected `,` or `}`");
            }
        }
    }

    fn list(&mut self, depth: u32) -> Read<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.eat(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.eat(b']') {
                return Ok(Json::List(items));
            }
            if !self.eat(b',') {
                return Err("expected `,` or `]`");
            }
        }
    }

    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .ok_or("the string does not end")?;
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err("control character in a string"),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        self.at += 1;
        let escaped = self.peek().ok_or("the string does not end")?;
        self.at += 1;
        Ok(match escaped {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err("unknown escape"),
        })
    }

    fn unicode(&mut self) -> Read<char> {
        let unit = self.hex()?;
        let code = match unit {
            0xd800..=0xdbff => {
                if !(self.eat(b'\\') && self.eat(b'u')) {
                    return Err("lone surrogate");
                }
                let low = self.hex()?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return Err("lone surrogate");
                }
                0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
            }
            other => other,
        };
        char::from_u32(code).ok_or("lone surrogate")
    }

    fn hex(&mut self) -> Read<u32> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .ok_or("expected four hexadecimal digits")?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| "expected four hexadecimal digits")
    }

    fn number(&mut self) -> Read<Json> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        let digits = rest.get(..end).unwrap_or_default();
        // Rust reads more than JSON allows: `1.`, `01`, `-.5`.
        let bare = digits.strip_prefix('-').unwrap_or(digits).as_bytes();
        let well_formed = match bare {
            [b'0', b'0'..=b'9', ..] => false,
            [b'0'..=b'9', ..] => !bare
                .iter()
                .zip(bare.iter().skip(1).chain([&b' ']))
                .any(|(&this, next)| this == b'.' && !next.is_ascii_digit()),
            _ => false,
        };
        match digits.parse::<f64>() {
            Ok(value) if well_formed && value.is_finite() => {
                self.at += end;
                Ok(Json::Number(value))
            }
            _ => Err("expected a number"),
        }
    }

    fn word(&mut self, word: &str, value: Json) -> Read<Json> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(value)
        } else {
            Err("expected a value")
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let met = self.peek() == Some(byte);
        self.at += usize::from(met);
        met
    }

    fn located(&self, message: &str) -> String {
        let read = self.text.get(..self.at).unwrap_or(self.text);
        let line = read.matches('\n').count() + 1;
        let column = read.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("line {line} column {column}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn reads_what_json_allows() {
        let text = r#" {"a": [1, -2.5e3, true, null], "b": {"c": "\u00e9\ud83d\ude00\n\"é"}} "#;
        let Json::Object(fields) = Json::parse(text).unwrap() else {
            panic!("an object")
        };
        assert_eq!(
            fields[0].1,
            Json::List(vec![
                Json::Number(1.0),
                Json::Number(-2500.0),
                Json::Bool(true),
                Json::Null
            ])
        );
        assert_eq!(
            fields[1].1,
            Json::Object(vec![("c".into(), Json::Text("é😀\n\"é".into()))])
        );
    }

    #[test]
    fn refuses_what_json_does_not_allow() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e999",
            "nul",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"a",
            "1 2",
            "\"\u{1}\"",
            "{a: 1}",
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
        assert_eq!(
            Json::parse("{\n \"a\": tru}").unwrap_err(),
            "line 2 column 7: expected a value"
        );
    }
}
