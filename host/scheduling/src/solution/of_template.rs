//! Claims that no pod asked for: the bare template of a pool that keeps replicas.
//!
//! Pods have no say here, so nothing is narrowed. Answers to `NewNodeClaimTemplate` as Karpenter's
//! `pkg/controllers/static` uses it.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodePool, labels};

use super::new_claim::{BestOffering, NewClaim, TypeNames};
use crate::instance_type::{Availability, InstanceType, Offering};
use crate::template::requirements_of_template;

impl NewClaim {
    /// A claim with the pool's own requirements and nothing else; the offering it is expected to become is the
    /// cheapest that can be launched, or else the cheapest of those to come: what waits for an offering costs its price
    /// all the same. Without a type that suits it is expected to become nothing.
    pub fn of_template(node_pool: &NodePool, instance_types: &[Arc<InstanceType>]) -> Self {
        let cheapest = admitted_by_template(node_pool, instance_types)
            .into_iter()
            .filter(|(_, offering)| offering.availability != Availability::NoPrice)
            .min_by(|(a, of_a), (b, of_b)| {
                let launchable_first = of_b.is_launchable().cmp(&of_a.is_launchable());
                let by_price = of_a.price_per_hour.total_cmp(&of_b.price_per_hour);
                launchable_first
                    .then(by_price)
                    .then_with(|| a.name.cmp(&b.name))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::instance_type::Overhead;
    use crate::requirements::Requirements;

    fn instance_type(
        name: &str,
        price_per_hour: f64,
        availability: Availability,
    ) -> Arc<InstanceType> {
        let offering = Offering {
            availability,
            ..Offering::new(Requirements::new(), price_per_hour)
        };
        Arc::new(InstanceType {
            name: name.to_owned(),
            requirements: Requirements::new(),
            offerings: vec![offering],
            capacity: Resources::new(),
            overhead: Overhead::default(),
            volume_attachment_limits: BTreeMap::new(),
        })
    }

    #[test]
    fn what_cannot_be_launched_yet_has_its_price() {
        use Availability::{NoPrice, Now, Unavailable};
        for (offered, expected) in [
            (
                vec![("small", 0.1, Now), ("large", 0.4, Now)],
                ("small", 0.1),
            ),
            (
                vec![("small", 0.1, Unavailable), ("large", 0.4, Now)],
                ("large", 0.4),
            ),
            (
                vec![("small", 0.1, Unavailable), ("large", 0.4, Unavailable)],
                ("small", 0.1),
            ),
            (
                vec![("new", 0.0, NoPrice), ("small", 0.1, Unavailable)],
                ("small", 0.1),
            ),
            (vec![("new", 0.0, NoPrice)], ("", 0.0)),
            (vec![], ("", 0.0)),
        ] {
            let types: Vec<_> = offered
                .iter()
                .map(|(name, price, availability)| instance_type(name, *price, *availability))
                .collect();
            let best = NewClaim::of_template(&NodePool::default(), &types).best;
            assert_eq!(best.instance_type, expected.0, "{offered:?}");
            assert!(
                (best.price_per_hour - expected.1).abs() < 1e-9,
                "{offered:?}"
            );
        }
    }
}
