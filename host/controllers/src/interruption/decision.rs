//! Decides about a notice of the cloud by what it says, and by what the instance's claim and the cloud say.
//!
//! Pure; `interruption.rs` does it.

use std::sync::Arc;

use apis::{CapacityType, NodeClaim, labels};
use cloudprovider::{InstanceLife, InterruptionKind};

use super::Handled;

/// Claim of the instance that a notice is about, as far as it is known.
pub(super) enum Observed {
    /// No claim of ours is known to have it; until all were seen, one may.
    Unclaimed { is_synced: bool },
    /// The claim that had it is gone, or has another.
    ClaimGone,
    /// This claim has the instance.
    Claimed {
        claim: Arc<NodeClaim>,
        evidence: Evidence,
    },
}

/// Word of the [`Witness`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The state of the claim itself.
    Claim,
    /// How far the life of the instance has got, where the cloud knows it.
    Instance(Option<InstanceLife>),
    /// Whether the cloud has planned anything for the instance, where that can be told.
    Schedule(Option<bool>),
}

/// Steps for the claim, in this order.
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

/// Steps to take, and the fate of the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) steps: Vec<Step>,
    pub(super) handled: Handled,
}

/// Source that must bear out what a notice says of a claim's instance. Whoever may write to the queue could else take
/// nodes away that nothing is wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Witness {
    /// The claim alone: what is taken back goes within two minutes, which leaves no time to ask.
    Claim,
    /// The instance, as the cloud has it now.
    Instance,
    /// The work that the cloud has planned for its instances.
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
        Observed::Claimed { claim, evidence } if is_belied(kind, claim, *evidence) => {
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
fn is_belied(kind: InterruptionKind, claim: &NodeClaim, evidence: Evidence) -> bool {
    match evidence {
        Evidence::Claim => is_of_another_market(kind, claim),
        Evidence::Instance(None | Some(InstanceLife::Ends)) => false,
        Evidence::Instance(Some(InstanceLife::Runs)) => true,
        Evidence::Instance(Some(InstanceLife::Stopped)) => {
            kind == InterruptionKind::InstanceTerminated
        }
        Evidence::Schedule(is_scheduled) => is_scheduled == Some(false),
    }
}

/// Whether the claim's instance was bought in another way than what is taken back.
fn is_of_another_market(kind: InterruptionKind, claim: &NodeClaim) -> bool {
    let wanted = match kind {
        InterruptionKind::SpotInterrupted => CapacityType::Spot,
        InterruptionKind::CapacityReservationInterrupted => CapacityType::Reserved,
        InterruptionKind::RebalanceRecommendation
        | InterruptionKind::ScheduledChange
        | InterruptionKind::InstanceStopped
        | InterruptionKind::InstanceTerminated
        | InterruptionKind::InstanceStatus
        | InterruptionKind::SystemStatus
        | InterruptionKind::EventStatus
        | InterruptionKind::NoOp => return false,
    };
    // A claim from before its launch was told has none.
    let word = claim.label(labels::CAPACITY_TYPE);
    word.is_some_and(|it| !it.is_empty() && it != wanted.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;

    fn claimed(deleted_at: &Value, evidence: Evidence) -> Observed {
        let claim = claim_with(&json!({"/metadata/deletionTimestamp": deleted_at}));
        Observed::Claimed {
            claim: Arc::new(claim),
            evidence,
        }
    }

    /// One that lives, of a capacity type.
    fn bought(capacity_type: &str, evidence: Evidence) -> Observed {
        let claim = claim_with(&json!({
            "/metadata/deletionTimestamp": null,
            "/metadata/labels": {labels::CAPACITY_TYPE: capacity_type},
        }));
        Observed::Claimed {
            claim: Arc::new(claim),
            evidence,
        }
    }

    #[test]
    fn a_notice_starts_what_claim_and_cloud_bear_out() {
        use Handled::{Done, Later};
        use InstanceLife::{Ends, Runs, Stopped};
        use InterruptionKind::{
            InstanceStopped, InstanceTerminated, RebalanceRecommendation, SpotInterrupted,
        };
        let living = |evidence| claimed(&json!(null), evidence);
        let going = || claimed(&json!("2026-01-01T00:00:00Z"), Evidence::Claim);
        let seen = |life| living(Evidence::Instance(life));
        let unclaimed = |is_synced| Observed::Unclaimed { is_synced };
        let [runs, stops, ends] = [Runs, Stopped, Ends].map(Some);
        let all = || vec![Step::Notify, Step::DeleteClaim];
        let cases = [
            (SpotInterrupted, unclaimed(true), vec![], Done),
            (SpotInterrupted, unclaimed(false), vec![], Later),
            (SpotInterrupted, Observed::ClaimGone, vec![], Done),
            (SpotInterrupted, living(Evidence::Claim), all(), Done),
            (
                RebalanceRecommendation,
                living(Evidence::Claim),
                vec![Step::Notify],
                Done,
            ),
            (SpotInterrupted, going(), vec![], Done),
            (InstanceTerminated, going(), vec![Step::LookAtEnding], Done),
            // One that the cloud does not know any more has ended.
            (InstanceTerminated, seen(None), all(), Done),
            (InstanceTerminated, seen(ends), all(), Done),
            (InstanceStopped, seen(ends), all(), Done),
            (InstanceStopped, seen(stops), all(), Done),
            (
                InstanceTerminated,
                seen(stops),
                vec![Step::Disbelieve],
                Later,
            ),
            (
                InstanceTerminated,
                seen(runs),
                vec![Step::Disbelieve],
                Later,
            ),
            (InstanceStopped, seen(runs), vec![Step::Disbelieve], Later),
        ];
        for (number, (kind, observed, steps, handled)) in cases.into_iter().enumerate() {
            let expected = Decided { steps, handled };
            assert_eq!(decide(kind, &observed), expected, "case {number}");
        }
    }

    #[test]
    fn what_is_taken_back_must_be_of_the_kind_that_is_and_what_is_planned_be_planned() {
        use InterruptionKind::{CapacityReservationInterrupted, ScheduledChange, SpotInterrupted};
        let of = |capacity_type| bought(capacity_type, Evidence::Claim);
        let planned = |is_scheduled| bought("on-demand", Evidence::Schedule(is_scheduled));
        let cases = [
            (SpotInterrupted, of("spot"), true),
            (SpotInterrupted, of("on-demand"), false),
            (SpotInterrupted, of("reserved"), false),
            (SpotInterrupted, of(""), true),
            (CapacityReservationInterrupted, of("reserved"), true),
            (CapacityReservationInterrupted, of("on-demand"), false),
            (ScheduledChange, planned(Some(true)), true),
            (ScheduledChange, planned(Some(false)), false),
            // The role may not ask what is planned.
            (ScheduledChange, planned(None), true),
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
