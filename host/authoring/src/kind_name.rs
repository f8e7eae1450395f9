//! The kinds of policies, as an argument names them.

use clap::ValueEnum;
use policy::PolicyKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum KindName {
    Rank,
    Consolidation,
    Budgets,
}

impl From<KindName> for PolicyKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Rank => Self::Rank,
            KindName::Consolidation => Self::Consolidation,
            KindName::Budgets => Self::Budgets,
        }
    }
}
