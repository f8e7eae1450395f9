//! A compiled expression as a tree of nodes.
//!
//! Types were settled when it was compiled. Nothing in a tree is there twice: what is named is referred to.

use jiff::tz::TimeZone;

use super::civil::CivilField;
use super::facts::LabelSet;
use super::functions::Function;
use super::pattern::Pattern;
use super::place::SourcePosition;
use super::value::Literal;

/// An operator on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Least,
    Greatest,
}

/// What is made of two values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Computation {
    /// A whole number, which may overflow.
    Whole(Arithmetic, SourcePosition),
    Real(Arithmetic),
    /// A moment so many seconds from another.
    Shift(Arithmetic),
    /// Two texts as one.
    Join,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Result of a loop over a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    Exists,
    All,
    ExistsOne,
    Map,
    Filter,
}

/// A loop over the items of a list, or the keys of a map.
#[derive(Debug)]
pub(crate) struct Loop<V> {
    pub(crate) kind: LoopKind,
    pub(crate) list: RuleNode<V>,
    /// Slot of the loop's variable.
    pub(crate) slot: usize,
    /// Of `map` with three arguments: which items are mapped.
    pub(crate) condition: Option<RuleNode<V>>,
    pub(crate) body: RuleNode<V>,
}

/// A compiled expression. Places are kept where something can go wrong.
#[derive(Debug)]
pub(crate) enum RuleNode<V> {
    Literal(Literal),
    Variable(V),
    /// The variable of a loop or a binding.
    Slot(usize),
    /// A variable that `data.variables` defines, by position.
    Named(usize),
    Label(LabelSet, Box<RuleNode<V>>),
    HasLabel(LabelSet, Box<RuleNode<V>>),
    /// A map or a list, and a key.
    At(Box<[RuleNode<V>; 2]>),
    Call(Function, Vec<RuleNode<V>>, SourcePosition),
    Matches(Box<RuleNode<V>>, Pattern),
    /// A text and a pattern that is computed.
    MatchesComputed(Box<[RuleNode<V>; 2]>, SourcePosition),
    Civil(CivilField, Box<RuleNode<V>>, TimeZone),
    Compute(Computation, Box<[RuleNode<V>; 2]>),
    Compare(Comparison, Box<[RuleNode<V>; 2]>),
    And(Vec<RuleNode<V>>),
    Or(Vec<RuleNode<V>>),
    If(Box<[RuleNode<V>; 3]>),
    In(Box<[RuleNode<V>; 2]>),
    List(Vec<RuleNode<V>>),
    Loop(Box<Loop<V>>),
    /// A slot, its value, and what is computed with it; absent when the value is, where that is asked for.
    Bind {
        slot: usize,
        parts: Box<[RuleNode<V>; 2]>,
        is_optional: bool,
    },
    OrElse(Box<[RuleNode<V>; 2]>),
}

impl<V> RuleNode<V> {
    /// The literal that it is.
    pub(crate) fn literal(&self) -> Option<&Literal> {
        if let Self::Literal(literal) = self {
            Some(literal)
        } else {
            None
        }
    }
}
