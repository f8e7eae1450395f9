//! Checks of objects: what the API server's validation would refuse, and contradictions that no node can resolve.
//!
//! Only rules that decide whether and where pods are placed; a message names the value. Answers to Kubernetes'
//! `pkg/apis/core/validation` and to the rules of Karpenter's CRDs.

mod affinity;
mod contradictions;

use std::collections::BTreeMap;

use apis::quantity::ParsedQuantity;
use apis::{NodePool, labels, validation};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use scheduling::requirements::{Requirement, Requirements};

use crate::fault::ObjectFaults;
use affinity::{affinity_term, affinity_terms, label_selector, node_affinity};
use contradictions::{contradiction, contradictions};

type CheckedQuantities = BTreeMap<String, Quantity>;

const WEIGHT_MAX: i32 = 100;
const MIN_VALUES_MAX: i64 = 50;
const TOLERATION_OPERATORS: [&str; 5] = ["", "Equal", "Exists", "Lt", "Gt"];

/// Checks a pod.
pub(super) fn pod(pod: &v1::Pod, faults: &mut ObjectFaults) {
    match &pod.spec {
        Some(spec) => pod_spec("spec", spec, faults),
        None => faults.push("spec", "is not set"),
    }
}

/// Checks a DaemonSet, its template above all.
pub(super) fn daemon_set(daemon_set: &DaemonSet, faults: &mut ObjectFaults) {
    let Some(spec) = &daemon_set.spec else {
        return faults.push("spec", "is not set");
    };
    match &spec.template.spec {
        Some(spec) => pod_spec("spec.template.spec", spec, faults),
        None => faults.push("spec.template.spec", "is not set"),
    }
}

/// Checks a Node.
pub(super) fn node(node: &v1::Node, faults: &mut ObjectFaults) {
    let status = node.status.as_ref();
    let capacity = status.and_then(|it| it.capacity.as_ref());
    let allocatable = status.and_then(|it| it.allocatable.as_ref());
    if capacity.is_none() && allocatable.is_none() {
        faults.push("status.allocatable", "is not set");
    }
    quantities("status.capacity", capacity, faults);
    quantities("status.allocatable", allocatable, faults);
}

/// Checks a NodePool.
pub(super) fn node_pool(pool: &NodePool, faults: &mut ObjectFaults) {
    for invalid in validation::node_pool(pool) {
        faults.push(
            invalid.field,
            format!("{:?}: {}", invalid.value, invalid.fault),
        );
    }
    quantities("spec.limits", pool.spec.limits.as_ref(), faults);
    if let Some(weight) = pool.spec.weight.filter(|it| !(1..=WEIGHT_MAX).contains(it)) {
        faults.push(
            "spec.weight",
            format!("{weight}: must be between 1 and {WEIGHT_MAX}"),
        );
    }
    let template = &pool.spec.template;
    for (index, it) in template.spec.requirements.iter().enumerate() {
        let of_range = |least: &i64| !(1..=MIN_VALUES_MAX).contains(least);
        if let Some(least) = it.min_values.filter(of_range) {
            let field = format!("spec.template.spec.requirements[{index}].minValues");
            faults.push(
                field,
                format!("{least}: must be between 1 and {MIN_VALUES_MAX}"),
            );
        }
    }
    let requirements = template.spec.requirements.iter().map(|it| {
        let values = it.values.iter().map(String::as_str);
        Requirement::new(&it.key, it.operator, values)
    });
    let fixed = Requirements::from_labels(&template.metadata.labels);
    contradiction(
        "spec.template",
        fixed.iter().cloned().chain(requirements),
        faults,
    );
}

