//! What the kernel says of this process, read from `/proc` at the moment it is asked for.
//!
//! The one reader of that: nothing is kept, and what the kernel does not tell is missing or 0, never an error.

use std::fs;
use std::str::FromStr;

/// Linux tells times in hundredths of a second, on every architecture that there are nodes of.
const TICKS_PER_SECOND: f64 = 100.0;

/// The most memory that this process ever held; 0 where the kernel does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    number_after::<u64>(&status, "VmHWM:").unwrap_or(0) * 1024
}

/// The time that all threads of this process worked; 0 where the kernel does not tell.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    seconds_worked(&stat).unwrap_or(0.0)
}

/// Facts of the kernel about this process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProcessFacts {
    pub(crate) cpu_seconds: f64,
    pub(crate) started_at: f64,
    pub(crate) virtual_bytes: f64,
    pub(crate) resident_bytes: f64,
    pub(crate) open_fds: f64,
    pub(crate) max_fds: f64,
    pub(crate) virtual_max: f64,
    pub(crate) received_bytes: f64,
    pub(crate) transmitted_bytes: f64,
}

impl ProcessFacts {
    pub(crate) fn read() -> Option<Self> {
        let text = |file: &str| fs::read_to_string(format!("/proc/{file}")).ok();
        let mut process = Self::of_stat(&text("self/stat")?, &text("stat")?)?;
        let status = text("self/status")?;
        process.resident_bytes = number_after::<f64>(&status, "VmRSS:")? * 1024.0;
        process.virtual_bytes = number_after::<f64>(&status, "VmSize:")? * 1024.0;
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
        Some(Self {
            cpu_seconds: seconds_worked(own)?,
            started_at: number_after::<f64>(system, "btime")? + seconds_in(own, 22)?,
            ..Self::default()
        })
    }
}

/// User and system time in `/proc/self/stat`.
fn seconds_worked(stat: &str) -> Option<f64> {
    Some(seconds_in(stat, 14)? + seconds_in(stat, 15)?)
}

/// A field of `/proc/self/stat`, by its number in proc(5), that is told in ticks.
fn seconds_in(stat: &str, number: usize) -> Option<f64> {
    // The name of the program may hold blanks and brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: f64 = fields.nth(number - 3)?.parse().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

/// The number in the line that begins so.
fn number_after<T: FromStr>(text: &str, beginning: &str) -> Option<T> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let before = cpu_seconds();
        let mut sum = 0_u64;
        while cpu_seconds() - before < 0.02 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert!(peak_rss_bytes() > 0);
    }

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
}
