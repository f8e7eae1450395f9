//! Operators, from those that bind least to those that bind most. What they join is read in `parse.rs`.

use super::super::tokens::Token;
use super::expr::ExprKind;
use super::{ParseResult, Parser, made};

/// Operators of two operands that bind more tightly than `&&`, loosest first.
const LEVELS: [&[&str]; 3] = [
    &["==", "!=", "<=", ">=", "<", ">", "in"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser<'_> {
    pub(super) fn conditional(&mut self) -> ParseResult {
        let condition = self.any()?;
        let at = self.at();
        if !self.takes("?") {
            return Ok(condition);
        }
        let yes = self.any()?;
        self.expect(":")?;
        let no = self.expression()?;
        made(at, ExprKind::If(Box::new([condition, yes, no])))
    }

    fn any(&mut self) -> ParseResult {
        let (first, at) = (self.all()?, self.at());
        if !self.is_sign("||") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.takes("||") {
            parts.push(self.all()?);
        }
        made(at, ExprKind::Or(parts))
    }

    fn all(&mut self) -> ParseResult {
        let (first, at) = (self.binary(0)?, self.at());
        if !self.is_sign("&&") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.takes("&&") {
            parts.push(self.binary(0)?);
        }
        made(at, ExprKind::And(parts))
    }

    /// A chain of operators that bind equally, or what binds more tightly.
    fn binary(&mut self, level: usize) -> ParseResult {
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(sign) = self.operator(signs) {
            let at = self.at();
            self.skip();
            let right = self.binary(level + 1)?;
            left = made(at, ExprKind::Binary(sign, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn operator(&self, signs: &[&'static str]) -> Option<&'static str> {
        let found = match self.peek() {
            Token::Sign(sign) => *sign,
            Token::Name(name) => name.as_str(),
            Token::Int(_) | Token::Double(_) | Token::Text(_) | Token::End => return None,
        };
        signs.iter().copied().find(|sign| *sign == found)
    }

    fn unary(&mut self) -> ParseResult {
        let at = self.at();
        for sign in ["!", "-"] {
            if !self.takes(sign) {
                continue;
            }
            let mut operators = 1_u16;
            while self.takes(sign) {
                operators = operators.saturating_add(1);
            }
            // The least int has no positive twin.
            if sign == "-"
                && operators % 2 == 1
                && *self.peek() == Token::Int(i64::MIN.unsigned_abs())
            {
                self.skip();
                return made(at, ExprKind::Int(i64::MIN));
            }
            let operand = self.member()?;
            // Twice is not at all.
            return match (operators % 2, sign) {
                (0, _) => Ok(operand),
                (_, "!") => made(at, ExprKind::Not(Box::new(operand))),
                (_, _) => made(at, ExprKind::Negate(Box::new(operand))),
            };
        }
        self.member()
    }
}
