//! A compiled expression as a tree of nodes.
//!
//! Types were settled when it was compiled. Nothing in a tree is there twice: what is named is referred to.

use jiff::tz::TimeZone;

use super::civil::Field;
use super::facts::LabelSet;
use super::functions::Function;
use super::pattern::Pattern;
use super::place::Place;
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

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What a loop over a list does.
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
    pub(crate) list: Node<V>,
    /// Of the variable.
    pub(crate) slot: usize,
    /// Of `map` with three arguments: which items are mapped.
    pub(crate) condition: Option<Node<V>>,
    pub(crate) body: Node<V>,
}

/// A compiled expression. Places are kept where something can go wrong.
#[derive(Debug)]
pub(crate) enum Node<V> {
    Literal(Literal),
    Variable(V),
    /// The variable of a loop or a binding.
    Slot(usize),
    /// One of `data.variables`.
    Named(usize),
    Label(LabelSet, Box<Node<V>>),
    HasLabel(LabelSet, Box<Node<V>>),
    /// A map or a list, and a key.
    At(Box<[Node<V>; 2]>),
    Call(Function, Vec<Node<V>>, Place),
    Matches(Box<Node<V>>, Pattern),
    /// A text and a pattern that is computed.
    MatchesComputed(Box<[Node<V>; 2]>, Place),
    Civil(Field, Box<Node<V>>, TimeZone),
    Whole(Arithmetic, Box<[Node<V>; 2]>, Place),
    Real(Arithmetic, Box<[Node<V>; 2]>),
    /// A moment so many seconds from another.
    Shift(Arithmetic, Box<[Node<V>; 2]>),
    Join(Box<[Node<V>; 2]>),
    Compare(Comparison, Box<[Node<V>; 2]>),
    And(Vec<Node<V>>),
    Or(Vec<Node<V>>),
    If(Box<[Node<V>; 3]>),
    In(Box<[Node<V>; 2]>),
    List(Vec<Node<V>>),
    Loop(Box<Loop<V>>),
    /// A slot, its value, and what is computed with it; absent when the value is, where that is asked for.
    Bind {
        slot: usize,
        parts: Box<[Node<V>; 2]>,
        is_optional: bool,
    },
    OrElse(Box<[Node<V>; 2]>),
}
