//! Pods: defaults, priority, tolerations every pod gets, validation, binding.

use std::sync::Arc;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::pod_template::{self, defaults};
use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::selectors::Selection;
use crate::served::kinds::ServedKind;
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::timestamp::time_text;
use crate::write::options::{ObjectPart, WriteOptions};

/// Taints of failing nodes that every pod bears for a while.
const BORNE_SECONDS: i64 = 300;

/// Defaults of a new pod and its first status.
pub(super) fn prepare_create(store: &Store, pod: &mut Value) -> Result<(), StatusError> {
    defaults::set_defaults(&mut pod["spec"]);
    let spec = &mut pod["spec"];
    if spec["serviceAccountName"]
        .as_str()
        .is_none_or(str::is_empty)
    {
        spec["serviceAccountName"] = "default".into();
    }
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    resolve_priority(store, pod)?;
    add_default_tolerations(&mut pod["spec"]);
    tolerate_extended_resources(&mut pod["spec"]);
    pod["status"] = json!({"phase": "Pending", "qosClass": qos_class(&pod["spec"])});
    Ok(())
}

/// Defaults of a changed pod.
pub(super) fn prepare_update(old: &Value, pod: &mut Value) {
    if old.get("spec") != pod.get("spec") {
        defaults::set_defaults(&mut pod["spec"]);
    }
}

fn resolve_priority(store: &Store, pod: &mut Value) -> Result<(), StatusError> {
    let named = pod["spec"]["priorityClassName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let class = if named.is_empty() {
        let classes = store.list(&Resource::PRIORITY_CLASSES, &Selection::everything());
        let mut defaults: Vec<_> = classes
            .into_iter()
            .filter(|c| c["globalDefault"].as_bool() == Some(true))
            .collect();
        // Of several global defaults the lowest counts.
        defaults.sort_by_key(|c| c["value"].as_i64());
        defaults.into_iter().next()
    } else {
        let found = store.get(
            &Resource::PRIORITY_CLASSES,
            &NamespacedName::new("", named.as_str()),
        );
        let Some(found) = found else {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let detail = format!("no PriorityClass with name {named} was found");
            return Err(StatusError::forbidden(&Resource::PODS, name, &detail));
        };
        Some(found)
    };
    let spec = &mut pod["spec"];
    if let Some(class) = class {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
        spec["priority"] = class["value"].clone();
        let policy = class["preemptionPolicy"]
            .as_str()
            .unwrap_or("PreemptLowerPriority");
        spec["preemptionPolicy"] = policy.into();
    } else {
        spec["priority"] = 0.into();
        defaults::default_to(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    Ok(())
}

fn add_default_tolerations(spec: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerations = spec["tolerations"].as_array();
        let is_tolerated = tolerations.into_iter().flatten().any(|t| {
            let same_key = t["key"].as_str().is_none_or(|k| k.is_empty() || k == key);
            let same_effect = t["effect"]
                .as_str()
                .is_none_or(|e| e.is_empty() || e == "NoExecute");
            same_key && same_effect
        });
        if is_tolerated {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": BORNE_SECONDS,
        });
        add_toleration(spec, toleration);
    }
}

/// The `ExtendedResourceToleration` admission plugin: a pod that asks for a device may go where only such pods go.
fn tolerate_extended_resources(spec: &mut Value) {
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array());
    let containers = lists.into_iter().flatten().flatten();
    let asked: BTreeSet<String> = containers
        .filter_map(|container| container["resources"]["requests"].as_object())
        .flat_map(|requests| requests.keys())
        .filter(|name| is_extended_resource(name))
        .cloned()
        .collect();
    for key in asked {
        let tolerations = spec["tolerations"].as_array();
        let is_tolerated = tolerations
            .into_iter()
            .flatten()
            .any(|t| t["key"] == key.as_str());
        if !is_tolerated {
            add_toleration(spec, json!({"key": key, "operator": "Exists"}));
        }
    }
}

