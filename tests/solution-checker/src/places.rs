//! What every place must keep: taints, node affinity, host ports, volumes, and room on nodes that exist.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels;
use scheduling::pod::{HostPort, Pod, Toleration};
use scheduling::problem::{ExistingNode, Problem};

use crate::amounts::Amounts;
use crate::layout::{Kind, Layout, Place, alternatives, repelling};
use crate::sets::{Set, are_compatible, sets_of};
use crate::{Faults, Rule};

pub(crate) fn check(layout: &Layout<'_>, place: &Place<'_>, faults: &mut Faults) {
    for pod in place.new_guests() {
        guest(layout.problem, place, pod, faults);
    }
    host_ports(place, faults);
    if let Kind::Node(node) = &place.kind
        && place.new_guests().next().is_some()
    {
        standing_node(layout.problem, place, node, faults);
    }
}

fn guest(problem: &Problem, place: &Place<'_>, pod: &Pod, faults: &mut Faults) {
    let name = &place.name;
    if let Some(taint) = repelling(place.taints(), &pod.shape.tolerations) {
        let what = format!("{} does not tolerate {} of {name}", pod.key, taint.key);
        faults.add(Rule::Taints, what);
    }
    if !alternatives(pod).iter().any(|a| place.satisfies(a)) {
        let what = format!("{} is not where it asks to be on {name}", pod.key);
        faults.add(Rule::NodeAffinity, what);
    }
    if pod.shape.uses_resource_claims && problem.devices.is_none() {
        let what = format!("{} asks for dynamic resources", pod.key);
        faults.add(Rule::OnePlace, what);
    }
    let Some(volumes) = problem.volumes.get(&pod.key) else {
        return;
    };
    let is_reached = volumes.alternatives.is_empty()
        || volumes
            .alternatives
            .iter()
            .any(|a| place.satisfies(&sets_of(a)));
    if volumes.error.is_some() || !is_reached {
        let what = format!("the volumes of {} cannot follow it to {name}", pod.key);
        faults.add(Rule::Volumes, what);
    }
}

fn host_ports(place: &Place<'_>, faults: &mut Faults) {
    let all = &place.guests;
    for (at, one) in all.iter().enumerate() {
        if one.pod.shape.host_ports.is_empty() {
            continue;
        }
        for other in all[..at].iter().filter(|other| other.is_new || one.is_new) {
            if share_a_port(&one.pod.shape.host_ports, &other.pod.shape.host_ports) {
                let (one, other) = (&one.pod.key, &other.pod.key);
                let what = format!("{one} and {other} want the same port of {}", place.name);
                faults.add(Rule::HostPorts, what);
            }
        }
    }
}

pub(crate) fn share_a_port(ours: &[HostPort], theirs: &[HostPort]) -> bool {
    let is_any = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
    ours.iter().any(|a| {
        theirs.iter().any(|b| {
            let do_meet = a.ip == b.ip || is_any(&a.ip) || is_any(&b.ip);
            (a.port, &a.protocol) == (b.port, &b.protocol) && do_meet
        })
    })
}

fn standing_node(problem: &Problem, place: &Place<'_>, node: &ExistingNode, faults: &mut Faults) {
    let name = &place.name;
    if !node.is_schedulable {
        faults.add(Rule::OnePlace, format!("{name} takes no pods any more"));
    }
    if node.is_within_consolidate_after
        && let Some(pod) = place
            .new_guests()
            .find(|p| problem.candidates.contains(&p.key))
    {
        let what = format!("{} may not go to {name}, which is settling", pod.key);
        faults.add(Rule::OnePlace, what);
    }
    let mut wanted = Amounts::default();
    for pod in place.new_guests() {
        wanted = wanted.plus(&pod.shape.requests);
    }
    if let Some(shortage) = wanted.shortage(&room(problem, node)) {
        let what = format!("{name} is short of {shortage}");
        faults.add(Rule::Resources, what);
    }
    let attached = attached(problem, place, node);
    for (driver, limit) in &node.volume_limits {
        let count = attached.get(driver).map_or(0, BTreeSet::len);
        let had = node.volumes.get(driver).map_or(0, BTreeSet::len);
        if count > had && count > *limit as usize {
            let what = format!("{name} attaches {count} volumes of {driver}, at most {limit}");
            faults.add(Rule::Volumes, what);
        }
    }
}

