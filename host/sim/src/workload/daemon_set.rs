//! DaemonSets: one pod on every node that fits, pinned by node affinity as kube-controller-manager does.
//!
//! Answers to `pkg/controller/daemon` of Kubernetes.

use std::collections::BTreeMap;

use api_server::{NamespacedName, Resource};
use apis::labels;
use serde_json::{Value, json};

use super::{BURST_MAX, count, template_hash};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{is_deleting, uid};
use crate::cluster::pod::PodRecord;
use crate::cluster::shape::{SchedulingShape, SchedulingShapes};
use crate::scheduler::filter::matches_node;

const REVISION: &str = "controller-revision-hash";

/// Taints that every DaemonSet pod tolerates: (key, effect).
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", labels::NO_EXECUTE),
    ("node.kubernetes.io/unreachable", labels::NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", labels::NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", labels::NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", labels::NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", labels::NO_SCHEDULE),
];

impl SimulatedCluster {
    pub(super) fn reconcile_daemon_set(&mut self, key: &NamespacedName) {
        let Some(set) = self.object(&Resource::DAEMON_SETS, key).cloned() else {
            return;
        };
        let revision = template_hash(&set["spec"]["template"]);
        let template = template(&set["spec"]["template"], &revision);
        let shape = SchedulingShapes::default().shape(&json!({
            "metadata": { "namespace": key.namespace, "labels": template["metadata"]["labels"] },
            "spec": template["spec"],
        }));
        let mut by_node: BTreeMap<String, Vec<&PodRecord>> = BTreeMap::new();
        for pod in self.pods_of(uid(&set)) {
            let node = pod.node.as_deref().or_else(|| pod.shape.pinned_node());
            by_node
                .entry(node.unwrap_or_default().to_owned())
                .or_default()
                .push(pod);
        }
        let mut made = 0;
        if !is_deleting(&set) {
            for (name, node) in &self.nodes {
                let has = by_node
                    .get(name)
                    .is_some_and(|pods| pods.iter().any(|pod| pod.phase.is_active()));
                if !has && made < BURST_MAX && should_run(&shape, node) {
                    self.create_pod(&set, &template, |pod| pin(pod, name));
                    made += 1;
                }
            }
            self.remove_daemons(&set, &shape, &by_node, &revision);
        }
        self.daemon_set_status(key, &set, &shape, &revision);
    }

    /// Deletes daemons where none should run, and one outdated daemon at a time.
    fn remove_daemons(
        &self,
        set: &Value,
        shape: &SchedulingShape,
        by_node: &BTreeMap<String, Vec<&PodRecord>>,
        revision: &str,
    ) {
        let rolling = set["spec"]["updateStrategy"]["type"] != "OnDelete";
        let live = || by_node.values().flatten().filter(|pod| !pod.is_deleting());
        let all_ready = live().all(|pod| pod.is_ready())
            && by_node.values().flatten().count() == live().count();
        let outdated = live().find(|pod| pod.label(REVISION) != Some(revision));
        if let Some(pod) = outdated.filter(|pod| rolling && (all_ready || !pod.is_ready())) {
            self.delete_pod(pod);
        }
        for (name, pods) in by_node {
            // Where a taint came later, NoExecute alone drives a daemon away.
            let stays = self.nodes.get(name).is_none_or(|node| {
                matches_node(shape, node)
                    && node
                        .untolerated(&shape.tolerations, &[labels::NO_EXECUTE])
                        .is_none()
            });
            for pod in pods.iter().filter(|pod| !pod.is_deleting()) {
                if !stays || !pod.phase.is_active() {
                    self.delete_pod(pod);
                }
            }
        }
    }

    fn daemon_set_status(
        &self,
        key: &NamespacedName,
        set: &Value,
        shape: &SchedulingShape,
        revision: &str,
    ) {
        let wanted = count(self.nodes.values().filter(|node| should_run(shape, node)));
        let pods = || self.pods_of(uid(set)).filter(|pod| pod.is_live());
        let ready = count(pods().filter(|pod| pod.is_ready()));
        let updated = count(pods().filter(|pod| pod.label(REVISION) == Some(revision)));
        let status = json!({
            "observedGeneration": set["metadata"]["generation"],
            "desiredNumberScheduled": wanted, "currentNumberScheduled": count(pods()).min(wanted),
            "numberMisscheduled": 0, "numberReady": ready, "numberAvailable": ready,
            "numberUnavailable": (wanted - ready).max(0), "updatedNumberScheduled": updated,
        });
        self.write_status(&Resource::DAEMON_SETS, key, &status);
    }
}

fn should_run(shape: &SchedulingShape, node: &crate::cluster::node::NodeRecord) -> bool {
    matches_node(shape, node)
        && node
            .untolerated(
                &shape.tolerations,
                &[labels::NO_SCHEDULE, labels::NO_EXECUTE],
            )
            .is_none()
}

/// The set's template with the tolerations and the label that its pods get.
fn template(template: &Value, revision: &str) -> Value {
    let mut template = template.clone();
    let mut tolerations = template["spec"]["tolerations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    tolerations.extend(
        TOLERATED
            .iter()
            .map(|(key, effect)| json!({ "key": key, "operator": "Exists", "effect": effect })),
    );
    if template["spec"]["hostNetwork"] == true {
        tolerations.push(json!({
            "key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": labels::NO_SCHEDULE,
        }));
    }
    template["spec"]["tolerations"] = tolerations.into();
    template["metadata"]["labels"][REVISION] = revision.into();
    template
}

/// Ties a pod to its node: every term of its affinity also names the node.
fn pin(pod: &mut Value, node: &str) {
    let field = json!([{ "key": "metadata.name", "operator": "In", "values": [node] }]);
    let required = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    // Upstream replaces the terms: that the node matches the template was judged already.
    *required = json!({ "nodeSelectorTerms": [{ "matchFields": field }] });
}
