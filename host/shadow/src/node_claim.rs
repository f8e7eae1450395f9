//! The NodeClaims from which the shadow starts: those that were launched, with images and hashes of the account's own.
//!
//! A node that has not drifted must not drift because its class has other images in the simulated account, and one that
//! has, must.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels::{EC2_NODE_CLASS_HASH_ANNOTATION, EC2_NODE_CLASS_HASH_VERSION_ANNOTATION};
use serde_json::Value;

use crate::gathered::Gathered;
use crate::kinds::ReadKind;
use crate::object::key_of;

/// What the launched claims of the cluster are in the account, whose classes `resolved` are.
pub fn claims_at_start(gathered: &Gathered, resolved: &[Value]) -> Vec<Value> {
    let named = |class: &'_ Value| key_of(class).name;
    let there: BTreeMap<String, &Value> = resolved.iter().map(|it| (named(it), it)).collect();
    let here: BTreeMap<String, &Value> = gathered
        .of(ReadKind::Ec2NodeClasses)
        .map(|it| (named(it), it))
        .collect();
    let nodes: BTreeMap<&str, &Value> = gathered
        .of(ReadKind::Nodes)
        .filter_map(|it| Some((it["spec"]["providerID"].as_str()?, it)))
        .collect();
    let launched = gathered
        .of(ReadKind::NodeClaims)
        .filter(|claim| is_launched(claim));
    let claims = launched.map(|claim| {
        let name = claim["spec"]["nodeClassRef"]["name"]
            .as_str()
            .unwrap_or_default();
        let (Some(here), Some(there)) = (here.get(name), there.get(name)) else {
            return claim.clone();
        };
        let provider_id = claim["status"]["providerID"].as_str().unwrap_or_default();
        let node = nodes.get(provider_id).copied().unwrap_or(&Value::Null);
        let mut claim = claim.clone();
        keep_hash(&mut claim, here, there);
        keep_image(&mut claim, node, &Classes { here, there });
        claim
    });
    claims.collect()
}

fn is_launched(claim: &Value) -> bool {
    claim["status"]["providerID"]
        .as_str()
        .is_some_and(|it| !it.is_empty())
}

/// A class in the cluster and in the account.
struct Classes<'a> {
    here: &'a Value,
    there: &'a Value,
}

/// A claim that is as its class asks bears the hash of the class, whatever it is there.
fn keep_hash(claim: &mut Value, here: &Value, there: &Value) {
    let hash = |object: &Value, key: &str| object["metadata"]["annotations"][key].clone();
    let keys = [
        EC2_NODE_CLASS_HASH_ANNOTATION,
        EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
    ];
    let is_equal = keys.iter().all(|key| hash(claim, key) == hash(here, key));
    if !is_equal || hash(here, keys[0]).is_null() {
        return;
    }
    for key in keys {
        claim["metadata"]["annotations"][key] = hash(there, key);
    }
}

/// A claim whose image is one of its class's has the one that it would boot there.
fn keep_image(claim: &mut Value, node: &Value, classes: &Classes<'_>) {
    let amis = |class: &'_ Value| {
        class["status"]["amis"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let ids: BTreeSet<String> = amis(classes.here)
        .iter()
        .filter_map(|ami| ami["id"].as_str().map(str::to_owned))
        .collect();
    let image = claim["status"]["imageID"].as_str().unwrap_or_default();
    if !image.is_empty() && !ids.contains(image) {
        return;
    }
    let labels = |key: &str| {
        let of = |object: &Value| {
            object["metadata"]["labels"][key]
                .as_str()
                .map(str::to_owned)
        };
        of(claim).or_else(|| of(node))
    };
    let boots = amis(classes.there).into_iter().find(|ami| {
        let mut requirements = ami["requirements"].as_array().into_iter().flatten();
        requirements.all(|it| holds(it, &labels))
    });
    if let Some(ami) = boots {
        claim["status"]["imageID"] = ami["id"].clone();
    }
}

/// Whether labels meet a requirement of an image.
fn holds(requirement: &Value, label: &dyn Fn(&str) -> Option<String>) -> bool {
    let value = label(requirement["key"].as_str().unwrap_or_default());
    let mut values = requirement["values"].as_array().into_iter().flatten();
    let mut is_listed = || {
        value
            .as_deref()
            .is_some_and(|value| values.any(|it| it == value))
    };
    match requirement["operator"].as_str() {
        Some("In") => is_listed(),
        Some("NotIn") => !is_listed(),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gathered::ObjectChange;

    fn cluster(image: &str, hash: &str) -> Gathered {
        let annotations = |hash: &str| json!({EC2_NODE_CLASS_HASH_ANNOTATION: hash, EC2_NODE_CLASS_HASH_VERSION_ANNOTATION: "v4"});
        let mut gathered = Gathered::default();
        let mut add = |kind, object| {
            gathered.apply(ObjectChange {
                kind,
                object,
                is_gone: false,
            });
        };
        add(
            ReadKind::Ec2NodeClasses,
            json!({
                "metadata": {"name": "c", "annotations": annotations("real")},
                "status": {"amis": [{"id": "ami-real"}]},
            }),
        );
        add(
            ReadKind::NodeClaims,
            json!({
                "metadata": {"name": "x", "labels": {"kubernetes.io/arch": "arm64"}, "annotations": annotations(hash)},
                "spec": {"nodeClassRef": {"name": "c"}},
                "status": {"providerID": "aws:///z/i-1", "imageID": image},
            }),
        );
        add(
            ReadKind::NodeClaims,
            json!({"metadata": {"name": "not-launched"}}),
        );
        gathered
    }

    fn started(image: &str, hash: &str) -> Value {
        let arch =
            |arch: &str| json!([{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}]);
        let resolved = json!({
            "metadata": {"name": "c", "annotations": {
                EC2_NODE_CLASS_HASH_ANNOTATION: "there", EC2_NODE_CLASS_HASH_VERSION_ANNOTATION: "v4",
            }},
            "status": {"amis": [
                {"id": "ami-amd", "requirements": arch("amd64")},
                {"id": "ami-arm", "requirements": arch("arm64")},
            ]},
        });
        let mut claims = claims_at_start(&cluster(image, hash), &[resolved]);
        assert_eq!(
            claims.len(),
            1,
            "what was not launched is Mortise's to launch"
        );
        claims.remove(0)
    }

    #[test]
    fn a_claim_that_has_not_drifted_does_not_drift_in_the_shadow() {
        let claim = started("ami-real", "real");
        assert_eq!(claim["status"]["imageID"], "ami-arm");
        assert_eq!(
            claim["metadata"]["annotations"][EC2_NODE_CLASS_HASH_ANNOTATION],
            "there"
        );
    }

    #[test]
    fn a_claim_that_has_drifted_has_drifted_in_the_shadow() {
        let claim = started("ami-old", "old");
        assert_eq!(claim["status"]["imageID"], "ami-old");
        assert_eq!(
            claim["metadata"]["annotations"][EC2_NODE_CLASS_HASH_ANNOTATION],
            "old"
        );
    }
}
