//! `process_*`, `karpenter_build_info` and the lease: what the process is and takes, read from `/proc` when somebody
//! scrapes.
//!
//! Answers to the process collector of client_golang and to `pkg/operator/operator.go`; of Go's own collector there is
//! what the performance suite of Karpenter reads (`test/pkg/environment/common/karpenter_metrics_poller.go`).

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use tikv_jemalloc_ctl::{epoch, stats};

use crate::build_info::{COMMIT, VERSION, go_architecture};
use crate::fence::Fence;

/// Linux tells times in hundredths of a second, on every architecture that there are nodes of.
const TICKS_PER_SECOND: f64 = 100.0;
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

/// Facts of the kernel about this process.
#[derive(Debug, Default, PartialEq)]
struct ProcessFacts {
    cpu_seconds: f64,
    started_at: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
    open_fds: f64,
    max_fds: f64,
    virtual_max: f64,
    received_bytes: f64,
    transmitted_bytes: f64,
}

impl ProcessFacts {
    fn read() -> Option<Self> {
        let text = |file: &str| fs::read_to_string(format!("/proc/{file}")).ok();
        let mut process = Self::of_stat(&text("self/stat")?, &text("stat")?)?;
        let status = text("self/status")?;
        process.resident_bytes = number_after(&status, "VmRSS:")? * 1024.0;
        process.virtual_bytes = number_after(&status, "VmSize:")? * 1024.0;
        let limits = text("self/limits")?;
        process.max_fds = limit(&limits, "Max open files");
        process.virtual_max = limit(&limits, "Max address space");
        let open = fs::read_dir("/proc/self/fd").ok()?.count();
        // The directory itself was open meanwhile.
        process.open_fds = f64::from(u32::try_from(open).ok()?) - 1.0;
        let network = text("self/net/dev").unwrap_or_default();
        (process.received_bytes, process.transmitted_bytes) = network_bytes(&network);
        Some(process)
    }

    /// Of `/proc/self/stat` and `/proc/stat`.
    fn of_stat(own: &str, system: &str) -> Option<Self> {
        // The name of the program may hold blanks and brackets.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
            started_at: number_after(system, "btime")? + field(22)? / TICKS_PER_SECOND,
            ..Self::default()
        })
    }
}

/// The number in the line that begins so.
fn number_after(text: &str, beginning: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|it| it.strip_prefix(beginning));
    lines.next()?.split_whitespace().next()?.parse().ok()
}

/// The soft limit; one that there is not is as Go writes it.
fn limit(text: &str, name: &str) -> f64 {
    const UNLIMITED: f64 = 18_446_744_073_709_551_615.0;
    number_after(text, name).unwrap_or(UNLIMITED)
}

/// Received and transmitted by all interfaces but the loopback.
fn network_bytes(text: &str) -> (f64, f64) {
    let mut total = (0.0, 0.0);
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once(':') else {
            continue;
        };
        let numbers: Vec<f64> = numbers
            .split_whitespace()
            .filter_map(|it| it.parse().ok())
            .collect();
        if let ([received, ..], Some(transmitted), false) =
            (&numbers[..], numbers.get(8), name.trim() == "lo")
        {
            total.0 += received;
            total.1 += transmitted;
        }
    }
    total
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_identity(&mut encoder)?;
        if let Some(bytes) = heap_bytes() {
            let heap = series("go_gc_heap_live_bytes", "Heap in use.");
            heap.encode(&mut encoder, &ConstGauge::new(bytes))?;
        }
        ProcessFacts::read().map_or(Ok(()), |process| process.encode(&mut encoder))
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

impl ProcessFacts {
    fn encode(self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let process = self;
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
    fn what_the_kernel_says_is_read() {
        let own = "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 250 150 0 0 20 0 9 0 1200 0 0";
        let process = ProcessFacts::of_stat(own, "cpu 1\nbtime 1000\n").unwrap();
        assert_eq!((process.cpu_seconds, process.started_at), (4.0, 1012.0));
        let devices = "Inter-| Receive\n  lo: 9 0 0 0 0 0 0 0 9 0\n eth0: 5 0 0 0 0 0 0 0 3 0\n";
        assert_eq!(network_bytes(devices), (5.0, 3.0));
        let limits = "Max open files  1024  4096  files\nMax address space  unlimited  unlimited\n";
        assert!((1024.0..1024.5).contains(&limit(limits, "Max open files")));
        assert!(limit(limits, "Max address space") > 1e19);
        let process = ProcessFacts::read().unwrap();
        assert!(
            process.resident_bytes > 1e6 && process.open_fds > 2.0,
            "{process:?}"
        );
        assert!(process.started_at > 1.6e9, "{process:?}");
    }

    #[test]
    fn the_heap_counts_what_is_taken_from_it() {
        let before = heap_bytes().unwrap();
        let taken = vec![1_u8; 8 << 20];
        let after = heap_bytes().unwrap();
        assert!(after - before > 7e6, "{before} and {after} bytes");
        drop(taken);
    }
}
