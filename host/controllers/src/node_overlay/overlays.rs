//! The NodeOverlays in force, laid on the types that the provider told last.

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
        lock(&self.latest).retain(|pool, _| judged.pools.contains(pool));
        *write(&self.judged) = Some(Arc::new(judged));
    }

    /// The pool's types under the overlays in force; nothing as long as the pool was not part of a judgement. A claim
    /// that no pool made comes with one without a name, of its own requirements, which nobody judges beforehand.
    pub(crate) fn overlay(
        &self,
        pool: &NodePool,
        catalogue: &Arc<[Arc<InstanceType>]>,
    ) -> Option<Arc<[Arc<InstanceType>]>> {
        let judged = read(&self.judged).clone()?;
        let name = pool.name_any();
        if name.is_empty() {
            let types = (Arc::new(pool.clone()), Arc::clone(catalogue));
            let overlaid = node_overlay::apply(&judged.accepted, &[types]);
            return overlaid.instance_types.get(&name).cloned();
        }
        if !judged.pools.contains(&name) {
            return None;
        }
        if let Some(known) = lock(&self.latest)
            .get(&name)
            .filter(|it| Arc::ptr_eq(&it.catalogue, catalogue) && Arc::ptr_eq(&it.judged, &judged))
        {
            return known.overlaid.instance_types.get(&name).cloned();
        }
        // Other pools need not wait for this one: whoever comes at the same time finds the same.
        let types = (Arc::new(pool.clone()), Arc::clone(catalogue));
        let overlaid = node_overlay::apply(&judged.accepted, &[types]);
        let types = overlaid.instance_types.get(&name).cloned();
        let latest = Latest {
            judged,
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
