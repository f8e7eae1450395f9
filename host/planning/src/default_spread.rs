//! Default topology spread: the scheduler's own constraints for pods that declare none.
//!
//! Whom such a constraint counts follows from the services that find the pod and from its controller. Answers to the
//! deduction in Kubernetes' `PodTopologySpread` plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use scheduling::pod::{LabelSelector, Pod, PodShape, SelectorOperator, TopologySpread};
use state::Snapshot;
use state::workloads::WorkloadKind;

/// The pods, those without spread constraints with the defaults where it can be said whom they count.
pub(crate) fn with_defaults(
    snapshot: &Snapshot,
    defaults: &[TopologySpread],
    pods: Vec<Arc<Pod>>,
) -> Vec<Arc<Pod>> {
    if defaults.is_empty() {
        return pods;
    }
    // Equal pods stay equal: one new shape for each old one.
    let mut known: BTreeMap<usize, Option<Arc<PodShape>>> = BTreeMap::new();
    let spread = |pod: Arc<Pod>| {
        let at = Arc::as_ptr(&pod.shape).addr();
        let shape = known
            .entry(at)
            .or_insert_with(|| spread_shape(snapshot, defaults, &pod.shape));
        match shape {
            Some(shape) => Arc::new(Pod {
                shape: Arc::clone(shape),
                ..(*pod).clone()
            }),
            None => pod,
        }
    };
    pods.into_iter().map(spread).collect()
}

fn spread_shape(
    snapshot: &Snapshot,
    defaults: &[TopologySpread],
    shape: &PodShape,
) -> Option<Arc<PodShape>> {
    if !shape.topology_spread.is_empty() {
        return None;
    }
    let selector = deduced(snapshot, shape);
    if selector.requirements.is_empty() {
        return None;
    }
    let with_selector = |it: &TopologySpread| TopologySpread {
        selector: Some(selector.clone()),
        ..it.clone()
    };
    Some(Arc::new(PodShape {
        topology_spread: defaults.iter().map(with_selector).collect(),
        ..shape.clone()
    }))
}

/// Whom the pod is one of: the labels of its services, and the selector of its controller.
fn deduced(snapshot: &Snapshot, shape: &PodShape) -> LabelSelector {
    let workloads = snapshot.workloads();
    let mut labels = workloads.service_labels(shape);
    let owner = shape.owner.as_ref();
    let kind = owner.and_then(|it| WorkloadKind::of_owner(&it.api_version, &it.kind));
    let controller = owner.zip(kind).and_then(|(owner, kind)| {
        let key = ObjectKey::new(&shape.namespace, &owner.name);
        Some((kind, workloads.find(kind, &key)?))
    });
    let mut selector = LabelSelector::default();
    match controller {
        // Its selector is a map like a service's, and has the last word on each label.
        Some((WorkloadKind::ReplicationController, it)) => {
            for requirement in &it.selector.requirements {
                let value = requirement.values.first().cloned().unwrap_or_default();
                labels.insert(requirement.key.clone(), value);
            }
        }
        Some((WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet, it)) => {
            selector.clone_from(&it.selector);
        }
        Some((WorkloadKind::Deployment | WorkloadKind::PodTemplate | WorkloadKind::Job, _))
        | None => {}
    }
    for (label, value) in labels {
        selector.require(&label, SelectorOperator::In, [value]);
    }
    selector
}
