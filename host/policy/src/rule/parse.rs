//! From tokens to a tree, by CEL's grammar.
//!
//! No tree is deeper than a named bound, however it is written: chains of operators count as parentheses do. So
//! whatever walks a tree, or drops it, has stack enough. The first thing that fits nowhere ends an expression.

mod expr;
mod operators;

#[cfg(test)]
mod tests;

use super::place::{RuleFault, SourcePosition};
use super::tokens::{Placed, Token, tokens};
pub(super) use expr::{Expr, ExprKind};

/// Longest expression; a page of text, for a person to read.
const TEXT_BYTES_MAX: usize = 4096;
/// Depth of a tree.
pub(super) const DEPTH_MAX: u16 = 96;

/// Words that CEL keeps for itself.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Words that are no names, not even of fields.
const KEYWORDS: [&str; 4] = ["true", "false", "null", "in"];

/// The tree of an expression that begins at a place; what is wrong with it is added to the faults.
pub(super) fn parse(
    text: &str,
    begin: SourcePosition,
    faults: &mut Vec<RuleFault>,
) -> Option<Expr> {
    if text.len() > TEXT_BYTES_MAX {
        faults.push(RuleFault::new(
            begin,
            format!(
                "the expression has {} bytes and may have {TEXT_BYTES_MAX}; give parts of it names in \
                 data.variables, or write a module",
                text.len()
            ),
        ));
        return None;
    }
    let known = faults.len();
    let tokens = tokens(text, begin, faults);
    // What follows a stray character says nothing that the character does not.
    if faults.len() > known {
        return None;
    }
    let mut parser = Parser {
        tokens: &tokens,
        level: 0,
    };
    let parsed = parser.expression().and_then(|it| match parser.peek() {
        Token::End => Ok(it),
        other => Err(parser.unexpected(other, "the end of the expression, or an operator")),
    });
    parsed.map_err(|fault| faults.push(fault)).ok()
}

type ParseResult = Result<Expr, RuleFault>;

struct Parser<'a> {
    /// The last one is the end.
    tokens: &'a [Placed],
    /// Expressions that are open.
    level: u16,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a Token {
        self.tokens.first().map_or(&Token::End, |it| &it.token)
    }

    fn at(&self) -> SourcePosition {
        let first = self.tokens.first();
        first.map_or_else(|| SourcePosition::line("rule", 1), |it| it.at)
    }

    fn skip(&mut self) {
        if let [_, rest @ ..] = self.tokens
            && !rest.is_empty()
        {
            self.tokens = rest;
        }
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    /// Goes past a sign, when it is the next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.is_sign(sign);
        if is_next {
            self.skip();
        }
        is_next
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), RuleFault> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(self.unexpected(self.peek(), &format!("`{sign}`")))
    }

    fn unexpected(&self, found: &Token, wanted: &str) -> RuleFault {
        let found = match found {
            Token::Name(name) => format!("`{name}`"),
            Token::Int(number) => format!("`{number}`"),
            Token::Double(number) => format!("`{number}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        RuleFault::new(self.at(), format!("{found} where {wanted} is expected"))
    }

    fn expression(&mut self) -> ParseResult {
        self.level += 1;
        if self.level > DEPTH_MAX {
            return Err(too_deep(self.at()));
        }
        let expression = self.conditional();
        self.level -= 1;
        expression
    }
}

impl Parser<'_> {
    fn member(&mut self) -> ParseResult {
        let mut of = self.primary()?;
        loop {
            let at = self.at();
            if self.takes("[") {
                let is_optional = self.takes("?");
                let key = Box::new(self.expression()?);
                self.expect("]")?;
                let index = ExprKind::Index {
                    of: Box::new(of),
                    key,
                    is_optional,
                };
                of = made(at, index)?;
            } else if self.takes(".") {
                let is_optional = self.takes("?");
                of = self.field(of, is_optional)?;
            } else {
                return Ok(of);
            }
        }
    }

    fn field(&mut self, of: Expr, is_optional: bool) -> ParseResult {
        let at = self.at();
        let name = match self.peek() {
            Token::Name(name) if !KEYWORDS.contains(&name.as_str()) => name.clone(),
            other => return Err(self.unexpected(other, "the name of a field")),
        };
        self.skip();
        let of = Box::new(of);
        if is_optional || !self.is_sign("(") {
            let select = ExprKind::Select {
                of,
                field: name,
                is_optional,
            };
            return made(at, select);
        }
        let args = self.arguments()?;
        made(at, ExprKind::Method { of, name, args })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, RuleFault> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.takes(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.takes(")") {
                return Ok(args);
            }
            if !self.takes(",") {
                return Err(self.unexpected(self.peek(), "`,` or `)`"));
            }
        }
    }

    fn primary(&mut self) -> ParseResult {
        let at = self.at();
        let kind = match self.peek() {
            Token::Int(number) => match i64::try_from(*number) {
                Ok(number) => ExprKind::Int(number),
                Err(_) => {
                    return Err(RuleFault::new(
                        at,
                        format!("{number} is too large for an int"),
                    ));
                }
            },
            Token::Double(number) => ExprKind::Double(*number),
            Token::Text(text) => ExprKind::Text(text.clone()),
            Token::Name(_) => return self.named(at),
            Token::Sign("(") => {
                self.skip();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => return self.list(at),
            Token::Sign("{") => {
                return Err(RuleFault::new(
                    at,
                    "rules write no maps; put one into data.config and read config.NAME[key]",
                ));
            }
            found @ (Token::Sign(_) | Token::End) => {
                return Err(self.unexpected(found, "a value"));
            }
        };
        self.skip();
        made(at, kind)
    }

    fn named(&mut self, at: SourcePosition) -> ParseResult {
        let Token::Name(name) = self.peek() else {
            return Err(self.unexpected(self.peek(), "a name"));
        };
        if RESERVED.contains(&name.as_str()) || name == "in" {
            return Err(self.unexpected(self.peek(), "a value"));
        }
        self.skip();
        if self.is_sign("(") && !KEYWORDS.contains(&name.as_str()) {
            let args = self.arguments()?;
            let name = name.clone();
            return made(at, ExprKind::Call { name, args });
        }
        let kind = match name.as_str() {
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "null" => ExprKind::Null,
            _ => ExprKind::Name(name.clone()),
        };
        made(at, kind)
    }

    fn list(&mut self, at: SourcePosition) -> ParseResult {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.takes("]") {
            items.push(self.expression()?);
            if !self.takes(",") && !self.is_sign("]") {
                return Err(self.unexpected(self.peek(), "`,` or `]`"));
            }
        }
        made(at, ExprKind::List(items))
    }
}

fn made(at: SourcePosition, kind: ExprKind) -> ParseResult {
    let depth = kind.depth_below() + 1;
    if depth > DEPTH_MAX {
        return Err(too_deep(at));
    }
    Ok(Expr { at, depth, kind })
}

fn too_deep(at: SourcePosition) -> RuleFault {
    RuleFault::new(
        at,
        format!(
            "the expression is nested deeper than {DEPTH_MAX} levels, to which each operator of a chain adds one; \
             give parts of it names in data.variables"
        ),
    )
}
