//! Asks the cloud every minute which instances it finds sick or has plans with, and lets their claims go.
//!
//! Needs no queue. A sick instance goes without waiting for its pods, whose evictions nothing there would answer.
//! Answers to `pkg/controllers/interruption/instancestatus_controller.go` of the AWS provider.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudprovider::{CloudProvider, Impairment, InterruptionKind};
use futures::stream::{self, StreamExt};
use tracing::{error, info};

use crate::interruption::Withdrawal;
use crate::node_claim::{NodeClaimExt, with_deadline};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;

const PERIOD: Duration = Duration::from_mins(1);
/// Instances handled at one time.
const AT_ONCE: usize = 10;

/// The controller.
pub(crate) struct InstanceStatusController {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

/// An instance and what is wrong with it.
type Trouble = (String, InterruptionKind);

impl InstanceStatusController {
    pub(crate) async fn run(&self) {
        let mut counted = BTreeSet::new();
        let mut told = None;
        loop {
            tokio::time::sleep(PERIOD).await;
            let mut round = self.shell.metrics.round("interruption.instancestatus");
            match self.provider.impairments().await {
                Ok(found) => {
                    told = None;
                    counted = self.handle_all(&found, &counted).await;
                }
                Err(error) => {
                    round.failed(error.clone().into());
                    // Most likely a permission is missing: once is enough.
                    if told.as_ref() != Some(&error) {
                        error!(%error, "sick instances stay unknown; the controller's role needs ec2:DescribeInstanceStatus");
                        told = Some(error);
                    }
                }
            }
        }
    }

    /// Acts on those that are this cluster's, which it returns.
    async fn handle_all(
        &self,
        found: &[Impairment],
        counted: &BTreeSet<Trouble>,
    ) -> BTreeSet<Trouble> {
        if found.is_empty() {
            return BTreeSet::new();
        }
        let withdrawal = Withdrawal { shell: &self.shell };
        let ids = found.iter().map(|it| it.instance_id.as_str()).collect();
        let claims = withdrawal.claims(&ids);
        let mut ours = BTreeSet::new();
        let mut handling = Vec::new();
        for it in found {
            let Some(name) = claims.get(&it.instance_id) else {
                continue;
            };
            let trouble = (it.instance_id.clone(), it.kind);
            if !counted.contains(&trouble) {
                info!(NodeClaim = %name, kind = it.kind.as_str(), since = %it.since, "the cloud finds an instance unhealthy");
                let label = vec![("category", category(it.kind).to_owned())];
                let metrics = &self.shell.metrics;
                metrics
                    .instance_status_unhealthy
                    .get_or_create(&label)
                    .inc();
            }
            ours.insert(trouble);
            handling.push(self.handle(it, name));
        }
        let mut handled = stream::iter(handling).buffered(AT_ONCE);
        while let Some(outcome) = handled.next().await {
            if let Err(error) = outcome {
                error!(%error, "letting the claim of an unhealthy instance go");
            }
        }
        ours
    }

    async fn handle(&self, it: &Impairment, name: &str) -> Result<(), ReconcileError> {
        let withdrawal = Withdrawal { shell: &self.shell };
        let Some(claim) = withdrawal.claim(name, &it.instance_id).await? else {
            return Ok(());
        };
        // A claim that drains already is hurried, too.
        let now = self.shell.now();
        let may_wait = claim.termination_deadline().is_none_or(|at| at > now);
        if it.kind.is_forceful() && may_wait {
            let hurried = with_deadline(&claim, now);
            self.shell.writer.write_claim(&claim, &hurried).await?;
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        withdrawal.notify(&claim, it.kind);
        withdrawal.delete(&claim, it.kind).await
    }
}

/// The word of metrics, as the original has it.
fn category(kind: InterruptionKind) -> &'static str {
    match kind {
        InterruptionKind::InstanceStatus => "InstanceStatus",
        InterruptionKind::SystemStatus => "SystemStatus",
        InterruptionKind::EventStatus => "EventStatus",
        InterruptionKind::SpotInterrupted
        | InterruptionKind::RebalanceRecommendation
        | InterruptionKind::ScheduledChange
        | InterruptionKind::InstanceStopped
        | InterruptionKind::InstanceTerminated
        | InterruptionKind::CapacityReservationInterrupted
        | InterruptionKind::NoOp => kind.as_str(),
    }
}
