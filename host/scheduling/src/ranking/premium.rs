//! The bound on what a ranking policy may cost, as a NodePool sets it. What it means: `hooks::ranking::PremiumMax`.

use apis::{NodePool, labels};
use hooks::ranking::PremiumMax;

/// The bound of a pool: its annotation, or else that of the controller. One that cannot be read counts as absent.
pub(crate) fn premium_of_pool(node_pool: &NodePool, of_controller: PremiumMax) -> PremiumMax {
    let annotations = node_pool.metadata.annotations.as_ref();
    let own = annotations.and_then(|it| it.get(labels::MAX_PREMIUM_ANNOTATION));
    own.and_then(|it| it.parse().ok()).unwrap_or(of_controller)
}
