//! The functions of the language: a table of what each takes and gives.
//!
//! What they do is in `apply.rs`.

use super::types::RuleType;

/// Effect of a function, however it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Not,
    Negate,
    Abs,
    Floor,
    Ceil,
    Round,
    Truncate,
    Convert(ConvertsTo),
    Size,
    Read(ReadsAs),
    Find(StringSearch),
    Change(StringChange),
    Split,
    Join,
    Format,
    Fold(FoldsTo),
    IsThere,
}

/// Question about a text in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringSearch {
    StartsWith,
    EndsWith,
    Contains,
    IndexOf,
    LastIndexOf,
}

/// Text that is made of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringChange {
    LowerAscii,
    UpperAscii,
    Trim,
    Replace,
    Substring,
    CharAt,
}

/// Type that a value is converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConvertsTo {
    Double,
    Int,
    Text,
}

/// Meaning that a text of Kubernetes is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadsAs {
    Quantity,
    Duration,
    Timestamp,
}

/// Number that a list of numbers is folded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldsTo {
    Sum,
    Least,
    Greatest,
}

/// Types that an operand may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Bool,
    Int,
    Number,
    Text,
    /// Any value that can be written as a text: no list and no map.
    Plain,
    /// Any value that has a length.
    Sized,
    Texts,
    Numbers,
    /// Any value, also one that may be absent.
    Any,
}

/// Type of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gives {
    Bool,
    Int,
    Double,
    Text,
    Moment,
    Texts,
    /// The type of the first operand.
    Same,
    /// The type of an item of the first operand.
    Item,
}

/// A function by one of its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    /// The first operand stands before the dot.
    pub(super) is_method: bool,
    pub(super) takes: &'static [Takes],
    /// Operands at the end that may be left out.
    pub(super) optional: usize,
    pub(super) gives: Gives,
    pub(super) function: Function,
}

const fn global(
    name: &'static str,
    takes: &'static [Takes],
    gives: Gives,
    function: Function,
) -> Signature {
    Signature {
        name,
        is_method: false,
        takes,
        optional: 0,
        gives,
        function,
    }
}

const fn method(
    name: &'static str,
    takes: &'static [Takes],
    gives: Gives,
    function: Function,
) -> Signature {
    Signature {
        is_method: true,
        ..global(name, takes, gives, function)
    }
}

const fn last_optional(signature: Signature) -> Signature {
    Signature {
        optional: 1,
        ..signature
    }
}

use Takes::{Any, Int, Number, Numbers, Plain, Sized, Text, Texts};

