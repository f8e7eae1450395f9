//! An expression as tokens, each with its place.
//!
//! CEL's words and signs, save for bytes. What is no token is told with its place, and the rest is read on.

use super::place::{RuleFault, SourcePosition};

/// A word or a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// A whole number without its sign.
    Int(u64),
    Double(f64),
    Text(String),
    Sign(&'static str),
    End,
}

/// A token where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) at: SourcePosition,
}

/// Longer ones first.
const SIGNS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

/// All tokens of a text that begins at a place, and an end.
pub(super) fn tokens(
    text: &str,
    begin: SourcePosition,
    faults: &mut Vec<RuleFault>,
) -> Vec<Placed> {
    let mut lexer = Lexer {
        rest: text,
        at: begin,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        match lexer.token() {
            Ok(token) => {
                let is_end = token == Token::End;
                tokens.push(Placed { token, at });
                if is_end {
                    return tokens;
                }
            }
            Err(message) => faults.push(RuleFault::new(at, message)),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: SourcePosition,
}

impl<'a> Lexer<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.at = self.at.after(taken);
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|it| !is_part(it));
        self.take(end.unwrap_or(self.rest.len()))
    }

    /// White space and comments.
    fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take_while(|it| it != '\n');
        }
    }

    fn token(&mut self) -> Result<Token, String> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        let second = self.rest.chars().nth(1);
        let is_digit = |it: Option<char>| it.is_some_and(|it| it.is_ascii_digit());
        if let Some(text) = self.text() {
            return text.map(Token::Text);
        }
        if first.is_ascii_digit() || (first == '.' && is_digit(second)) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take_while(|it| it.is_ascii_alphanumeric() || it == '_');
            return Ok(Token::Name(name.to_owned()));
        }
        let sign = SIGNS.into_iter().find(|sign| self.rest.starts_with(*sign));
        if let Some(sign) = sign {
            self.take(sign.len());
            return Ok(Token::Sign(sign));
        }
        let wrong = self.take(first.len_utf8());
        Err(match first {
            '=' => "`=` is no sign here; compare with `==`".to_owned(),
            '&' | '|' => format!("`{wrong}` is no sign here; write `{wrong}{wrong}`"),
            _ => format!("{wrong:?} does not belong into an expression"),
        })
    }

    fn number(&mut self) -> Result<Token, String> {
        if self.rest.starts_with("0x") || self.rest.starts_with("0X") {
            self.take(2);
            let digits = self.take_while(|it| it.is_ascii_hexdigit());
            self.skip_unsigned();
            return u64::from_str_radix(digits, 16)
                .map(Token::Int)
                .map_err(|_| format!("0x{digits} is no int"));
        }
        let bytes = self.rest.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let digits_from = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|it| it.is_ascii_digit()).count()
        };
        let whole = digits_from(0);
        let mut end = whole;
        if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
            end = digits_from(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if is_digit(end + 1 + sign) {
                end = digits_from(end + 1 + sign);
            }
        }
        let text = self.take(end);
        if end > whole {
            let number = text.parse::<f64>().ok().filter(|it| it.is_finite());
            return number
                .map(Token::Double)
                .ok_or_else(|| format!("{text} is no double"));
        }
        self.skip_unsigned();
        text.parse()
            .map(Token::Int)
            .map_err(|_| format!("{text} is too large for an int"))
    }

    /// `1u` is an int here: nothing of a rule needs 64 bits and no sign.
    fn skip_unsigned(&mut self) {
        if self.rest.starts_with(['u', 'U']) {
            self.take(1);
        }
    }

    /// A string, when one begins here.
    fn text(&mut self) -> Option<Result<String, String>> {
        let mut ahead = self.rest.bytes().take(3);
        let prefix = ahead.position(|it| matches!(it, b'"' | b'\''))?;
        let letters = self.rest.get(..prefix)?.to_ascii_lowercase();
        let is_raw = match letters.as_str() {
            "" => false,
            "r" => true,
            "b" | "br" | "rb" => {
                self.take(prefix);
                return Some(Err("rules have no bytes; write a string".to_owned()));
            }
            _ => return None,
        };
        self.take(prefix);
        let one = self.rest.get(..1)?;
        let three = one.repeat(3);
        let quote = if self.rest.starts_with(&three) {
            three
        } else {
            one.to_owned()
        };
        self.take(quote.len());
        let Some(end) = end_of_text(self.rest, &quote, is_raw) else {
            let left = self.rest.len();
            self.take(left);
            return Some(Err(format!("the string has no closing {quote}")));
        };
        let content = self.take(end);
        self.take(quote.len());
        Some(if is_raw {
            Ok(content.to_owned())
        } else {
            unescaped(content)
        })
    }
}

/// Where the closing quote is.
fn end_of_text(text: &str, quote: &str, is_raw: bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, it) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if it == '\\' && !is_raw {
            is_escaped = true;
        } else if text.get(at..)?.starts_with(quote) {
            return Some(at);
        } else if it == '\n' && quote.len() == 1 {
            return None;
        }
    }
    None
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(it) = chars.next() {
        if it != '\\' {
            out.push(it);
            continue;
        }
        let escape = chars.next().unwrap_or('\\');
        let code = |chars: &mut std::str::Chars<'_>, radix, digits: String, count: usize| {
            let more: String = chars.take(count).collect();
            let digits = digits + &more;
            u32::from_str_radix(&digits, radix)
                .ok()
                .and_then(char::from_u32)
                .ok_or_else(|| format!("`\\{escape}{digits}` names no character"))
        };
        out.push(match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => escape,
            'x' | 'X' => code(&mut chars, 16, String::new(), 2)?,
            'u' => code(&mut chars, 16, String::new(), 4)?,
            'U' => code(&mut chars, 16, String::new(), 8)?,
            '0'..='3' => code(&mut chars, 8, escape.to_string(), 2)?,
            _ => {
                return Err(format!(
                    "`\\{escape}` is no escape; write `\\\\` for a backslash, or r\"...\""
                ));
            }
        });
    }
    Ok(out)
}
