//! Checks an answer against the rules, knowing nothing of how it was found.

use std::collections::{BTreeMap, BTreeSet};

use apis::resources::Resources;
use apis::{CapacityType, labels};
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{Pool, Problem};
use scheduling::requirements::{AllowUndefined, Requirements};
use scheduling::solution::NewClaim;
use scheduling::{Solution, taints};

/// A node as it will be.
struct Placed<'a> {
    name: String,
    labels: BTreeMap<String, String>,
    pods: Vec<&'a Pod>,
    new: BTreeSet<&'a PodKey>,
}

pub(crate) fn verify(problem: &Problem, solution: &Solution) {
    let pods: BTreeMap<&PodKey, &Pod> = problem.pods.iter().map(|p| (&p.key, &**p)).collect();
    let mut seen: BTreeSet<&PodKey> = solution.pod_errors.keys().collect();
    let in_claims = solution.claims.iter().flat_map(|c| &c.pods);
    for key in in_claims.chain(solution.existing.iter().flat_map(|it| &it.pods)) {
        assert!(pods.contains_key(key), "{key} was never asked for");
        assert!(seen.insert(key), "{key} has two places");
    }
    assert_eq!(seen.len(), pods.len(), "every pod has a place or a reason");
    let mut placed = Vec::new();
    for (index, claim) in solution.claims.iter().enumerate() {
        placed.push(verify_claim(problem, claim, index, &pods));
    }
    for node in &problem.nodes {
        let mut existing = solution.existing.iter();
        let new = existing.find(|it| it.node == node.node_ref);
        let new: Vec<&PodKey> = new.iter().flat_map(|it| &it.pods).collect();
        let mut all: Vec<&Pod> = node.pods.iter().map(|p| &**p).collect();
        all.extend(new.iter().map(|key| pods[*key]));
        let requests: Resources = all.iter().map(|p| &p.shape.requests).sum();
        assert!(
            new.is_empty() || requests.fits(&node.allocatable),
            "{} is overfull",
            node.node_ref
        );
        placed.push(Placed {
            name: node.node_ref.to_string(),
            labels: node.labels.clone(),
            pods: all,
            new: new.into_iter().collect(),
        });
    }
    for node in &placed {
        for pod in node.pods.iter().filter(|p| node.new.contains(&p.key)) {
            verify_node_affinity(pod, node);
            verify_anti_affinity(pod, node, &placed);
            verify_affinity(pod, node, &placed);
        }
    }
    verify_limits(problem, solution);
}

fn verify_claim<'a>(
    problem: &Problem,
    claim: &'a NewClaim,
    index: usize,
    pods: &BTreeMap<&'a PodKey, &'a Pod>,
) -> Placed<'a> {
    let pool = problem
        .pools
        .iter()
        .find(|p| p.node_pool.metadata.name.as_deref() == Some(&claim.pool))
        .expect("pool exists");
    let members: Vec<&Pod> = claim.pods.iter().map(|key| pods[key]).collect();
    let mut wanted: Resources = members.iter().map(|p| &p.shape.requests).sum();
    assert!(wanted.fits(&claim.requests), "requests cover the pods");
    for daemon in &problem.daemons {
        if daemon.shape.node_selector.is_empty() && daemon.shape.required_node_affinity.is_empty() {
            wanted.add_assign(&daemon.shape.requests);
        }
    }
    assert!(claim.instance_types.len() <= problem.options.tuning.instance_types_max);
    for name in claim.instance_types.iter() {
        let found = pool
            .instance_types
            .iter()
            .find(|t| t.name == *name)
            .expect("type exists");
        assert!(
            wanted.fits(&found.allocatable()),
            "{name} cannot hold {wanted:?}"
        );
    }
    let template = &pool.node_pool.spec.template;
    for pod in &members {
        let hard: Vec<_> = template
            .spec
            .taints
            .iter()
            .filter(|t| !taints::is_preference(t))
            .cloned()
            .collect();
        assert!(
            taints::untolerated(&hard, &pod.shape.tolerations).is_none(),
            "{} tolerates",
            pod.key
        );
    }
    for (at, pod) in members.iter().enumerate() {
        for other in &members[..at] {
            let clash = pod
                .shape
                .host_ports
                .iter()
                .any(|p| other.shape.host_ports.iter().any(|q| p.conflicts_with(q)));
            assert!(!clash, "{} and {} share a host port", pod.key, other.key);
        }
    }
    Placed {
        name: format!("new-{index}"),
        labels: labels_of(pool, claim, index),
        pods: members,
        new: claim.pods.iter().collect(),
    }
}

