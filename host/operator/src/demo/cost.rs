//! Cost of a run to the machine: memory and time, as the kernel tells them.

use std::fs;

/// What the kernel counts the time of processes in, whatever its clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// The most memory this process ever held, from the kernel; 0 where it does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.unwrap_or(0) * 1024
}

/// The time that all threads of this process worked, from the kernel; 0 where it does not tell.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut ticks = fields.split_whitespace().skip(11).take(2);
    let mut next = || ticks.next().and_then(|it| it.parse::<f64>().ok());
    let (user, system) = (next().unwrap_or(0.0), next().unwrap_or(0.0));
    (user + system) / TICKS_PER_SECOND
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
}
