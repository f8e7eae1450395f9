//! Names of CEL's functions and operators, and how far two names are apart.

use cel::common::ast::operators;

use super::compile::Type;
use super::evaluate::{Arithmetic, Comparison, Function};

/// The function of a number by name, and what it gives when that is not what it takes.
pub(super) fn numeric(name: &str) -> Option<(Function, Option<Type>)> {
    Some(match name {
        "double" => (Function::ToDouble, Some(Type::Double)),
        "int" => (Function::ToInt, Some(Type::Int)),
        "floor" => (Function::Floor, Some(Type::Double)),
        "ceil" => (Function::Ceil, Some(Type::Double)),
        "round" => (Function::Round, Some(Type::Double)),
        "abs" => (Function::Abs, None),
        _ => return None,
    })
}

pub(super) fn arithmetic(name: &str) -> Option<Arithmetic> {
    Some(match name {
        operators::ADD => Arithmetic::Add,
        operators::SUBSTRACT => Arithmetic::Subtract,
        operators::MULTIPLY => Arithmetic::Multiply,
        operators::DIVIDE => Arithmetic::Divide,
        operators::MODULO => Arithmetic::Remainder,
        _ => return None,
    })
}

pub(super) fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        operators::EQUALS => Comparison::Equal,
        operators::NOT_EQUALS => Comparison::NotEqual,
        operators::LESS => Comparison::Less,
        operators::LESS_EQUALS => Comparison::LessOrEqual,
        operators::GREATER => Comparison::Greater,
        operators::GREATER_EQUALS => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// Edits between two names.
pub(super) fn distance(left: &str, right: &str) -> usize {
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
