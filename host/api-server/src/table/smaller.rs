//! The smaller kinds as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::{Printer, age, count, labels_text, name, or_none, since};

/// The printer of a kind that has columns of its own.
pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "Service" => SERVICE,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "Event" => EVENT,
        "Namespace" => NAMESPACE,
        "PersistentVolume" => VOLUME,
        "PersistentVolumeClaim" => CLAIM,
        "StorageClass" => STORAGE_CLASS,
        "CSINode" => CSI_NODE,
        "Lease" => LEASE,
        "PodDisruptionBudget" => BUDGET,
        "PriorityClass" => PRIORITY_CLASS,
        "CustomResourceDefinition" | "Role" | "ClusterRole" => CREATED_AT,
        "RoleBinding" | "ClusterRoleBinding" => BINDING,
        _ => return None,
    })
}

fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

fn joined(list: &Value) -> String {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(",")
}

const CONFIG_MAP: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Data", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        vec![
            name(o),
            (size(&o["data"]) + size(&o["binaryData"])).into(),
            age(o, now),
        ]
    },
};

const SECRET: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Data", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        vec![
            name(o),
            o["type"].clone(),
            size(&o["data"]).into(),
            age(o, now),
        ]
    },
};

const SERVICE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        ("Age", "string", 0),
        ("Selector", "string", 1),
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let external = match spec["type"].as_str() {
            Some("LoadBalancer") => {
                let ingress = o["status"]["loadBalancer"]["ingress"].as_array();
                let first = ingress.into_iter().flatten().next();
                first
                    .and_then(|i| i["ip"].as_str().or_else(|| i["hostname"].as_str()))
                    .unwrap_or("<pending>")
            }
            Some("ExternalName") => spec["externalName"].as_str().unwrap_or_default(),
            _ => "<none>",
        };
        vec![
            name(o),
            spec["type"].clone(),
            or_none(&spec["clusterIP"]),
            external.into(),
            ports(spec),
            age(o, now),
            labels_text(&spec["selector"]),
        ]
    },
};

fn ports(spec: &Value) -> Value {
    let texts: Vec<String> = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match count(&port["nodePort"]) {
                0 => format!("{}/{protocol}", count(&port["port"])),
                node => format!("{}:{node}/{protocol}", count(&port["port"])),
            }
        })
        .collect();
    if texts.is_empty() {
        "<none>".into()
    } else {
        texts.join(",").into()
    }
}

const SERVICE_ACCOUNT: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Secrets", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        vec![
            name(o),
            o["secrets"].as_array().map_or(0, Vec::len).into(),
            age(o, now),
        ]
    },
};

const EVENT: Printer = Printer {
    columns: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event_cells,
};

fn event_cells(event: &Value, now: Timestamp) -> Vec<Value> {
    // Either group's names of the fields.
    let pick = |names: [&str; 2]| {
        names
            .map(|n| &event[n])
            .into_iter()
            .find(|v| !v.is_null())
            .cloned()
            .unwrap_or_default()
    };
    let object = pick(["involvedObject", "regarding"]);
    let series = &event["series"]["lastObservedTime"];
    let last = [
        series.clone(),
        pick(["lastTimestamp", "deprecatedLastTimestamp"]),
        event["eventTime"].clone(),
    ]
    .into_iter()
    .find(Value::is_string)
    .unwrap_or_else(|| event["metadata"]["creationTimestamp"].clone());
    let first = [
        pick(["firstTimestamp", "deprecatedFirstTimestamp"]),
        event["eventTime"].clone(),
    ]
    .into_iter()
    .find(Value::is_string)
    .unwrap_or_else(|| event["metadata"]["creationTimestamp"].clone());
    let source = pick(["source", "deprecatedSource"]);
    let component = source["component"]
        .as_str()
        .filter(|c| !c.is_empty())
        .map_or_else(
            || pick(["reportingComponent", "reportingController"]),
            Value::from,
        );
    let times = event["series"]["count"]
        .as_i64()
        .or_else(|| pick(["count", "deprecatedCount"]).as_i64());
    vec![
        since(&last, now),
        event["type"].clone(),
        event["reason"].clone(),
        format!(
            "{}/{}",
            object["kind"]
                .as_str()
                .unwrap_or_default()
                .to_ascii_lowercase(),
            object["name"].as_str().unwrap_or_default()
        )
        .into(),
        object["fieldPath"].as_str().unwrap_or_default().into(),
        component,
        pick(["message", "note"])
            .as_str()
            .unwrap_or_default()
            .trim()
            .into(),
        since(&first, now),
        times.unwrap_or(1).into(),
        name(event),
    ]
}

const NAMESPACE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| vec![name(o), o["status"]["phase"].clone(), age(o, now)],
};

/// `RWO` for `ReadWriteOnce` and so on.
fn access_modes(modes: &Value) -> Value {
    let shorts: Vec<&str> = modes
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|mode| match mode.as_str()? {
            "ReadWriteOnce" => Some("RWO"),
            "ReadOnlyMany" => Some("ROX"),
            "ReadWriteMany" => Some("RWX"),
            "ReadWriteOncePod" => Some("RWOP"),
            _ => None,
        })
        .collect();
    shorts.join(",").into()
}

