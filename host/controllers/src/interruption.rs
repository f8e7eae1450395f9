//! Reacts to notices that the cloud takes instances back: the claim goes, its node drains, its pods are solved again.
//!
//! A notice only ever starts what could be started by hand, and only about a node of this cluster; one that says an
//! instance has ended is believed once the cloud says so too. Answers to `pkg/controllers/interruption` of the AWS
//! provider.

mod decision;
mod entries;
pub(crate) mod instance_status;
mod interrupted_claim;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apis::NodeClaim;
use apis::ObjectKey;
use cloudprovider::{
    CloudProvider, ImpairmentKind, InstanceLife, Interruption, InterruptionKind, InterruptionQueue,
};
use jiff::SignedDuration;
use tracing::{debug, error};

use crate::interruption::decision::{Decided, Evidence, Observed, Step, Witness, decide, witness};
use crate::interruption::entries::InterruptionEntry;
use crate::node_claim::instance_life;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::metrics::labels::{MessageTypeLabel, Series};
use crate::shell::runtime::several_at_once::several_at_once;
use crate::shell::runtime::work_queue::BackOff;
use crate::watches::Keys;

/// Notices handled at one time.
const AT_ONCE: usize = 10;
/// Pause after a poll that failed.
const RETRY: BackOff = BackOff {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(1),
};
/// A notice that nobody can make sense of yet is put back until it is this old.
const PUT_BACK_UNTIL_AGE: SignedDuration = SignedDuration::from_mins(2);

/// Controller that reads the queue of notices.
pub(crate) struct InterruptionController {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) queue: Arc<dyn InterruptionQueue>,
    /// Nodes that wait for their instances to end.
    pub(crate) terminations: Keys,
}

/// Knowledge that notices share which came together.
struct Background {
    /// Names of claims, by the id of their instance.
    claims: BTreeMap<String, String>,
    /// Instances for which the cloud has planned something, where that was asked and is told.
    scheduled: Option<BTreeSet<String>>,
}

/// Fate of a notice. The last one counts, of those that its instances lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Handled {
    /// It is off the queue.
    Done,
    /// It stays on the queue and comes again, until it is old.
    Later,
    /// What it asks for could not be done. It comes again until it is, or until the queue itself forgets it: its age
    /// says nothing of who failed.
    Failed,
}

impl InterruptionController {
    /// Karpenter's name of it, as metrics show it.
    pub(crate) const NAME: &'static str = "interruption";

