//! Whether a claim still is what its pool asks for.
//!
//! Pure; what only the provider knows is asked after these. Answers to `pkg/controllers/nodeclaim/disruption/drift.go`.

use std::sync::Arc;

use apis::conditions::reason;
use apis::{CapacityType, NodeClaim, NodePool, labels};
use kube::ResourceExt;
use scheduling::instance_type::InstanceType;
use scheduling::requirements::{AllowUndefined, Requirements};

/// The first reason in Karpenter's order, if there is one.
pub(super) fn drift(claim: &NodeClaim, pool: &NodePool) -> Option<&'static str> {
    if is_static_drifted(claim, pool) {
        return Some(reason::NODE_POOL_DRIFTED);
    }
    if are_requirements_drifted(claim, pool) {
        return Some(reason::REQUIREMENTS_DRIFTED);
    }
    None
}

/// All four annotations must be there, and of the same version: a hash of another version says nothing.
fn is_static_drifted(claim: &NodeClaim, pool: &NodePool) -> bool {
    let of = |annotations: &std::collections::BTreeMap<String, String>| {
        let hash = annotations.get(labels::NODEPOOL_HASH_ANNOTATION)?;
        let version = annotations.get(labels::NODEPOOL_HASH_VERSION_ANNOTATION)?;
        Some((hash.clone(), version.clone()))
    };
    match (of(claim.annotations()), of(pool.annotations())) {
        (Some((of_claim, version)), Some((of_pool, current))) => {
            version == current && of_claim != of_pool
        }
        (None, _) | (_, None) => false,
    }
}

fn are_requirements_drifted(claim: &NodeClaim, pool: &NodePool) -> bool {
    let template = &pool.spec.template.spec;
    let asked = Requirements::from_node_selector_requirements(&template.requirements);
    let has = Requirements::from_labels(claim.labels());
    has.compatible(&asked, AllowUndefined::None).is_err()
}

/// Whether the type of the claim is no longer offered where the claim runs. Availability does not matter.
pub(super) fn is_instance_type_gone(claim: &NodeClaim, types: &[Arc<InstanceType>]) -> bool {
    let name = claim
        .labels()
        .get(labels::INSTANCE_TYPE)
        .map_or("", String::as_str);
    let Some(instance_type) = types.iter().find(|it| it.name == name) else {
        return true;
    };
    let mut own = claim.labels().clone();
    let is_reserved = own
        .get(labels::CAPACITY_TYPE)
        .is_some_and(|capacity_type| capacity_type == CapacityType::Reserved.as_str());
    if is_reserved {
        // A reservation that ended leaves an on-demand instance behind.
        for key in [
            labels::CAPACITY_TYPE,
            labels::CAPACITY_RESERVATION_ID,
            labels::CAPACITY_RESERVATION_TYPE,
        ] {
            own.remove(key);
        }
    }
    let own = Requirements::from_labels(&own);
    !instance_type.offerings.iter().any(|offering| {
        let is_kind = !is_reserved
            || offering.is_reserved()
            || offering.capacity_type() == Some(CapacityType::OnDemand);
        is_kind
            && own
                .compatible(&offering.requirements, AllowUndefined::WellKnown)
                .is_ok()
    })
}
