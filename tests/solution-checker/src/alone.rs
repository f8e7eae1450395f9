//! Whether a pod could be placed if it were alone: what makes an error implausible.

use std::collections::{BTreeMap, BTreeSet};

use apis::resources::Resources;
use apis::{CapacityType, labels};
use scheduling::Problem;
use scheduling::instance_type::InstanceType;
use scheduling::pod::Pod;
use scheduling::problem::{Pool, ReservedMode};

use crate::amounts::{Amounts, allocatable};
use crate::claims::template;
use crate::layout::{Layout, alternatives, is_launchable, repelling};
use crate::places::{could_join, daemons_of_type, share_a_port};
use crate::sets::{Set, are_compatible, conjunction, do_not_clash, sets_of};

/// The node or the pool in which there is still a place for a pod that has no dealings with others.
pub(crate) fn place_left(layout: &Layout<'_>, pod: &Pod) -> Option<String> {
    let node = layout.places.iter().find(|p| could_join(layout, p, pod));
    if let Some(node) = node {
        return Some(format!("{} has room for it", node.name));
    }
    let endless = layout.problem.pools.iter().filter(|p| is_endless(p));
    endless
        .filter_map(|pool| Some((pool, offering_in(layout.problem, pool, pod)?)))
        .map(|(pool, name)| format!("{:?} sells {name}", pool.node_pool.metadata.name))
        .next()
}

/// Whether some pool, taken by itself and as it is now, sells a node that the pod fits on. Says nothing of nodes that
/// exist, of other pods and of `minValues`.
pub fn can_stand_alone(problem: &Problem, pod: &Pod) -> bool {
    let mut pools = problem.pools.iter();
    pools.any(|pool| offering_in(problem, pool, pod).is_some())
}

/// A pool that a pod cannot find used up.
fn is_endless(pool: &Pool) -> bool {
    let spec = &pool.node_pool.spec;
    let asks_variety = spec
        .template
        .spec
        .requirements
        .iter()
        .any(|r| r.min_values.is_some());
    spec.limits.is_none() && !asks_variety
}

fn offering_in(problem: &Problem, pool: &Pool, pod: &Pod) -> Option<String> {
    let template = template(pool);
    let taints = &pool.node_pool.spec.template.spec.taints;
    if repelling(taints, &pod.shape.tolerations).is_some() {
        return None;
    }
    for asked in demands(problem, pod) {
        let asks_for_a_host = asked
            .get(labels::HOSTNAME)
            .is_some_and(|s| !s.is_met_by_absence());
        if asks_for_a_host || !are_compatible(&template, &asked, labels::is_well_known) {
            continue;
        }
        let pairs = template.iter().chain(&asked);
        let required = conjunction(pairs.map(|(key, set)| (key.as_str(), set.clone())));
        let sells = |t: &&std::sync::Arc<InstanceType>| {
            let own = sets_of(&t.requirements);
            let daemons = daemons_of_type(problem, &template, taints, &own);
            let left = allocatable(t).minus(&daemons.requests);
            do_not_clash(&required, &own)
                && is_bought(problem, t, &required)
                && Amounts::of(&pod.shape.requests).shortage(&left).is_none()
                && !share_a_port(&daemons.ports, &pod.shape.host_ports)
                && attaches(problem, t, pod)
                && is_within_limits(pool, t)
        };
        if let Some(found) = pool.instance_types.iter().find(sells) {
            return Some(found.name.clone());
        }
    }
    None
}

/// Every way to combine a required term with a volume alternative.
fn demands(problem: &Problem, pod: &Pod) -> Vec<BTreeMap<String, Set>> {
    let own = alternatives(pod);
    let volumes = problem.volumes.get(&pod.key);
    let reach: Vec<_> = volumes
        .iter()
        .flat_map(|v| &v.alternatives)
        .map(sets_of)
        .collect();
    if reach.is_empty() {
        return own;
    }
    let merged = |a: &BTreeMap<String, Set>, b: &BTreeMap<String, Set>| {
        conjunction(
            a.iter()
                .chain(b)
                .map(|(key, set)| (key.as_str(), set.clone())),
        )
    };
    let pairs = own.iter().flat_map(|a| reach.iter().map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| do_not_clash(a, b))
        .map(|(a, b)| merged(a, b))
        .collect()
}

/// Reserved offerings may be spoken for, so they prove nothing.
fn is_bought(problem: &Problem, of_type: &InstanceType, required: &BTreeMap<String, Set>) -> bool {
    let may_reserve = problem.options.reserved != ReservedMode::Off && problem.pods.len() == 1;
    of_type.offerings.iter().any(|o| {
        let is_reserved = o.capacity_type() == Some(CapacityType::Reserved);
        is_launchable(o)
            && (!is_reserved || may_reserve)
            && do_not_clash(required, &sets_of(&o.requirements))
    })
}

fn attaches(problem: &Problem, of_type: &InstanceType, pod: &Pod) -> bool {
    let volumes = problem.volumes.get(&pod.key);
    let mut wanted = volumes.iter().flat_map(|v| &v.attachments);
    wanted.all(|(driver, names)| {
        let limit = of_type.volume_attachment_limits.get(driver);
        limit.is_none_or(|limit| BTreeSet::len(names) <= *limit as usize)
    })
}

fn is_within_limits(pool: &Pool, of_type: &InstanceType) -> bool {
    let Some(limits) = &pool.node_pool.spec.limits else {
        return true;
    };
    Resources::from_list(limits).iter().all(|(name, limit)| {
        let own = if name == labels::RESOURCE_NODES {
            1000
        } else {
            of_type.capacity.get(name)
        };
        i128::from(pool.in_use.get(name)) + i128::from(own) <= i128::from(limit)
    })
}