const VOLUME: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("Reclaim Policy", "string", 0),
        ("Status", "string", 0),
        ("Claim", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Reason", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |o, now| {
        let (spec, status) = (&o["spec"], &o["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let claim = match &spec["claimRef"] {
            Value::Null => String::new(),
            claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
        };
        vec![
            name(o),
            text(&spec["capacity"]["storage"]).into(),
            access_modes(&spec["accessModes"]),
            text(&spec["persistentVolumeReclaimPolicy"]).into(),
            text(&status["phase"]).into(),
            claim.into(),
            text(&spec["storageClassName"]).into(),
            "<unset>".into(),
            text(&status["reason"]).into(),
            age(o, now),
            text(&spec["volumeMode"]).into(),
        ]
    },
};

const CLAIM: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Volume", "string", 0),
        ("Capacity", "string", 0),
        ("Access Modes", "string", 0),
        ("StorageClass", "string", 0),
        ("VolumeAttributesClass", "string", 0),
        ("Age", "string", 0),
        ("VolumeMode", "string", 1),
    ],
    cells: |o, now| {
        let (spec, status) = (&o["spec"], &o["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let phase = if o["metadata"]["deletionTimestamp"].is_string() {
            "Terminating".to_owned()
        } else {
            text(&status["phase"])
        };
        vec![
            name(o),
            phase.into(),
            text(&spec["volumeName"]).into(),
            text(&status["capacity"]["storage"]).into(),
            access_modes(&status["accessModes"]),
            text(&spec["storageClassName"]).into(),
            "<unset>".into(),
            age(o, now),
            text(&spec["volumeMode"]).into(),
        ]
    },
};

const STORAGE_CLASS: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Provisioner", "string", 0),
        ("ReclaimPolicy", "string", 0),
        ("VolumeBindingMode", "string", 0),
        ("AllowVolumeExpansion", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        let mark = &o["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"];
        let shown = o["metadata"]["name"].as_str().unwrap_or_default();
        let is_default = mark.as_str() == Some("true");
        vec![
            if is_default {
                format!("{shown} (default)").into()
            } else {
                name(o)
            },
            o["provisioner"].clone(),
            o["reclaimPolicy"].as_str().unwrap_or("Delete").into(),
            o["volumeBindingMode"]
                .as_str()
                .unwrap_or("Immediate")
                .into(),
            o["allowVolumeExpansion"]
                .as_bool()
                .unwrap_or(false)
                .to_string()
                .into(),
            age(o, now),
        ]
    },
};

const CSI_NODE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Drivers", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        vec![
            name(o),
            o["spec"]["drivers"].as_array().map_or(0, Vec::len).into(),
            age(o, now),
        ]
    },
};

const LEASE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Holder", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        let holder = o["spec"]["holderIdentity"].as_str().unwrap_or_default();
        vec![name(o), holder.into(), age(o, now)]
    },
};

const BUDGET: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Min Available", "string", 0),
        ("Max Unavailable", "string", 0),
        ("Allowed Disruptions", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| {
        let bound = |value: &Value| -> Value {
            match value {
                Value::Null => "N/A".into(),
                Value::String(text) => text.as_str().into(),
                other => other.to_string().into(),
            }
        };
        vec![
            name(o),
            bound(&o["spec"]["minAvailable"]),
            bound(&o["spec"]["maxUnavailable"]),
            count(&o["status"]["disruptionsAllowed"]).into(),
            age(o, now),
        ]
    },
};

const PRIORITY_CLASS: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Value", "integer", 0),
        ("Global-Default", "boolean", 0),
        ("Age", "string", 0),
        ("PreemptionPolicy", "string", 0),
    ],
    cells: |o, now| {
        vec![
            name(o),
            count(&o["value"]).into(),
            o["globalDefault"].as_bool().unwrap_or(false).into(),
            age(o, now),
            o["preemptionPolicy"]
                .as_str()
                .unwrap_or("PreemptLowerPriority")
                .into(),
        ]
    },
};

const CREATED_AT: Printer = Printer {
    columns: &[("Name", "string", 0), ("Created At", "date", 0)],
    cells: |o, _| vec![name(o), o["metadata"]["creationTimestamp"].clone()],
};

const BINDING: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Role", "string", 0),
        ("Age", "string", 0),
        ("Subjects", "string", 1),
    ],
    cells: |o, now| {
        let role = &o["roleRef"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let subjects = o["subjects"]
            .as_array()
            .map(|list| list.iter().map(|s| s["name"].clone()).collect::<Value>());
        vec![
            name(o),
            format!("{}/{}", text(&role["kind"]), text(&role["name"])).into(),
            age(o, now),
            joined(&subjects.unwrap_or_default()).into(),
        ]
    },
};
