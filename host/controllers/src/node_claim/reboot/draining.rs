//! Whether a claim's node is emptied for a reboot, as its conditions say.
//!
//! Pure: it looks at the claim alone.

use apis::conditions::{self, Conditioned, Status};
use apis::{NodeClaim, labels};
use kube::ResourceExt;

/// Reasons of the condition `Rebooting`.
pub(crate) const REQUESTED: &str = "RebootRequested";

/// Whether pods are asked to leave the claim's node so that it can reboot. Those that are left when the time is up
/// ride through it.
pub(crate) fn is_draining(claim: &NodeClaim) -> bool {
    let condition = claim.condition(conditions::REBOOTING);
    let is_requested =
        condition.is_some_and(|it| it.status == Status::True.as_str() && it.reason == REQUESTED);
    is_requested && boot_before(claim).is_none()
}

/// The boot id that was noted before the machine went down.
pub(super) fn boot_before(claim: &NodeClaim) -> Option<&str> {
    let noted = claim
        .annotations()
        .get(labels::REBOOT_PRE_BOOT_ID_ANNOTATION);
    noted.map(String::as_str)
}
