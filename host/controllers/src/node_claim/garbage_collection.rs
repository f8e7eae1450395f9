//! Deletes claims whose instance is gone, and terminates instances that belong to no claim. Copies of claims at rest go
//! on the same occasion.
//!
//! Every two minutes, and more often after a start, against the cloud's own list. Answers to
//! `pkg/controllers/nodeclaim/garbagecollection/controller.go` and the AWS provider's namesake.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, Conditioned, is_node_ready};
use apis::{NodeClaim, ProviderId, labels};
use cloudprovider::{CloudProvider, CloudProviderError, LaunchAttempt, Launched};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use state::ledger::{LaunchStepRecord, OutcomeId, Record};
use tracing::{error, warn};

use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::launch::is_listed_by_now;
use crate::node_claim::remaining;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::JournalEntry;
use crate::shell::paging::for_each_listed;
use crate::shell::periodic::{PastRound, Periodic};

pub(crate) const PERIOD: Duration = Duration::from_mins(2);
/// After a start there may be what an earlier process left: so often, and so soon.
const FIRST_RUNS: u32 = 20;
const FIRST_PERIOD: Duration = Duration::from_secs(10);
/// An instance this young may belong to a claim whose status is still being written.
const YOUNG: Duration = Duration::from_secs(30);
const AT_ONCE: usize = 20;

/// The controller.
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
    claims: Vec<NodeClaim>,
    instances: Vec<Launched>,
}

