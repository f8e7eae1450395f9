//! Which of equal pods goes where, so that the scheduler can follow the plan one pod at a time.
//!
//! kube-scheduler tries pods in the order in which it queued them. Pods that must spread over zones may go to a zone
//! only while it has no more of them than the others, so a plan that puts the first of them into one zone and the rest
//! into others is right as a whole and cannot be followed: the second pod is refused its own node and takes another's
//! place. Equal pods can change places, so they are dealt out to the zones in turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use apis::CapacityType;
use apis::labels::{CAPACITY_TYPE, TOPOLOGY_ZONE};
use scheduling::Solution;
use scheduling::pod::{Pod, PodKey};
use scheduling::solution::NewClaim;

/// A place in the plan: the claim's number, and the pod's among those of the claim.
type PlannedPlace = (usize, usize);

/// The places of equal pods by domain, and the pods as the scheduler queued them.
#[derive(Default)]
struct Equals<'a> {
    places: BTreeMap<String, VecDeque<PlannedPlace>>,
    pods: Vec<&'a Arc<Pod>>,
}

/// Deals equal pods that must spread out to the domains of new claims in turn. `pods` are those of the problem.
pub fn deal_in_queue_order(pods: &[Arc<Pod>], solution: &mut Solution) {
    let spread: BTreeMap<&PodKey, &Arc<Pod>> = pods
        .iter()
        .filter(|pod| domain_key(pod).is_some())
        .map(|pod| (&pod.key, pod))
        .collect();
    if spread.is_empty() {
        return;
    }
    // The address tells shapes apart; in which order they are dealt out does not matter.
    let mut kinds: BTreeMap<_, Equals<'_>> = BTreeMap::new();
    for (number, claim) in solution.claims.iter().enumerate() {
        for (position, key) in claim.pods.iter().enumerate() {
            let Some(pod) = spread.get(key) else { continue };
            let Some(domain) = domain_key(pod).and_then(|it| domain(claim, it)) else {
                continue;
            };
            let equals = kinds.entry(Arc::as_ptr(&pod.shape)).or_default();
            let places = equals.places.entry(domain.to_owned()).or_default();
            places.push_back((number, position));
            equals.pods.push(pod);
        }
    }
    for mut equals in kinds.into_values().filter(|it| it.places.len() > 1) {
        equals.pods.sort_by_key(|pod| pod.queue_key());
        let turns = turns(equals.places);
        for (pod, (claim, position)) in equals.pods.into_iter().zip(turns) {
            solution.claims[claim].pods[position] = pod.key.clone();
        }
    }
}

/// The key of the domains over which the pod must spread, of those that a claim decides, where it can change places
/// with others.
fn domain_key(pod: &Pod) -> Option<&str> {
    if !pod.volume_claims.is_empty() || !pod.resource_claims.is_empty() {
        return None;
    }
    let required = pod.shape.topology_spread.iter().filter(|it| it.is_required);
    let mut keys = required.map(|it| it.topology_key.as_str());
    keys.find(|key| [TOPOLOGY_ZONE, CAPACITY_TYPE].contains(key))
}

fn domain<'a>(claim: &'a NewClaim, key: &str) -> Option<&'a str> {
    if key == CAPACITY_TYPE {
        claim.best.capacity_type.map(CapacityType::as_str)
    } else {
        claim.best.zone.as_deref()
    }
}

/// The places, one of each domain that has any left and again, so that none is ever ahead by more than one; within a
/// domain a claim after the other, so that those at the head of the queue find a node of their own.
fn turns(mut places: BTreeMap<String, VecDeque<PlannedPlace>>) -> Vec<PlannedPlace> {
    places.values_mut().for_each(take_turns_by_claim);
    let mut turns = Vec::new();
    while !places.is_empty() {
        places.retain(|_, left| {
            turns.extend(left.pop_front());
            !left.is_empty()
        });
    }
    turns
}

fn take_turns_by_claim(places: &mut VecDeque<PlannedPlace>) {
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut nth_of_claim = |&(claim, position): &PlannedPlace| {
        let nth = seen.entry(claim).or_default();
        *nth += 1;
        (*nth, (claim, position))
    };
    let mut ordered: Vec<(usize, PlannedPlace)> = places.iter().map(&mut nth_of_claim).collect();
    ordered.sort_unstable();
    *places = ordered.into_iter().map(|(_, place)| place).collect();
}

