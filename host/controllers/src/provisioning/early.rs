//! Launches before a batch is complete: nodes to which next to nothing could be added.
//!
//! Pods that are about to be created are in the plan, so such a node would be bought in the end too; the seconds until
//! the batch closes are saved. Answers to no file of Karpenter, which launches by the batch.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::labels::{RESOURCE_CPU, RESOURCE_MEMORY};
use scheduling::Solution;
use scheduling::problem::Problem;
use scheduling::solution::NewClaim;

/// A node is full with less than this share of a resource left.
const SHARE_LEFT: i64 = 20;

/// Resources by which a node counts as full.
const RESOURCES: [&str; 2] = [RESOURCE_CPU, RESOURCE_MEMORY];

/// Only the claims of a solution that need not wait for the rest of the batch.
pub(super) fn full_claims(problem: &Problem, mut solution: Solution) -> Solution {
    let least = least_requests(problem);
    solution.existing.clear();
    solution.pod_errors.clear();
    solution
        .claims
        .retain(|claim| is_full(problem, claim, least));
    solution
}

/// The least of each resource that any of the pods asks for.
fn least_requests(problem: &Problem) -> [i64; 2] {
    let mut seen = BTreeSet::new();
    let pods = problem.pods.iter();
    let shapes = pods.map(|pod| &pod.shape);
    // Many pods share a shape; the address only tells those apart that were looked at.
    let shapes: Vec<_> = shapes.filter(|it| seen.insert(Arc::as_ptr(it))).collect();
    let least = |resource| shapes.iter().map(|it| it.requests.get(resource)).min();
    RESOURCES.map(|resource| least(resource).unwrap_or_default())
}

/// Whether the instance that the claim is expected to become has no room left worth the name: next to nothing, or less
/// than any of the pods takes.
fn is_full(problem: &Problem, claim: &NewClaim, least: [i64; 2]) -> bool {
    let pools = problem.pools.iter();
    let mut pools = pools.filter(|it| it.node_pool.metadata.name.as_deref() == Some(&claim.pool));
    let mut types = pools
        .next()
        .into_iter()
        .flat_map(|it| it.instance_types.iter());
    let Some(instance_type) = types.find(|it| it.name == claim.best.instance_type) else {
        return false;
    };
    RESOURCES.iter().zip(least).any(|(resource, least)| {
        let all = instance_type.allocatable_of(resource);
        let left = all - claim.requests.get(resource);
        left < least || left * SHARE_LEFT < all
    })
}
