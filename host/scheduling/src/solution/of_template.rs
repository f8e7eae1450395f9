//! Claims that no pod asked for: the bare template of a pool that keeps replicas.
//!
//! Pods have no say here, so nothing is narrowed. Answers to `NewNodeClaimTemplate` as Karpenter's
//! `pkg/controllers/static` uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, labels};

use super::new_claim::{BestOffering, NewClaim, TypeNames};
use crate::instance_type::{InstanceType, Offering};
use crate::template::requirements_of_template;

impl NewClaim {
    /// A claim with the pool's own requirements and nothing else; the offering it is expected to become is the
    /// cheapest that can be launched.
    pub fn of_template(node_pool: &NodePool, instance_types: &[Arc<InstanceType>]) -> Self {
        let cheapest = admitted_by_template(node_pool, instance_types)
            .into_iter()
            .filter(|(_, offering)| offering.is_launchable())
            .min_by(|a, b| {
                let by_price = a.1.price_per_hour.total_cmp(&b.1.price_per_hour);
                by_price.then_with(|| a.0.name.cmp(&b.0.name))
            });
        let best = cheapest.map(|(instance_type, offering)| BestOffering {
            instance_type: instance_type.name.clone(),
            zone: offering.zone().map(str::to_owned),
            capacity_type: offering.capacity_type(),
            price_per_hour: offering.price_per_hour,
            effective_cost_per_hour: offering.price_per_hour,
            runner_up: None,
        });
        let mut requirements = requirements_of_template(node_pool);
        for key in [labels::REGISTERED, labels::INITIALIZED] {
            requirements.remove(key);
        }
        Self {
            pool: node_pool.metadata.name.clone().unwrap_or_default(),
            requirements,
            instance_types: TypeNames::default(),
            capacity_types: BTreeSet::new(),
            requests: Resources::new(),
            pods: Vec::new(),
            best: best.unwrap_or_default(),
            are_min_values_relaxed: false,
        }
    }

    /// Whether it is one of these: it names no instance types, as the pool's own requirements do.
    pub fn is_of_template(&self) -> bool {
        self.instance_types.is_empty()
    }
}

/// Every offering that the pool's own requirements admit, whether it can be had now or not.
pub fn admitted_by_template<'a>(
    node_pool: &NodePool,
    instance_types: &'a [Arc<InstanceType>],
) -> Vec<(&'a InstanceType, &'a Offering)> {
    let template = requirements_of_template(node_pool);
    let types = instance_types
        .iter()
        .filter(|it| template.meets(&it.requirements));
    types
        .flat_map(|it| it.offerings.iter().map(move |offering| (&**it, offering)))
        .filter(|(_, offering)| template.meets(&offering.requirements))
        .collect()
}
