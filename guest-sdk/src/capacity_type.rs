//! How capacity is bought: a code in the tables, a word on labels.

/// How an offering is bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityType {
    /// At the list price, not taken back.
    OnDemand,
    /// At the spot price, may be interrupted.
    Spot,
    /// From a capacity reservation.
    Reserved,
}

impl CapacityType {
    pub(crate) fn of(code: u8) -> Self {
        match code {
            1 => Self::Spot,
            2 => Self::Reserved,
            _ => Self::OnDemand,
        }
    }

    /// The word of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
            Self::Reserved => "reserved",
        }
    }
}
