//! From the short form of a case to the objects a cluster would hold.
//!
//! Objects are made as JSON and read back as their types, as the API server would send them.

use anyhow::{Context as _, Result};
use apis::labels;
use apis::{CapacityBuffer, NodeOverlay, NodePool};
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::core::v1::{self, Pod};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use state::workloads::Workload;

use crate::case::{BufferGiven, OverlayGiven, PodGiven, PoolGiven, Text, WorkloadGiven};
use crate::words;

/// Creation of everything in a case.
pub const CREATED: &str = "2026-01-01T00:00:00Z";

/// Reads an object.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T> {
    let shown = value.to_string();
    serde_json::from_value(value).with_context(|| format!("in {shown}"))
}

/// Lays `over` on `base`, objects field by field.
pub fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

fn texts<'a>(list: impl IntoIterator<Item = (&'a String, &'a Text)>) -> Map<String, Value> {
    list.into_iter()
        .map(|(key, value)| (key.clone(), Value::String(value.0.clone())))
        .collect()
}

/// A NodePool.
pub fn node_pool(name: &str, given: &PoolGiven) -> Result<NodePool> {
    let list = |words: &[String], parse: fn(&str) -> Result<Value>| -> Result<Vec<Value>> {
        words.iter().map(|it| parse(it)).collect()
    };
    let mut spec = json!({
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        "requirements": list(&given.require, words::requirement)?,
        "taints": list(&given.taints, words::taint)?,
        "startupTaints": list(&given.startup_taints, words::taint)?,
    });
    merge(&mut spec, &given.spec);
    let template = json!({
        "metadata": {"labels": given.labels, "annotations": given.annotations},
        "spec": spec,
    });
    let is_ready = if given.ready.unwrap_or(true) {
        "True"
    } else {
        "False"
    };
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": format!("pool-{name}"), "generation": 1},
        "spec": {"template": template},
        "status": {"conditions": [{
            "type": "Ready", "status": is_ready, "reason": "Ready", "message": "",
            "lastTransitionTime": CREATED,
        }]},
    });
    if let Some(weight) = given.weight {
        pool["spec"]["weight"] = json!(weight);
    }
    if !given.limits.is_empty() {
        pool["spec"]["limits"] = Value::Object(texts(&given.limits));
    }
    if let Some(replicas) = given.replicas {
        pool["spec"]["replicas"] = json!(replicas);
    }
    if given.deleting {
        pool["metadata"]["deletionTimestamp"] = json!(CREATED);
    }
    read(pool)
}

/// A NodeOverlay.
pub fn node_overlay(name: &str, given: &OverlayGiven) -> Result<NodeOverlay> {
    let requirements: Vec<Value> = given
        .require
        .iter()
        .map(|it| words::requirement(it))
        .collect::<Result<_>>()?;
    let mut spec = json!({"requirements": requirements, "capacity": texts(&given.capacity)});
    if let Some(price) = &given.price {
        spec["price"] = json!(price.0);
    }
    if let Some(adjust) = &given.adjust {
        spec["priceAdjustment"] = json!(adjust);
    }
    if let Some(weight) = given.weight {
        spec["weight"] = json!(weight);
    }
    read(json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": spec,
    }))
}

/// A workload of the default namespace.
pub fn workload(kind: &str, name: &str, given: &WorkloadGiven) -> Result<Workload> {
    let template = json!({
        "metadata": {"labels": labels_of(name, &given.pods), "annotations": given.pods.metadata["annotations"]},
        "spec": pod_spec(name, &given.pods)?,
    });
    let select = match &given.select {
        Some(select) => json!(select),
        None => labels_of(name, &given.pods),
    };
    let metadata = json!({"name": name, "namespace": "default", "generation": 1});
    let replicas = given.pods.replicas;
    let object = |selector: Value| {
        json!({
            "metadata": metadata,
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        })
    };
    let set = || object(json!({"matchLabels": select}));
    let mut set = set();
    if kind == "StatefulSet" {
        set["spec"]["serviceName"] = json!(name);
    }
    Ok(match kind {
        "Deployment" => read::<apps::Deployment>(set)?.into(),
        "ReplicaSet" => read::<apps::ReplicaSet>(set)?.into(),
        "StatefulSet" => read::<apps::StatefulSet>(set)?.into(),
        "ReplicationController" => read::<v1::ReplicationController>(object(select))?.into(),
        "PodTemplate" => {
            read::<v1::PodTemplate>(json!({"metadata": metadata, "template": template}))?.into()
        }
        other => anyhow::bail!("workload of kind {other:?}"),
    })
}

/// A CapacityBuffer of the default namespace.
pub fn buffer(name: &str, given: &BufferGiven) -> Result<CapacityBuffer> {
    let mut spec = json!({"replicas": given.replicas, "percentage": given.percentage});
    if let Some(template) = &given.template {
        spec["podTemplateRef"] = json!({"name": template});
    }
    if let Some((kind, name)) = given.scalable.as_deref().and_then(|it| it.split_once('/')) {
        spec["scalableRef"] = json!({"apiGroup": "apps", "kind": kind, "name": name});
    }
    if !given.limits.is_empty() {
        spec["limits"] = Value::Object(texts(&given.limits));
    }
    if let Some(strategy) = &given.strategy {
        spec["provisioningStrategy"] = json!(strategy);
    }
    read(json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default", "uid": format!("buffer-{name}")},
        "spec": spec,
    }))
}

/// Names of the pods of a group.
pub fn names(group: &str, given: &PodGiven) -> Vec<String> {
    match given.replicas {
        None => vec![group.to_owned()],
        Some(count) => (0..count).map(|index| format!("{group}-{index}")).collect(),
    }
}

