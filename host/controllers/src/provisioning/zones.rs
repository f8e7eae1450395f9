//! In which zone alone pending pods can run: by what they ask for and by where their volumes are. Pure.
//!
//! Spread over zones is left out: it says where the next pod goes, not where a pod can run. Answers to
//! `computeEffectiveZoneFromPod` of Karpenter's scheduler.

use std::collections::BTreeMap;

use apis::labels::TOPOLOGY_ZONE;
use scheduling::pod::Pod;
use scheduling::problem::{PodVolumes, Problem};
use scheduling::requirements::{Operator, Requirement};
use state::missing_pods::is_coming;

/// Several zones, or any.
const FLEXIBLE: &str = "flexible";
/// No zone suits the pod and its volumes.
const NONE: &str = "none";

/// The number of pods for each zone, `flexible` or `none`.
pub(super) fn pods_by_zone(problem: &Problem) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for pod in &problem.pods {
        if pod.is_pending() && !is_coming(&pod.key) {
            let zone = effective_zone(pod, problem.volumes.get(&pod.key));
            *zones.entry(zone).or_default() += 1;
        }
    }
    zones
}

fn effective_zone(pod: &Pod, volumes: Option<&PodVolumes>) -> String {
    let asked = asked_zone(pod);
    let of_volumes = volumes.and_then(volume_zones);
    let both = match (asked, of_volumes) {
        (None, None) => return FLEXIBLE.to_owned(),
        (Some(zone), None) | (None, Some(zone)) => zone,
        (Some(asked), Some(of_volumes)) => asked.intersection(&of_volumes),
    };
    if both.is_complement() {
        return FLEXIBLE.to_owned();
    }
    let mut zones = both.values();
    match (zones.next(), zones.next()) {
        (None, _) => NONE.to_owned(),
        (Some(zone), None) => zone.to_owned(),
        (Some(_), Some(_)) => FLEXIBLE.to_owned(),
    }
}

/// Requirement of the pod on the zone, by its selector and the first of its alternatives.
fn asked_zone(pod: &Pod) -> Option<Requirement> {
    let selected = pod.shape.node_selector.get(TOPOLOGY_ZONE);
    let selected = selected.map(|it| Requirement::new(TOPOLOGY_ZONE, Operator::In, [it.as_str()]));
    let terms = pod
        .shape
        .required_node_affinity
        .first()
        .into_iter()
        .flatten();
    let terms = terms.filter(|it| it.key() == TOPOLOGY_ZONE).cloned();
    let all = selected.into_iter().chain(terms);
    all.reduce(|one, other| one.intersection(&other))
}

/// Zones of the volumes, of all alternatives together; none where one of them is free.
fn volume_zones(volumes: &PodVolumes) -> Option<Requirement> {
    let zones = volumes.alternatives.iter().map(|it| it.find(TOPOLOGY_ZONE));
    let zones: Option<Vec<&Requirement>> = zones.collect();
    let zones = zones.filter(|it| it.iter().all(|it| !it.is_complement()))?;
    let values: Vec<&str> = zones.iter().flat_map(|it| it.values()).collect();
    (!zones.is_empty()).then(|| Requirement::new(TOPOLOGY_ZONE, Operator::In, values))
}
