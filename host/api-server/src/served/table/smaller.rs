//! The smaller kinds as `kubectl get` shows them.

use super::events::EVENT;
use super::services::SERVICE;
use super::storage::{CLAIM, CSI_NODE, STORAGE_CLASS, VOLUME};
use serde_json::Value;

use super::cells::{age, count, name};
use super::printer::Printer;

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

const NAMESPACE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |o, now| vec![name(o), o["status"]["phase"].clone(), age(o, now)],
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
