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
    overlaid: Arc<Overlaid>,
}

impl Overlays {
    pub(crate) fn set(&self, judged: JudgedOverlays) {
        let mut before = write(&self.judged);
        *before = Some(Arc::new(judged));
    }

    /// The pool's types under the overlays in force; nothing as long as the pool was not part of a judgement. A claim
    /// that no pool made comes with one without a name, of its own requirements, which nobody judges beforehand.
    pub(crate) fn overlay(
        &self,
        pool: &NodePool,
        catalogue: &Arc<[Arc<InstanceType>]>,
    ) -> Option<Arc<[Arc<InstanceType>]>> {
        let judged = read(&self.judged);
        let name = pool.name_any();
        let judged = judged.clone()?;
        if name.is_empty() {
            let types = (Arc::new(pool.clone()), Arc::clone(catalogue));
            let overlaid = node_overlay::apply(&judged.accepted, &[types]);
            return overlaid.instance_types.get(&name).cloned();
        }
        if !judged.pools.contains(&name) {
            return None;
        }
        let mut all = lock(&self.latest);
        let known = all
            .get(&name)
            .filter(|it| Arc::ptr_eq(&it.catalogue, catalogue) && Arc::ptr_eq(&it.judged, &judged));
        let overlaid = known.map_or_else(
            || {
                let types = (Arc::new(pool.clone()), Arc::clone(catalogue));
                Arc::new(node_overlay::apply(&judged.accepted, &[types]))
            },
            |known| Arc::clone(&known.overlaid),
        );
        let types = overlaid.instance_types.get(&name).cloned();
        let catalogue = Arc::clone(catalogue);
        let latest = Latest {
            judged,
            catalogue,
            overlaid,
        };
        all.insert(name, latest);
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
