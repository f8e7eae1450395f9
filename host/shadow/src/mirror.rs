//! What the shadow has of the cluster: which write follows from which change.
//!
//! Workloads are mirrored as what they ask for, not as the pods that come of it: pods that Karpenter evicts are
//! no news to the shadow, whose own controllers make its pods. Nodes that claims stand for are the shadow's own from
//! the start on; others are mirrored for as long as they are there. Pods without a controller that the shadow has are
//! mirrored one by one. Pods that run to an end, end after as long as they do in the cluster.

mod known;
mod missing;
mod unowned_pods;
mod updates;
mod workloads;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use apis::{ObjectKey, labels};
use jiff::Timestamp;
use serde_json::Value;

use crate::account::Account;
use crate::gathered::{Gathered, ObjectChange};
use crate::kinds::ReadKind;
use crate::node_class::StandIn;
use crate::object::{key_of, label};
use crate::pods::{self, is_finished, owner_kind};
use crate::runs::{Run, Runs};
use known::{Known, Novelty};
use missing::{MirroredNamespaces, priority_classes};
use unowned_pods::UnownedPods;
use workloads::MirroredWorkloads;

pub use updates::update;
pub use write::MirrorWrite;

/// Mirror of the cluster: what the shadow has of it.
#[derive(Debug)]
pub struct Mirror {
    account: Account,
    stand_in: StandIn,
    known: Known,
    namespaces: MirroredNamespaces,
    /// Nodes of the cluster that the shadow has.
    nodes: BTreeSet<String>,
    workloads: MirroredWorkloads,
    unowned_pods: UnownedPods,
    runs: Runs,
    /// Pods whose run was noted.
    ended: BTreeSet<ObjectKey>,
}

