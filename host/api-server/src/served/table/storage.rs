//! Volumes, claims, storage classes and drivers as `kubectl get` shows them.

use super::cells::{age, name};
use super::printer::Printer;
use serde_json::Value;

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

pub(super) const VOLUME: Printer = Printer {
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

pub(super) const CLAIM: Printer = Printer {
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

pub(super) const STORAGE_CLASS: Printer = Printer {
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

pub(super) const CSI_NODE: Printer = Printer {
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
