//! How capacity is bought: the word of the label on the wire, a code in the columns that policies see.
//!
//! Words of others are parsed where they come in. Answers to the values of `CapacityTypeLabelKey` in Karpenter's
//! `pkg/apis/v1/labels.go`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::labels;

/// How an offering is bought; in the order of the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    /// At the list price, not taken back.
    OnDemand,
    /// From a capacity reservation.
    Reserved,
    /// At the spot price, may be interrupted.
    Spot,
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

    /// The word of the label; empty where nobody knows how something was bought.
    pub const fn word(known: Option<Self>) -> &'static str {
        match known {
            Some(it) => it.as_str(),
            None => "",
        }
    }

    /// The code of a column where nobody knows how something is bought, or nothing is.
    pub const NO_CODE: u8 = u8::MAX;

    /// As columns have it.
    pub const fn code(self) -> u8 {
        match self {
            Self::OnDemand => 0,
            Self::Spot => 1,
            Self::Reserved => 2,
        }
    }

    /// As columns have it; [`Self::NO_CODE`] where nobody knows how something is bought.
    pub const fn code_of(known: Option<Self>) -> u8 {
        match known {
            Some(it) => it.code(),
            None => Self::NO_CODE,
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
        Self::word(Self::of_code(code))
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
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
            assert_eq!(serde_json::json!(known), known.as_str());
        }
        let by_word = [
            CapacityType::OnDemand,
            CapacityType::Reserved,
            CapacityType::Spot,
        ];
        assert!(by_word.is_sorted() && by_word.is_sorted_by_key(|it| it.as_str()));
        assert_eq!(CapacityType::code_of(Some(CapacityType::Spot)), 1);
        assert_eq!(CapacityType::of_code(CapacityType::code_of(None)), None);
        for unknown in ["", "Spot", "capacity-block"] {
            assert_eq!(CapacityType::parse(unknown), None, "{unknown:?}");
        }
    }
}