/// All functions, save for those that are written with variables or patterns of their own, and `min` and `max`.
pub(super) static FUNCTIONS: &[Signature] = &[
    global("abs", &[Number], Gives::Same, Function::Abs),
    global("floor", &[Number], Gives::Double, Function::Floor),
    global("ceil", &[Number], Gives::Double, Function::Ceil),
    global("round", &[Number], Gives::Double, Function::Round),
    global("trunc", &[Number], Gives::Double, Function::Truncate),
    global(
        "double",
        &[Plain],
        Gives::Double,
        Function::Convert(ConvertsTo::Double),
    ),
    global(
        "int",
        &[Plain],
        Gives::Int,
        Function::Convert(ConvertsTo::Int),
    ),
    global(
        "string",
        &[Plain],
        Gives::Text,
        Function::Convert(ConvertsTo::Text),
    ),
    global("size", &[Sized], Gives::Int, Function::Size),
    global(
        "quantity",
        &[Text],
        Gives::Double,
        Function::Read(ReadsAs::Quantity),
    ),
    global(
        "duration",
        &[Text],
        Gives::Double,
        Function::Read(ReadsAs::Duration),
    ),
    global(
        "timestamp",
        &[Text],
        Gives::Moment,
        Function::Read(ReadsAs::Timestamp),
    ),
    method("size", &[Sized], Gives::Int, Function::Size),
    method(
        "startsWith",
        &[Text, Text],
        Gives::Bool,
        Function::Find(StringSearch::StartsWith),
    ),
    method(
        "endsWith",
        &[Text, Text],
        Gives::Bool,
        Function::Find(StringSearch::EndsWith),
    ),
    method(
        "contains",
        &[Text, Text],
        Gives::Bool,
        Function::Find(StringSearch::Contains),
    ),
    method(
        "lowerAscii",
        &[Text],
        Gives::Text,
        Function::Change(StringChange::LowerAscii),
    ),
    method(
        "upperAscii",
        &[Text],
        Gives::Text,
        Function::Change(StringChange::UpperAscii),
    ),
    method(
        "trim",
        &[Text],
        Gives::Text,
        Function::Change(StringChange::Trim),
    ),
    last_optional(method(
        "replace",
        &[Text, Text, Text, Int],
        Gives::Text,
        Function::Change(StringChange::Replace),
    )),
    last_optional(method(
        "split",
        &[Text, Text, Int],
        Gives::Texts,
        Function::Split,
    )),
    last_optional(method(
        "substring",
        &[Text, Int, Int],
        Gives::Text,
        Function::Change(StringChange::Substring),
    )),
    last_optional(method(
        "indexOf",
        &[Text, Text, Int],
        Gives::Int,
        Function::Find(StringSearch::IndexOf),
    )),
    method(
        "lastIndexOf",
        &[Text, Text],
        Gives::Int,
        Function::Find(StringSearch::LastIndexOf),
    ),
    method(
        "charAt",
        &[Text, Int],
        Gives::Text,
        Function::Change(StringChange::CharAt),
    ),
    last_optional(method("join", &[Texts, Text], Gives::Text, Function::Join)),
    method("sum", &[Numbers], Gives::Item, Function::Fold(FoldsTo::Sum)),
    method(
        "min",
        &[Numbers],
        Gives::Item,
        Function::Fold(FoldsTo::Least),
    ),
    method(
        "max",
        &[Numbers],
        Gives::Item,
        Function::Fold(FoldsTo::Greatest),
    ),
    method("hasValue", &[Any], Gives::Bool, Function::IsThere),
];

impl Takes {
    /// Whether such a value may stand here.
    pub(super) fn admits(self, of: &RuleType) -> bool {
        match self {
            Self::Bool => of.fits(&RuleType::Bool),
            Self::Int => of.fits(&RuleType::Int),
            Self::Number => of.is_number(),
            Self::Text => of.fits(&RuleType::Text),
            Self::Plain => matches!(
                of,
                RuleType::Bool
                    | RuleType::Int
                    | RuleType::Double
                    | RuleType::Text
                    | RuleType::Moment
                    | RuleType::Unknown
            ),
            Self::Sized => matches!(
                of,
                RuleType::Text
                    | RuleType::List(_)
                    | RuleType::Map(_)
                    | RuleType::Record
                    | RuleType::Unknown
            ),
            Self::Texts => of.fits(&RuleType::list(RuleType::Text)),
            Self::Numbers => match of {
                RuleType::List(item) => item.is_number(),
                RuleType::Unknown => true,
                RuleType::Bool
                | RuleType::Int
                | RuleType::Double
                | RuleType::Text
                | RuleType::Moment
                | RuleType::Map(_)
                | RuleType::Record
                | RuleType::Optional(_) => false,
            },
            Self::Any => true,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Number => "double",
            Self::Text => "string",
            Self::Plain => "bool, int, double, string or timestamp",
            Self::Sized => "string, list or map",
            Self::Texts => "list(string)",
            Self::Numbers => "list(double)",
            Self::Any => "a value",
        }
    }
}

impl Gives {
    pub(super) fn of(self, first: Option<&RuleType>) -> RuleType {
        let first = || first.cloned().unwrap_or(RuleType::Unknown);
        match self {
            Self::Bool => RuleType::Bool,
            Self::Int => RuleType::Int,
            Self::Double => RuleType::Double,
            Self::Text => RuleType::Text,
            Self::Moment => RuleType::Moment,
            Self::Texts => RuleType::list(RuleType::Text),
            Self::Same => first(),
            Self::Item => match first() {
                RuleType::List(item) => *item,
                RuleType::Bool
                | RuleType::Int
                | RuleType::Double
                | RuleType::Text
                | RuleType::Moment
                | RuleType::Map(_)
                | RuleType::Record
                | RuleType::Optional(_)
                | RuleType::Unknown => RuleType::Unknown,
            },
        }
    }
}
