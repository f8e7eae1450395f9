//! Which NodePools have lost a zone to a zonal shift, or have it back.
//!
//! Pure; `zonal_shift.rs` tells them.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::ec2nodeclass::Subnet;
use apis::{NodePool, labels};
use scheduling::requirements::Requirements;

/// A pool with the subnets of its class.
pub(super) struct PoolZones {
    pub(super) node_pool: Arc<NodePool>,
    pub(super) subnets: Vec<Subnet>,
}

/// Zones by id, as they were shifted away from and as they are now.
pub(super) struct Observed {
    pub(super) before: BTreeSet<String>,
    pub(super) now: BTreeSet<String>,
    pub(super) pools: Vec<PoolZones>,
}

/// A zone of a pool that went, or came back.
#[derive(Debug)]
pub(super) struct Transition<'a> {
    pub(super) node_pool: &'a NodePool,
    pub(super) zone: &'a str,
    pub(super) zone_id: &'a str,
    pub(super) is_shifted: bool,
}

pub(super) fn decide(observed: &Observed) -> Vec<Transition<'_>> {
    let Observed { before, now, pools } = observed;
    let mut transitions = Vec::new();
    for PoolZones { node_pool, subnets } in pools {
        let requirements = Requirements::from_template(&node_pool.spec.template);
        let may_launch_in = |zone: &str, zone_id: &str| {
            requirements.get(labels::TOPOLOGY_ZONE).has(zone)
                && requirements.get(labels::TOPOLOGY_ZONE_ID).has(zone_id)
        };
        for zone_id in before.symmetric_difference(now) {
            let of_zone = |it: &&Subnet| it.zone_id.as_ref() == Some(zone_id);
            let Some(subnet) = subnets.iter().find(of_zone) else {
                continue;
            };
            if may_launch_in(&subnet.zone, zone_id) {
                transitions.push(Transition {
                    node_pool,
                    zone: &subnet.zone,
                    zone_id,
                    is_shifted: now.contains(zone_id),
                });
            }
        }
    }
    transitions
}

#[cfg(test)]
mod tests {
    use apis::{NodeSelectorRequirementWithMinValues, Operator};

    use super::*;

    const ZONES: [(&str, &str); 2] = [("us-east-1a", "use1-az4"), ("us-east-1b", "use1-az6")];

    fn pool(key: Option<&str>, value: &str) -> PoolZones {
        let mut node_pool = NodePool::default();
        let requirement =
            key.map(|key| NodeSelectorRequirementWithMinValues::new(key, Operator::In, [value]));
        node_pool.spec.template.spec.requirements = requirement.into_iter().collect();
        let subnets = ZONES.map(|(zone, zone_id)| Subnet {
            id: format!("subnet-{zone}"),
            zone: zone.to_owned(),
            zone_id: Some(zone_id.to_owned()),
        });
        PoolZones {
            node_pool: Arc::new(node_pool),
            subnets: subnets.to_vec(),
        }
    }

    fn told(pool: PoolZones, before: &[&str], now: &[&str]) -> Vec<(String, bool)> {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let observed = Observed {
            before: set(before),
            now: set(now),
            pools: vec![pool],
        };
        let transitions = decide(&observed);
        let transitions = transitions.iter();
        transitions
            .map(|it| (it.zone.to_owned(), it.is_shifted))
            .collect()
    }

    #[test]
    fn a_pool_hears_of_the_zones_that_it_may_launch_in() {
        let (zone, zone_id) = (Some(labels::TOPOLOGY_ZONE), Some(labels::TOPOLOGY_ZONE_ID));
        let gone = |zone: &str| vec![(zone.to_owned(), true)];
        let back = |zone: &str| vec![(zone.to_owned(), false)];
        // What the pool asks for; shifted before, and now -> what it is told.
        let cases = [
            ((None, ""), (&[][..], &["use1-az4"][..]), gone("us-east-1a")),
            ((None, ""), (&["use1-az4"], &[]), back("us-east-1a")),
            ((None, ""), (&["use1-az4"], &["use1-az4"]), Vec::new()),
            ((None, ""), (&[], &["use1-az9"]), Vec::new()),
            ((zone, "us-east-1b"), (&[], &["use1-az4"]), Vec::new()),
            (
                (zone, "us-east-1b"),
                (&[], &["use1-az6"]),
                gone("us-east-1b"),
            ),
            ((zone_id, "use1-az4"), (&[], &["use1-az6"]), Vec::new()),
            (
                (zone_id, "use1-az6"),
                (&["use1-az6"], &[]),
                back("us-east-1b"),
            ),
        ];
        for ((key, value), (before, now), want) in cases {
            let got = told(pool(key, value), before, now);
            assert_eq!(got, want, "{key:?} {value} {before:?} {now:?}");
        }
    }
}
