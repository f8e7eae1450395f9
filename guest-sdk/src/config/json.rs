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

/// A decimal number of at most 15 significant digits, which is what a double holds in any case. The
/// standard library's reader would carry a table of ten kilobytes into every component.
#[derive(Default)]
struct Decimal {
    mantissa: u64,
    exponent: i32,
}

impl Decimal {
    const MANTISSA_MAX: u64 = 1_000_000_000_000_000;

    fn push(&mut self, digit: u8, step: i32) {
        if self.mantissa < Self::MANTISSA_MAX / 10 {
            self.mantissa = self.mantissa * 10 + u64::from(digit);
            self.exponent = self.exponent.saturating_add(step);
        } else {
            self.exponent = self.exponent.saturating_add(1 + step);
        }
    }

    /// Exact where both parts are exact doubles: up to 15 digits, scaled by at most 22 places.
    fn value(&self) -> f64 {
        let mut value = self.mantissa as f64;
        if self.mantissa == 0 {
            return 0.0;
        }
        let mut places = self.exponent;
        while places != 0 && value != 0.0 && value.is_finite() {
            let step = places.clamp(-22, 22);
            let mut scale = 1.0_f64;
            for _ in 0..step.unsigned_abs() {
                scale *= 10.0;
            }
            value = if step > 0 {
                value * scale
            } else {
                value / scale
            };
            places -= step;
        }
        value
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
        let negative = self.eat(b'-');
        let mut decimal = Decimal::default();
        let whole_from = self.at;
        self.digits(&mut decimal, 0)?;
        // JSON knows no leading zeros.
        if self.at - whole_from > 1 && self.text.as_bytes().get(whole_from) == Some(&b'0') {
            return Err("expected a number");
        }
        if self.eat(b'.') {
            self.digits(&mut decimal, -1)?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let sign = if self.eat(b'-') { -1 } else { 1 };
            if sign > 0 {
                self.eat(b'+');
            }
            let mut power = Decimal::default();
            self.digits(&mut power, 0)?;
            let power = i32::try_from(power.mantissa).unwrap_or(i32::MAX);
            decimal.exponent = decimal.exponent.saturating_add(power.saturating_mul(sign));
        }
        let value = decimal.value();
        if value.is_finite() {
            Ok(Json::Number(if negative { -value } else { value }))
        } else {
            Err("the number is too large")
        }
    }

    /// One digit or more; `step` is what each adds to the exponent.
    fn digits(&mut self, decimal: &mut Decimal, step: i32) -> Read<()> {
        let from = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            decimal.push(digit - b'0', step);
            self.at += 1;
        }
        if self.at == from {
            Err("expected a number")
        } else {
            Ok(())
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
    fn numbers_are_read_as_the_standard_library_reads_them() {
        for text in [
            "0",
            "-0.0",
            "0.2",
            "1e3",
            "12.5E-3",
            "0.1",
            "99999999999999",
            "1e-300",
            "3.14159265358979",
            "1e22",
        ] {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(Json::parse(text), Ok(Json::Number(expected)), "{text}");
        }
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