/// Named by a domain that is not Kubernetes' own.
fn is_extended_resource(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

fn add_toleration(spec: &mut Value, toleration: Value) {
    match spec["tolerations"].as_array_mut() {
        Some(list) => list.push(toleration),
        None => spec["tolerations"] = json!([toleration]),
    }
}

/// Quality of service as kubelets rank pods by it.
fn qos_class(spec: &Value) -> &'static str {
    let mut is_best_effort = true;
    let mut is_guaranteed = true;
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            for resource in ["cpu", "memory"] {
                let request = crate::quantity::parse(&resources["requests"][resource]);
                let limit = crate::quantity::parse(&resources["limits"][resource]);
                is_best_effort &= request.is_none() && limit.is_none();
                is_guaranteed &= limit.is_some() && request == limit;
            }
        }
    }
    if is_best_effort {
        "BestEffort"
    } else if is_guaranteed {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Rules of a new pod.
pub(super) fn validate(pod: &Value) -> Vec<FieldError> {
    pod_template::validate(&pod["spec"], "spec")
}

/// What of a pod's status may not change.
pub(super) fn validate_status_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let nominated = |pod: &Value| {
        let node = pod["status"]["nominatedNodeName"].as_str();
        node.filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let (before, after) = (nominated(old), nominated(new));
    let is_bound = old["spec"]["nodeName"].is_string();
    if !is_bound || after.is_none() || before == after {
        return Vec::new();
    }
    vec![FieldError::forbidden(
        "status.nominatedNodeName",
        "may not be set on pods that are already bound to a node",
    )]
}

/// What of a pod's spec may change after its creation.
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let (before, after) = (&old["spec"], &new["spec"]);
    if before == after {
        return Vec::new();
    }
    let mut allowed = before.clone();
    for field in [
        "activeDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "schedulingGates",
        "ephemeralContainers",
    ] {
        allowed[field] = after[field].clone();
    }
    allowed["tolerations"] = after["tolerations"].clone();
    if before["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
    {
        allowed["nodeSelector"] = after["nodeSelector"].clone();
        allowed["affinity"] = after["affinity"].clone();
    }
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> = after[list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| container["image"].clone())
            .collect();
        for (container, image) in allowed[list]
            .as_array_mut()
            .into_iter()
            .flatten()
            .zip(images)
        {
            container["image"] = image;
        }
    }
    if without_nulls(&allowed) == without_nulls(after) {
        return Vec::new();
    }
    vec![FieldError::forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,\
         `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
         additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
         set to 1 if it was previously negative)",
    )]
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k.clone(), without_nulls(v)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Assigns a pod to a node, as `pods/binding` does.
pub(crate) fn bind(
    store: &mut Store,
    key: &NamespacedName,
    node: &str,
    options: &WriteOptions,
) -> Result<Arc<Value>, StatusError> {
    let kind: Arc<ServedKind> = store.kind(&Resource::PODS)?;
    let old = store
        .get_to_write(&Resource::PODS, key)
        .ok_or_else(|| StatusError::not_found(&Resource::PODS, &key.name))?;
    if let Some(taken) = old["spec"]["nodeName"].as_str()
        && !taken.is_empty()
    {
        let detail = format!("pod {} is already assigned to node {taken:?}", key.name);
        return Err(StatusError::conflict(&Resource::PODS, &key.name, &detail));
    }
    if old["metadata"]["deletionTimestamp"].is_string() {
        let detail = format!(
            "pod {} is being deleted, cannot be assigned to a host",
            key.name
        );
        return Err(StatusError::conflict(&Resource::PODS, &key.name, &detail));
    }
    let mut pod = (*old).clone();
    pod["spec"]["nodeName"] = node.into();
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": time_text(store.now()),
    });
    match pod["status"]["conditions"].as_array_mut() {
        Some(list) => {
            list.retain(|c| c["type"].as_str() != Some("PodScheduled"));
            list.push(condition);
        }
        None => pod["status"]["conditions"] = json!([condition]),
    }
    let options = WriteOptions {
        part: ObjectPart::Whole,
        ..options.clone()
    };
    store.update(&kind, key, pod, &options)
}
