//! `process_*`, `karpenter_build_info` and the lease: what the process is and takes, told when somebody scrapes.
//!
//! Keeps nothing of its own: `process_facts.rs` reads what the kernel says.
//!
//! Answers to the process collector of client_golang and to `pkg/operator/operator.go`; of Go's own collector there is
//! what the performance suite of Karpenter reads (`test/pkg/environment/common/karpenter_metrics_poller.go`).

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use tikv_jemalloc_ctl::{epoch, stats};

use crate::build_info::{COMMIT, VERSION, go_architecture};
use crate::fence::Fence;
use crate::process_facts::ProcessFacts;

/// What built it, in the place of Go's version.
const COMPILER: &str = "rustc";

/// Registers with a registry as one collector.
#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    /// Open for as long as this process leads.
    pub(crate) fence: Fence,
    /// Name of the lease.
    pub(crate) lease_name: String,
    /// Renewals of the lease for which it had to be read first.
    pub(crate) slow_renewals: Counter,
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_identity(&mut encoder)?;
        if let Some(bytes) = heap_bytes() {
            let heap = series("go_gc_heap_live_bytes", "Heap in use.");
            heap.encode(&mut encoder, &ConstGauge::new(bytes))?;
        }
        ProcessFacts::read().map_or(Ok(()), |process| encode_facts(&process, &mut encoder))
    }
}

/// Bytes that the program has from its allocator, which counts anew whenever it is asked.
fn heap_bytes() -> Option<f64> {
    epoch::advance().ok()?;
    let bytes = stats::allocated::read().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "exact up to eight petabytes")]
    let bytes = bytes as f64;
    Some(bytes)
}

/// A family without labels of its own.
fn series<'a>(name: &'a str, help: &'a str) -> ProcessSeries<'a> {
    ProcessSeries {
        name,
        help,
        labels: &[],
    }
}

impl ProcessMetrics {
    /// What was built, and whether it leads.
    fn encode_identity(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let build = [
            ("version", VERSION),
            ("goversion", COMPILER),
            ("goarch", go_architecture()),
            ("commit", COMMIT),
        ];
        let build = ProcessSeries {
            labels: &build,
            ..series("karpenter_build_info", "What was built, as labels.")
        };
        build.encode(encoder, &ConstGauge::new(1.0))?;
        let labels = [("name", self.lease_name.as_str())];
        let of_lease = |name, help| ProcessSeries {
            labels: &labels,
            ..series(name, help)
        };
        let leads = f64::from(u8::from(self.fence.is_open()));
        let lease = of_lease(
            "leader_election_master_status",
            "Whether this replica leads.",
        );
        lease.encode(encoder, &ConstGauge::new(leads))?;
        let slow = of_lease(
            "leader_election_slowpath",
            "Renewals of the lease for which it had to be read first.",
        );
        slow.encode(encoder, &ConstCounter::new(self.slow_renewals.get()))
    }
}

fn encode_facts(
    process: &ProcessFacts,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    for (series, value) in [
        (
            series("process_cpu_seconds", "CPU time."),
            process.cpu_seconds,
        ),
        (
            series("process_network_receive_bytes", "Bytes received."),
            process.received_bytes,
        ),
        (
            series("process_network_transmit_bytes", "Bytes transmitted."),
            process.transmitted_bytes,
        ),
    ] {
        series.encode(encoder, &ConstCounter::new(value))?;
    }
    for (series, value) in [
        (series("process_open_fds", "Open files."), process.open_fds),
        (
            series("process_max_fds", "Files that may be open."),
            process.max_fds,
        ),
        (
            series("process_virtual_memory_bytes", "Addresses in use."),
            process.virtual_bytes,
        ),
        (
            series(
                "process_virtual_memory_max_bytes",
                "Addresses that may be in use.",
            ),
            process.virtual_max,
        ),
        (
            series("process_resident_memory_bytes", "Memory in use."),
            process.resident_bytes,
        ),
        (
            series("process_start_time_seconds", "Start, since 1970."),
            process.started_at,
        ),
    ] {
        series.encode(encoder, &ConstGauge::new(value))?;
    }
    Ok(())
}

/// A family of one series.
struct ProcessSeries<'a> {
    name: &'a str,
    help: &'a str,
    labels: &'a [(&'a str, &'a str)],
}

impl ProcessSeries<'_> {
    fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        metric: &impl EncodeMetric,
    ) -> Result<(), fmt::Error> {
        let kind = metric.metric_type();
        let mut family = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        metric.encode(family.encode_family(&self.labels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_counts_what_is_taken_from_it() {
        let before = heap_bytes().unwrap();
        let taken = std::hint::black_box(vec![1_u8; 8 << 20]);
        let after = heap_bytes().unwrap();
        assert!(after - before > 7e6, "{before} and {after} bytes");
        drop(taken);
    }
}
