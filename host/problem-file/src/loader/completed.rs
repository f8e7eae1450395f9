//! Completes objects as a running cluster would, where a file leaves it out: statuses, claims of templates, provider
//! ids.

use std::collections::{BTreeMap, BTreeSet};

use apis::{NodeClaim, ObjectKey, conditions};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::pod::PodKey;
use state::devices::{DeviceObject, DeviceWorld};

use crate::list::List;

/// Gives a pod what the scheduler and the kubelet would have written; tells whether it is bound.
pub(super) fn complete(pod: &mut v1::Pod, list: List) -> bool {
    let spec = pod.spec.as_ref();
    let is_bound = spec.is_some_and(|it| it.node_name.as_ref().is_some_and(|it| !it.is_empty()));
    let gates = spec.and_then(|it| it.scheduling_gates.as_ref());
    let is_gated = gates.is_some_and(|it| !it.is_empty());
    let status = pod.status.get_or_insert_default();
    if is_bound {
        let phase = if list == List::BoundPods {
            "Running"
        } else {
            "Pending"
        };
        status.phase.get_or_insert_with(|| phase.to_owned());
        if list == List::BoundPods && status.conditions.is_none() {
            let ready = v1::PodCondition {
                type_: "Ready".to_owned(),
                status: "True".to_owned(),
                ..v1::PodCondition::default()
            };
            status.conditions = Some(vec![ready]);
        }
        return true;
    }
    let conditions = status.conditions.get_or_insert_default();
    if !is_gated && !conditions.iter().any(|it| it.type_ == "PodScheduled") {
        conditions.push(v1::PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            ..v1::PodCondition::default()
        });
    }
    false
}

/// The claims that a pod's templates make, as the controller of claims would have made them.
pub(super) fn make_claims(pod: &mut v1::Pod, devices: &DeviceWorld) -> Vec<DeviceObject> {
    let key = ObjectKey::of(&pod.metadata);
    let entries = pod.spec.as_ref().and_then(|it| it.resource_claims.as_ref());
    let status = pod.status.get_or_insert_default();
    let statuses = status.resource_claim_statuses.get_or_insert_default();
    let mut made = Vec::new();
    for entry in entries.into_iter().flatten() {
        let Some(template) = &entry.resource_claim_template_name else {
            continue;
        };
        if statuses.iter().any(|it| it.name == entry.name) {
            continue;
        }
        let name = format!("{}-{}", key.name, entry.name);
        let template = PodKey::new(&key.namespace, template);
        if let Some(claim) = DeviceObject::claim_of(&template, devices, &name) {
            made.push(claim);
            statuses.push(v1::PodResourceClaimStatus {
                name: entry.name.clone(),
                resource_claim_name: Some(name),
            });
        }
    }
    made
}

/// Nodes and claims find each other by provider id; where a file leaves it out, the claim's `status.nodeName` tells.
pub(super) fn join(nodes: &mut [v1::Node], claims: &mut [NodeClaim]) {
    let mut id_of_node: BTreeMap<String, String> = BTreeMap::new();
    for node in nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let id = &mut node.spec.get_or_insert_default().provider_id;
        if id.as_deref().unwrap_or_default().is_empty() {
            let claim = claims.iter().find_map(|claim| {
                let status = claim.status.as_ref()?;
                let is_its = status.node_name.as_deref() == Some(&name);
                status
                    .provider_id
                    .clone()
                    .filter(|id| is_its && !id.is_empty())
            });
            *id = Some(claim.unwrap_or_else(|| format!("file:///{name}")));
        }
        id_of_node.insert(name, id.clone().unwrap_or_default());
    }
    let ids: BTreeSet<&String> = id_of_node.values().collect();
    for claim in claims {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let status = claim.status.get_or_insert_default();
        if status.provider_id.as_deref().unwrap_or_default().is_empty() {
            let of_node = status.node_name.as_ref().and_then(|it| id_of_node.get(it));
            let id = of_node
                .cloned()
                .unwrap_or_else(|| format!("file:///claim/{name}"));
            status.provider_id = Some(id);
        }
        // Nobody wrote down how far the claim came; its node is there, so it came all the way.
        let has_node = status
            .provider_id
            .as_ref()
            .is_some_and(|it| ids.contains(it));
        if status.conditions.is_empty() && has_node {
            status.conditions = conditions::of_ready_claim(Timestamp::UNIX_EPOCH);
        }
    }
}