fn pod_spec(path: &str, spec: &v1::PodSpec, faults: &mut ObjectFaults) {
    if spec.containers.is_empty() {
        faults.push(format!("{path}.containers"), "is empty");
    }
    let init = spec.init_containers.iter().flatten();
    for (name, index, container) in (spec.containers.iter().enumerate())
        .map(|(index, it)| ("containers", index, it))
        .chain(
            init.enumerate()
                .map(|(index, it)| ("initContainers", index, it)),
        )
    {
        let path = format!("{path}.{name}[{index}].resources");
        resources(&path, container.resources.as_ref(), faults);
    }
    resources(
        &format!("{path}.resources"),
        spec.resources.as_ref(),
        faults,
    );
    quantities(&format!("{path}.overhead"), spec.overhead.as_ref(), faults);
    for (index, it) in spec.tolerations.iter().flatten().enumerate() {
        toleration(&format!("{path}.tolerations[{index}]"), it, faults);
    }
    for (index, it) in spec
        .topology_spread_constraints
        .iter()
        .flatten()
        .enumerate()
    {
        spread(
            &format!("{path}.topologySpreadConstraints[{index}]"),
            it,
            faults,
        );
    }
    if let Some(affinity) = &spec.affinity {
        let path = format!("{path}.affinity");
        if let Some(it) = &affinity.node_affinity {
            node_affinity(&format!("{path}.nodeAffinity"), it, faults);
        }
        for (path, term) in affinity_terms(&path, affinity) {
            affinity_term(&path, term, faults);
        }
    }
    contradictions(path, spec, faults);
}

fn resources(path: &str, resources: Option<&v1::ResourceRequirements>, faults: &mut ObjectFaults) {
    let Some(resources) = resources else { return };
    quantities(
        &format!("{path}.requests"),
        resources.requests.as_ref(),
        faults,
    );
    quantities(&format!("{path}.limits"), resources.limits.as_ref(), faults);
    let limits = resources.limits.as_ref();
    for (name, request) in resources.requests.iter().flatten() {
        let Some(limit) = limits.and_then(|it| it.get(name)) else {
            continue;
        };
        let millis = |it: &Quantity| apis::quantity::millis(it).ok();
        if millis(request)
            .zip(millis(limit))
            .is_some_and(|(request, limit)| request > limit)
        {
            let message = format!("{:?}: is more than the limit {:?}", request.0, limit.0);
            faults.push(format!("{path}.requests[{name}]"), message);
        }
    }
}

/// Checks amounts of resources, which may not be negative.
pub(super) fn quantities(path: &str, list: Option<&CheckedQuantities>, faults: &mut ObjectFaults) {
    for (name, quantity) in list.into_iter().flatten() {
        let field = || format!("{path}[{name}]");
        match quantity.0.parse::<ParsedQuantity>() {
            Ok(parsed) if parsed.is_negative() => {
                faults.push(field(), format!("{:?}: must not be negative", quantity.0));
            }
            Ok(_) => {}
            Err(error) => faults.push(field(), error.to_string()),
        }
    }
}

fn toleration(path: &str, toleration: &v1::Toleration, faults: &mut ObjectFaults) {
    let operator = toleration.operator.as_deref().unwrap_or_default();
    if !TOLERATION_OPERATORS.contains(&operator) {
        faults.push(
            format!("{path}.operator"),
            format!("{operator:?}: unknown operator"),
        );
    }
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let effects = [
        labels::NO_SCHEDULE,
        labels::PREFER_NO_SCHEDULE,
        labels::NO_EXECUTE,
    ];
    if !effect.is_empty() && !effects.contains(&effect) {
        faults.push(
            format!("{path}.effect"),
            format!("{effect:?}: unknown effect"),
        );
    }
    let has_key = toleration.key.as_ref().is_some_and(|it| !it.is_empty());
    if !has_key && operator != "Exists" {
        let message = format!("{operator:?}: without a key it must be Exists");
        faults.push(format!("{path}.operator"), message);
    }
}

fn spread(path: &str, constraint: &v1::TopologySpreadConstraint, faults: &mut ObjectFaults) {
    if constraint.max_skew < 1 {
        let message = format!("{}: must be greater than zero", constraint.max_skew);
        faults.push(format!("{path}.maxSkew"), message);
    }
    if let Some(least) = constraint.min_domains.filter(|it| *it < 1) {
        faults.push(
            format!("{path}.minDomains"),
            format!("{least}: must be greater than zero"),
        );
    }
    if constraint.topology_key.is_empty() {
        faults.push(format!("{path}.topologyKey"), "is not set");
    }
    let when = constraint.when_unsatisfiable.as_str();
    if !["DoNotSchedule", "ScheduleAnyway"].contains(&when) {
        let message = format!("{when:?}: must be DoNotSchedule or ScheduleAnyway");
        faults.push(format!("{path}.whenUnsatisfiable"), message);
    }
    label_selector(
        &format!("{path}.labelSelector"),
        constraint.label_selector.as_ref(),
        faults,
    );
}