impl Mirror {
    /// Nothing is mirrored yet.
    pub fn new(account: Account, stand_in: StandIn) -> Self {
        Self {
            account,
            stand_in,
            known: Known::default(),
            namespaces: MirroredNamespaces::default(),
            nodes: BTreeSet::new(),
            workloads: MirroredWorkloads::default(),
            unowned_pods: UnownedPods::default(),
            runs: Runs::default(),
            ended: BTreeSet::new(),
        }
    }

    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Differences between the shadow and the cluster, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        self.stand_in.notes().map(str::to_owned).collect()
    }

    /// Adds a sentence to the notes.
    pub fn note(&mut self, sentence: String) {
        self.stand_in.note(sentence);
    }

    /// What must be there before anything can be bought: namespaces, and the classes as the account has them.
    /// `given` stands in for classes that mean nothing to EC2.
    pub fn classes(&mut self, gathered: &Gathered, given: Value) -> Vec<MirrorWrite> {
        let mut writes = Vec::new();
        for kind in [ReadKind::Namespaces, ReadKind::Ec2NodeClasses] {
            for object in gathered.of(kind) {
                let change = ObjectChange {
                    kind,
                    object: object.clone(),
                    is_gone: false,
                };
                writes.extend(self.mirrored(change));
            }
        }
        let object = self.stand_in.given(given, &self.account);
        let kind = ReadKind::Ec2NodeClasses;
        writes.push(MirrorWrite::Restore { kind, object });
        writes.extend(priority_classes(gathered));
        writes
    }

    /// Everything else that there is. `claims` are those of the launched claims whose instances the account has.
    pub fn start(&mut self, gathered: Gathered, claims: Vec<Value>) -> Vec<MirrorWrite> {
        let ids = |claims: &[Value]| -> BTreeSet<String> {
            let ids = claims
                .iter()
                .filter_map(|it| it["status"]["providerID"].as_str());
            ids.map(str::to_owned).collect()
        };
        let own = ids(&claims);
        for pod in gathered.of(ReadKind::Pods) {
            self.workloads.sample(pod);
        }
        let mut writes = Vec::new();
        for object in claims {
            let kind = ReadKind::NodeClaims;
            writes.push(MirrorWrite::Restore { kind, object });
        }
        for change in gathered.into_changes() {
            let ObjectChange { kind, object, .. } = change;
            let is_there = match kind {
                ReadKind::Namespaces | ReadKind::Ec2NodeClasses | ReadKind::NodeClaims => false,
                ReadKind::Nodes => {
                    let id = object["spec"]["providerID"].as_str().unwrap_or_default();
                    is_bare(&object) || own.contains(id)
                }
                ReadKind::CsiNodes => self.nodes.contains(&key_of(&object).name),
                ReadKind::PriorityClasses
                | ReadKind::StorageClasses
                | ReadKind::PersistentVolumes
                | ReadKind::PersistentVolumeClaims
                | ReadKind::PodDisruptionBudgets
                | ReadKind::NodePools
                | ReadKind::NodeOverlays
                | ReadKind::ReplicaSets
                | ReadKind::StatefulSets
                | ReadKind::DaemonSets
                | ReadKind::Jobs
                | ReadKind::Pods => true,
            };
            if is_there {
                writes.extend(self.namespaces.of(&object));
                writes.extend(self.begun(kind, object));
            }
        }
        writes
    }

    fn begun(&mut self, kind: ReadKind, object: Value) -> Option<MirrorWrite> {
        if kind == ReadKind::Nodes {
            self.nodes.insert(key_of(&object).name);
            if !is_bare(&object) {
                let object = started(object);
                return Some(MirrorWrite::Restore { kind, object });
            }
        }
        if kind == ReadKind::Pods {
            let is_owned = self.workloads.own(&object);
            let key = key_of(&object);
            if is_finished(&object) {
                self.ended.insert(key.clone());
            }
            let object = pods::at_start(object, &self.nodes)?;
            if !is_owned {
                self.unowned_pods.add(key);
            }
            return Some(MirrorWrite::Restore { kind, object });
        }
        if kind.is_workload() {
            return self.workloads.begun(kind, object);
        }
        let change = ObjectChange {
            kind,
            object,
            is_gone: false,
        };
        self.mirrored(change)
    }

    /// Writes that follow from a change after the start.
    pub fn change(&mut self, change: ObjectChange, now: Timestamp) -> Vec<MirrorWrite> {
        let is_gone = change.is_gone;
        let missing = (!is_gone).then(|| self.namespaces.of(&change.object));
        let writes = self.follow(change, now);
        // A namespace that nothing follows for is as good as one that is not there.
        missing.flatten().into_iter().chain(writes).collect()
    }

    fn follow(&mut self, change: ObjectChange, now: Timestamp) -> Vec<MirrorWrite> {
        match change.kind {
            // The shadow has its own, and what was there at the start is the shadow's since.
            ReadKind::NodeClaims | ReadKind::CsiNodes => Vec::new(),
            ReadKind::Nodes if !is_bare(&change.object) => Vec::new(),
            ReadKind::Pods => self.pod(change, now),
            ReadKind::ReplicaSets
            | ReadKind::StatefulSets
            | ReadKind::DaemonSets
            | ReadKind::Jobs => {
                let key = key_of(&change.object);
                let is_open = self.runs.is_open(&key);
                self.workloads
                    .change(change, is_open, now)
                    .into_iter()
                    .collect()
            }
            ReadKind::Namespaces
            | ReadKind::PriorityClasses
            | ReadKind::StorageClasses
            | ReadKind::PersistentVolumes
            | ReadKind::PersistentVolumeClaims
            | ReadKind::PodDisruptionBudgets
            | ReadKind::Ec2NodeClasses
            | ReadKind::NodePools
            | ReadKind::NodeOverlays
            | ReadKind::Nodes => self.mirrored(change).into_iter().collect(),
        }
    }

    /// A kind that is mirrored object by object.
    fn mirrored(&mut self, change: ObjectChange) -> Option<MirrorWrite> {
        let ObjectChange {
            kind,
            object,
            is_gone,
        } = change;
        let key = key_of(&object);
        if kind == ReadKind::Namespaces {
            self.namespaces.told(&key.name, is_gone);
        }
        if is_gone {
            if kind == ReadKind::Nodes {
                self.nodes.remove(&key.name);
            }
            let is_known = self.known.forget(kind, &key);
            return is_known.then_some(MirrorWrite::Delete { kind, key });
        }
        let news = self.known.note(kind, &object);
        if kind == ReadKind::Nodes && news != Novelty::Same {
            self.nodes.insert(key.name);
            // Its status is the cluster's, too.
            return Some(MirrorWrite::Restore { kind, object });
        }
        // Volumes of the shadow's own pods are the shadow's; claims do not change in what counts.
        let is_of_shadow = [
            ReadKind::PersistentVolumes,
            ReadKind::PersistentVolumeClaims,
        ]
        .contains(&kind);
        match news {
            Novelty::Same => None,
            Novelty::Changed(_) if is_of_shadow => None,
            Novelty::Changed(lost) => {
                let mut object = self.stood_in(kind, object);
                lost.mark(&mut object);
                Some(MirrorWrite::Update { kind, object })
            }
            Novelty::New => {
                let object = self.stood_in(kind, object);
                Some(MirrorWrite::Restore { kind, object })
            }
        }
    }

    /// The object, or what stands in for it in the shadow.
    fn stood_in(&mut self, kind: ReadKind, object: Value) -> Value {
        if kind == ReadKind::Ec2NodeClasses {
            self.stand_in.class(object, &self.account)
        } else if kind == ReadKind::NodePools {
            self.stand_in.pool(object)
        } else {
            object
        }
    }

    fn pod(&mut self, change: ObjectChange, now: Timestamp) -> Vec<MirrorWrite> {
        let (object, is_gone) = (&change.object, change.is_gone);
        let key = key_of(object);
        let is_owned = self.workloads.own(object);
        let mut writes: Vec<MirrorWrite> = Vec::new();
        if is_owned && !is_gone {
            writes.extend(self.workloads.pod(object));
        }
        let runs_to_an_end = !is_owned || owner_kind(object) == Some("Job");
        if runs_to_an_end && is_finished(object) && self.ended.insert(key.clone()) {
            let group = match owner_kind(object) {
                Some("Job") if is_owned => job_of(object),
                Some(_) | None => key.clone(),
            };
            self.runs.add(group, run(object, now));
        }
        if is_gone {
            self.ended.remove(&key);
        }
        if !is_owned {
            let is_open = self.runs.is_open(&key);
            writes.extend(self.unowned_pods.change(change, is_open, &self.nodes));
        }
        writes
    }

    /// Namespaces whose pods `tick` must be told of.
    pub fn awaited(&self) -> BTreeSet<&str> {
        let groups = self.runs.groups();
        groups.map(|group| group.namespace.as_str()).collect()
    }

    /// What time brings: pods end, and what only waited for that goes. `pods` are those of the shadow.
    pub fn tick(&mut self, pods: &[Value], now: Timestamp) -> Vec<MirrorWrite> {
        let mut running: BTreeMap<ObjectKey, Vec<crate::runs::Running>> = BTreeMap::new();
        for pod in pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
        {
            let since = pod["status"]["startTime"]
                .as_str()
                .and_then(|it| it.parse().ok());
            let group = match owner_kind(pod) {
                Some("Job") if self.workloads.own(pod) => job_of(pod),
                Some(_) | None => key_of(pod),
            };
            let it = crate::runs::Running {
                since: since.unwrap_or(now),
                pod: key_of(pod),
            };
            running.entry(group).or_default().push(it);
        }
        let mut writes = self.workloads.release(now);
        let groups: Vec<ObjectKey> = self.runs.groups().cloned().collect();
        for group in groups {
            let running = running.remove(&group).unwrap_or_default();
            let due = self.runs.due(&group, running, now);
            writes.extend(
                due.into_iter()
                    .map(|(pod, phase)| MirrorWrite::Finish { pod, phase }),
            );
        }
        let runs = &self.runs;
        writes.extend(self.workloads.done(|job| !runs.is_open(job)));
        writes.extend(self.unowned_pods.done(|pod| !runs.is_open(pod)));
        writes
    }
}

