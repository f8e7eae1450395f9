//! ReplicaSets, StatefulSets, DaemonSets and Jobs: what they ask for is the cluster's, their pods are the shadow's.

use std::collections::{BTreeMap, BTreeSet};

use apis::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::known::{Known, Novelty};
use super::leaving::LeavingObjects;
use super::write::MirrorWrite;
use crate::admitted::with_admitted;
use crate::digest::digest;
use crate::gathered::ObjectChange;
use crate::kinds::ReadKind;
use crate::object::{is_deleting, key_of, uid};
use crate::pods::{is_finished, owner_uid};

/// How long a new workload waits for the first of its pods, which shows what admission makes of them.
const AWAITS_POD: SignedDuration = SignedDuration::from_secs(2);
/// Longer than anybody watches: pods of Jobs end when the cluster's do.
const RUNS_ON: &str = "315360000";

/// A workload that waits to be mirrored.
#[derive(Debug)]
struct Held {
    kind: ReadKind,
    object: Value,
    since: Timestamp,
}

/// The workloads that are mirrored.
#[derive(Debug, Default)]
pub(super) struct MirroredWorkloads {
    known: Known,
    uids: BTreeSet<String>,
    /// A pod of each, as the cluster admitted it, by the UID of its controller.
    samples: BTreeMap<String, Value>,
    /// Templates at the start, by UID.
    templates: BTreeMap<String, u64>,
    held: BTreeMap<String, Held>,
    /// Jobs that are gone in the cluster, whose pods of the shadow have yet to end.
    leaving: LeavingObjects,
}

impl MirroredWorkloads {
    /// Whether the controller of the pod is one whose pods are made in the shadow.
    pub(super) fn own(&self, pod: &Value) -> bool {
        owner_uid(pod).is_some_and(|it| self.uids.contains(it))
    }

    /// Keeps a pod as the sample of its controller.
    pub(super) fn sample(&mut self, pod: &Value) {
        let Some(uid) = owner_uid(pod) else {
            return;
        };
        if is_deleting(pod) || is_finished(pod) || self.samples.contains_key(uid) {
            return;
        }
        self.samples
            .insert(uid.to_owned(), json!({"spec": pod["spec"]}));
    }

    /// A workload that is there when the shadow begins.
    pub(super) fn begun(&mut self, kind: ReadKind, object: Value) -> Option<MirrorWrite> {
        if is_idle(kind, &object) || is_deleting(&object) {
            return None;
        }
        self.known.note(kind, &object);
        let object = self.prepared(kind, object);
        Some(MirrorWrite::Restore { kind, object })
    }

    /// What follows from a change; `is_open`: pods of the Job have yet to end in the shadow.
    pub(super) fn change(
        &mut self,
        change: ObjectChange,
        is_open: bool,
        now: Timestamp,
    ) -> Option<MirrorWrite> {
        let ObjectChange {
            kind,
            object,
            is_gone,
        } = change;
        let (key, uid) = (key_of(&object), uid(&object).to_owned());
        if is_gone {
            self.samples.remove(&uid);
            self.templates.remove(&uid);
            if self.held.remove(&uid).is_some() || !self.known.forget(kind, &key) {
                self.uids.remove(&uid);
                return None;
            }
            if is_open {
                self.leaving.add(key);
                return None;
            }
            self.uids.remove(&uid);
            return Some(MirrorWrite::Delete { kind, key });
        }
        if is_deleting(&object) {
            return None;
        }
        if let Some(held) = self.held.get_mut(&uid) {
            held.object = object;
            return None;
        }
        if !self.uids.contains(&uid) {
            if is_idle(kind, &object) {
                return None;
            }
            self.uids.insert(uid.clone());
            if self.samples.contains_key(&uid) {
                return self.begun(kind, object);
            }
            let since = now;
            self.held.insert(
                uid,
                Held {
                    kind,
                    object,
                    since,
                },
            );
            return None;
        }
        let Novelty::Changed(lost) = self.known.note(kind, &object) else {
            return None;
        };
        let mut object = self.prepared(kind, object);
        lost.mark(&mut object);
        if kind == ReadKind::Jobs
            && let Some(spec) = object["spec"].as_object_mut()
        {
            // Neither may change.
            spec.remove("template");
            spec.remove("selector");
        }
        Some(MirrorWrite::Update { kind, object })
    }

    /// A pod of one of them was told.
    pub(super) fn pod(&mut self, pod: &Value) -> Option<MirrorWrite> {
        let held = self.held.remove(owner_uid(pod)?)?;
        self.sample(pod);
        self.begun(held.kind, held.object)
    }

    /// Those that waited for a pod for long enough.
    pub(super) fn release(&mut self, now: Timestamp) -> Vec<MirrorWrite> {
        let is_due = |held: &Held| now.duration_since(held.since) >= AWAITS_POD;
        let due: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| is_due(held))
            .map(|(uid, _)| uid.clone())
            .collect();
        let released: Vec<Held> = due.iter().filter_map(|uid| self.held.remove(uid)).collect();
        let writes = released
            .into_iter()
            .filter_map(|held| self.begun(held.kind, held.object));
        writes.collect()
    }

    /// Jobs that are gone and have nothing left to do.
    pub(super) fn done(&mut self, is_done: impl Fn(&ObjectKey) -> bool) -> Vec<MirrorWrite> {
        self.leaving.done(ReadKind::Jobs, is_done)
    }

    /// The workload as the shadow has it.
    fn prepared(&mut self, kind: ReadKind, mut object: Value) -> Value {
        let uid = uid(&object).to_owned();
        let template = digest(&[&object["spec"]["template"]]);
        let first = *self.templates.entry(uid.clone()).or_insert(template);
        let is_first = first == template;
        if let Some(pod) = self.samples.get(&uid).filter(|_| is_first) {
            with_admitted(kind, &mut object, pod);
        }
        // Its pods bear revisions by which the simulated controllers do not know them: they are rolled once the
        // cluster's are, and not before.
        if is_first && [ReadKind::StatefulSets, ReadKind::DaemonSets].contains(&kind) {
            object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        }
        if kind == ReadKind::Jobs {
            job(&mut object);
        }
        self.uids.insert(uid);
        object
    }
}

/// Whether it has no pods and wants none.
fn is_idle(kind: ReadKind, object: &Value) -> bool {
    // Every revision of a Deployment leaves one.
    if kind == ReadKind::ReplicaSets {
        return object["spec"]["replicas"] == 0;
    }
    kind == ReadKind::Jobs && is_over(object)
}

/// Whether a Job has come to its end.
fn is_over(object: &Value) -> bool {
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut conditions = conditions.filter(|it| it["status"] == "True");
    conditions.any(|it| it["type"] == "Complete" || it["type"] == "Failed")
}

fn job(object: &mut Value) {
    object["spec"]["template"]["metadata"]["annotations"]["sim.mortise.dev/run-seconds"] =
        RUNS_ON.into();
    let key = key_of(object).name;
    for label in ["job-name", "batch.kubernetes.io/job-name"] {
        object["spec"]["template"]["metadata"]["labels"][label] = key.clone().into();
    }
}
