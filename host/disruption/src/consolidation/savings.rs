//! Least savings of a move that brings several nodes.
//!
//! Karpenter, which brings one node at most, has no such rule.

/// Share of the cost of what goes that several new nodes must save at least: each launch is a risk of its own.
pub(crate) const SAVINGS_SHARE_MIN: f64 = 0.05;
/// How much more for each of them: pods find their way to new nodes one by one, so that the more nodes were filled to
/// the brim in the plan, the more of them find no room in the end.
pub(super) const SAVINGS_SHARE_PER_NODE: f64 = 0.006;

/// Most that several new nodes may cost in place of something of this effective cost.
pub(super) fn most_after(cost_per_hour: f64) -> f64 {
    cost_per_hour * (1.0 - SAVINGS_SHARE_MIN)
}
