//! Signs of CEL's operators, and how far two names are apart.

use super::node::{Arithmetic, Comparison};

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
    near.filter(|(distance, _)| *distance <= 2)
        .map(|(_, known)| known)
}

/// Edits between two names.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, ours) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, theirs) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(ours != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
