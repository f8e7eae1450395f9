//! Signs of CEL's operators, and the name that somebody may have meant.

use super::node::{Arithmetic, Comparison};
use crate::typo::{NEAR, distance};

/// The operator of a sign that computes.
pub(super) fn arithmetic(sign: &str) -> Option<Arithmetic> {
    Some(match sign {
        "+" => Arithmetic::Add,
        "-" => Arithmetic::Subtract,
        "*" => Arithmetic::Multiply,
        "/" => Arithmetic::Divide,
        "%" => Arithmetic::Remainder,
        _ => return None,
    })
}

/// The operator of a sign that compares.
pub(super) fn comparison(sign: &str) -> Option<Comparison> {
    Some(match sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// Longest name that is compared with others, and how many others.
const NAME_BYTES_MAX: usize = 64;
const NAMES_MAX: usize = 256;

/// The known name that somebody may have meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let known = known.filter(|it| it.len() <= NAME_BYTES_MAX);
    let near = known.take(NAMES_MAX);
    let near = near.map(|known| (distance(name, known), known)).min();
    near.filter(|(apart, _)| *apart <= NEAR)
        .map(|(_, known)| known)
}
