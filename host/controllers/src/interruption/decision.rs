//! What a notice of the cloud comes to: decided by what it says, and by what the instance's claim and the cloud say.
//!
//! Pure; `interruption.rs` does it.

use std::sync::Arc;

use apis::NodeClaim;
use cloudprovider::{InterruptionKind, Launched};

use super::Handled;

/// What there is to the instance that a notice is about.
pub(super) enum Observed {
    /// No claim of ours is known to have it; until all were seen, one may.
    Unclaimed { is_synced: bool },
    /// The claim that had it is gone, or has another.
    ClaimGone,
    /// Its claim.
    Claimed {
        claim: Arc<NodeClaim>,
        /// The instance as the cloud has it, asked only where [`asks_cloud`] says so.
        instance: Option<Box<Launched>>,
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

/// Whether the cloud must bear out what a notice says of a claim's instance. Whoever may write to the queue could else
/// take nodes away that nothing is wrong with.
pub(super) fn asks_cloud(kind: InterruptionKind, claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && matches!(
            kind,
            InterruptionKind::InstanceStopped | InterruptionKind::InstanceTerminated
        )
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
        Observed::Claimed { instance, .. } if is_belied(kind, instance.as_deref()) => {
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

/// Whether the instance runs, of which the notice says that it does not any more.
fn is_belied(kind: InterruptionKind, instance: Option<&Launched>) -> bool {
    let is_stop = kind == InterruptionKind::InstanceStopped;
    instance.is_some_and(|it| !(it.is_terminating || is_stop && it.is_stopped))
}

#[cfg(test)]
mod tests {
    use apis::resources::Resources;
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;

    fn claimed(deleted_at: &Value, instance: Option<(bool, bool)>) -> Observed {
        let instance = instance.map(|(is_terminating, is_stopped)| {
            Box::new(Launched {
                provider_id: "aws:///a/i-1".to_owned(),
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
        let claim = claim_with(&json!({"/metadata/deletionTimestamp": deleted_at}));
        Observed::Claimed {
            claim: Arc::new(claim),
            instance,
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
    fn only_ends_of_living_claims_are_asked_about() {
        let living = claim_with(&json!({"/metadata/deletionTimestamp": null}));
        let going = claim_with(&json!({}));
        assert!(asks_cloud(InterruptionKind::InstanceStopped, &living));
        assert!(asks_cloud(InterruptionKind::InstanceTerminated, &living));
        assert!(!asks_cloud(InterruptionKind::SpotInterrupted, &living));
        assert!(!asks_cloud(InterruptionKind::InstanceTerminated, &going));
    }
}