    pub(crate) async fn run(&self) {
        self.shell.metrics.begin_controller(Self::NAME, 1);
        let mut pause = RETRY.first;
        loop {
            let received = self.queue.receive().await;
            let mut round = self.shell.metrics.round(Self::NAME);
            match received {
                Ok(notices) => {
                    pause = RETRY.first;
                    // A queue that answers at once without waiting must not keep the others from their work.
                    tokio::task::yield_now().await;
                    self.handle_all(&notices).await;
                }
                Err(error) => {
                    error!(%error, "polling for interruption notices");
                    round.failed(error.into());
                    drop(round);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY.longest);
                }
            }
        }
    }

    async fn handle_all(&self, notices: &[Interruption]) {
        if notices.is_empty() {
            return;
        }
        let background = self.background(notices).await;
        let handling = notices.iter().map(|it| self.handle(it, &background));
        several_at_once(AT_ONCE, handling).await;
    }

    /// Gathers the knowledge that these notices share.
    async fn background(&self, notices: &[Interruption]) -> Background {
        let ids = notices.iter().flat_map(|it| &it.instance_ids);
        let ids = ids.map(String::as_str).collect();
        let claims = interrupted_claim::claims_of(&self.shell, &ids);
        let is_change = |it: &&Interruption| it.kind == InterruptionKind::ScheduledChange;
        let mut changed = notices
            .iter()
            .filter(is_change)
            .flat_map(|it| &it.instance_ids);
        let scheduled = if changed.any(|id| claims.contains_key(id)) {
            self.scheduled().await
        } else {
            None
        };
        Background { claims, scheduled }
    }

    /// Ids of the instances for which the cloud has planned something. None where it does not say: then notices have to
    /// be believed, as a role without `ec2:DescribeInstanceStatus` hears of it in no other way.
    async fn scheduled(&self) -> Option<BTreeSet<String>> {
        match self.provider.impairments().await {
            Ok(impairments) => {
                let planned = impairments.into_iter();
                let planned = planned.filter(|it| it.kind == ImpairmentKind::EventStatus);
                Some(planned.map(|it| it.instance_id).collect())
            }
            Err(error) => {
                debug!(%error, "what the cloud has planned for instances cannot be told");
                None
            }
        }
    }

    async fn handle(&self, notice: &Interruption, background: &Background) {
        let metrics = &self.shell.metrics;
        let series = Series(MessageTypeLabel(notice.kind.as_str()));
        metrics.interruption_received.get_or_create(&series).inc();
        if let Some(at) = notice.happened_at {
            let took = self.shell.now().duration_since(at).as_secs_f64();
            metrics
                .interruption_queue_seconds
                .get_or_create(&Series(()))
                .observe(took.max(0.0));
        }
        if let Some(fault) = &notice.fault {
            error!(error = %fault, "an interruption notice cannot be read and is dropped");
        }
        let mut handled = Handled::Done;
        if notice.kind != InterruptionKind::NoOp {
            for id in &notice.instance_ids {
                let fate = self.about(notice, id, background).await;
                handled = handled.max(fate.unwrap_or_else(|error| {
                    error!(%error, kind = notice.kind.as_str(), "handling an interruption notice");
                    Handled::Failed
                }));
            }
        }
        let stays = match handled {
            Handled::Done => false,
            Handled::Later => self.may_wait(notice),
            Handled::Failed => true,
        };
        if stays {
            return;
        }
        match self.queue.delete(&notice.receipt).await {
            Ok(()) => {
                metrics
                    .interruption_deleted
                    .get_or_create(&Series(()))
                    .inc();
            }
            // It comes again, and finds its work done.
            Err(error) => error!(%error, "taking an interruption notice off the queue"),
        }
    }

    fn may_wait(&self, notice: &Interruption) -> bool {
        // One of a time to come would else wait until then.
        notice
            .happened_at
            .is_some_and(|at| self.shell.now().duration_since(at).abs() < PUT_BACK_UNTIL_AGE)
    }

    async fn about(
        &self,
        notice: &Interruption,
        instance_id: &str,
        background: &Background,
    ) -> Result<Handled, ReconcileError> {
        let kind = notice.kind;
        let observed = self.observe(kind, instance_id, background).await?;
        let Decided { steps, handled } = decide(kind, &observed);
        match &observed {
            Observed::Claimed { claim, .. } => {
                for step in steps {
                    self.apply(kind, claim, step).await?;
                }
            }
            Observed::Unclaimed { .. } => {
                debug!(instance_id, kind = kind.as_str(), "no claim of ours");
            }
            Observed::ClaimGone => {}
        }
        Ok(handled)
    }

    async fn observe(
        &self,
        kind: InterruptionKind,
        instance_id: &str,
        background: &Background,
    ) -> Result<Observed, ReconcileError> {
        let Some(name) = background.claims.get(instance_id) else {
            let is_synced = self.shell.model.is_synced();
            return Ok(Observed::Unclaimed { is_synced });
        };
        let claim = interrupted_claim::claim_of(&self.shell, name, instance_id).await?;
        let Some(claim) = claim else {
            return Ok(Observed::ClaimGone);
        };
        let evidence = match witness(kind, &claim) {
            Witness::Claim => Evidence::Claim,
            Witness::Instance => Evidence::Instance(self.life(&claim).await?),
            Witness::Schedule => {
                let scheduled = background.scheduled.as_ref();
                Evidence::Schedule(scheduled.map(|it| it.contains(instance_id)))
            }
        };
        Ok(Observed::Claimed { claim, evidence })
    }

    /// How far the life of the claim's instance has got, where the cloud knows it.
    async fn life(&self, claim: &NodeClaim) -> Result<Option<InstanceLife>, ReconcileError> {
        let Some(id) = claim.provider_id() else {
            return Ok(None);
        };
        Ok(instance_life(self.provider.as_ref(), &id).await?)
    }

    async fn apply(
        &self,
        kind: InterruptionKind,
        claim: &NodeClaim,
        step: Step,
    ) -> Result<(), ReconcileError> {
        let shell = &self.shell;
        match step {
            Step::LookAtEnding => {
                let node = claim.status.as_ref().and_then(|it| it.node_name.as_ref());
                if let Some(name) = node {
                    self.terminations.add(ObjectKey::cluster(name.clone()));
                }
            }
            Step::Disbelieve => {
                let entry = InterruptionEntry::Disbelieved(&kind);
                interrupted_claim::write_entry(shell, claim, &entry);
            }
            Step::Notify => {
                self.queue.note(kind, claim);
                interrupted_claim::notify(shell, claim, kind);
            }
            Step::DeleteClaim => interrupted_claim::delete(shell, claim, kind).await?,
        }
        Ok(())
    }
}
