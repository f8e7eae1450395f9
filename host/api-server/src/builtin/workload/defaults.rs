//! The defaults of workloads, services and the smaller kinds.

use crate::builtin::pod_template::{self, defaults::default_to};
use crate::builtin::workload::template::template_path;
use crate::served::kinds::ServedKind;
use serde_json::{Value, json};

/// Defaults of the kind.
pub(in crate::builtin) fn set_defaults(kind: &ServedKind, object: &mut Value) {
    if let Some(template) = template_path(kind).and_then(|path| object.pointer_mut(path)) {
        pod_template::defaults::set_defaults(&mut template["spec"]);
    }
    if object["spec"].is_null() && kind.kind != "Service" {
        return;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => deployment_defaults(&mut object["spec"]),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            default_to(&mut object["spec"], "replicas", 1);
        }
        ("apps", "StatefulSet") => stateful_set_defaults(&mut object["spec"]),
        ("apps", "DaemonSet") => {
            let spec = &mut object["spec"];
            default_to(spec, "revisionHistoryLimit", 10);
            default_to(spec, "updateStrategy", json!({"type": "RollingUpdate"}));
            if spec["updateStrategy"]["type"].as_str() == Some("RollingUpdate") {
                let rolling = &mut spec["updateStrategy"]["rollingUpdate"];
                default_to(rolling, "maxUnavailable", 1);
                default_to(rolling, "maxSurge", 0);
            }
        }
        ("batch", "Job") => job_defaults(object),
        ("batch", "CronJob") => {
            let spec = &mut object["spec"];
            default_to(spec, "concurrencyPolicy", "Allow");
            default_to(spec, "suspend", false);
            default_to(spec, "successfulJobsHistoryLimit", 3);
            default_to(spec, "failedJobsHistoryLimit", 1);
        }
        ("", "Service") => {
            service_defaults(&mut object["spec"]);
            assign_cluster_ip(object);
        }
        ("", "PersistentVolumeClaim") => {
            default_to(&mut object["spec"], "volumeMode", "Filesystem");
            default_to(object, "status", json!({"phase": "Pending"}));
        }
        ("", "PersistentVolume") => {
            default_to(
                &mut object["spec"],
                "persistentVolumeReclaimPolicy",
                "Retain",
            );
            default_to(&mut object["spec"], "volumeMode", "Filesystem");
            default_to(object, "status", json!({"phase": "Pending"}));
        }
        _ => {}
    }
}

fn deployment_defaults(spec: &mut Value) {
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    default_to(spec, "strategy", json!({}));
    default_to(&mut spec["strategy"], "type", "RollingUpdate");
    if spec["strategy"]["type"].as_str() == Some("RollingUpdate") {
        let rolling = &mut spec["strategy"]["rollingUpdate"];
        default_to(rolling, "maxUnavailable", "25%");
        default_to(rolling, "maxSurge", "25%");
    }
}

fn stateful_set_defaults(spec: &mut Value) {
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "podManagementPolicy", "OrderedReady");
    default_to(spec, "updateStrategy", json!({}));
    default_to(&mut spec["updateStrategy"], "type", "RollingUpdate");
    if spec["updateStrategy"]["type"].as_str() == Some("RollingUpdate") {
        default_to(&mut spec["updateStrategy"]["rollingUpdate"], "partition", 0);
    }
    default_to(
        spec,
        "persistentVolumeClaimRetentionPolicy",
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
    );
    for claim in spec["volumeClaimTemplates"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        claim["apiVersion"] = "v1".into();
        claim["kind"] = "PersistentVolumeClaim".into();
        default_to(&mut claim["spec"], "volumeMode", "Filesystem");
        claim["status"] = json!({"phase": "Pending"});
    }
}

fn job_defaults(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = 1.into();
    }
    default_to(spec, "parallelism", 1);
    default_to(spec, "backoffLimit", 6);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    default_to(spec, "manualSelector", false);
    default_to(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

/// A job's selector is made from its UID, which it has once it is stored.
pub(crate) fn set_job_selector(job: &mut Value) {
    if !job["spec"]["selector"].is_null() {
        return;
    }
    let (uid, name) = (
        job["metadata"]["uid"].clone(),
        job["metadata"]["name"].clone(),
    );
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.clone();
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        default_to(labels, key, value.clone());
    }
}

fn service_defaults(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default_to(spec, "type", "ClusterIP");
    default_to(spec, "sessionAffinity", "None");
    if spec["type"].as_str() != Some("ExternalName") {
        default_to(spec, "internalTrafficPolicy", "Cluster");
        default_to(spec, "ipFamilies", json!(["IPv4"]));
        default_to(spec, "ipFamilyPolicy", "SingleStack");
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        if port["targetPort"].is_null() {
            port["targetPort"] = port["port"].clone();
        }
    }
}

/// Gives a service an address of its own, told by its name; nothing routes it.
fn assign_cluster_ip(service: &mut Value) {
    let metadata = &service["metadata"];
    let name = format!("{}/{}", metadata["namespace"], metadata["name"]);
    let spec = &mut service["spec"];
    if spec["type"].as_str() == Some("ExternalName") || !spec.is_object() {
        return;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let [_, a, b, c] = hash.to_be_bytes();
        spec["clusterIP"] = format!("10.{}.{b}.{}", 96 + a % 16, c.max(1)).into();
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
}
