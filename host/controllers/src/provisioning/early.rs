//! What may be launched before a batch is complete: nodes to which next to nothing could be added.
//!
//! Pods that are about to be created are in the plan, so such a node would be bought in the end too; the seconds until
//! the batch closes are saved. Answers to no file of Karpenter, which launches by the batch.

use apis::labels::{RESOURCE_CPU, RESOURCE_MEMORY};
use scheduling::Solution;
use scheduling::problem::Problem;
use scheduling::solution::NewClaim;

/// A node is full with less than this share of a resource left.
const SHARE_LEFT: i64 = 20;

/// Only the claims of a solution that need not wait for the rest of the batch.
pub(super) fn full_claims(problem: &Problem, mut solution: Solution) -> Solution {
    solution.existing.clear();
    solution.pod_errors.clear();
    solution.claims.retain(|claim| is_full(problem, claim));
    solution
}

/// Whether the instance that the claim is expected to become has no room left worth the name.
fn is_full(problem: &Problem, claim: &NewClaim) -> bool {
    let pools = problem.pools.iter();
    let mut pools = pools.filter(|it| it.node_pool.metadata.name.as_deref() == Some(&claim.pool));
    let mut types = pools
        .next()
        .into_iter()
        .flat_map(|it| it.instance_types.iter());
    let Some(instance_type) = types.find(|it| it.name == claim.best.instance_type) else {
        return false;
    };
    [RESOURCE_CPU, RESOURCE_MEMORY].into_iter().any(|resource| {
        let all = instance_type.allocatable_of(resource);
        (all - claim.requests.get(resource)) * SHARE_LEFT < all
    })
}
