//! Workloads of no replicas: where one pod of each would go, were there one. Each is tried alone, and none counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use problem_file::{Explanation, WorldProblem, explain};
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::Problem;
use scheduling::ranking::RankHook;
use scheduling::{Interrupt, Prepared, TableCache, solve_prepared};
use serde::Serialize;

/// What would become of a workload's first pod.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScaledToZero {
    pub(super) workload: String,
    pub(super) is_placeable: bool,
    /// The pool or the node that would take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price_per_hour: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nearest_miss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explanation: Option<Explanation>,
}

/// Takes the pods that only stand for a workload out of the problem; answers them with their workloads.
pub(super) fn split(
    problem: &mut Problem,
    workloads: &BTreeMap<PodKey, String>,
) -> Vec<(String, Arc<Pod>)> {
    let mut probes = Vec::new();
    problem.pods.retain(|pod| match workloads.get(&pod.key) {
        Some(workload) => {
            probes.push((workload.clone(), Arc::clone(pod)));
            false
        }
        None => true,
    });
    probes
}

/// Solves the problem of each pod alone.
pub(super) fn try_each(
    question: &WorldProblem,
    probes: Vec<(String, Arc<Pod>)>,
    rank: &dyn RankHook,
    tables: &TableCache,
    is_explained: bool,
) -> Vec<ScaledToZero> {
    let mut question = question.clone();
    probes
        .into_iter()
        .map(|(workload, pod)| {
            question.problem.pods = vec![pod];
            let prepared = Prepared::new(&question.problem, rank, tables);
            let solution = solve_prepared(&question.problem, &prepared, &Interrupt::never());
            let mut explanations = explain(&question, &solution).into_iter();
            let claim = solution.claims.first();
            let node = solution.existing.first().map(|it| it.node.to_string());
            let error = solution.pod_errors.values().next();
            ScaledToZero {
                workload,
                is_placeable: error.is_none(),
                place: claim.map(|it| it.pool.clone()).or(node),
                instance_type: claim.map(|it| it.best.instance_type.clone()),
                price_per_hour: claim.map(|it| it.best.price_per_hour),
                reason: error.map(|it| it.reason().to_owned()),
                message: error.map(ToString::to_string),
                nearest_miss: error
                    .and_then(|it| it.nearest_miss())
                    .map(ToString::to_string),
                explanation: explanations.next().filter(|_| is_explained),
            }
        })
        .collect()
}
