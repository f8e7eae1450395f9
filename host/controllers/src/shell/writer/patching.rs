//! Writes what changed between two versions of an object, as a merge patch that fails when someone else was faster.
//!
//! Lists are replaced whole by a merge patch, hence the lock on the version that was read. Values of a status that are
//! in no list take nothing from anybody and need none. Answers to controller-runtime's `client.MergeFrom` and
//! `client.MergeFromWithOptimisticLock`.

use std::fmt::Debug;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus};
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::shell::error::ReconcileError;

/// Field manager of our patches, which is Karpenter's: who goes from one to the other finds no second owner of a field.
const FIELD_MANAGER: &str = "karpenter";

/// Which part of an object a patch goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchTarget {
    /// Metadata and spec.
    Main,
    /// The status subresource.
    Status,
}

/// An object whose spec and status are written apart. A NodeClaim names hundreds of instance types: what is not
/// written is not serialised either.
pub(crate) trait SpecAndStatus:
    Resource + Clone + Debug + Serialize + DeserializeOwned
{
    /// Type of the desired state.
    type Spec: Serialize + PartialEq;
    /// Type of the observed state.
    type Status: Serialize;
    /// The spec as it is.
    fn spec(&self) -> &Self::Spec;
    /// The status as it is.
    fn status(&self) -> &Self::Status;
}

macro_rules! parts {
    ($($kind:ty: $spec:ty, $status:ty;)*) => {$(
        impl SpecAndStatus for $kind {
            type Spec = $spec;
            type Status = Option<$status>;
            fn spec(&self) -> &Self::Spec {
                &self.spec
            }
            fn status(&self) -> &Self::Status {
                &self.status
            }
        }
    )*};
}

parts! {
    NodeClaim: apis::NodeClaimSpec, apis::NodeClaimStatus;
    NodePool: apis::NodePoolSpec, apis::NodePoolStatus;
    Ec2NodeClass: apis::Ec2NodeClassSpec, apis::Ec2NodeClassStatus;
    CapacityBuffer: apis::CapacityBufferSpec, apis::CapacityBufferStatus;
    NodeOverlay: apis::NodeOverlaySpec, apis::NodeOverlayStatus;
    Node: Option<NodeSpec>, NodeStatus;
}

/// Writes the difference between `before` and `after` in one part; nothing when there is none.
pub(crate) async fn patch<K>(
    api: &Api<K>,
    before: &K,
    after: &K,
    part: PatchTarget,
) -> Result<Option<K>, ReconcileError>
where
    K: SpecAndStatus,
{
    let mut difference = Map::new();
    let mut changed = |name: &str, change: Option<Value>| {
        difference.extend(change.map(|it| (name.to_owned(), it)));
    };
    match part {
        PatchTarget::Main => {
            if before.meta() != after.meta() {
                changed("metadata", difference_of(before.meta(), after.meta())?);
            }
            if before.spec() != after.spec() {
                changed("spec", difference_of(before.spec(), after.spec())?);
            }
        }
        PatchTarget::Status => changed("status", difference_of(before.status(), after.status())?),
    }
    if difference.is_empty() {
        return Ok(None);
    }
    let is_locked = part == PatchTarget::Main || difference.values().any(has_list);
    if let Some(version) = before.resource_version().filter(|_| is_locked) {
        let metadata = difference
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert("resourceVersion".to_owned(), Value::String(version));
        }
    }
    let name = before.name_any();
    let params = patch_params();
    let change = Patch::Merge(Value::Object(difference));
    let written = match part {
        PatchTarget::Main => api.patch(&name, &params, &change).await,
        PatchTarget::Status => api.patch_status(&name, &params, &change).await,
    };
    written.map(Some).map_err(ReconcileError::of_write)
}

/// How every patch is sent but those that are applied. One without a name would be told apart by the user agent alone,
/// and fields of one object would have two owners.
pub(crate) fn patch_params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        _ => false,
    }
}

fn difference_of<T: Serialize>(before: &T, after: &T) -> Result<Option<Value>, serde_json::Error> {
    let before = serde_json::to_value(before)?;
    Ok(merge_difference(&before, &serde_json::to_value(after)?))
}

/// The merge patch (RFC 7386) that turns `before` into `after`; none when they are equal.
pub(crate) fn merge_difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return Some(after.clone());
    };
    let mut difference = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        difference.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        let change = match old.get(name) {
            Some(known) => merge_difference(known, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            difference.insert(name.clone(), change);
        }
    }
    Some(Value::Object(difference))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api_server::{ApiServer, Resource};
    use jiff::Timestamp;
    use kube::Client;
    use serde_json::json;

    use super::*;
    use crate::test_objects::with_values;

    #[tokio::test]
    async fn a_status_without_lists_is_written_over_a_newer_object_and_one_with_lists_is_not() {
        let server = ApiServer::new(1, Arc::new(|| Timestamp::UNIX_EPOCH));
        let node = json!({"metadata": {"name": "n"}, "status": {}});
        server.create(&Resource::NODES, "", node).unwrap();
        let nodes: Api<Node> = Api::all(Client::new(server.clone(), "default"));
        let stale = nodes.get("n").await.unwrap();
        let theirs = json!({"metadata": {"labels": {"theirs": "true"}}});
        server
            .patch_merge(&Resource::NODES, "", "n", theirs)
            .unwrap();
        let write = async |value: Value| {
            let node = with_values(serde_json::to_value(&stale).unwrap(), &value);
            let after = serde_json::from_value(node).unwrap();
            patch(&nodes, &stale, &after, PatchTarget::Status).await
        };
        let volumes = json!({"/status/volumesInUse": ["v"]});
        let refused = write(volumes).await.unwrap_err().to_string();
        assert!(refused.contains("has been modified"), "{refused}");
        let written = write(json!({"/status/capacity": {"cpu": "4"}})).await;
        let written = written.unwrap().unwrap();
        assert_eq!(written.labels()["theirs"], "true");
        assert!(written.status.unwrap().capacity.is_some());
    }

    #[test]
    fn a_merge_patch_removes_adds_and_replaces_lists_whole() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({}), Some(json!({"a": null}))),
            (
                json!({}),
                json!({"a": {"b": 1}}),
                Some(json!({"a": {"b": 1}})),
            ),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": 1, "c": 3}}),
                Some(json!({"a": {"c": 3}})),
            ),
            (
                json!({"l": [1, 2]}),
                json!({"l": [1, 2, 3]}),
                Some(json!({"l": [1, 2, 3]})),
            ),
        ];
        for (before, after, expected) in cases {
            assert_eq!(
                merge_difference(&before, &after),
                expected,
                "{before} -> {after}"
            );
        }
    }
}
