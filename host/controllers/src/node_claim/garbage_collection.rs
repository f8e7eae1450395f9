//! Deletes claims whose instance is gone, and terminates instances that belong to no claim. Copies of claims at rest go
//! on the same occasion.
//!
//! Every two minutes, and more often after a start, against the cloud's own list. Answers to
//! `pkg/controllers/nodeclaim/garbagecollection/controller.go` and the AWS provider's namesake.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, Conditioned, is_node_ready};
use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{CloudProvider, CloudProviderError, InstanceLife, LaunchAttempt, Launched};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use state::Snapshot;
use state::ledger::{LaunchStepRecord, OutcomeId, Record};
use tracing::{error, warn};

use crate::node_claim::entries::end::InstanceLost;
use crate::node_claim::lifecycle::launch::is_listed_by_now;
use crate::node_claim::remaining;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::JournalEntry;
use crate::shell::model::paging::for_each_listed;
use crate::shell::runtime::periodic::{PastRound, Periodic};
use crate::shell::runtime::several_at_once::several_at_once;

pub(crate) const PERIOD: Duration = Duration::from_mins(2);
/// After a start there may be what an earlier process left: so often, and so soon.
const FIRST_RUNS: u32 = 20;
const FIRST_PERIOD: Duration = Duration::from_secs(10);
/// An instance this young may belong to a claim whose status is still being written.
const YOUNG: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 20;

/// Controller that holds claims against the cloud's list of instances.
pub(crate) struct GarbageCollection {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    /// Rounds that came to their end, of the first ones.
    runs: u32,
}

struct Observed {
    claims: Vec<NodeClaim>,
    /// Taken before the claims were listed.
    instances: Vec<Launched>,
    /// Provider ids of nodes that are Ready.
    ready: BTreeSet<ProviderId>,
}

#[derive(Debug, Default)]
struct Decided {
    /// Claims whose instances the list lacks: the cloud is asked for each of these alone.
    suspects: Vec<Suspect>,
    /// Instances that are ended.
    leaked: Vec<Launched>,
}

/// A claim whose instance was not listed.
#[derive(Debug)]
struct Suspect {
    claim: NodeClaim,
    provider_id: ProviderId,
}

/// Fate of such a claim.
#[derive(Debug, PartialEq)]
enum SecondLook {
    /// Its instance is gone, and so it goes.
    Lost,
    /// Its instance is there, and was left out of the list for once.
    Stays,
    /// It stays for now.
    Unknown(CloudProviderError),
}

impl Periodic for GarbageCollection {
    const NAME: &'static str = "nodeclaim.garbagecollection";
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    async fn round(&mut self) -> Result<(), ReconcileError> {
        self.shell.model.forget_claims_at_rest();
        // First the cloud, then the API: what the list holds too much is young, not leaked.
        let instances = self.provider.list().await?;
        // All claims with all that they name are much to read for nothing.
        if !is_in_order(&self.shell.model.snapshot(), &instances) {
            self.collect(instances).await?;
        }
        self.runs = self.runs.saturating_add(1);
        Ok(())
    }

    fn log(&mut self, error: &ReconcileError) {
        error!(%error, "listing for garbage collection");
    }

    fn pause(&self, _: PastRound) -> Duration {
        if self.runs < FIRST_RUNS {
            FIRST_PERIOD
        } else {
            PERIOD
        }
    }
}

