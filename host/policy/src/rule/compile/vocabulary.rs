//! The words that expressions of a kind may use, with their types. Where their values come from is said in `facts.rs`.

use super::super::facts::LabelSet;
use super::super::types::RuleType;
use super::super::value::Literal;

/// A variable that rules of a kind may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownVariable<V> {
    pub(crate) name: &'static str,
    pub(crate) of: VariableType,
    pub(crate) variable: V,
    pub(crate) about: &'static str,
}

/// Type of a variable of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableType {
    Bool,
    Int,
    Double,
    Text,
    Moment,
    Texts,
}

impl VariableType {
    pub(crate) fn of(self) -> RuleType {
        match self {
            Self::Bool => RuleType::Bool,
            Self::Int => RuleType::Int,
            Self::Double => RuleType::Double,
            Self::Text => RuleType::Text,
            Self::Moment => RuleType::Moment,
            Self::Texts => RuleType::list(RuleType::Text),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Double => "double",
            Self::Text => "string",
            Self::Moment => "timestamp",
            Self::Texts => "list(string)",
        }
    }
}

/// Type that an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Condition,
    Number,
    Text,
}

/// Words of the language: variables, and the settings under `config`.
pub(crate) struct RuleVocabulary<V: 'static> {
    pub(crate) variables: &'static [KnownVariable<V>],
    /// Words that are looked up by a key.
    pub(crate) labels: &'static [(&'static str, LabelSet)],
    pub(crate) config: Literal,
}
