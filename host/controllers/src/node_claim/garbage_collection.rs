//! Deletes claims whose instance is gone, and terminates instances that belong to no claim. Copies of claims at rest go
//! on the same occasion.
//!
//! Every two minutes, and more often after a start, against the cloud's own list. Answers to
//! `pkg/controllers/nodeclaim/garbagecollection/controller.go` and the AWS provider's namesake.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::conditions::is_node_ready;
use apis::{NodeClaim, conditions};
use cloudprovider::{CloudProvider, CloudProviderError, LaunchAttempt, Launched};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use state::ledger::{LaunchStepRecord, OutcomeId, Record};
use tracing::{error, warn};

use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::launch::is_listed_by_now;
use crate::node_claim::{NodeClaimExt, remaining};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::JournalEntry;
use crate::shell::paging::for_each_listed;

pub(crate) const PERIOD: Duration = Duration::from_mins(2);
/// After a start there may be what an earlier process left: so often, and so soon.
const FIRST_RUNS: u32 = 20;
const FIRST_PERIOD: Duration = Duration::from_secs(10);
/// An instance this young may belong to a claim whose status is still being written.
const YOUNG: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 20;

/// The controller.
pub(crate) struct GarbageCollection {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

struct Observed {
    claims: Vec<NodeClaim>,
    /// Taken before the claims were listed.
    instances: Vec<Launched>,
    /// Provider ids of nodes that are Ready.
    ready: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Decided {
    claims: Vec<NodeClaim>,
    instances: Vec<Launched>,
}

impl GarbageCollection {
    pub(crate) async fn run(&self) {
        let mut runs = 0;
        loop {
            let is_new = runs < FIRST_RUNS;
            tokio::time::sleep(if is_new { FIRST_PERIOD } else { PERIOD }).await;
            let mut round = self.shell.metrics.round("nodeclaim.garbagecollection");
            self.shell.model.forget_claims_at_rest();
            match self.observe().await {
                Ok(observed) => {
                    runs += 1;
                    self.apply(decide(observed, self.shell.now())).await;
                }
                Err(error) => {
                    error!(%error, "listing for garbage collection");
                    round.failed(error);
                }
            }
        }
    }

    async fn observe(&self) -> Result<Observed, ReconcileError> {
        // First the cloud, then the API: what the list holds too much is young, not leaked.
        let instances = self.provider.list().await?;
        let mut claims = Vec::new();
        self.shell
            .model
            .for_each_claim("", |mut claim| {
                // Hundreds of names of instance types, which nothing here asks for.
                claim.spec.requirements = Vec::new();
                claim.metadata.managed_fields = None;
                claims.push(claim);
            })
            .await?;
        let mut ready = BTreeSet::new();
        for_each_listed(&self.shell.writer.api::<Node>(), "", |node| {
            let is_ready = is_node_ready(&node);
            let id = node.spec.and_then(|spec| spec.provider_id);
            ready.extend(id.filter(|_| is_ready));
        })
        .await?;
        Ok(Observed {
            claims,
            instances,
            ready,
        })
    }

    async fn apply(&self, decided: Decided) {
        let Decided { claims, instances } = decided;
        let deletes: Vec<_> = claims
            .iter()
            .map(|claim| self.delete_claim(claim))
            .collect();
        stream::iter(deletes)
            .buffered(AT_ONCE)
            .for_each(|()| async {})
            .await;
        let terminations: Vec<_> = instances.iter().map(|it| self.terminate(it)).collect();
        stream::iter(terminations)
            .buffered(AT_ONCE)
            .for_each(|()| async {})
            .await;
    }

    async fn delete_claim(&self, claim: &NodeClaim) {
        if let Err(error) = ignore_not_found(self.shell.writer.delete(claim).await) {
            error!(NodeClaim = %claim.name_any(), %error, "garbage collecting nodeclaim");
            return;
        }
        self.shell.journal.write(claim, &ClaimEntry::InstanceLost);
    }

