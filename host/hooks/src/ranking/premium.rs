//! How much dearer than it need be a ranking policy may make a node: the bound that the cluster's owner sets.
//!
//! Preference is the policy's; what it may cost is not. The bound is looked at natively, after the policy: in a launch
//! and in what consolidation would bring, offerings that cost more than the bound above the cheapest of those left are
//! dropped; a whole plan is held against the plan of list prices. Exclusions stand in any case: they are the owner's
//! word on what not to buy, and what is left is compared among itself.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{PriceRank, RankAnswer, RankHook, RankRound};

/// How much of the cheapest price may be paid on top; off where a policy may cost whatever the pool's requirements
/// leave.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct PremiumMax(f64);

/// A bound that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no premium: use a share such as 50% or 100%, or off")]
pub struct InvalidPremium(String);

impl PremiumMax {
    /// No bound: a policy may choose whatever the requirements leave.
    pub const OFF: Self = Self(f64::INFINITY);

    /// The tighter of two.
    #[must_use]
    pub fn tighter(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The most that something may cost whose cheapest alternative has this price.
    pub fn most(self, cheapest: f64) -> f64 {
        // Prices that are sums may differ in their last digits.
        cheapest * (1.0 + self.0) + 1e-9
    }

    /// Whether there is a bound.
    pub fn is_on(self) -> bool {
        self.0.is_finite()
    }
}

impl Default for PremiumMax {
    /// A policy may cost up to twice the cheapest.
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for PremiumMax {
    type Err = InvalidPremium;

    fn from_str(text: &str) -> Result<Self, InvalidPremium> {
        let invalid = || InvalidPremium(text.to_owned());
        let text = text.trim();
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::OFF);
        }
        let percent = text.strip_suffix('%').ok_or_else(invalid)?;
        let percent: f64 = percent.trim().parse().map_err(|_| invalid())?;
        if percent.is_finite() && percent >= 0.0 {
            Ok(Self(percent / 100.0))
        } else {
            Err(invalid())
        }
    }
}

impl fmt::Display for PremiumMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_on() {
            write!(f, "{}%", (self.0 * 1e6).round() / 1e4)
        } else {
            f.write_str("off")
        }
    }
}

/// List prices under the exclusions that another policy made of the same round: what the default would do with what is
/// left. Asks nobody.
#[derive(Debug, Clone, Default)]
pub struct ListPrices {
    /// Positions excluded, by pool.
    pub excluded: BTreeMap<String, Vec<u32>>,
}

impl RankHook for ListPrices {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let mut answer = PriceRank.rank(round);
        for (claim, ranking) in round.claims.iter().zip(&mut answer.rankings) {
            let pool = round.table.symbols.get(claim.nodepool as usize);
            let excluded = pool.and_then(|it| self.excluded.get(it));
            let excluded = excluded.into_iter().flatten();
            ranking.excluded = excluded.map(|at| (*at, String::new())).collect();
        }
        answer
    }
}

#[cfg(test)]
mod tests;