/// What new pods may take of a node: DaemonSets that have not started there yet keep their share.
pub(crate) fn room(problem: &Problem, node: &ExistingNode) -> Amounts {
    let own: BTreeMap<String, Set> = node
        .labels
        .iter()
        .map(|(key, value)| (key.clone(), Set::one(value)))
        .collect();
    let mut expected = Amounts::default();
    for daemon in &problem.daemons {
        let pod = as_pod(daemon);
        let is_welcome = repelling(&node.taints, &pod.shape.tolerations).is_none()
            && !pod.shape.uses_resource_claims
            && alternatives(&pod)
                .iter()
                .any(|a| are_compatible(&own, a, |_| false));
        if is_welcome {
            expected = expected.plus(&pod.shape.requests);
        }
    }
    let to_come = expected
        .minus(&Amounts::of(&node.daemon_requests))
        .at_least_zero();
    Amounts::of(&node.allocatable)
        .minus(&Amounts::of(&node.requests))
        .minus(&to_come)
}

pub(crate) fn attached(
    problem: &Problem,
    place: &Place<'_>,
    node: &ExistingNode,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = node.volumes.clone();
    for pod in place.new_guests() {
        for (driver, volumes) in problem
            .volumes
            .get(&pod.key)
            .iter()
            .flat_map(|v| &v.attachments)
        {
            all.entry(driver.clone())
                .or_default()
                .extend(volumes.iter().cloned());
        }
    }
    all
}

/// A DaemonSet's pod in the form in which pods are asked about.
pub(crate) fn as_pod(daemon: &scheduling::problem::DaemonPod) -> Pod {
    Pod {
        key: daemon.key.clone(),
        uid: String::new(),
        created_at: None,
        first_version: 0,
        shape: std::sync::Arc::clone(&daemon.shape),
        limits: std::sync::Arc::default(),
        volume_claims: Vec::new(),
        resource_claims: Vec::new(),
        node_name: None,
        nomination: None,
        has_own_scheduler: false,
        phase: scheduling::pod::PodPhase::Pending,
        deletion_timestamp: None,
        started_at: None,
        is_ready: false,
        awaits_node: false,
        is_untried: false,
    }
}

/// Whether a pod could join a node at the end state, its dealings with other pods aside.
pub(crate) fn could_join(layout: &Layout<'_>, place: &Place<'_>, pod: &Pod) -> bool {
    let Kind::Node(node) = &place.kind else {
        return false;
    };
    let problem = layout.problem;
    let is_kept_out = !node.is_schedulable
        || (node.is_within_consolidate_after && problem.candidates.contains(&pod.key))
        || repelling(&node.taints, &pod.shape.tolerations).is_some()
        || !alternatives(pod).iter().any(|a| place.satisfies(a))
        || place
            .guests
            .iter()
            .any(|g| share_a_port(&g.pod.shape.host_ports, &pod.shape.host_ports));
    if is_kept_out || problem.volumes.contains_key(&pod.key) {
        return false;
    }
    let mut wanted = Amounts::of(&pod.shape.requests);
    for other in place.new_guests() {
        wanted = wanted.plus(&other.shape.requests);
    }
    wanted.shortage(&room(problem, node)).is_none()
}

/// What DaemonSets take of a type in a pool.
#[derive(Default)]
pub(crate) struct DaemonUse {
    pub(crate) requests: Amounts,
    pub(crate) ports: Vec<HostPort>,
}

/// What the DaemonSets take that run on nodes of a type in a pool.
pub(crate) fn daemons_of_type(
    problem: &Problem,
    template: &BTreeMap<String, Set>,
    taints: &[k8s_openapi::api::core::v1::Taint],
    of_type: &BTreeMap<String, Set>,
) -> DaemonUse {
    let mut taken = DaemonUse::default();
    for daemon in &problem.daemons {
        let pod = as_pod(daemon);
        let tolerations: &[Toleration] = &pod.shape.tolerations;
        let is_welcome = !pod.shape.uses_resource_claims
            && repelling(taints, tolerations).is_none()
            && alternatives(&pod).iter().any(|a| {
                are_compatible(template, a, labels::is_well_known)
                    && crate::sets::do_not_clash(of_type, a)
            });
        if is_welcome {
            taken.requests = taken.requests.plus(&pod.shape.requests);
            taken.ports.extend(pod.shape.host_ports.iter().cloned());
        }
    }
    taken
}