    async fn terminate(&self, instance: &Launched) {
        let id = &instance.provider_id;
        match self.provider.delete(id).await {
            Ok(()) | Err(CloudProviderError::NotFound(_)) => {}
            Err(error) => {
                error!(provider_id = %id, %error, "garbage collecting instance");
                return;
            }
        }
        self.shell.journal.write(instance, &LeakedInstance);
        match self.shell.model.nodes_of(id).await {
            Ok(nodes) => {
                for node in nodes {
                    if let Err(error) =
                        ignore_not_found(self.shell.writer.delete(node.as_ref()).await)
                    {
                        error!(Node = %node.name_any(), %error, "garbage collecting node");
                    }
                }
            }
            Err(error) => error!(provider_id = %id, %error, "finding nodes of the instance"),
        }
    }
}

/// An instance that belonged to no claim was terminated.
struct LeakedInstance;

impl JournalEntry for LeakedInstance {
    type Subject = Launched;

    fn log(&self, instance: &Launched) {
        warn!(provider_id = %instance.provider_id, "garbage collected cloudprovider instance");
    }

    fn line(&self, instance: &Launched) -> Option<String> {
        let id = &instance.provider_id;
        Some(format!("terminated {id}, which belongs to no claim"))
    }

    fn record(&self, instance: &Launched, at: Timestamp) -> Option<Record> {
        let label = |key: &str| instance.labels.get(key).cloned().unwrap_or_default();
        Some(Record::Launch(LaunchStepRecord {
            at,
            claim: instance.node_claim_name.clone().unwrap_or_default(),
            pool: instance.node_pool_name.clone().unwrap_or_default(),
            node: String::new(),
            outcome: OutcomeId::InstanceGarbageCollected,
            instance_type: label(apis::labels::INSTANCE_TYPE),
            zone: label(apis::labels::TOPOLOGY_ZONE),
            capacity_type: label(apis::labels::CAPACITY_TYPE),
            price_per_hour: 0.0,
            reason: instance.provider_id.clone(),
            policies: Vec::new(),
        }))
    }
}

fn decide(observed: Observed, now: Timestamp) -> Decided {
    let Observed {
        claims,
        instances,
        ready,
    } = observed;
    let alive: BTreeSet<&str> = instances
        .iter()
        .filter(|instance| !instance.is_terminating)
        .map(|instance| instance.provider_id.as_str())
        .collect();
    let owned: BTreeSet<&str> = claims
        .iter()
        .filter_map(|claim| claim.provider_id())
        .collect();
    // A claim that is still launching has no provider id yet; its instance bears its name or the token of its launch.
    let waiting = || claims.iter().filter(|claim| claim.provider_id().is_none());
    let launching: BTreeSet<String> = waiting().map(ResourceExt::name_any).collect();
    let tokens: BTreeSet<String> = waiting()
        .filter_map(|claim| Some(LaunchAttempt::of(claim)?.token))
        .collect();
    let is_awaited = |instance: &Launched| {
        let is_in = |known: &BTreeSet<String>, told: Option<&String>| {
            told.is_some_and(|it| known.contains(it))
        };
        is_in(&launching, instance.node_claim_name.as_ref())
            || is_in(&tokens, instance.launch_token.as_ref())
    };
    let lost: Vec<NodeClaim> = claims
        .iter()
        .filter(|claim| claim.metadata.deletion_timestamp.is_none())
        .filter(|claim| claim.is_true(conditions::REGISTERED))
        .filter(|claim| is_listed_by_now(claim, now))
        .filter(|claim| {
            claim
                .provider_id()
                .is_some_and(|id| !alive.contains(id) && !ready.contains(id))
        })
        .cloned()
        .collect();
    let leaked: Vec<Launched> = instances
        .iter()
        .filter(|instance| {
            !instance.is_terminating && !owned.contains(instance.provider_id.as_str())
        })
        .filter(|instance| !is_awaited(instance))
        .filter(|instance| {
            instance
                .launched_at
                .is_some_and(|at| remaining(at, YOUNG, now).is_zero())
        })
        .cloned()
        .collect();
    Decided {
        claims: lost,
        instances: leaked,
    }
}
