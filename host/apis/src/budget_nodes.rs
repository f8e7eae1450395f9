//! How many nodes of a pool a budget allows: the text that says so, and what it comes to.
//!
//! Answers to Karpenter's `pkg/apis/v1/nodepool.go` (`GetAllowedDisruptions`).

/// The number of nodes a budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetNodes {
    /// So many nodes.
    Count(u32),
    /// So many hundredths of the pool's nodes, rounded up.
    Percent(u32),
}

/// A budget whose text cannot be understood; such a budget allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("budget nodes {nodes:?}: expected a number or a percentage up to 100%")]
pub struct BudgetError {
    /// Nodes as the budget writes them.
    pub nodes: String,
}

impl BudgetNodes {
    /// Reads what a budget writes.
    pub fn parse(nodes: &str) -> Result<Self, BudgetError> {
        let error = || BudgetError {
            nodes: nodes.to_owned(),
        };
        let (digits, is_percent) = match nodes.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (nodes, false),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        // A count beyond any cluster means the same as the greatest count.
        let number = digits.parse().unwrap_or(u32::MAX);
        match is_percent {
            true if number > 100 => Err(error()),
            true => Ok(Self::Percent(number)),
            false => Ok(Self::Count(number)),
        }
    }

    /// How many nodes of a pool of `nodes_total` that is.
    ///
    /// A share is rounded up, so that a pool of few nodes is not stuck for ever, as Karpenter does.
    pub fn of(self, nodes_total: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let share = (u64::from(nodes_total) * u64::from(percent)).div_ceil(100);
                u32::try_from(share).unwrap_or(u32::MAX)
            }
        }
    }
}
