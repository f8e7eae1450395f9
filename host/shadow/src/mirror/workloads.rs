//! ReplicaSets, StatefulSets, DaemonSets and Jobs: what they ask for is the cluster's, their pods are the shadow's.

use std::collections::{BTreeMap, BTreeSet};

use apis::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::known::{Known, Novelty};
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

/// What the shadow has of a workload whose pods are its own.
#[derive(Debug)]
enum Mirroring {
    /// Nothing yet.
    Held(Held),
    /// A copy, whose template was this one at the start.
    Copied { template: u64 },
    /// The copy of a Job that is gone in the cluster, or at least its pods; those of the shadow have yet to end.
    Leaving(ObjectKey),
}

/// The workloads that are mirrored.
#[derive(Debug, Default)]
pub(super) struct MirroredWorkloads {
    known: Known,
    /// By UID; an idle workload that has no copy is not among them.
    workloads: BTreeMap<String, Mirroring>,
    /// A pod of each, as the cluster admitted it, by the UID of its controller.
    samples: BTreeMap<String, Value>,
}

impl MirroredWorkloads {
    /// Whether the controller of the pod is one whose pods are made in the shadow.
    pub(super) fn own(&self, pod: &Value) -> bool {
        owner_uid(pod).is_some_and(|it| self.workloads.contains_key(it))
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

    /// A workload that is there when the shadow begins, or that was held.
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
            let Some(Mirroring::Copied { .. }) = self.workloads.remove(&uid) else {
                return None;
            };
            self.known.forget(kind, &key);
            if is_open {
                self.workloads.insert(uid, Mirroring::Leaving(key));
                return None;
            }
            return Some(MirrorWrite::Delete { kind, key });
        }
        if is_deleting(&object) {
            return None;
        }
        match self.workloads.get_mut(&uid) {
            Some(Mirroring::Held(held)) => held.object = object,
            Some(Mirroring::Copied { .. }) => return self.changed(kind, object),
            Some(Mirroring::Leaving(_)) => {}
            None if is_idle(kind, &object) => {}
            None if self.samples.contains_key(&uid) => return self.begun(kind, object),
            None => {
                let since = now;
                let held = Held {
                    kind,
                    object,
                    since,
                };
                self.workloads.insert(uid, Mirroring::Held(held));
            }
        }
        None
    }

    /// One that the shadow has is told of again.
    fn changed(&mut self, kind: ReadKind, object: Value) -> Option<MirrorWrite> {
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
        let uid = owner_uid(pod)?;
        if let Mirroring::Held(_) = self.workloads.get(uid)? {
            self.sample(pod);
            return self.let_go(uid);
        }
        None
    }

    /// Those that waited for a pod for long enough.
    pub(super) fn release(&mut self, now: Timestamp) -> Vec<MirrorWrite> {
        let is_due = |it: &Mirroring| match it {
            Mirroring::Held(held) => now.duration_since(held.since) >= AWAITS_POD,
            Mirroring::Copied { .. } | Mirroring::Leaving(_) => false,
        };
        let due = self.workloads.iter().filter(|(_, it)| is_due(it));
        let due: Vec<String> = due.map(|(uid, _)| uid.clone()).collect();
        due.iter().filter_map(|uid| self.let_go(uid)).collect()
    }

    /// Holds one no longer; where it is idle by now, it is as if it had never been.
    fn let_go(&mut self, uid: &str) -> Option<MirrorWrite> {
        let Mirroring::Held(held) = self.workloads.remove(uid)? else {
            return None;
        };
        self.begun(held.kind, held.object)
    }

    /// Jobs that are gone and have nothing left to do; nothing is remembered of them.
    pub(super) fn done(&mut self, is_done: impl Fn(&ObjectKey) -> bool) -> Vec<MirrorWrite> {
        let left = self.workloads.extract_if(
            ..,
            |_, it| matches!(it, Mirroring::Leaving(job) if is_done(job)),
        );
        let keys: BTreeSet<ObjectKey> = left
            .filter_map(|(_, it)| match it {
                Mirroring::Leaving(key) => Some(key),
                Mirroring::Held(_) | Mirroring::Copied { .. } => None,
            })
            .collect();
        let kind = ReadKind::Jobs;
        let writes = keys.into_iter();
        writes
            .map(|key| MirrorWrite::Delete { kind, key })
            .collect()
    }

    /// The workload as the shadow has it.
    fn prepared(&mut self, kind: ReadKind, mut object: Value) -> Value {
        let uid = uid(&object).to_owned();
        let template = digest(&[&object["spec"]["template"]]);
        let first = match self.workloads.get(&uid) {
            Some(Mirroring::Copied { template }) => *template,
            Some(Mirroring::Held(_) | Mirroring::Leaving(_)) | None => template,
        };
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
        let copied = Mirroring::Copied { template: first };
        self.workloads.insert(uid, copied);
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
