//! Metrics of the provider: batches, instances that could not be had or ended, sizes of user data.
//!
//! Names, labels and buckets are Karpenter's. Clones count together. No label may name an instance or a claim, of which
//! there is no end. Answers to `pkg/batcher/metrics.go` and to `metrics.go` of `pkg/providers/instance` and
//! `pkg/providers/launchtemplate`.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use apis::CapacityType;
use cloudprovider::DURATION_BUCKETS_SECONDS;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Size of user data at most, by EC2.
const USER_DATA_BYTES_MAX: usize = 16_384;

type MetricLabels = Vec<(&'static str, String)>;
type Counters = Family<MetricLabels, Counter>;
type GaugeFamily = Family<MetricLabels, Gauge<f64, AtomicU64>>;
type HistogramFamily = Family<MetricLabels, Histogram, fn() -> Histogram>;

const SIZES: [f64; 34] = [
    1.0, 2.0, 4.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0,
    125.0, 150.0, 175.0, 200.0, 225.0, 250.0, 275.0, 300.0, 350.0, 400.0, 450.0, 500.0, 550.0,
    600.0, 700.0, 800.0, 900.0, 1000.0,
];

fn sizes() -> Histogram {
    Histogram::new(SIZES)
}

fn durations() -> Histogram {
    Histogram::new(DURATION_BUCKETS_SECONDS)
}

/// Zone of a failure, by name and id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailurePlace<'a> {
    pub(crate) zone: &'a str,
    /// Empty where EC2 does not tell it, as in Karpenter's metrics.
    pub(crate) zone_id: &'a str,
}

/// Counters and histograms of the provider.
#[derive(Debug, Clone)]
pub struct AwsMetrics {
    /// Labels: `zone`, `zone_id`, `capacity_type`, `reason`.
    launch_failures: Counters,
    /// Labels: `zone`, `zone_id`.
    termination_failures: Counters,
    /// Labels: `batcher`.
    batch_seconds: HistogramFamily,
    /// Labels: `batcher`.
    batch_size: HistogramFamily,
    /// Labels: `nodeclass`.
    user_data_bytes: GaugeFamily,
}

impl Default for AwsMetrics {
    fn default() -> Self {
        Self {
            launch_failures: Counters::default(),
            termination_failures: Counters::default(),
            batch_seconds: Family::new_with_constructor(durations),
            batch_size: Family::new_with_constructor(sizes),
            user_data_bytes: GaugeFamily::default(),
        }
    }
}

impl AwsMetrics {
    /// Puts every metric under its name. The text encoder adds `_total` to counters.
    pub fn register(&self, registry: &mut Registry) {
        let Self {
            launch_failures,
            termination_failures,
            batch_seconds,
            batch_size,
            user_data_bytes,
        } = self;
        registry.register(
            "karpenter_cloudprovider_instance_launch_failures",
            "Offerings that CreateFleet could not give",
            launch_failures.clone(),
        );
        registry.register(
            "karpenter_cloudprovider_instance_termination_failures",
            "Instances that TerminateInstances did not take",
            termination_failures.clone(),
        );
        registry.register(
            "karpenter_cloudprovider_batcher_batch_time_seconds",
            "How long requests were gathered for one call",
            batch_seconds.clone(),
        );
        registry.register(
            "karpenter_cloudprovider_batcher_batch_size",
            "Requests that went into one call",
            batch_size.clone(),
        );
        registry.register(
            "karpenter_ec2nodeclasses_userdata_bytes",
            "Size of the user data that was rendered for an EC2NodeClass last",
            user_data_bytes.clone(),
        );
    }

    /// Counts an offering that a fleet could not give.
    pub(crate) fn launch_failed(
        &self,
        place: FailurePlace<'_>,
        capacity_type: CapacityType,
        reason: &str,
    ) {
        let mut labels = labels_of(place);
        labels.push(("capacity_type", capacity_type.to_string()));
        labels.push(("reason", reason.to_owned()));
        self.launch_failures.get_or_create(&labels).inc();
    }

    /// Counts an instance that EC2 did not end.
    pub(crate) fn count_failed_termination(&self, place: FailurePlace<'_>) {
        let labels = labels_of(place);
        self.termination_failures.get_or_create(&labels).inc();
    }

    /// Notes how long the requests of a batch were gathered.
    pub(crate) fn observe_batch(&self, batcher: &str, gathered: Duration) {
        let labels = vec![("batcher", batcher.to_owned())];
        let seconds = self.batch_seconds.get_or_create(&labels);
        seconds.observe(gathered.as_secs_f64());
    }

    /// Notes how many requests went into a call.
    pub(crate) fn observe_call(&self, batcher: &str, requests: usize) {
        let labels = vec![("batcher", batcher.to_owned())];
        let requests = f64::from(u32::try_from(requests).unwrap_or(u32::MAX));
        self.batch_size.get_or_create(&labels).observe(requests);
    }

    /// Notes the size of the user data of a class, before base64.
    pub(crate) fn observe_rendering(&self, node_class: &str, bytes: usize) {
        if is_nearly_full(bytes) {
            tracing::warn!(
                ec2nodeclass = node_class,
                bytes,
                limit = USER_DATA_BYTES_MAX,
                "the user data nearly fill what EC2 takes of them"
            );
        }
        let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        let labels = vec![("nodeclass", node_class.to_owned())];
        self.user_data_bytes.get_or_create(&labels).set(bytes);
    }

    /// Takes a class that is gone out of the metrics.
    pub(crate) fn forget_class(&self, node_class: &str) {
        let labels = vec![("nodeclass", node_class.to_owned())];
        self.user_data_bytes.remove(&labels);
    }
}

/// Nine tenths of what EC2 takes: labels and taints of the next NodePool may be more than the rest.
fn is_nearly_full(bytes: usize) -> bool {
    bytes * 10 > USER_DATA_BYTES_MAX * 9
}

fn labels_of(FailurePlace { zone, zone_id }: FailurePlace<'_>) -> MetricLabels {
    vec![("zone", zone.to_owned()), ("zone_id", zone_id.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_are_warned_of_from_nine_tenths_on() {
        for (bytes, want) in [(14_745, false), (14_746, true), (20_000, true)] {
            assert_eq!(is_nearly_full(bytes), want, "{bytes}");
        }
    }
}