/// The spec of a pod.
pub fn pod_spec(group: &str, given: &PodGiven) -> Result<Value> {
    let mut container = json!({"name": "main", "resources": resources(given)});
    let ports: Vec<Value> = given
        .ports
        .iter()
        .map(|it| words::port(&it.0))
        .collect::<Result<_>>()?;
    if !ports.is_empty() {
        container["ports"] = json!(ports);
    }
    merge(&mut container, &given.container);
    let app = app(group, given);
    let spreads: Vec<Value> = given
        .spread
        .iter()
        .map(|it| words::spread(it, &app))
        .collect::<Result<_>>()?;
    let tolerations: Vec<Value> = given
        .tolerate
        .iter()
        .map(|it| words::toleration(it))
        .collect();
    let volumes: Vec<Value> = given
        .volumes
        .iter()
        .map(|it| json!({"name": it, "persistentVolumeClaim": {"claimName": it}}))
        .collect();
    let claims = given.claims.iter();
    let claims = claims.map(|it| json!({"name": it, "resourceClaimName": it}));
    let claims: Vec<Value> = claims.collect();
    let selector: Map<String, Value> = given
        .select
        .iter()
        .map(|(key, value)| (words::key(key).to_owned(), json!(value)))
        .collect();
    let mut spec = json!({
        "containers": [container],
        "nodeSelector": selector,
        "tolerations": tolerations,
        "topologySpreadConstraints": spreads,
        "volumes": volumes,
        "resourceClaims": claims,
        "affinity": affinity(given, &app)?,
    });
    merge(&mut spec, &given.spec);
    Ok(spec)
}

fn app(group: &str, given: &PodGiven) -> String {
    let labels = given.labels.as_ref();
    labels
        .and_then(|it| it.get("app"))
        .map_or_else(|| group.to_owned(), Clone::clone)
}

fn resources(given: &PodGiven) -> Value {
    let mut requests = texts(given.requests.iter().flatten());
    for (name, amount) in [("cpu", &given.cpu), ("memory", &given.memory)] {
        if let Some(amount) = amount {
            requests.insert(name.to_owned(), json!(amount.0));
        }
    }
    let is_silent = given.requests.is_none()
        && requests.is_empty()
        && given.limits.is_empty()
        && given.container.is_null()
        && given.spec.is_null();
    if is_silent {
        requests.insert("cpu".to_owned(), json!("100m"));
        requests.insert("memory".to_owned(), json!("100Mi"));
    }
    json!({"requests": requests, "limits": texts(&given.limits)})
}

fn affinity(given: &PodGiven, app: &str) -> Result<Value> {
    let mut affinity = json!({});
    let terms = words::terms(&given.require)?;
    if !terms.is_empty() {
        affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": terms});
    }
    let mut preferred = Vec::new();
    for entry in &given.prefer {
        let [weight, rest @ ..] = entry.as_slice() else {
            anyhow::bail!("a preference needs a weight");
        };
        let words: Vec<String> = rest
            .iter()
            .map(|it| Ok(it.as_str().context("preference in words")?.to_owned()))
            .collect::<Result<_>>()?;
        preferred.push(json!({"weight": weight, "preference": words::term(&words)?}));
    }
    if !preferred.is_empty() {
        affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
            json!(preferred);
    }
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let lists = [
        ("podAffinity", required, &given.near),
        ("podAntiAffinity", required, &given.away),
        ("podAffinity", preferred, &given.prefer_near),
        ("podAntiAffinity", preferred, &given.prefer_away),
    ];
    for (kind, strength, list) in lists {
        let parse = if strength == required {
            words::affinity_term
        } else {
            words::weighted_term
        };
        let terms: Vec<Value> = list
            .iter()
            .map(|it| parse(it, app))
            .collect::<Result<_>>()?;
        if !terms.is_empty() {
            affinity[kind][strength] = json!(terms);
        }
    }
    Ok(affinity)
}

/// One pod; bound when `node` names one.
pub fn pod(group: &str, name: &str, given: &PodGiven, node: Option<&str>) -> Result<Pod> {
    let mut metadata = json!({
        "name": name,
        "namespace": given.namespace.as_deref().unwrap_or("default"),
        "uid": format!("pod-{name}"),
        "labels": labels_of(group, given),
        "creationTimestamp": CREATED,
    });
    if let Some((kind, owner)) = given.owner.as_deref().and_then(|it| it.split_once('/')) {
        let group = match kind {
            "Node" | "ReplicationController" => "v1",
            "Job" => "batch/v1",
            _ => "apps/v1",
        };
        metadata["ownerReferences"] = json!([{
            "apiVersion": group, "kind": kind, "name": owner, "uid": format!("{kind}-{owner}"),
            "controller": true,
        }]);
    }
    merge(&mut metadata, &given.metadata);
    let mut spec = pod_spec(group, given)?;
    let mut status = match node {
        Some(_) => json!({"phase": "Running"}),
        None => json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        ]}),
    };
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    merge(&mut status, &given.status);
    read(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// Labels of the pods of a group.
pub fn labels_of(group: &str, given: &PodGiven) -> Value {
    match &given.labels {
        Some(own) => json!(own),
        None => json!({"app": group}),
    }
}

/// Taints of words.
pub fn taints(list: &[String]) -> Result<Vec<Value>> {
    list.iter().map(|it| words::taint(it)).collect()
}

/// Labels that a node of a pool has once it is done.
pub fn done_labels() -> [(&'static str, &'static str); 2] {
    [(labels::REGISTERED, "true"), (labels::INITIALIZED, "true")]
}
