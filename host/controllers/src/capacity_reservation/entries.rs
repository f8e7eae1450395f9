//! Journal entries about the ends of capacity reservations.
//!
//! Only the log hears of them; what becomes of the nodes is decided in `decision.rs`.

use apis::NodeClaim;
use kube::ResourceExt;
use tracing::info;

use crate::shell::journal::JournalEntry;

/// Consequence of the end of a reservation.
pub(super) enum ReservationEntry<'a> {
    /// The claim went, as its capacity block ends soon.
    BlockEnds { reservation: &'a str },
    /// The instance runs on, on-demand.
    Ended,
}

impl JournalEntry for ReservationEntry<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let name = claim.name_any();
        match self {
            Self::BlockEnds { reservation } => {
                info!(NodeClaim = %name, reservation, "deleting: its capacity block ends soon");
            }
            Self::Ended => {
                info!(NodeClaim = %name, pool = claim.pool_name().unwrap_or_default(), "its capacity reservation ended: it is on-demand now");
            }
        }
    }
}
