//! The NodeOverlays in force, laid on the types that the provider told last.
//!
//! Which are in force is the controller's to judge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, RwLock};

use apis::{NodeClaim, NodeOverlay, NodePool};
use kube::ResourceExt;
use locks::{lock, read, write};
use scheduling::instance_type::InstanceType;
use scheduling::node_overlay::{self, Overlaid};

/// Overlays in force, once they were judged, and what they make of the types told last.
#[derive(Debug, Default)]
pub(crate) struct Overlays {
    judged: RwLock<Option<Arc<JudgedOverlays>>>,
    latest: Mutex<BTreeMap<String, Latest>>,
}

#[derive(Debug)]
pub(crate) struct JudgedOverlays {
    pub(crate) accepted: Vec<NodeOverlay>,
    pub(crate) pools: BTreeSet<String>,
}

#[derive(Debug)]
struct Latest {
    judged: Arc<JudgedOverlays>,
    catalogue: Arc<[Arc<InstanceType>]>,
    overlaid: Overlaid,
}

impl Overlays {
    pub(crate) fn set(&self, judged: JudgedOverlays) {
        let mut in_force = write(&self.judged);
        lock(&self.latest).retain(|pool, _| judged.pools.contains(pool));
        *in_force = Some(Arc::new(judged));
    }

    /// The pool's types under the overlays in force; nothing as long as the pool was not part of a judgement. A claim
    /// that no pool made comes with one without a name, of its own requirements, which nobody judges beforehand.
    pub(crate) fn overlay(
        &self,
        pool: &NodePool,
        catalogue: &Arc<[Arc<InstanceType>]>,
    ) -> Option<Arc<[Arc<InstanceType>]>> {
        // Held to the end, so that nothing is kept of a judgement that was replaced meanwhile.
        let in_force = read(&self.judged);
        let judged = in_force.as_ref()?;
        let name = pool.name_any();
        let apply = || {
            let types = (Arc::new(pool.clone()), Arc::clone(catalogue));
            node_overlay::apply(&judged.accepted, &[types])
        };
        if name.is_empty() {
            return apply().instance_types.get(&name).cloned();
        }
        if !judged.pools.contains(&name) {
            return None;
        }
        if let Some(known) = lock(&self.latest)
            .get(&name)
            .filter(|it| Arc::ptr_eq(&it.catalogue, catalogue) && Arc::ptr_eq(&it.judged, judged))
        {
            return known.overlaid.instance_types.get(&name).cloned();
        }
        // Other pools need not wait for this one: whoever comes at the same time finds the same.
        let overlaid = apply();
        let types = overlaid.instance_types.get(&name).cloned();
        let latest = Latest {
            judged: Arc::clone(judged),
            catalogue: Arc::clone(catalogue),
            overlaid,
        };
        lock(&self.latest).insert(name, latest);
        types
    }

    /// Says on a claim what overlays changed about the types it may become.
    pub(crate) fn mark(&self, claim: &mut NodeClaim, pool: &str) {
        let all = lock(&self.latest);
        if let Some(latest) = all.get(pool) {
            latest.overlaid.mark(claim, pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(pools: &[&str]) -> JudgedOverlays {
        JudgedOverlays {
            accepted: Vec::new(),
            pools: pools.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_kept_is_of_pools_that_were_judged_last() {
        let overlays = Overlays::default();
        let catalogue: Arc<[Arc<InstanceType>]> = Arc::default();
        let mut pool = NodePool::default();
        pool.metadata.name = Some("web".to_owned());
        let is_known = || overlays.overlay(&pool, &catalogue).is_some();
        let kept = || lock(&overlays.latest).len();
        assert!(!is_known());
        overlays.set(judged(&["web", "other"]));
        assert_eq!((is_known(), kept()), (true, 1));
        overlays.set(judged(&["web"]));
        assert_eq!((is_known(), kept()), (true, 1));
        overlays.set(judged(&["other"]));
        assert_eq!((kept(), is_known()), (0, false));
    }
}
