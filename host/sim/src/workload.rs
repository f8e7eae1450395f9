//! The workload controllers: each turns an object's wish into pods and reports what it sees.
//!
//! Each reconcile is level-triggered and reads the view; it does one step and lets the watch bring it back. Answers to
//! kube-controller-manager. Never binds a pod: that is for the scheduler, for pods of DaemonSets, too.

mod budget;
mod cron_job;
mod daemon_set;
mod deployment;
mod job;
pub(crate) mod pace;
mod replica_set;
mod stateful_set;

use api_server::{DeleteOptions, NamespacedName, Resource, name_suffix};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::uid;
use crate::cluster::pod::PodRecord;
use crate::cluster::timers::Timer;
use crate::cluster::work::Work;
use crate::machine::later;
use crate::random::hash;
use crate::status::{SimulatedEvent, write_event};

/// Pods that one reconcile creates or deletes at most; the rest follows in the next, as with bursts upstream.
const BURST_MAX: usize = 500;

/// How soon a controller that may create no more pods for now goes on.
const AGAIN: SignedDuration = SignedDuration::from_millis(200);

impl SimulatedCluster {
    /// How many of these pods may be created now; for the rest the object comes again.
    fn may_create(&mut self, wanted: usize, work: Work, key: &NamespacedName) -> usize {
        let now = self.clock.now();
        let Some(pace) = &mut self.pace else {
            return wanted;
        };
        let may = pace.take(wanted, now);
        if may < wanted {
            let again = Timer::Again(work, key.clone());
            self.timers.set(later(now, AGAIN), again);
        }
        may
    }

    /// Does what is noted for an object.
    pub(crate) fn reconcile(&mut self, work: Work, key: &NamespacedName) {
        match work {
            Work::CronJob => self.reconcile_cron_job(key),
            Work::Deployment => self.reconcile_deployment(key),
            Work::ReplicaSet => self.reconcile_replica_set(key),
            Work::StatefulSet => self.reconcile_stateful_set(key),
            Work::DaemonSet => self.reconcile_daemon_set(key),
            Work::Job => self.reconcile_job(key),
            Work::Volume => self.reconcile_claim(key),
            Work::Budget => self.reconcile_budget(key),
            Work::Taints => self.reconcile_taints(&key.name),
            Work::Orphans => self.reconcile_orphans(&key.name),
        }
    }

    /// Writes a status if it differs from the one that is there; fields it does not name stay.
    fn write_status(&self, resource: &Resource, key: &NamespacedName, fields: &Value) {
        let Ok(object) = self.api.get(resource, &key.namespace, &key.name) else {
            return;
        };
        let fields = fields.as_object();
        let same = fields
            .into_iter()
            .flatten()
            .all(|(name, value)| object["status"][name] == *value);
        if same {
            return;
        }
        let written = self.api.modify_status(resource, key, |object| {
            if !object["status"].is_object() {
                object["status"] = json!({});
            }
            for (name, value) in fields.into_iter().flatten() {
                object["status"][name] = value.clone();
            }
        });
        self.note_refusal(written);
    }

    /// Creates a pod from a controller's template; `change` makes it this pod.
    fn create_pod(&self, owner: &Value, template: &Value, change: impl FnOnce(&mut Value)) -> bool {
        let namespace = owner["metadata"]["namespace"].as_str().unwrap_or_default();
        let name = owner["metadata"]["name"].as_str().unwrap_or_default();
        let mut metadata = json!({
            "generateName": format!("{name}-"),
            "namespace": namespace,
            "ownerReferences": [owner_reference(owner)],
        });
        for field in ["labels", "annotations", "finalizers"] {
            if !template["metadata"][field].is_null() {
                metadata[field] = template["metadata"][field].clone();
            }
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"],
        });
        change(&mut pod);
        match self.api.create(&Resource::PODS, namespace, pod) {
            Ok(_) => true,
            Err(status) => {
                let message = format!("Error creating: {status}");
                let now = self.clock.now_seconds();
                self.note_refusal(write_event(
                    &self.api,
                    owner,
                    SimulatedEvent::FailedCreate,
                    &message,
                    now,
                ));
                false
            }
        }
    }

    fn delete_pod(&self, pod: &PodRecord) {
        let options = DeleteOptions::of_uid(pod.uid.clone());
        self.note_refusal(self.api.delete(
            &Resource::PODS,
            &pod.key.namespace,
            &pod.key.name,
            &options,
        ));
    }
}

/// A controlling reference to `owner`.
fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The hash of a pod template, in the letters that Kubernetes uses for names.
fn template_hash(template: &Value) -> String {
    name_suffix(hash(0, &[&template.to_string()]), 10)
}

/// An integer field with its default.
fn integer(value: &Value, default: i64) -> i64 {
    value.as_i64().unwrap_or(default)
}

/// An `IntOrString` of `total`, percentages rounded as asked.
fn int_or_percent(value: &Value, total: i64, round_up: bool) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let scaled = total * percent;
    Some(if round_up {
        (scaled + 99).div_euclid(100)
    } else {
        scaled / 100
    })
}

fn count(pods: impl Iterator) -> i64 {
    i64::try_from(pods.count()).unwrap_or(i64::MAX)
}
