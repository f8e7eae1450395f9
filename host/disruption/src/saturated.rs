//! Numbers as columns and counts hold them.

/// What is below zero becomes zero, what is too large the largest.
pub(crate) fn saturated<N: TryInto<u32> + Ord + Default>(number: N) -> u32 {
    number.max(N::default()).try_into().unwrap_or(u32::MAX)
}
