//! `operator_*`: how conditions of objects change and how long objects take to go, for each kind by a name of its own,
//! and under the names without a kind that Karpenter has given up but still writes.

use std::collections::BTreeMap;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::buckets::{BucketFamily, doubling_to_8192, histograms, library_default};

/// Label names and values of one series. Each kind has some of its own, which its objects bear.
pub(crate) type ConditionLabels = Vec<(&'static str, String)>;

/// Makes a histogram with its buckets.
type Buckets = fn() -> Histogram;

/// Kinds as metrics call them, and the buckets of their times.
const KINDS: [(&str, Buckets); 5] = [
    ("nodeclaim", doubling_to_8192),
    ("nodepool", doubling_to_8192),
    ("ec2nodeclass", library_default),
    ("node", doubling_to_8192),
    ("capacitybuffer", doubling_to_8192),
];

/// Of all kinds.
#[derive(Debug)]
pub struct ConditionMetrics {
    by_kind: BTreeMap<&'static str, OfKind>,
    deprecated: OfKind,
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
        let kinds = KINDS.into_iter();
        Self {
            by_kind: kinds
                .map(|(kind, buckets)| (kind, OfKind::new(buckets)))
                .collect(),
            deprecated: OfKind::new(library_default),
        }
    }
}

impl ConditionMetrics {
    /// Those of a kind.
    pub(crate) fn of(&self, kind: &str) -> Option<&OfKind> {
        self.by_kind.get(kind)
    }

    /// Those without a kind in their name.
    pub(crate) fn deprecated(&self) -> &OfKind {
        &self.deprecated
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        for (kind, families) in &self.by_kind {
            families.register(&format!("operator_{kind}"), registry);
        }
        self.deprecated.register("operator", registry);
    }
}
