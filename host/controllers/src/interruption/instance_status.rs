//! Asks the cloud every minute which instances it finds sick or has plans with, and lets their claims go.
//!
//! Needs no queue. A sick instance goes without waiting for its pods, whose evictions nothing there would answer.
//! Answers to `pkg/controllers/interruption/instancestatus_controller.go` of the AWS provider.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apis::NodeClaim;
use cloudprovider::{
    CloudProvider, CloudProviderError, Impairment, ImpairmentKind, InterruptionKind,
};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use tracing::{error, info};

use crate::interruption::interrupted_claim;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::journal::JournalEntry;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{CategoryLabel, Series};
use crate::shell::runtime::periodic::{PastRound, Periodic};

const PERIOD: Duration = Duration::from_mins(1);
/// Instances handled at one time.
const AT_ONCE: usize = 10;

/// Controller that asks the cloud for instances in trouble; one round a minute.
pub(crate) struct InstanceStatusController {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    counted: BTreeSet<Trouble>,
    /// Why nothing can be known, where that was logged.
    logged: Option<CloudProviderError>,
}

/// An instance and what is wrong with it.
type Trouble = (String, ImpairmentKind);

impl Periodic for InstanceStatusController {
    const NAME: &'static str = "interruption.instancestatus";
    const BEGINS_AT_ONCE: bool = false;
    type Error = CloudProviderError;

    async fn round(&mut self) -> Result<(), CloudProviderError> {
        let found = self.provider.impairments().await?;
        self.logged = None;
        self.counted = self.handle_all(&found, &self.counted).await;
        Ok(())
    }

    /// Most likely a permission is missing: once is enough.
    fn log(&mut self, error: &CloudProviderError) {
        if self.logged.as_ref() != Some(error) {
            error!(%error, "sick instances stay unknown; where this is a refusal, the controller's role needs ec2:DescribeInstanceStatus");
            self.logged = Some(error.clone());
        }
    }

    fn pause(&self, _: PastRound) -> Duration {
        PERIOD
    }
}

impl InstanceStatusController {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            counted: BTreeSet::new(),
            logged: None,
        }
    }

    /// Acts on those that are this cluster's, which it returns.
    async fn handle_all(
        &self,
        found: &[Impairment],
        counted: &BTreeSet<Trouble>,
    ) -> BTreeSet<Trouble> {
        let ids = found.iter().map(|it| it.instance_id.as_str()).collect();
        let claims = interrupted_claim::claims_of(&self.shell, &ids);
        let ours = ours(found, &claims, counted);
        for unhealthy in ours.iter().filter(|it| it.is_new) {
            let entry = UnhealthyEntry(unhealthy.impairment);
            self.shell.journal.write(unhealthy.claim, &entry);
        }
        let handling: Vec<_> = ours
            .iter()
            .map(|it| self.handle(it.impairment, it.claim))
            .collect();
        let mut handled = stream::iter(handling).buffered(AT_ONCE);
        while let Some(outcome) = handled.next().await {
            if let Err(error) = outcome {
                error!(%error, "letting the claim of an unhealthy instance go");
            }
        }
        ours.iter().map(|it| trouble(it.impairment)).collect()
    }

    async fn handle(&self, impairment: &Impairment, name: &str) -> Result<(), ReconcileError> {
        let kind = impairment.kind;
        let claim = interrupted_claim::claim_of(&self.shell, name, &impairment.instance_id).await?;
        let Some(claim) = claim else {
            return Ok(());
        };
        for step in decide(kind, &claim, self.shell.now()) {
            match step {
                Step::Hurry(hurried) => {
                    self.shell.writer.write_claim(&claim, &hurried).await?;
                }
                Step::NotifyAndDelete => {
                    let kind = kind.into();
                    interrupted_claim::notify(&self.shell, &claim, kind);
                    interrupted_claim::delete(&self.shell, &claim, kind).await?;
                }
            }
        }
        Ok(())
    }
}

/// The instance of a claim of this cluster, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
struct Unhealthy<'a> {
    claim: &'a str,
    impairment: &'a Impairment,
    /// Whether it is told and counted: it was not found the last time.
    is_new: bool,
}

fn trouble(impairment: &Impairment) -> Trouble {
    (impairment.instance_id.clone(), impairment.kind)
}

/// Those of what the cloud finds that are about claims of this cluster, by the ids of their instances.
fn ours<'a>(
    found: &'a [Impairment],
    claims: &'a BTreeMap<String, String>,
    counted: &BTreeSet<Trouble>,
) -> Vec<Unhealthy<'a>> {
    let ours = found.iter().filter_map(|impairment| {
        Some(Unhealthy {
            claim: claims.get(&impairment.instance_id)?,
            impairment,
            is_new: !counted.contains(&trouble(impairment)),
        })
    });
    ours.collect()
}

/// Steps for the claim of an unhealthy instance, in this order.
#[derive(Debug)]
enum Step {
    /// Nothing waits for its pods any more.
    Hurry(Box<NodeClaim>),
    /// It is told what is the matter, and goes.
    NotifyAndDelete,
}

fn decide(kind: ImpairmentKind, claim: &NodeClaim, now: Timestamp) -> Vec<Step> {
    // A claim that drains already is hurried, too.
    let may_wait = claim.termination_deadline().is_none_or(|at| at > now);
    let is_hurried = kind.is_forceful() && may_wait;
    let hurry = is_hurried.then(|| Step::Hurry(Box::new(claim.with_termination_deadline(now))));
    let is_living = claim.metadata.deletion_timestamp.is_none();
    let delete = is_living.then_some(Step::NotifyAndDelete);
    hurry.into_iter().chain(delete).collect()
}

/// The cloud finds the instance of a claim, by its name, unhealthy.
struct UnhealthyEntry<'a>(&'a Impairment);

impl JournalEntry for UnhealthyEntry<'_> {
    type Subject = str;

    fn log(&self, claim: &str) {
        let Impairment { kind, since, .. } = self.0;
        let kind = InterruptionKind::from(*kind).as_str();
        info!(NodeClaim = %claim, kind, %since, "the cloud finds an instance unhealthy");
    }

    fn measure(&self, _claim: &str, metrics: &Metrics) {
        let series = Series(CategoryLabel(category(self.0.kind)));
        let unhealthy = &metrics.instance_status_unhealthy;
        unhealthy.get_or_create(&series).inc();
    }
}

/// The word of metrics, as Karpenter has it.
fn category(kind: ImpairmentKind) -> &'static str {
    match kind {
        ImpairmentKind::InstanceStatus => "InstanceStatus",
        ImpairmentKind::SystemStatus => "SystemStatus",
        ImpairmentKind::EventStatus => "EventStatus",
    }
}

#[cfg(test)]
mod tests;
