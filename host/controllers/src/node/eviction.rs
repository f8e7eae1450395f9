//! Asks pods of draining nodes to leave, through the Eviction API, with back-off when a budget refuses; deletes those
//! that would outlive their node's deadline.
//!
//! A budget is gone over for those alone. Answers to `pkg/controllers/node/termination/terminator/eviction.go`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::NodeClaim;
use apis::conditions::{self, Conditioned};
use disruption::drain::{Drain, DrainInput, PodRef, drain_step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta};
use kube::api::{Api, DeleteParams, PostParams};
use kube::core::Status;
use locks::lock;
use scheduling::pod::{Pod, PodKey};

use crate::node::entries::{LeavingPod, PodEntry};
use crate::node_claim::reboot::draining::is_draining;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, api_code};
use crate::shell::journal::references;
use crate::shell::metrics::labels::{CodeLabel, Series};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::runtime::log_spans::{ControllerName, LoggedKey};
use crate::shell::runtime::work_queue::{BackOff, WorkQueue};
use crate::shell::writer::this_very;

/// A pod on its way out, and the node it leaves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EvictionKey {
    pub(crate) node: String,
    pub(crate) pod: PodKey,
    pub(crate) uid: String,
}

impl LoggedKey for EvictionKey {
    fn namespace(&self) -> &str {
        &self.pod.namespace
    }

    fn name(&self) -> &str {
        &self.pod.name
    }
}

impl WorkQueue<EvictionKey> {
    /// Has a pod leave this node, unless that is under way.
    pub(crate) fn evict(&self, node: &str, pod: &PodRef) {
        self.add_new(EvictionKey {
            node: node.to_owned(),
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
        });
    }
}

/// Controller of evictions: one pod of a draining node a reconcile.
pub(crate) struct EvictionQueue {
    shell: Arc<Shell>,
    /// Evictions of the queue that were refused before: the ledger has that already.
    refused: Mutex<BTreeSet<EvictionKey>>,
}

struct Observed {
    pod: Arc<Pod>,
    claim: Option<Arc<NodeClaim>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is gone, or may stay.
    Leave,
    Evict,
    Delete {
        grace_seconds: u32,
    },
}

/// What it means that the API server did not evict a pod.
#[derive(Debug, PartialEq, Eq)]
enum NotEvicted<'a> {
    /// It is gone already, or another pod has its name.
    Gone,
    /// A budget refuses, in these words.
    Refused { message: &'a str },
    /// The server failed, or did not answer.
    Failed,
}

impl<'a> NotEvicted<'a> {
    fn of(error: &'a kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            return Self::Failed;
        };
        let message = &status.message;
        // The API server answers 500 for a pod that several budgets select.
        let is_of_many_budgets = message.contains("more than one PodDisruptionBudget");
        match status.code {
            404 | 409 => Self::Gone,
            429 => Self::Refused { message },
            500 if is_of_many_budgets => Self::Refused { message },
            _ => Self::Failed,
        }
    }
}

impl EvictionQueue {
    /// Karpenter's name of it, as metrics and logs show it.
    pub(crate) const CONTROLLER: ControllerName = ControllerName {
        name: "eviction-queue",
        kind: ("", "Pod"),
    };
    /// Keys at work: the fewest on one core and the most on sixty.
    pub(crate) const AT_WORK: RangeInclusive<usize> = 100..=5000;
    /// How long an eviction waits that was refused.
    pub(crate) const BACK_OFF: BackOff = BackOff {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(10),
    };

    pub(crate) fn new(shell: Arc<Shell>) -> Self {
        Self {
            shell,
            refused: Mutex::default(),
        }
    }

    async fn observe(&self, key: &EvictionKey) -> Result<Option<Observed>, ReconcileError> {
        let Some(pod) = self
            .shell
            .model
            .pod(&key.pod)
            .filter(|pod| pod.uid == key.uid)
        else {
            return Ok(None);
        };
        let claim = match self.shell.model.claim_name_of_node(&key.node) {
            Some(name) => self.shell.model.node_claim(&name).await?,
            None => None,
        };
        Ok(Some(Observed { pod, claim }))
    }

    async fn apply(
        &self,
        key: &EvictionKey,
        observed: &Observed,
        step: Step,
    ) -> Result<Action, ReconcileError> {
        match step {
            Step::Leave => Ok(Action::Await),
            Step::Evict => self.evict(key, observed).await,
            Step::Delete { grace_seconds } => self.delete(key, observed, grace_seconds).await,
        }
    }

