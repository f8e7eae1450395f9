//! From a decided claim to the NodeClaim object.
//!
//! The object is complete but for its name, which the API server generates. Answers to Karpenter's
//! `scheduling/nodeclaimtemplate.go`.

use std::collections::BTreeMap;

use apis::{NodeClaim, NodeClaimSpec, NodePool, ResourceRequirements, hash, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_core::Resource;

use super::new_claim::NewClaim;
use crate::requirements::{Operator, Requirement, Requirements};

impl NewClaim {
    /// The NodeClaim that is to be created for it. `seed` picks values for open custom requirements.
    pub fn to_node_claim(&self, node_pool: &NodePool, seed: u64) -> NodeClaim {
        let mut requirements = self.requirements.clone();
        for key in [labels::HOSTNAME, labels::REGISTERED, labels::INITIALIZED] {
            requirements.remove(key);
        }
        let claim_labels = claim_labels(node_pool, &requirements, seed);
        requirements.extend_with(&Requirements::from_labels(&fixed_labels(node_pool)));
        let mut wire = requirements.to_node_selector_requirements();
        let min_values = requirements
            .find(labels::INSTANCE_TYPE)
            .and_then(|r| r.min_values);
        if !self.is_of_template() {
            wire.retain(|r| r.key != labels::INSTANCE_TYPE && r.key != labels::CAPACITY_TYPE);
            // The list keeps the order of cost, which a set of values would lose.
            wire.push(apis::NodeSelectorRequirementWithMinValues {
                key: labels::INSTANCE_TYPE.to_owned(),
                operator: Operator::In,
                values: self.instance_types.iter().map(str::to_owned).collect(),
                min_values: min_values.map(i64::from),
            });
            let capacity_types = self.capacity_types.iter().map(|it| it.as_str());
            let mut capacity =
                Requirement::new(labels::CAPACITY_TYPE, Operator::In, capacity_types);
            capacity.min_values = requirements
                .find(labels::CAPACITY_TYPE)
                .and_then(|r| r.min_values);
            wire.extend(capacity.to_node_selector_requirements());
        }
        wire.sort_by(|a, b| a.key.cmp(&b.key));
        let template = &node_pool.spec.template;
        let mut annotations = base_annotations(node_pool);
        annotations.insert(
            labels::NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION.to_owned(),
            self.are_min_values_relaxed.to_string(),
        );
        NodeClaim {
            metadata: metadata(node_pool, claim_labels, annotations),
            spec: NodeClaimSpec {
                taints: template.spec.taints.clone(),
                startup_taints: template.spec.startup_taints.clone(),
                requirements: wire,
                resources: ResourceRequirements {
                    requests: self.requests.to_list(),
                },
                node_class_ref: template.spec.node_class_ref.clone(),
                termination_grace_period: template.spec.termination_grace_period,
                expire_after: template.spec.expire_after.clone(),
            },
            status: None,
        }
    }
}

fn fixed_labels(node_pool: &NodePool) -> BTreeMap<String, String> {
    let template = &node_pool.spec.template;
    let class = &template.spec.node_class_ref;
    let mut fixed = template.metadata.labels.clone();
    fixed.insert(
        labels::NODEPOOL.to_owned(),
        node_pool.metadata.name.clone().unwrap_or_default(),
    );
    fixed.insert(
        labels::node_class_label(&class.group, &class.kind),
        class.name.clone(),
    );
    fixed
}

fn claim_labels(
    node_pool: &NodePool,
    requirements: &Requirements,
    seed: u64,
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = requirements
        .iter()
        .filter(|r| !labels::is_well_known(r.key()))
        .filter_map(|r| Some((r.key().to_owned(), r.any(seed)?)))
        .collect();
    all.extend(fixed_labels(node_pool));
    all
}

fn base_annotations(node_pool: &NodePool) -> BTreeMap<String, String> {
    let mut annotations = node_pool.spec.template.metadata.annotations.clone();
    for (key, value) in [
        (labels::NODEPOOL_HASH_ANNOTATION, hash::node_pool(node_pool)),
        (
            labels::NODEPOOL_HASH_VERSION_ANNOTATION,
            hash::NODE_POOL_HASH_VERSION.to_owned(),
        ),
    ] {
        annotations.insert(key.to_owned(), value);
    }
    annotations
}

fn metadata(
    node_pool: &NodePool,
    claim_labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
) -> ObjectMeta {
    let pool = node_pool.metadata.name.clone().unwrap_or_default();
    let kind = ();
    ObjectMeta {
        generate_name: Some(format!("{pool}-")),
        labels: Some(claim_labels),
        annotations: Some(annotations),
        owner_references: Some(vec![OwnerReference {
            api_version: NodePool::api_version(&kind).into_owned(),
            kind: NodePool::kind(&kind).into_owned(),
            name: pool,
            uid: node_pool.metadata.uid.clone().unwrap_or_default(),
            block_owner_deletion: Some(true),
            controller: None,
        }]),
        ..ObjectMeta::default()
    }
}
