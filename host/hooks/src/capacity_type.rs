//! How capacity is bought: a code in the columns, the word of the label elsewhere.

use apis::labels;
use serde::{Deserialize, Serialize};

/// How an offering is bought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    /// At the list price, not taken back.
    #[default]
    OnDemand,
    /// At the spot price, may be interrupted.
    Spot,
    /// From a capacity reservation.
    Reserved,
}

impl CapacityType {
    /// Of the word of the label; none of a word that nothing is bought by.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            labels::CAPACITY_TYPE_ON_DEMAND => Some(Self::OnDemand),
            labels::CAPACITY_TYPE_SPOT => Some(Self::Spot),
            labels::CAPACITY_TYPE_RESERVED => Some(Self::Reserved),
            _ => None,
        }
    }

    /// The word of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => labels::CAPACITY_TYPE_ON_DEMAND,
            Self::Spot => labels::CAPACITY_TYPE_SPOT,
            Self::Reserved => labels::CAPACITY_TYPE_RESERVED,
        }
    }

    /// As columns have it.
    pub const fn code(self) -> u8 {
        match self {
            Self::OnDemand => 0,
            Self::Spot => 1,
            Self::Reserved => 2,
        }
    }

    /// Of a column's code; none of one that stands for nothing, as where no node comes.
    pub const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::OnDemand),
            1 => Some(Self::Spot),
            2 => Some(Self::Reserved),
            _ => None,
        }
    }

    /// The word of a column's code; empty where that stands for nothing.
    pub const fn word_of(code: u8) -> &'static str {
        match Self::of_code(code) {
            Some(it) => it.as_str(),
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_are_read_back_and_nothing_else_is() {
        for known in [
            CapacityType::OnDemand,
            CapacityType::Spot,
            CapacityType::Reserved,
        ] {
            assert_eq!(CapacityType::parse(known.as_str()), Some(known));
            assert_eq!(CapacityType::of_code(known.code()), Some(known));
        }
        for unknown in ["", "Spot", "capacity-block"] {
            assert_eq!(CapacityType::parse(unknown), None, "{unknown:?}");
        }
    }
}