/// A node that is about to be ready for the first time is ready: its kubelet is the shadow's, which began with it.
fn started(mut node: Value) -> Value {
    if label(&node, labels::INITIALIZED).is_some() {
        return node;
    }
    let conditions = node["status"]["conditions"].as_array_mut();
    let ready = conditions.and_then(|all| all.iter_mut().find(|it| it["type"] == "Ready"));
    let Some(ready) = ready else {
        return node;
    };
    ready["status"] = "True".into();
    ready["reason"] = "KubeletReady".into();
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| taint["key"] != "node.kubernetes.io/not-ready");
    }
    node
}

/// Whether no claim stands for a node.
fn is_bare(node: &Value) -> bool {
    let owners = node["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    label(node, labels::NODEPOOL).is_none() && !owners.any(|it| it["kind"] == "NodeClaim")
}

/// The Job of a pod.
fn job_of(pod: &Value) -> ObjectKey {
    let owner = crate::object::controller_of(pod).map(|it| &it["name"]);
    let name = owner.and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(&key_of(pod).namespace, name)
}

/// How long a pod ran that has ended by now.
fn run(pod: &Value, now: Timestamp) -> Run {
    let status = &pod["status"];
    let since: Option<Timestamp> = status["startTime"].as_str().and_then(|it| it.parse().ok());
    Run {
        lasted: now.duration_since(since.unwrap_or(now)),
        phase: status["phase"].as_str().unwrap_or("Succeeded").to_owned(),
    }
}

#[cfg(test)]
mod tests;
