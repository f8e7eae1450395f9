//! Cuts an object down to what scheduling and disruption look at.
//!
//! Finalizers of workloads, pods and volumes belong to controllers that the shadow does not have, so they go; those of
//! Karpenter's objects and nodes stay.

use serde_json::{Map, Value, json};

use crate::kinds::ReadKind;

/// Annotations of pods and nodes that mean something to an autoscaler or to the simulated cluster.
const ANNOTATIONS: [&str; 8] = [
    "karpenter.sh/",
    "karpenter.k8s.aws/",
    "mortise.dev/",
    "sim.mortise.dev/",
    "controller.kubernetes.io/pod-deletion-cost",
    "batch.kubernetes.io/job-completion-index",
    "compatibility.karpenter.k8s.aws/",
    "storageclass.kubernetes.io/",
];

const POD_FIELDS: [&str; 15] = [
    "nodeName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "overhead",
    "schedulingGates",
    "hostNetwork",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "restartPolicy",
    "runtimeClassName",
];

/// The object without what nothing here reads.
pub fn slim(kind: ReadKind, mut object: Value) -> Value {
    slim_metadata(kind, &mut object["metadata"]);
    match kind {
        ReadKind::Pods => slim_pod(&mut object),
        ReadKind::Nodes => slim_node(&mut object),
        ReadKind::ReplicaSets | ReadKind::StatefulSets | ReadKind::DaemonSets | ReadKind::Jobs => {
            slim_metadata(ReadKind::Pods, &mut object["spec"]["template"]["metadata"]);
            let template = &mut object["spec"]["template"]["spec"];
            *template = pod_spec(template);
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
        | ReadKind::NodeClaims
        | ReadKind::CsiNodes => {}
    }
    let row = kind.row();
    object["apiVersion"] = row.api_version().into();
    object["kind"] = row.name.into();
    object
}

fn slim_metadata(kind: ReadKind, metadata: &mut Value) {
    let Some(fields) = metadata.as_object_mut() else {
        *metadata = json!({});
        return;
    };
    for field in [
        "managedFields",
        "resourceVersion",
        "selfLink",
        "generateName",
    ] {
        fields.remove(field);
    }
    let is_karpenters = matches!(
        kind,
        ReadKind::NodePools
            | ReadKind::NodeClaims
            | ReadKind::NodeOverlays
            | ReadKind::Ec2NodeClasses
    );
    if !is_karpenters && kind != ReadKind::Nodes {
        fields.remove("finalizers");
    }
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| {
            let is_read = ANNOTATIONS.iter().any(|prefix| key.starts_with(prefix));
            is_read || (is_karpenters && !key.starts_with("kubectl.kubernetes.io/"))
        });
    }
    if fields.get("annotations").is_some_and(|it| *it == json!({})) {
        fields.remove("annotations");
    }
    // Owners of workloads are not in the shadow; what counts for budgets is the workload itself.
    if kind.is_workload() {
        fields.remove("ownerReferences");
    }
}

fn slim_pod(pod: &mut Value) {
    pod["spec"] = pod_spec(&pod["spec"]);
    let status = &pod["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let kept = conditions.map(|it| some(it, &["type", "status", "reason", "lastTransitionTime"]));
    let conditions: Vec<Value> = kept.collect();
    let mut slim = some(status, &["phase", "startTime", "nominatedNodeName"]);
    slim["conditions"] = conditions.into();
    pod["status"] = slim;
}

/// A pod's spec as far as it decides where the pod may run and what it takes.
pub(crate) fn pod_spec(spec: &Value) -> Value {
    let mut slim = some(spec, &POD_FIELDS);
    for field in ["containers", "initContainers"] {
        let containers = spec[field].as_array().into_iter().flatten();
        let containers: Vec<Value> = containers.map(container).collect();
        if !containers.is_empty() {
            slim[field] = containers.into();
        }
    }
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let volumes =
        volumes.filter(|it| !it["persistentVolumeClaim"].is_null() || !it["ephemeral"].is_null());
    let volumes: Vec<Value> = volumes.cloned().collect();
    if !volumes.is_empty() {
        slim["volumes"] = volumes.into();
    }
    slim
}

fn container(container: &Value) -> Value {
    let mut slim = some(container, &["name", "image", "restartPolicy"]);
    let resources = some(&container["resources"], &["requests", "limits"]);
    if resources != json!({}) {
        slim["resources"] = resources;
    }
    let ports = container["ports"].as_array().into_iter().flatten();
    let ports: Vec<Value> = ports
        .filter(|it| !it["hostPort"].is_null())
        .cloned()
        .collect();
    if !ports.is_empty() {
        slim["ports"] = ports.into();
    }
    slim
}

fn slim_node(node: &mut Value) {
    node["spec"] = some(&node["spec"], &["providerID", "taints", "unschedulable"]);
    let status = &node["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let kept = ["type", "status", "reason", "lastTransitionTime"];
    let conditions: Vec<Value> = conditions.map(|it| some(it, &kept)).collect();
    let mut slim = some(
        status,
        &["capacity", "allocatable", "addresses", "nodeInfo"],
    );
    slim["conditions"] = conditions.into();
    node["status"] = slim;
}

/// Some fields of an object.
fn some(object: &Value, fields: &[&str]) -> Value {
    let mut kept = Map::new();
    for field in fields {
        if let Some(value) = object.get(field).filter(|it| !it.is_null()) {
            kept.insert((*field).to_owned(), value.clone());
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_keeps_what_decides_its_place() {
        let pod = json!({
            "metadata": {
                "name": "a", "uid": "u", "managedFields": [{}], "finalizers": ["batch.kubernetes.io/job-tracking"],
                "annotations": {"karpenter.sh/do-not-disrupt": "true", "checksum/config": "long"},
                "ownerReferences": [{"uid": "o", "controller": true}],
            },
            "spec": {
                "nodeName": "n", "schedulerName": "other", "serviceAccountName": "x",
                "containers": [{
                    "name": "m", "image": "i", "env": [{"name": "A"}], "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "1"}}, "volumeMounts": [{}],
                }],
                "volumes": [{"name": "c", "configMap": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "d"}}],
            },
            "status": {"phase": "Running", "containerStatuses": [{}], "conditions": [{"type": "Ready", "status": "True", "message": "m"}]},
        });
        let slim = slim(ReadKind::Pods, pod);
        assert_eq!(
            slim,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "a", "uid": "u", "annotations": {"karpenter.sh/do-not-disrupt": "true"},
                    "ownerReferences": [{"uid": "o", "controller": true}],
                },
                "spec": {
                    "nodeName": "n",
                    "containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                    "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}],
                },
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            })
        );
    }

    #[test]
    fn heartbeats_and_images_of_a_node_are_no_news() {
        let node = |beat: &str| {
            slim(
                ReadKind::Nodes,
                json!({
                    "metadata": {"name": "n", "resourceVersion": beat, "finalizers": ["karpenter.sh/termination"]},
                    "spec": {"providerID": "aws:///a/i-1", "podCIDR": "x"},
                    "status": {
                        "images": [{}], "allocatable": {"cpu": "4"},
                        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}],
                    },
                }),
            )
        };
        assert_eq!(node("1"), node("2"));
        assert_eq!(
            node("1")["metadata"]["finalizers"],
            json!(["karpenter.sh/termination"])
        );
    }
}
