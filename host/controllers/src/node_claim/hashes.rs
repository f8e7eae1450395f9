//! Carries claims over to another version of the hash by which drift is told.
//!
//! Hashes of two versions say nothing of each other, so that without it a change of the algorithm would drift every
//! node, or none ever again. Answers to `pkg/controllers/nodepool/hash/controller.go` and to `nodeclass/hash` of the
//! AWS provider.

use std::collections::BTreeMap;

use apis::NodeClaim;
use apis::conditions::{self, Conditioned};
use kube::ResourceExt;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;

/// The annotations that say of which hash, and of which version of it, something is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKeys {
    pub(crate) hash: &'static str,
    pub(crate) version: &'static str,
}

/// Writes the stamps on the claims that bear the labels, are meant, and have another version. That comes before they
/// are written on what the claims are made from, whose version says that all is done.
pub(crate) async fn carry_over(
    shell: &Shell,
    labels: &str,
    is_meant: impl Fn(&NodeClaim) -> bool,
    stamps: &BTreeMap<String, String>,
    keys: HashKeys,
) -> Result<(), ReconcileError> {
    let mut outdated = Vec::new();
    let version = stamps.get(keys.version);
    let keep = |claim: NodeClaim| {
        if is_meant(&claim) && claim.annotations().get(keys.version) != version {
            outdated.push(claim);
        }
    };
    shell.model.for_each_claim(labels, keep).await?;
    for claim in &outdated {
        let after = carried_over(claim, stamps, keys.hash);
        shell.writer.write_claim(claim, &after).await?;
    }
    Ok(())
}

/// The claim with the stamps; without the hash among them, if it is drifted and must stay so.
fn carried_over(claim: &NodeClaim, stamps: &BTreeMap<String, String>, hash_key: &str) -> NodeClaim {
    let is_drifted = claim.condition(conditions::DRIFTED).is_some();
    let kept = stamps.iter();
    let kept = kept.filter(|(key, _)| !is_drifted || *key != hash_key);
    let mut after = claim.clone();
    let annotations = after.annotations_mut();
    annotations.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
    after
}

#[cfg(test)]
mod tests {
    use apis::labels;
    use serde_json::json;

    use super::*;
    use crate::node_claim::tests::{claim_with, condition};

    #[test]
    fn a_claim_of_an_older_version_gets_the_hash_unless_it_is_drifted() {
        let (hash, version) = (
            labels::NODEPOOL_HASH_ANNOTATION,
            labels::NODEPOOL_HASH_VERSION_ANNOTATION,
        );
        let stamps = [(hash, "new"), (version, "v3")];
        let stamps = stamps.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for (conditions, expected) in [
            (json!([]), "new"),
            (json!([condition("Drifted", "True", "00:30")]), "old"),
        ] {
            let claim = claim_with(&json!({
                "/metadata/annotations": {hash: "old", version: "v0"}, "/status/conditions": conditions,
            }));
            let after = carried_over(&claim, &BTreeMap::from(stamps.clone()), hash);
            let annotations = after.annotations();
            assert_eq!(annotations[version], "v3");
            assert_eq!(annotations[hash], expected);
        }
    }
}