    async fn evict(
        &self,
        key: &EvictionKey,
        observed: &Observed,
    ) -> Result<Action, ReconcileError> {
        let answer = self.post_eviction(key).await;
        let code = match &answer {
            Ok(_) => 200,
            Err(error) => api_code(error).unwrap_or(500),
        };
        self.shell
            .metrics
            .eviction_requests
            .get_or_create(&Series(CodeLabel(code.to_string())))
            .inc();
        let Err(error) = answer else {
            self.write_entry(key, observed, &PodEntry::Evicted);
            return Ok(Action::Await);
        };
        match NotEvicted::of(&error) {
            NotEvicted::Gone => Ok(Action::Await),
            NotEvicted::Refused { message } => {
                let why = format!("failed to evict pod {}: {message}", key.pod);
                let entry = if self.lock_refused().insert(key.clone()) {
                    PodEntry::EvictionBlocked { why: &why }
                } else {
                    PodEntry::EvictionRefused { why: &why }
                };
                self.write_entry(key, observed, &entry);
                Err(ReconcileError::Refused(why))
            }
            NotEvicted::Failed => Err(error.into()),
        }
    }

    async fn post_eviction(&self, key: &EvictionKey) -> kube::Result<Status> {
        let params = PostParams::default();
        self.pods(key)
            .create_subresource("eviction", &key.pod.name, &params, &eviction(key))
            .await
    }

    async fn delete(
        &self,
        key: &EvictionKey,
        observed: &Observed,
        grace_seconds: u32,
    ) -> Result<Action, ReconcileError> {
        let params = deletion(key, grace_seconds);
        match self.pods(key).delete(&key.pod.name, &params).await {
            Ok(_) => {}
            Err(error) if matches!(api_code(&error), Some(404 | 409)) => return Ok(Action::Await),
            Err(error) => return Err(error.into()),
        }
        self.write_entry(key, observed, &PodEntry::ForceDeleted { grace_seconds });
        Ok(Action::Await)
    }

    fn write_entry(&self, key: &EvictionKey, observed: &Observed, entry: &PodEntry<'_>) {
        let subject = LeavingPod {
            pod: &observed.pod,
            node: &key.node,
            node_reference: &references::node(&self.shell.model.snapshot(), &key.node),
            claim: observed.claim.as_deref(),
        };
        self.shell.journal.write(&subject, entry);
    }

    fn lock_refused(&self) -> MutexGuard<'_, BTreeSet<EvictionKey>> {
        lock(&self.refused)
    }

    fn pods(&self, key: &EvictionKey) -> Api<v1::Pod> {
        Api::namespaced(self.shell.client.clone(), &key.pod.namespace)
    }
}

impl Reconciler for EvictionQueue {
    type Key = EvictionKey;

    async fn reconcile(&self, key: &EvictionKey) -> Result<Action, ReconcileError> {
        let done = self.step(key).await;
        if done.is_ok() {
            self.lock_refused().remove(key);
        }
        done
    }
}

impl EvictionQueue {
    async fn step(&self, key: &EvictionKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(Action::Await);
        };
        let step = decide(&observed, &key.node, self.shell.now());
        self.apply(key, &observed, step).await
    }
}

/// Whether pods of the claim's node stay through its reboot: the time to leave is over.
fn rides_through(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && claim.is_condition_true(conditions::REBOOTING)
        && !is_draining(claim)
}

fn decide(observed: &Observed, node: &str, now: Timestamp) -> Step {
    let Observed { pod, claim } = observed;
    let claim = claim.as_deref();
    let is_elsewhere = pod.node_name.as_deref() != Some(node);
    if is_elsewhere || pod.is_terminal() || claim.is_some_and(rides_through) {
        return Step::Leave;
    }
    let deadline = claim.and_then(NodeClaim::termination_deadline);
    let pods = std::slice::from_ref(pod);
    let drain = drain_step(&DrainInput {
        pods,
        deadline,
        draining_since: now,
        now,
    });
    let Drain::Draining(step) = drain else {
        return Step::Leave;
    };
    match (step.delete.first(), step.evict.first()) {
        (Some(forced), _) => Step::Delete {
            grace_seconds: forced.grace_period_seconds,
        },
        (None, Some(_)) => Step::Evict,
        (None, None) => Step::Leave,
    }
}

