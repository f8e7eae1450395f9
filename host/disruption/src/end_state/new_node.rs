//! The node that a launched claim becomes where nothing runs: made as the kubelet would, ready at once.
//!
//! For the model alone: no client ever sees these objects.

use std::sync::Arc;

use apis::{CapacityType, NodeClaim, NodeClaimStatus, conditions, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::solution::NewClaim;
use state::{Event, Snapshot};

use super::EndStateInput;
use crate::candidate::types_of;

/// The node that a replacement becomes, ready to use.
pub(super) fn node(
    snapshot: &Snapshot,
    stage: &EndStateInput<'_>,
    replacement: &NewClaim,
    name: &str,
) -> Option<[Event; 2]> {
    let (pool, now) = (snapshot.node_pool(&replacement.pool)?, stage.options.now);
    let best = &replacement.best;
    let zone = best.zone.as_deref().unwrap_or_default();
    let mut types = types_of(stage.types, &replacement.pool).iter();
    let instance_type = types.find(|it| it.name == best.instance_type)?;
    let mut claim = replacement.to_node_claim(pool, stage.options.seed);
    let mut labels = claim.metadata.labels.take().unwrap_or_default();
    let offering = offering(instance_type, replacement);
    let of_offering = offering.into_iter().flat_map(|it| it.requirements.iter());
    for requirement in instance_type.requirements.iter().chain(of_offering) {
        let mut values = requirement.values();
        if let (Some(value), None) = (values.next(), values.next()) {
            labels.insert(requirement.key().to_owned(), value.to_owned());
        }
    }
    for (key, value) in [
        (labels::INSTANCE_TYPE, best.instance_type.as_str()),
        (labels::TOPOLOGY_ZONE, zone),
        (
            labels::CAPACITY_TYPE,
            CapacityType::word(best.capacity_type),
        ),
        (labels::HOSTNAME, name),
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        creation_timestamp: Some(Time(now)),
        labels: Some(labels),
        ..claim.metadata.clone()
    };
    claim.metadata = metadata.clone();
    let provider_id = format!("model:///{zone}/{name}");
    claim.status = Some(status(instance_type, &provider_id, name, now));
    let object = ready_node(&claim, metadata, provider_id);
    Some([
        Event::applied(Arc::new(claim)),
        Event::applied(Arc::new(object)),
    ])
}

/// What the replacement is bought by: which reservation, above all, where it is one.
fn offering<'a>(instance_type: &'a InstanceType, replacement: &NewClaim) -> Option<&'a Offering> {
    let best = &replacement.best;
    let mut offerings = instance_type.offerings.iter();
    offerings.find(|it| {
        it.zone() == best.zone.as_deref()
            && it.capacity_type() == best.capacity_type
            && replacement
                .requirements
                .intersects(&it.requirements)
                .is_ok()
    })
}

fn status(
    instance_type: &InstanceType,
    provider_id: &str,
    name: &str,
    now: Timestamp,
) -> NodeClaimStatus {
    NodeClaimStatus {
        provider_id: Some(provider_id.to_owned()),
        node_name: Some(name.to_owned()),
        capacity: instance_type.capacity.to_list(),
        allocatable: instance_type.allocatable().to_list(),
        conditions: conditions::of_ready_claim(now),
        ..NodeClaimStatus::default()
    }
}

fn ready_node(claim: &NodeClaim, metadata: ObjectMeta, provider_id: String) -> Node {
    let status = claim.status.clone().unwrap_or_default();
    Node {
        metadata: ObjectMeta {
            owner_references: None,
            generate_name: None,
            ..metadata
        },
        spec: Some(NodeSpec {
            provider_id: Some(provider_id),
            taints: Some(claim.spec.taints.clone()).filter(|it| !it.is_empty()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: Some(status.capacity),
            allocatable: Some(status.allocatable),
            conditions: Some(vec![NodeCondition {
                type_: "Ready".to_owned(),
                status: "True".to_owned(),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        }),
    }
}