impl GarbageCollection {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            runs: 0,
        }
    }

    async fn collect(&self, instances: Vec<Launched>) -> Result<(), ReconcileError> {
        let observed = self.observe(instances).await?;
        let Decided { suspects, leaked } = decide(observed, self.shell.now());
        several_at_once(AT_ONCE, suspects.iter().map(|it| self.look_again(it))).await;
        several_at_once(AT_ONCE, leaked.iter().map(|it| self.terminate(it))).await;
        Ok(())
    }

    async fn observe(&self, instances: Vec<Launched>) -> Result<Observed, ReconcileError> {
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
            ready.extend(ProviderId::of_node(&node).filter(|_| is_ready));
        })
        .await?;
        Ok(Observed {
            claims,
            instances,
            ready,
        })
    }

    /// Asks for the instance of a claim by its id, and acts on the answer.
    async fn look_again(&self, suspect: &Suspect) {
        let Suspect { claim, provider_id } = suspect;
        match second_look(self.provider.get(provider_id).await) {
            SecondLook::Lost => self.delete_claim(claim).await,
            SecondLook::Stays => {}
            SecondLook::Unknown(error) => {
                error!(NodeClaim = %claim.name_any(), %error, "an instance is not listed, and whether it is gone cannot be told");
            }
        }
    }

    async fn delete_claim(&self, claim: &NodeClaim) {
        if let Err(error) = ignore_not_found(self.shell.writer.delete(claim).await) {
            error!(NodeClaim = %claim.name_any(), %error, "garbage collecting nodeclaim");
            return;
        }
        self.shell.journal.write(claim, &InstanceLost);
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
        match self.shell.model.node_facts_of(id).await {
            Ok(nodes) => {
                for node in nodes {
                    if let Err(error) = ignore_not_found(self.shell.writer.delete_node(&node).await)
                    {
                        error!(Node = %node.name, %error, "garbage collecting node");
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

    fn lines(&self, instance: &Launched) -> Vec<String> {
        let id = &instance.provider_id;
        vec![format!("terminated {id}, which belongs to no claim")]
    }

    fn record(&self, instance: &Launched, at: Timestamp) -> Option<Record> {
        let label = |key: &str| instance.labels.get(key).cloned().unwrap_or_default();
        Some(Record::Launch(LaunchStepRecord {
            at,
            claim: instance.node_claim_name.clone().unwrap_or_default(),
            pool: instance.node_pool_name.clone().unwrap_or_default(),
            node: String::new(),
            outcome: OutcomeId::InstanceGarbageCollected,
            instance_type: label(labels::INSTANCE_TYPE),
            zone: label(labels::TOPOLOGY_ZONE),
            capacity_type: label(labels::CAPACITY_TYPE),
            price_per_hour: 0.0,
            reason: instance.provider_id.to_string(),
            policies: Vec::new(),
        }))
    }
}

/// Provider ids of the instances that are not about to go.
fn alive(instances: &[Launched]) -> BTreeSet<&ProviderId> {
    let running = instances
        .iter()
        .filter(|instance| instance.life != InstanceLife::Ends);
    running.map(|instance| &instance.provider_id).collect()
}

/// Whether each running instance has its claim and each claim of a registered node its instance, as watches tell. Where
/// they do not, the API server itself is asked before anything goes.
fn is_in_order(snapshot: &Snapshot, instances: &[Launched]) -> bool {
    let alive = alive(instances);
    let claimed = snapshot
        .nodes()
        .filter_map(|node| Some((node, node.claim()?)));
    let mut owned = BTreeSet::new();
    for (node, claim) in claimed {
        let Some(provider_id) = &claim.provider_id else {
            continue;
        };
        owned.insert(provider_id);
        let is_registered = claim.conditions.registered_at.is_some();
        let is_there = alive.contains(provider_id) || node.node().is_some_and(|it| it.is_ready);
        if is_registered && claim.deleted_at.is_none() && !is_there {
            return false;
        }
    }
    alive.is_subset(&owned)
}

fn decide(observed: Observed, now: Timestamp) -> Decided {
    let Observed {
        claims,
        instances,
        ready,
    } = observed;
    let alive = alive(&instances);
    let owned: BTreeSet<ProviderId> = claims.iter().filter_map(NodeClaim::provider_id).collect();
    // A claim that is still launching has no provider id yet; its instance bears its name or the token of its launch.
    let waiting = || claims.iter().filter(|claim| claim.provider_id().is_none());
    let launching: BTreeSet<String> = waiting().map(ResourceExt::name_any).collect();
    let tokens: BTreeSet<String> = waiting()
        .filter_map(|claim| Some(LaunchAttempt::of(claim)?.token))
        .collect();
    // One that bears neither was left by a Karpenter, and any claim of its pool may take it that nobody has tried yet.
    let untried: BTreeSet<String> = waiting()
        .filter(|claim| LaunchAttempt::of(claim).is_none())
        .filter_map(|claim| claim.pool_name().map(str::to_owned))
        .collect();
    let is_awaited = |instance: &Launched| {
        let is_in = |known: &BTreeSet<String>, tag: Option<&String>| {
            tag.is_some_and(|it| known.contains(it))
        };
        is_in(&launching, instance.node_claim_name.as_ref())
            || is_in(&tokens, instance.launch_token.as_ref())
            || (instance.node_claim_name.is_none()
                && instance.launch_token.is_none()
                && is_in(&untried, instance.node_pool_name.as_ref()))
    };
    let suspects = claims
        .iter()
        .filter(|claim| claim.metadata.deletion_timestamp.is_none())
        .filter(|claim| claim.is_condition_true(conditions::REGISTERED))
        .filter(|claim| is_listed_by_now(claim, now))
        .filter_map(|claim| {
            let provider_id = claim.provider_id()?;
            let is_there = alive.contains(&provider_id) || ready.contains(&provider_id);
            (!is_there).then(|| Suspect {
                claim: claim.clone(),
                provider_id,
            })
        });
    let leaked = instances
        .iter()
        .filter(|instance| {
            instance.life != InstanceLife::Ends && !owned.contains(&instance.provider_id)
        })
        .filter(|instance| !is_awaited(instance))
        .filter(|instance| {
            instance
                .launched_at
                .is_some_and(|at| remaining(at, YOUNG, now).is_zero())
        });
    Decided {
        suspects: suspects.collect(),
        leaked: leaked.cloned().collect(),
    }
}

/// What the cloud's answer about the instance of a suspect means.
fn second_look(answer: Result<Launched, CloudProviderError>) -> SecondLook {
    match answer {
        Ok(instance) if instance.life == InstanceLife::Ends => SecondLook::Lost,
        Ok(_) => SecondLook::Stays,
        Err(error) if error.is_not_found() => SecondLook::Lost,
        Err(error) => SecondLook::Unknown(error),
    }
}