/// Of this very pod: kube's own request has the options under a name that API servers do not know.
fn eviction(key: &EvictionKey) -> Eviction {
    Eviction {
        metadata: ObjectMeta {
            name: Some(key.pod.name.clone()),
            namespace: Some(key.pod.namespace.clone()),
            ..ObjectMeta::default()
        },
        delete_options: Some(meta::DeleteOptions {
            preconditions: Some(meta::Preconditions {
                uid: Some(key.uid.clone()),
                resource_version: None,
            }),
            ..meta::DeleteOptions::default()
        }),
    }
}

/// Of this very pod, too.
fn deletion(key: &EvictionKey, grace_seconds: u32) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: Some(grace_seconds),
        preconditions: Some(this_very(Some(key.uid.clone()))),
        ..DeleteParams::default()
    }
}

#[cfg(test)]
mod tests {
    use scheduling::pod::ShapeTable;
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;
    use crate::test_objects::with_values;

    /// A pod on the node `n` with a minute of grace, and what else is said of it, by JSON pointer.
    fn pod(extra: &Value) -> Arc<Pod> {
        let object = json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 60, "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        });
        let object: v1::Pod = serde_json::from_value(with_values(object, extra)).unwrap();
        Arc::new(Pod::parse(&object, &mut ShapeTable::default()).unwrap())
    }

    #[test]
    fn the_pod_that_is_evicted_is_the_one_that_was_judged() {
        let key = EvictionKey {
            node: "n".to_owned(),
            pod: PodKey::new("default", "p"),
            uid: "u".to_owned(),
        };
        let expected = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"namespace": "default", "name": "p"},
            "deleteOptions": {"preconditions": {"uid": "u"}},
        });
        assert_eq!(serde_json::to_value(eviction(&key)).unwrap(), expected);
        let forced = serde_json::to_value(deletion(&key, 5)).unwrap();
        assert_eq!(forced["preconditions"]["uid"], "u");
    }

    fn until(deadline: &str) -> Value {
        let key = "karpenter.sh/nodeclaim-termination-timestamp";
        json!({"/metadata/annotations": {key: format!("2026-01-01T{deadline}Z")}})
    }

    fn rebooting(reason: &str) -> Value {
        let condition = json!({
            "type": "Rebooting", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        });
        json!({"/metadata/deletionTimestamp": null, "/status/conditions": [condition]})
    }

    #[test]
    fn a_budget_refuses_with_429_and_several_with_500() {
        let many = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        let cases = [
            (404, "gone", NotEvicted::Gone),
            (409, "another UID", NotEvicted::Gone),
            (429, "wait", NotEvicted::Refused { message: "wait" }),
            (500, many, NotEvicted::Refused { message: many }),
            (500, "etcd is away", NotEvicted::Failed),
            (403, many, NotEvicted::Failed),
        ];
        for (code, message, expected) in cases {
            let status = Status::failure(message, "r").with_code(code);
            let error = kube::Error::Api(status.boxed());
            assert_eq!(NotEvicted::of(&error), expected, "{code} {message}");
        }
        let unanswered = kube::Error::TlsRequired;
        assert_eq!(NotEvicted::of(&unanswered), NotEvicted::Failed);
    }

    #[test]
    fn a_pod_is_asked_to_go_and_deleted_where_it_would_outlive_the_deadline() {
        let (plain, nothing) = (json!({}), None);
        let protected = json!({"/metadata/annotations": {"karpenter.sh/do-not-disrupt": "true"}});
        let forced = Step::Delete { grace_seconds: 30 };
        let cases = [
            (plain.clone(), nothing.clone(), Step::Evict),
            (
                json!({"/spec/nodeName": "other"}),
                nothing.clone(),
                Step::Leave,
            ),
            (
                json!({"/status/phase": "Succeeded"}),
                nothing.clone(),
                Step::Leave,
            ),
            (protected.clone(), nothing, Step::Leave),
            (plain.clone(), Some(until("13:00:00")), Step::Evict),
            (plain.clone(), Some(until("12:00:30")), forced),
            (
                protected,
                Some(until("12:00:30")),
                Step::Delete { grace_seconds: 30 },
            ),
            (
                plain.clone(),
                Some(rebooting("RebootRequested")),
                Step::Evict,
            ),
            (plain, Some(rebooting("RebootIssued")), Step::Leave),
        ];
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        for (extra, claim, expected) in cases {
            let case = format!("{extra} {claim:?}");
            let observed = Observed {
                pod: pod(&extra),
                claim: claim.map(|it| Arc::new(claim_with(&it))),
            };
            assert_eq!(decide(&observed, "n", now), expected, "{case}");
        }
    }
}