fn labels_of(pool: &Pool, claim: &NewClaim, index: usize) -> BTreeMap<String, String> {
    let found = pool
        .instance_types
        .iter()
        .find(|t| t.name == claim.best.instance_type)
        .expect("best exists");
    let mut node_labels = found.requirements.labels();
    node_labels.extend(pool.node_pool.spec.template.metadata.labels.clone());
    node_labels.extend([
        (labels::NODEPOOL.to_owned(), claim.pool.clone()),
        (
            labels::CAPACITY_TYPE.to_owned(),
            CapacityType::word(claim.best.capacity_type).to_owned(),
        ),
        (labels::HOSTNAME.to_owned(), format!("new-{index}")),
    ]);
    let zone = claim.best.zone.clone();
    node_labels.extend(zone.map(|it| (labels::TOPOLOGY_ZONE.to_owned(), it)));
    node_labels
}

fn verify_node_affinity(pod: &Pod, node: &Placed<'_>) {
    let offered = Requirements::from_labels(&node.labels);
    let selector = Requirements::from_labels(&pod.shape.node_selector);
    assert!(
        offered.compatible(&selector, AllowUndefined::None).is_ok(),
        "{} on {}: {selector}",
        pod.key,
        node.name
    );
    let terms = &pod.shape.required_node_affinity;
    let is_met = terms.is_empty()
        || terms.iter().any(|term| {
            let term: Requirements = term.iter().cloned().collect();
            offered.compatible(&term, AllowUndefined::None).is_ok()
        });
    assert!(
        is_met,
        "{} on {}: no required term holds",
        pod.key, node.name
    );
}

fn verify_anti_affinity(pod: &Pod, node: &Placed<'_>, all: &[Placed<'_>]) {
    for term in &pod.shape.pod_anti_affinity {
        let domain = node.labels.get(&term.topology_key);
        for other in all
            .iter()
            .filter(|n| n.labels.get(&term.topology_key) == domain)
        {
            for neighbour in other.pods.iter().filter(|p| p.key != pod.key) {
                let hit = neighbour.key.namespace == pod.key.namespace
                    && term
                        .selector
                        .as_ref()
                        .is_some_and(|s| s.matches(&neighbour.shape.labels));
                assert!(!hit, "{} shuns {} in {domain:?}", pod.key, neighbour.key);
            }
        }
    }
}

fn verify_affinity(pod: &Pod, node: &Placed<'_>, all: &[Placed<'_>]) {
    for term in &pod.shape.pod_affinity {
        let domain = node.labels.get(&term.topology_key);
        let matches = |p: &Pod| {
            term.selector
                .as_ref()
                .is_some_and(|s| s.matches(&p.shape.labels))
        };
        let near = all
            .iter()
            .filter(|n| n.labels.get(&term.topology_key) == domain)
            .any(|n| n.pods.iter().any(|p| matches(p)));
        assert!(near, "{} has no friend in {domain:?}", pod.key);
    }
}

fn verify_limits(problem: &Problem, solution: &Solution) {
    for pool in &problem.pools {
        let Some(limits) = &pool.node_pool.spec.limits else {
            continue;
        };
        let limits = Resources::from_list(limits);
        let mut used = pool.in_use.clone();
        let name = pool.node_pool.metadata.name.clone().unwrap_or_default();
        for claim in solution.claims.iter().filter(|c| c.pool == name) {
            let mut worst = Resources::new().with(labels::RESOURCE_NODES, 1000);
            for of_type in pool
                .instance_types
                .iter()
                .filter(|t| claim.instance_types.contains(&t.name))
            {
                worst = worst.max(&of_type.capacity);
            }
            used.add_assign(&worst);
        }
        assert!(
            used.exceeding(&limits).is_empty(),
            "{name} overruns {:?}",
            used.exceeding(&limits)
        );
    }
}
