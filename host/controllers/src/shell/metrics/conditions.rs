//! `operator_*`: how conditions of objects change and how long objects take to go, for each kind by a name of its own,
//! and under the names without a kind that Karpenter has given up but still writes.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::buckets::{BucketFamily, doubling_to_8192, histograms, library_default};

/// Label names and values of one series. Each kind has some of its own, which its objects bear.
pub(crate) type ConditionLabels = Vec<(&'static str, String)>;

/// Makes a histogram with its buckets.
type Buckets = fn() -> Histogram;

/// Of all kinds: a field for each, so that none is forgotten without a word.
#[derive(Debug)]
pub struct ConditionMetrics {
    pub(crate) capacity_buffer: OfKind,
    pub(crate) node_class: OfKind,
    pub(crate) node: OfKind,
    pub(crate) node_claim: OfKind,
    pub(crate) node_pool: OfKind,
    /// Those without a kind in their name.
    pub(crate) deprecated: OfKind,
}

/// Of one kind.
#[derive(Debug)]
pub(crate) struct OfKind {
    /// Labels: `type`, `status`, `reason`, and those of the kind.
    pub(crate) transitions: Family<ConditionLabels, Counter>,
    /// Labels: `type`, `status` (the one that was left), `to_status`, and those of the kind.
    pub(crate) transition_seconds: BucketFamily<ConditionLabels>,
    /// Labels: those of the kind.
    pub(crate) termination_seconds: BucketFamily<ConditionLabels>,
}

impl OfKind {
    fn new(buckets: Buckets) -> Self {
        Self {
            transitions: Family::default(),
            transition_seconds: histograms(buckets),
            termination_seconds: histograms(buckets),
        }
    }

    fn register(&self, prefix: &str, registry: &mut Registry) {
        let Self {
            transitions,
            transition_seconds,
            termination_seconds,
        } = self;
        registry.register(
            format!("{prefix}_status_condition_transitions"),
            "Changes of a condition",
            transitions.clone(),
        );
        registry.register(
            format!("{prefix}_status_condition_transition_seconds"),
            "How long a condition had a status before it changed",
            transition_seconds.clone(),
        );
        registry.register(
            format!("{prefix}_termination_duration_seconds"),
            "How long an object took to go",
            termination_seconds.clone(),
        );
    }
}

impl Default for ConditionMetrics {
    fn default() -> Self {
        Self {
            capacity_buffer: OfKind::new(doubling_to_8192),
            node_class: OfKind::new(library_default),
            node: OfKind::new(doubling_to_8192),
            node_claim: OfKind::new(doubling_to_8192),
            node_pool: OfKind::new(doubling_to_8192),
            deprecated: OfKind::new(library_default),
        }
    }
}

impl ConditionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self {
            capacity_buffer,
            node_class,
            node,
            node_claim,
            node_pool,
            deprecated,
        } = self;
        capacity_buffer.register("operator_capacitybuffer", registry);
        node_class.register("operator_ec2nodeclass", registry);
        node.register("operator_node", registry);
        node_claim.register("operator_nodeclaim", registry);
        node_pool.register("operator_nodepool", registry);
        deprecated.register("operator", registry);
    }
}
