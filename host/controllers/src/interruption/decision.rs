//! What a notice of the cloud comes to: decided by what it says, and by what the instance's claim and the cloud say.
//!
//! Pure; `interruption.rs` does it.

use std::sync::Arc;

use apis::{CapacityType, NodeClaim, labels};
use cloudprovider::{InterruptionKind, Launched};

use super::Handled;
use crate::node_claim::NodeClaimExt;

/// What there is to the instance that a notice is about.
pub(super) enum Observed {
    /// No claim of ours is known to have it; until all were seen, one may.
    Unclaimed { is_synced: bool },
    /// The claim that had it is gone, or has another.
    ClaimGone,
    /// Its claim.
    Claimed {
        claim: Arc<NodeClaim>,
        /// The instance as the cloud has it, where it is the [`Witness`].
        instance: Option<Box<Launched>>,
        /// Whether the cloud has planned anything for the instance, where that is the [`Witness`] and can be told.
        is_scheduled: Option<bool>,
    },
}

/// What is done about the claim, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Its node is on its way out already, and need not wait for the next poll of its instance.
    LookAtEnding,
    /// Say that the cloud does not bear the notice out.
    Disbelieve,
    /// Note what the notice says of the market, and say on claim and node what is the matter.
    Notify,
    /// Let the claim go.
    DeleteClaim,
}

/// What is done, and what becomes of the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) steps: Vec<Step>,
    pub(super) handled: Handled,
}

/// What must bear out what a notice says of a claim's instance. Whoever may write to the queue could else take nodes
/// away that nothing is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// The claim alone: what is taken back goes within two minutes, which leaves no time to ask.
    Claim,
    /// The instance, as the cloud has it now.
    Instance,
    /// What the cloud has planned for its instances.
    Schedule,
}

/// The witness of a notice about this claim.
pub(super) fn witness(kind: InterruptionKind, claim: &NodeClaim) -> Witness {
    if claim.metadata.deletion_timestamp.is_some() {
        return Witness::Claim;
    }
    match kind {
        InterruptionKind::InstanceStopped | InterruptionKind::InstanceTerminated => {
            Witness::Instance
        }
        InterruptionKind::ScheduledChange => Witness::Schedule,
        InterruptionKind::SpotInterrupted
        | InterruptionKind::CapacityReservationInterrupted
        | InterruptionKind::RebalanceRecommendation
        // Found by asking the cloud.
        | InterruptionKind::InstanceStatus
        | InterruptionKind::SystemStatus
        | InterruptionKind::EventStatus
        | InterruptionKind::NoOp => Witness::Claim,
    }
}

pub(super) fn decide(kind: InterruptionKind, observed: &Observed) -> Decided {
    let (steps, handled) = match observed {
        Observed::Unclaimed { is_synced: false } => (Vec::new(), Handled::Later),
        Observed::Unclaimed { is_synced: true } | Observed::ClaimGone => {
            (Vec::new(), Handled::Done)
        }
        Observed::Claimed { claim, .. } if claim.metadata.deletion_timestamp.is_some() => {
            let is_over = kind == InterruptionKind::InstanceTerminated;
            let look = is_over.then_some(Step::LookAtEnding);
            (look.into_iter().collect(), Handled::Done)
        }
        Observed::Claimed {
            claim,
            instance,
            is_scheduled,
        } if is_belied(kind, claim, instance.as_deref(), *is_scheduled) => {
            (vec![Step::Disbelieve], Handled::Later)
        }
        Observed::Claimed { .. } => {
            let delete = kind.ends_claims().then_some(Step::DeleteClaim);
            let steps = std::iter::once(Step::Notify).chain(delete).collect();
            (steps, Handled::Done)
        }
    };
    Decided { steps, handled }
}

/// Whether what the notice says is not so.
fn is_belied(
    kind: InterruptionKind,
    claim: &NodeClaim,
    instance: Option<&Launched>,
    is_scheduled: Option<bool>,
) -> bool {
    // A claim from before its launch was told has none.
    let word = claim.label(labels::CAPACITY_TYPE);
    let is_other_than = |wanted: CapacityType| !word.is_empty() && word != wanted.as_str();
    match kind {
        InterruptionKind::InstanceTerminated => instance.is_some_and(|it| !it.is_terminating),
        InterruptionKind::InstanceStopped => {
            instance.is_some_and(|it| !(it.is_terminating || it.is_stopped))
        }
        InterruptionKind::ScheduledChange => is_scheduled == Some(false),
        InterruptionKind::SpotInterrupted => is_other_than(CapacityType::Spot),
        InterruptionKind::CapacityReservationInterrupted => is_other_than(CapacityType::Reserved),
        InterruptionKind::RebalanceRecommendation
        | InterruptionKind::InstanceStatus
        | InterruptionKind::SystemStatus
        | InterruptionKind::EventStatus
        | InterruptionKind::NoOp => false,
    }
}

#[cfg(test)]
mod tests {
    use apis::ProviderId;
    use apis::resources::Resources;
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;

