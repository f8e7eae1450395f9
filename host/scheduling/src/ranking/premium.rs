//! The bound on what a ranking policy may cost, as a NodePool sets it. What it means: `hooks::ranking::PremiumMax`.

use apis::{NodePool, labels};
use hooks::ranking::PremiumMax;

use crate::requirements::Requirements;

/// The bound of a pool: its annotation, or else that of the controller. One that cannot be read counts as absent; who
/// reads a file of pools is warned of it.
pub(crate) fn premium_of_pool(node_pool: &NodePool, of_controller: PremiumMax) -> PremiumMax {
    let annotations = node_pool.metadata.annotations.as_ref();
    let own = annotations.and_then(|it| it.get(labels::MAX_PREMIUM_ANNOTATION));
    own.and_then(|it| it.parse().ok()).unwrap_or(of_controller)
}

/// The bound for a node of these requirements. Flexibility that the owner asked for by `minValues` goes before price.
pub fn premium_of_node(of_pool: PremiumMax, requirements: &Requirements) -> PremiumMax {
    if requirements.iter().any(|it| it.min_values.is_some()) {
        PremiumMax::OFF
    } else {
        of_pool
    }
}
