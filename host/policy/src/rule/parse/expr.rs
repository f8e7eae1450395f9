//! The tree of an expression. How it is read is the parser's, what it means the compiler's.

use super::super::place::SourcePosition;

/// An expression as it is written.
#[derive(Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) at: SourcePosition,
    /// 1 for a word.
    pub(crate) depth: u16,
    pub(crate) kind: ExprKind,
}

/// What an expression is.
#[derive(Debug, PartialEq)]
pub(crate) enum ExprKind {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    Name(String),
    List(Vec<Expr>),
    /// `of.field`, or `of.?field`.
    Select {
        of: Box<Expr>,
        field: String,
        is_optional: bool,
    },
    /// `of[key]`, or `of[?key]`.
    Index {
        of: Box<Expr>,
        key: Box<Expr>,
        is_optional: bool,
    },
    Call {
        name: String,
        args: Vec<Expr>,
    },
    Method {
        of: Box<Expr>,
        name: String,
        args: Vec<Expr>,
    },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// An operator that joins two, by its sign.
    Binary(&'static str, Box<[Expr; 2]>),
    /// All of them, or any of them.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    If(Box<[Expr; 3]>),
}

impl ExprKind {
    pub(crate) fn depth_below(&self) -> u16 {
        let deepest = |parts: &[Expr]| parts.iter().map(|it| it.depth).max().unwrap_or(0);
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Name(_) => 0,
            Self::List(parts) | Self::And(parts) | Self::Or(parts) => deepest(parts),
            Self::Call { args, .. } => deepest(args),
            Self::Select { of, .. } | Self::Not(of) | Self::Negate(of) => of.depth,
            Self::Index { of, key, .. } => of.depth.max(key.depth),
            Self::Method { of, args, .. } => of.depth.max(deepest(args)),
            Self::Binary(_, parts) => deepest(&**parts),
            Self::If(parts) => deepest(&**parts),
        }
    }
}
