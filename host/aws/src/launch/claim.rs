//! Reads from a claim what concerns its launch.
//!
//! Pure; nothing here knows what is for sale.

use std::fmt;

use apis::resources::Resources;
use apis::{NodeClaim, labels};
use scheduling::requirements::Requirements;

/// Who a claim is; a type of its own, as tokens are texts as well and stand beside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimUid(String);

impl ClaimUid {
    /// The claim's UID, or the name of one that has none.
    pub(super) fn of(claim: &NodeClaim) -> Self {
        let meta = &claim.metadata;
        let uid = meta.uid.as_ref().or(meta.name.as_ref());
        Self(uid.cloned().unwrap_or_default())
    }
}

impl fmt::Display for ClaimUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of the claim's pool.
pub(super) fn node_pool(claim: &NodeClaim) -> &str {
    let labels = claim.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(labels::NODEPOOL))
        .map_or("", String::as_str)
}

/// Whether the claim's pods ask for a resource.
pub(super) fn asks_for(claim: &NodeClaim, resource: &str) -> bool {
    Resources::from_list(&claim.spec.resources.requests).get(resource) > 0
}

/// Whether the claim's annotation says `true`.
pub(super) fn has_annotation(claim: &NodeClaim, key: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(key))
        .is_some_and(|value| value == "true")
}

/// What the claim's node has to fulfil.
pub(super) fn requirements(claim: &NodeClaim) -> Requirements {
    Requirements::from_node_selector_requirements(&claim.spec.requirements)
}

/// Hardware of its own only for claims that ask for nothing else.
pub(super) fn tenancy(claim: &NodeClaim) -> &'static str {
    if requirements(claim)
        .get(labels::INSTANCE_TENANCY)
        .has("default")
    {
        "default"
    } else {
        "dedicated"
    }
}
