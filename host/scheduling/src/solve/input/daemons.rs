//! Resources that DaemonSets take of each type's nodes.
//!
//! Answers to the daemon overhead of Karpenter's `scheduling/scheduler.go`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;

use super::views::{self, prefer_no_schedule_toleration};
use super::vocabulary::{Amounts, Dimensions, add_times};
use crate::pod::{HostPort, PodShape, Toleration};
use crate::problem::{DaemonPod, ExistingNode, Pool};
use crate::requirements::{AllowUndefined, Requirements};
use crate::taints;

/// Overhead and host ports by position of the type in the pool.
pub(crate) fn overheads(
    pool: &Pool,
    template: &Requirements,
    daemons: &[Arc<PodShape>],
    dims: &Dimensions,
) -> Vec<(Amounts, Arc<[HostPort]>)> {
    let pool_taints = &pool.node_pool.spec.template.spec.taints;
    let compatible: Vec<(&PodShape, Vec<Requirements>)> = daemons
        .iter()
        .filter(|shape| !shape.uses_resource_claims && tolerates(shape, pool_taints))
        .map(|shape| {
            let mut alternatives = views::strict_alternatives(shape);
            alternatives.retain(|a| template.compatible(a, AllowUndefined::WellKnown).is_ok());
            (&**shape, alternatives)
        })
        .filter(|(_, alternatives)| !alternatives.is_empty())
        .collect();
    let none: Arc<[HostPort]> = Arc::from([]);
    if compatible.is_empty() {
        return vec![(dims.zero(), none); pool.instance_types.len()];
    }
    let requests: Vec<Amounts> = compatible
        .iter()
        .map(|(s, _)| dims.amounts(&s.requests))
        .collect();
    let of_type = |on_type: &Requirements| {
        let mut sum = dims.zero();
        let mut ports: Vec<HostPort> = Vec::new();
        for ((shape, alternatives), requests) in compatible.iter().zip(&requests) {
            if alternatives
                .iter()
                .any(|a| a.is_empty() || on_type.intersects(a).is_ok())
            {
                add_times(&mut sum, requests, 1);
                ports.extend(shape.host_ports.iter().cloned());
            }
        }
        (
            sum,
            if ports.is_empty() {
                Arc::clone(&none)
            } else {
                Arc::from(ports)
            },
        )
    };
    pool.instance_types
        .iter()
        .map(|t| of_type(&t.requirements))
        .collect()
}

/// What DaemonSets may still claim of a node: their requests less what their pods there already have.
pub(super) fn outstanding(
    node: &ExistingNode,
    daemons: &[DaemonPod],
    dims: &Dimensions,
) -> Amounts {
    let node_labels = Requirements::from_labels(&node.labels);
    let mut sum = dims.zero();
    for daemon in daemons {
        let shape = &daemon.shape;
        let is_compatible = !shape.uses_resource_claims
            && tolerates(shape, &node.taints)
            && views::strict_alternatives(shape)
                .iter()
                .any(|a| node_labels.compatible(a, AllowUndefined::None).is_ok());
        if is_compatible {
            add_times(&mut sum, &dims.amounts(&shape.requests), 1);
        }
    }
    let there = dims.amounts(&node.daemon_requests);
    sum.iter()
        .zip(&there)
        .map(|(expected, there)| expected.saturating_sub(*there).max(0))
        .collect()
}

fn tolerates(shape: &PodShape, node_taints: &[Taint]) -> bool {
    let tolerations: Vec<Toleration> = shape
        .tolerations
        .iter()
        .cloned()
        .chain([prefer_no_schedule_toleration()])
        .collect();
    taints::untolerated(node_taints, &tolerations).is_none()
}