#[cfg(test)]
mod tests {
    use scheduling::pod::{PodShape, TopologySpread};
    use scheduling::solution::BestOffering;

    use super::*;

    fn pods(shape: &Arc<PodShape>, prefix: &str, count: u64) -> Vec<Arc<Pod>> {
        let pod = |number| {
            let key = PodKey::new("shop", &format!("{prefix}-{number}"));
            let mut pod = Pod::unknown(key, String::new(), Arc::clone(shape));
            // Named against the order in which they were queued.
            pod.first_version = 100 - number;
            Arc::new(pod)
        };
        (0..count).map(pod).collect()
    }

    fn shape(key: &str, is_required: bool) -> Arc<PodShape> {
        let spread = TopologySpread {
            max_skew: 1,
            topology_key: key.to_owned(),
            is_required,
            selector: None,
            min_domains: None,
            honors_node_affinity: true,
            honors_node_taints: false,
        };
        Arc::new(PodShape {
            topology_spread: vec![spread],
            ..PodShape::default()
        })
    }

    /// A plan that fills a zone after the other.
    fn plan(zones: &[&str], pods: &[Arc<Pod>]) -> Solution {
        let share = pods.len() / zones.len();
        let of_zone = |(number, zone): (usize, &&str)| NewClaim {
            best: BestOffering {
                zone: Some((*zone).to_owned()),
                ..BestOffering::default()
            },
            pods: pods[number * share..(number + 1) * share]
                .iter()
                .map(|it| it.key.clone())
                .collect(),
            ..NewClaim::default()
        };
        Solution {
            claims: zones.iter().enumerate().map(of_zone).collect(),
            ..Solution::default()
        }
    }

    fn zones_in_queue_order(pods: &[Arc<Pod>], solution: &Solution) -> Vec<String> {
        let mut queued: Vec<_> = pods.iter().collect();
        queued.sort_by_key(|pod| pod.first_version);
        let zone = |pod: &Arc<Pod>| {
            let mut claims = solution.claims.iter();
            let claim = claims.find(|it| it.pods.contains(&pod.key)).unwrap();
            claim.best.zone.clone().unwrap()
        };
        queued.into_iter().map(zone).collect()
    }

    #[test]
    fn pods_that_must_spread_take_turns() {
        let pods = pods(&shape(TOPOLOGY_ZONE, true), "web", 6);
        let mut solution = plan(&["a", "b", "c"], &pods);
        deal_in_queue_order(&pods, &mut solution);
        let zones = zones_in_queue_order(&pods, &solution);
        assert_eq!(zones, ["a", "b", "c", "a", "b", "c"]);
        assert!(solution.claims.iter().all(|it| it.pods.len() == 2));
    }

    #[test]
    fn those_at_the_head_of_the_queue_find_a_node_of_their_own() {
        let mut pods = pods(&shape(TOPOLOGY_ZONE, true), "web", 8);
        // Not there yet: it is tried after all others.
        Arc::make_mut(&mut pods[0]).first_version = 0;
        let mut solution = plan(&["a", "b", "a", "b"], &pods);
        deal_in_queue_order(&pods, &mut solution);
        let claim = |pod: &Arc<Pod>| {
            let mut claims = solution.claims.iter();
            claims.position(|it| it.pods.contains(&pod.key)).unwrap()
        };
        let mut queued: Vec<_> = pods.iter().collect();
        queued.sort_by_key(|pod| (pod.first_version == 0, pod.first_version));
        let claims: Vec<usize> = queued.into_iter().map(claim).collect();
        assert_eq!(claims, [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(claim(&pods[0]), 3);
    }

    #[test]
    fn others_stay_where_they_are() {
        for shape in [
            shape(TOPOLOGY_ZONE, false),
            shape("kubernetes.io/hostname", true),
        ] {
            let pods = pods(&shape, "web", 6);
            let before = plan(&["a", "b", "c"], &pods);
            let mut after = before.clone();
            deal_in_queue_order(&pods, &mut after);
            assert_eq!(before.claims, after.claims);
        }
    }
}
