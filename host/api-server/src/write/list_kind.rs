//! How the lists of the typed API are kept: one table for strategic merge patches and for server-side apply.
//!
//! Kubernetes says it in the tags and comments of its Go types; here names of fields decide, since kinds contradict
//! each other in lists of statuses alone, which their controllers write whole. Nothing inside a list that is one value
//! needs a row. A test holds the table against the types that are served.

/// How the items of a list are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// The list is one value.
    Atomic,
    /// Items are told apart by their whole values.
    Set {
        /// Whether a strategic patch adds to it; else it replaces the list.
        is_merged: bool,
    },
    /// Items are told apart by fields.
    Map {
        /// The key by which a strategic patch merges; without one it replaces the list.
        merge: Option<&'static str>,
        /// The keys by which fields have owners.
        keys: &'static [&'static str],
    },
}

const fn map(key: &'static [&'static str; 1]) -> ListKind {
    ListKind::Map {
        merge: Some(key[0]),
        keys: key,
    }
}

/// The kind of a list, given the name of its field and of the field around it.
pub(crate) fn list_kind(parent: &str, field: &str) -> ListKind {
    match (parent, field) {
        ("metadata", "finalizers") | ("spec", "podCIDRs") => ListKind::Set { is_merged: true },
        ("uncountedTerminatedPods", "succeeded" | "failed")
        | ("spec", "validationActions" | "volumeLifecycleModes") => {
            ListKind::Set { is_merged: false }
        }
        // A pod's secrets are merged, a ServiceAccount's are one value.
        ("", "imagePullSecrets") => ListKind::Atomic,
        (
            _,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "env"
            | "volumes"
            | "imagePullSecrets"
            | "resourceClaims"
            | "resourceClaimStatuses"
            | "schedulingGates"
            | "matchConditions",
        )
        | ("", "secrets" | "webhooks")
        | ("spec", "drivers" | "variables") => map(&["name"]),
        ("resources", "claims") => ListKind::Map {
            merge: None,
            keys: &["name"],
        },
        ("spec", "ports") => ListKind::Map {
            merge: Some("port"),
            keys: &["port", "protocol"],
        },
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => ListKind::Map {
            merge: Some("containerPort"),
            keys: &["containerPort", "protocol"],
        },
        (_, "volumeMounts") => map(&["mountPath"]),
        (_, "volumeDevices") => map(&["devicePath"]),
        (_, "hostAliases" | "hostIPs" | "podIPs") => map(&["ip"]),
        (_, "topologySpreadConstraints") => ListKind::Map {
            merge: Some("topologyKey"),
            keys: &["topologyKey", "whenUnsatisfiable"],
        },
        ("status", "devices") => ListKind::Map {
            merge: None,
            keys: &["driver", "device", "pool"],
        },
        ("devices", "conditions") => ListKind::Map {
            merge: None,
            keys: &["type"],
        },
        (_, "conditions") | ("status", "addresses") => map(&["type"]),
        (_, "ownerReferences") | ("status", "reservedFor") => map(&["uid"]),
        (_, "x-kubernetes-validations") => map(&["rule"]),
        _ => ListKind::Atomic,
    }
}

/// What a key means that an item leaves out, where it means something.
pub(crate) fn default_of(key: &str) -> Option<&'static str> {
    match key {
        "protocol" => Some("TCP"),
        "whenUnsatisfiable" => Some("DoNotSchedule"),
        _ => None,
    }
}