    fn claimed(deleted_at: &Value, instance: Option<(bool, bool)>) -> Observed {
        let claim = claim_with(&json!({"/metadata/deletionTimestamp": deleted_at}));
        let instance = instance.map(|(is_terminating, is_stopped)| {
            Box::new(Launched {
                provider_id: ProviderId::of_instance("a", "i-1"),
                image_id: String::new(),
                node_claim_name: None,
                launch_token: None,
                node_pool_name: None,
                labels: [].into(),
                annotations: [].into(),
                capacity: Resources::default(),
                allocatable: Resources::default(),
                launched_at: None,
                is_terminating,
                is_stopped,
            })
        });
        Observed::Claimed {
            claim: Arc::new(claim),
            instance,
            is_scheduled: None,
        }
    }

    /// One that lives, of a capacity type, with what the cloud has planned for it.
    fn bought(capacity_type: &str, is_scheduled: Option<bool>) -> Observed {
        let claim = claim_with(&json!({
            "/metadata/deletionTimestamp": null,
            "/metadata/labels": {labels::CAPACITY_TYPE: capacity_type},
        }));
        Observed::Claimed {
            claim: Arc::new(claim),
            instance: None,
            is_scheduled,
        }
    }

    #[test]
    fn a_notice_starts_what_claim_and_cloud_bear_out() {
        use Handled::{Done, Later};
        use InterruptionKind::{
            InstanceStopped, InstanceTerminated, RebalanceRecommendation, SpotInterrupted,
        };
        let living = |instance| claimed(&json!(null), instance);
        let going = || claimed(&json!("2026-01-01T00:00:00Z"), None);
        let unclaimed = |is_synced| Observed::Unclaimed { is_synced };
        let (runs, ends, stops) = ((false, false), (true, false), (false, true));
        let all = || vec![Step::Notify, Step::DeleteClaim];
        let cases = [
            (SpotInterrupted, unclaimed(true), vec![], Done),
            (SpotInterrupted, unclaimed(false), vec![], Later),
            (SpotInterrupted, Observed::ClaimGone, vec![], Done),
            (SpotInterrupted, living(None), all(), Done),
            (
                RebalanceRecommendation,
                living(None),
                vec![Step::Notify],
                Done,
            ),
            (SpotInterrupted, going(), vec![], Done),
            (InstanceTerminated, going(), vec![Step::LookAtEnding], Done),
            // One that the cloud does not know any more has ended.
            (InstanceTerminated, living(None), all(), Done),
            (InstanceTerminated, living(Some(ends)), all(), Done),
            (InstanceStopped, living(Some(ends)), all(), Done),
            (InstanceStopped, living(Some(stops)), all(), Done),
            (
                InstanceTerminated,
                living(Some(stops)),
                vec![Step::Disbelieve],
                Later,
            ),
            (
                InstanceTerminated,
                living(Some(runs)),
                vec![Step::Disbelieve],
                Later,
            ),
            (
                InstanceStopped,
                living(Some(runs)),
                vec![Step::Disbelieve],
                Later,
            ),
        ];
        for (number, (kind, observed, steps, handled)) in cases.into_iter().enumerate() {
            let expected = Decided { steps, handled };
            assert_eq!(decide(kind, &observed), expected, "case {number}");
        }
    }

    #[test]
    fn what_is_taken_back_must_be_of_the_kind_that_is_and_what_is_planned_be_planned() {
        use InterruptionKind::{CapacityReservationInterrupted, ScheduledChange, SpotInterrupted};
        let cases = [
            (SpotInterrupted, bought("spot", None), true),
            (SpotInterrupted, bought("on-demand", None), false),
            (SpotInterrupted, bought("reserved", None), false),
            (SpotInterrupted, bought("", None), true),
            (
                CapacityReservationInterrupted,
                bought("reserved", None),
                true,
            ),
            (
                CapacityReservationInterrupted,
                bought("on-demand", None),
                false,
            ),
            (ScheduledChange, bought("on-demand", Some(true)), true),
            (ScheduledChange, bought("on-demand", Some(false)), false),
            // The role may not ask what is planned.
            (ScheduledChange, bought("on-demand", None), true),
        ];
        for (number, (kind, observed, is_believed)) in cases.into_iter().enumerate() {
            let decided = decide(kind, &observed);
            let does_delete = decided.steps.contains(&Step::DeleteClaim);
            assert_eq!(does_delete, is_believed, "case {number}");
            let is_doubted = decided.steps.contains(&Step::Disbelieve);
            assert_eq!(is_doubted, !is_believed, "case {number}");
        }
    }

    #[test]
    fn who_is_asked_goes_by_what_is_said() {
        let living = claim_with(&json!({"/metadata/deletionTimestamp": null}));
        let going = claim_with(&json!({}));
        for (kind, expected) in [
            (InterruptionKind::InstanceStopped, Witness::Instance),
            (InterruptionKind::InstanceTerminated, Witness::Instance),
            (InterruptionKind::ScheduledChange, Witness::Schedule),
            (InterruptionKind::SpotInterrupted, Witness::Claim),
        ] {
            assert_eq!(witness(kind, &living), expected, "{kind:?}");
            assert_eq!(witness(kind, &going), Witness::Claim, "{kind:?}");
        }
    }
}
