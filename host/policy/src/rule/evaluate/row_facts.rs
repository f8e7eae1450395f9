//! Facts of a row that an expression looks at, and the words of a vocabulary. Which there are is said in `facts.rs`.

use super::super::facts::LabelSet;
use super::super::value::Value;
use crate::needs::Need;

/// A word of a vocabulary.
pub(crate) trait Variable: Copy + PartialEq + std::fmt::Debug + 'static {
    /// Whether its value hangs on the claim; what does not is computed once a round for each row.
    fn is_of_claim(self) -> bool;

    /// Fact beside the plain tables without which it has no value.
    fn need(self) -> Option<Need>;
}

/// Row that an expression looks at: one offering, one move, or one pool with one reason.
pub(crate) trait RowFacts {
    /// Name of a fact, resolved.
    type Variable: Variable;

    fn value(&self, variable: Self::Variable) -> Value<'_>;

    fn label(&self, set: LabelSet, key: &str) -> Option<&str>;

    /// Steps beyond the first that telling a value takes.
    fn steps(&self, variable: Self::Variable) -> u64;

    /// Labels that there are to look through.
    fn labels(&self, set: LabelSet) -> usize;
}
