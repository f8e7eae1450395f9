//! Rows of recorded questions as cases write them. What has its usual value is left out, as people would.

mod allow;
mod draft;
mod judge;
mod rank;

pub(super) use allow::allow;
pub(super) use judge::judge;
pub(super) use rank::rank;
