//! Types of values, by CEL's words.
//!
//! An int stands wherever a double is wanted; everything else must be what is asked for.

use std::fmt;

/// Type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleType {
    Bool,
    Int,
    Double,
    Text,
    Moment,
    List(Box<RuleType>),
    /// Texts to values of one type.
    Map(Box<RuleType>),
    /// Settings of several types, each under its name.
    Record,
    /// What may be absent, and says so.
    Optional(Box<RuleType>),
    /// Of nothing that is there: `null`, an item of an empty list, what was told to be wrong already.
    Unknown,
}

impl RuleType {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(crate) fn map(of: Self) -> Self {
        Self::Map(Box::new(of))
    }

    pub(crate) fn optional(of: Self) -> Self {
        match of {
            Self::Optional(_) => of,
            of => Self::Optional(Box::new(of)),
        }
    }

    /// The type that holds values of both.
    pub(crate) fn joined(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (one, other) if one == other => Some(one.clone()),
            (Self::Unknown, known) | (known, Self::Unknown) => Some(known.clone()),
            (Self::Int, Self::Double) | (Self::Double, Self::Int) => Some(Self::Double),
            (Self::List(one), Self::List(other)) => one.joined(other).map(Self::list),
            (Self::Map(one), Self::Map(other)) => one.joined(other).map(Self::map),
            (Self::Optional(one), Self::Optional(other)) => one.joined(other).map(Self::optional),
            _ => None,
        }
    }

    /// Whether such a value may stand where the other is wanted.
    pub(crate) fn fits(&self, wanted: &Self) -> bool {
        self.joined(wanted)
            .is_some_and(|joined| joined == *wanted || *self == Self::Unknown)
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double | Self::Unknown)
    }

    /// What there is once it is there.
    pub(crate) fn present(self) -> Self {
        match self {
            Self::Optional(of) => *of,
            of => of,
        }
    }
}

impl fmt::Display for RuleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Moment => f.write_str("timestamp"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(of) => write!(f, "map(string, {of})"),
            Self::Record => f.write_str("map of several types"),
            Self::Optional(of) => write!(f, "optional({of})"),
            Self::Unknown => f.write_str("null"),
        }
    }
}
