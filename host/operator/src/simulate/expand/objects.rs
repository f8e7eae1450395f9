//! What there is to know of an object before it is expanded: owners, keys, what a cluster made of it itself.

use scheduling::pod::PodKey;
use serde_json::{Value, json};
use sim::api_server::Resource;
use state::devices::DeviceKind;

/// Takes away what only the API server sets, so that objects of another cluster can be applied to this one.
pub(super) fn strip(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "ownerReferences",
    ] {
        metadata.remove(field);
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
}

/// Kinds and names of an object's owners.
pub(super) fn owners_of(object: &Value) -> Vec<(String, PodKey)> {
    let namespace = key_of(object).namespace;
    let references = object["metadata"]["ownerReferences"].as_array();
    let owner = |it: &Value| {
        let kind = it["kind"].as_str().unwrap_or_default().to_owned();
        let name = it["name"].as_str().unwrap_or_default();
        (kind, PodKey::new(&namespace, name))
    };
    references.into_iter().flatten().map(owner).collect()
}

pub(super) fn is_about_devices(object: &Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    version.starts_with("resource.k8s.io/") && DeviceKind::of(kind).is_some()
}

pub(super) fn is_of_a_cluster(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string() || pod["status"]["phase"].is_string()
}

/// The Job that a CronJob starts when its time comes.
pub(super) fn one_run(cron_job: &Value) -> Value {
    let mut job = cron_job["spec"]["jobTemplate"].clone();
    if !job.is_object() {
        job = json!({});
    }
    job["apiVersion"] = json!("batch/v1");
    job["kind"] = json!("Job");
    for field in ["name", "namespace"] {
        if cron_job["metadata"][field].is_string() {
            job["metadata"][field] = cron_job["metadata"][field].clone();
        }
    }
    job
}

/// Kind, namespace and name of the workload that a pod belongs to.
pub(super) fn workload_of(pod: &Value) -> String {
    let owner = &pod["metadata"]["ownerReferences"][0];
    let kind = owner["kind"].as_str().unwrap_or("Pod");
    let name = owner["name"].as_str().unwrap_or_default();
    let namespace = key_of(pod).namespace;
    let hash = pod["metadata"]["labels"]["pod-template-hash"].as_str();
    let deployment = hash.and_then(|hash| name.strip_suffix(&format!("-{hash}")));
    match deployment {
        Some(deployment) => format!("Deployment {namespace}/{deployment}"),
        None => format!("{kind} {namespace}/{name}"),
    }
}

pub(super) fn key_of(object: &Value) -> PodKey {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    PodKey::new(namespace, metadata["name"].as_str().unwrap_or_default())
}