impl Periodic for GarbageCollection {
    const NAME: &'static str = "nodeclaim.garbagecollection";
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    async fn round(&mut self) -> Result<(), ReconcileError> {
        self.shell.model.forget_claims_at_rest();
        let observed = self.observe().await?;
        self.runs = self.runs.saturating_add(1);
        self.apply(decide(observed, self.shell.now())).await;
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
            ready.extend(ProviderId::of_node(&node).filter(|_| is_ready));
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
        let Some(id) = claim.provider_id() else {
            return;
        };
        match self.provider.get(&id).await {
            Err(error) if error.is_not_found() => {}
            Ok(instance) if instance.is_terminating => {}
            // Left out of the list for once.
            Ok(_) => return,
            Err(error) => {
                error!(NodeClaim = %claim.name_any(), %error, "an instance is not listed, and whether it is gone cannot be told");
                return;
            }
        }
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
            instance_type: label(labels::INSTANCE_TYPE),
            zone: label(labels::TOPOLOGY_ZONE),
            capacity_type: label(labels::CAPACITY_TYPE),
            price_per_hour: 0.0,
            reason: instance.provider_id.to_string(),
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
    let running = instances.iter().filter(|instance| !instance.is_terminating);
    let alive: BTreeSet<&ProviderId> = running.map(|instance| &instance.provider_id).collect();
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
        .filter_map(|claim| claim.labels().get(labels::NODEPOOL).cloned())
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
    let lost: Vec<NodeClaim> = claims
        .iter()
        .filter(|claim| claim.metadata.deletion_timestamp.is_none())
        .filter(|claim| claim.is_condition_true(conditions::REGISTERED))
        .filter(|claim| is_listed_by_now(claim, now))
        .filter(|claim| {
            claim
                .provider_id()
                .is_some_and(|id| !alive.contains(&id) && !ready.contains(&id))
        })
        .cloned()
        .collect();
    let leaked: Vec<Launched> = instances
        .iter()
        .filter(|instance| !instance.is_terminating && !owned.contains(&instance.provider_id))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use apis::resources::Resources;
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::{claim_with, condition};

    fn now() -> Timestamp {
        "2026-01-01T01:00:00Z".parse().unwrap()
    }

    /// An instance that nobody is said to have, launched half an hour ago.
    fn instance() -> Launched {
        Launched {
            provider_id: ProviderId::of_instance("a", "i-1"),
            image_id: String::new(),
            node_claim_name: None,
            launch_token: None,
            node_pool_name: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            capacity: Resources::new(),
            allocatable: Resources::new(),
            launched_at: Some("2026-01-01T00:30:00Z".parse().unwrap()),
            is_terminating: false,
            is_stopped: false,
        }
    }

    /// A claim of that instance, with a node since long ago, and what else is said of it.
    fn claim(extra: &Value) -> NodeClaim {
        let mut said = json!({"/metadata/deletionTimestamp": null, "/status/conditions": [
            condition("Launched", "True", "00:05"),
            condition("Registered", "True", "00:10"),
        ]});
        for (path, value) in extra.as_object().unwrap() {
            said[path] = value.clone();
        }
        claim_with(&said)
    }

    #[test]
    fn a_claim_goes_once_its_instance_must_be_listed_and_is_not() {
        let young = json!({"/status/conditions": [
            condition("Launched", "True", "00:59"),
            condition("Registered", "True", "00:59"),
        ]});
        let unregistered = json!({"/status/conditions": [condition("Launched", "True", "00:05")]});
        let going = json!({"/metadata/deletionTimestamp": "2026-01-01T00:50:00Z"});
        let ends = Launched {
            is_terminating: true,
            ..instance()
        };
        let cases = [
            (json!({}), None, false, true),
            (json!({}), Some(instance()), false, false),
            (json!({}), Some(ends), false, true),
            // The kubelet says that the machine is there, whatever the list says.
            (json!({}), None, true, false),
            (young, None, false, false),
            (unregistered, None, false, false),
            (going, None, false, false),
        ];
        for (extra, listed, is_ready, is_lost) in cases {
            let case = format!("{extra} {listed:?} {is_ready}");
            let ready = is_ready.then(|| instance().provider_id);
            let decided = decide(
                Observed {
                    claims: vec![claim(&extra)],
                    instances: listed.into_iter().collect(),
                    ready: ready.into_iter().collect(),
                },
                now(),
            );
            assert_eq!(decided.claims.len(), usize::from(is_lost), "{case}");
            assert!(decided.instances.is_empty(), "{case}");
        }
    }

    #[test]
    fn an_instance_goes_that_no_claim_has_or_waits_for() {
        let waits = json!({
            "/status/providerID": null, "/metadata/annotations": {labels::LAUNCH_ANNOTATION: "1/t"},
        });
        let other = json!({"/status/providerID": "aws:///a/i-2"});
        let named = |name: &str| Launched {
            node_claim_name: Some(name.to_owned()),
            ..instance()
        };
        let begun = |token: &str| Launched {
            launch_token: Some(token.to_owned()),
            ..instance()
        };
        let at = |launched_at: Option<&str>| Launched {
            launched_at: launched_at.map(|it| it.parse().unwrap()),
            ..instance()
        };
        let ends = Launched {
            is_terminating: true,
            ..instance()
        };
        let untried = json!({
            "/status/providerID": null, "/metadata/labels": {labels::NODEPOOL: "pool"},
        });
        let of_pool = |pool: &str| Launched {
            node_pool_name: Some(pool.to_owned()),
            ..instance()
        };
        let cases = [
            (untried.clone(), of_pool("pool"), false),
            (untried, of_pool("other"), true),
            (waits.clone(), of_pool("pool"), true),
            (json!({}), instance(), false),
            (other.clone(), instance(), true),
            (other.clone(), at(Some("2026-01-01T00:59:45Z")), false),
            (other.clone(), at(None), false),
            (other.clone(), ends, false),
            // One that has its instance waits for no other.
            (other, named("c"), true),
            (waits.clone(), named("c"), false),
            (waits.clone(), named("d"), true),
            (waits.clone(), begun("t"), false),
            (waits, begun("u"), true),
        ];
        for (extra, instance, is_leaked) in cases {
            let case = format!("{extra} {instance:?}");
            let decided = decide(
                Observed {
                    claims: vec![claim(&extra)],
                    instances: vec![instance],
                    ready: [ProviderId::of_instance("a", "i-2")].into(),
                },
                now(),
            );
            assert_eq!(decided.instances.len(), usize::from(is_leaked), "{case}");
            assert!(decided.claims.is_empty(), "{case}");
        }
    }
}
