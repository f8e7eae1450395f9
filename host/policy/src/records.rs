//! Records of calls: a bounded list of them, counters, events for the shell.
//!
//! For people and metrics: nothing that decides reads them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use apis::ObjectKey;
use hooks::binding::Mode;
use hooks::policy_use::{PolicyKind, UseOutcome};

/// Records kept until they are drained.
const RECORDS_MAX: usize = 1024;
/// Bytes of their texts: nobody may ever drain them.
const RECORDS_BYTES_MAX: usize = 256 << 10;
/// Events kept until they are drained.
const EVENTS_MAX: usize = 256;
/// Latest durations kept per policy, for the median.
const DURATIONS_MAX: usize = 512;
/// Policies counted; bindings come and go, and nothing may grow for ever.
const POLICIES_MAX: usize = 256;

/// One call of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Id of the decision.
    pub decision_id: String,
    /// Name of the binding, or of the default.
    pub name: String,
    /// Digest of the component.
    pub digest: String,
    /// Digest of its configuration.
    pub config_digest: String,
    /// Whether it answered, or why it did not decide.
    pub outcome: UseOutcome,
    /// Fuel that the call spent.
    pub fuel: u64,
    /// Wall time; for metrics, not part of what a replay must reproduce.
    pub duration: Duration,
    /// Lines the policy logged, cut where it went on for too long.
    pub log: Vec<String>,
    /// Lines that were cut.
    pub log_lines_dropped: u32,
    /// Set when the policy only watched.
    pub shadow: Option<ShadowDifference>,
    /// How its binding has it asked.
    pub mode: Mode,
    /// Its place in the chain.
    pub order: i32,
    /// Change that its answer made beside those before it; empty for none.
    pub changed: String,
}

/// How a shadow's answer differs from the one that decided.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShadowDifference {
    /// Claims, moves or pools with another answer.
    pub disagreements: u32,
    /// Price of the shadow's first choices less that of the enforced ones, USD an hour.
    pub usd_per_hour: f64,
}

/// Counters of one policy since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyStatistics {
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Name of the binding, or of the default.
    pub name: String,
    /// Digest of the component.
    pub digest: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that failed.
    pub failures: u64,
    /// Fuel that all calls spent.
    pub fuel: u64,
    /// Median of the latest calls.
    pub microseconds_p50: u64,
    /// Duration of the longest call, microseconds.
    pub microseconds_most: u64,
    /// Wall time of all calls.
    pub duration: Duration,
    /// Calls that failed, by reason.
    pub failures_by_reason: BTreeMap<String, u64>,
    /// Lines of its log that nobody keeps: a call may write so many.
    pub log_lines_dropped: u64,
    /// Claims, moves and pools on which it disagreed while it only watched.
    pub shadow_disagreements: u64,
    /// Price of its first choices less that of the enforced ones, USD an hour, over all rounds in which it only
    /// watched.
    pub shadow_usd_per_hour: f64,
}

/// Something the operator of the cluster should see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEvent {
    /// The binding; `None` when a built-in default failed.
    pub binding: Option<ObjectKey>,
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Reason of the event, in CamelCase.
    pub reason: String,
    /// Message of the event, one sentence.
    pub message: String,
}

#[derive(Debug, Default)]
struct PolicyCounters {
    calls: u64,
    failures: u64,
    fuel: u64,
    durations: VecDeque<Duration>,
    duration: Duration,
    longest: Duration,
    failures_by_reason: BTreeMap<String, u64>,
    log_lines_dropped: u64,
    shadow_disagreements: u64,
    shadow_usd_per_hour: f64,
}

/// Calls of a binding since the start, and those of them that failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallCounts {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
}

/// Where calls are noted.
#[derive(Debug, Default)]
pub(crate) struct PolicyRecords {
    calls: VecDeque<CallRecord>,
    /// Of the texts of the calls.
    calls_bytes: usize,
    events: VecDeque<PolicyEvent>,
    counters: BTreeMap<(PolicyKind, String, String), PolicyCounters>,
}

impl PolicyRecords {
    pub(crate) fn call(&mut self, record: CallRecord) {
        let key = (record.kind, record.name.clone(), record.digest.clone());
        if self.counters.contains_key(&key) || self.counters.len() < POLICIES_MAX {
            let counters = self.counters.entry(key).or_default();
            counters.calls += 1;
            if let Some(reason) = record.outcome.failure_reason() {
                counters.failures += 1;
                *counters
                    .failures_by_reason
                    .entry(reason.to_owned())
                    .or_default() += 1;
            }
            counters.duration = counters.duration.saturating_add(record.duration);
            counters.longest = counters.longest.max(record.duration);
            if let Some(shadow) = record.shadow {
                counters.shadow_disagreements += u64::from(shadow.disagreements);
                counters.shadow_usd_per_hour += shadow.usd_per_hour;
            }
            counters.log_lines_dropped += u64::from(record.log_lines_dropped);
            counters.fuel = counters.fuel.saturating_add(record.fuel);
            push_bounded(&mut counters.durations, record.duration, DURATIONS_MAX);
        }
        self.keep(record);
    }

    /// Keeps the latest calls, as many as there is room for.
    fn keep(&mut self, record: CallRecord) {
        self.calls_bytes += texts_bytes(&record);
        self.calls.push_back(record);
        while self.calls.len() > RECORDS_MAX || self.calls_bytes > RECORDS_BYTES_MAX {
            let Some(oldest) = self.calls.pop_front() else {
                return;
            };
            self.calls_bytes -= texts_bytes(&oldest);
        }
    }

    /// Notes what the latest call of a policy changed.
    pub(crate) fn note_change(&mut self, decision_id: &str, name: &str, changed: String) {
        let mut latest = self.calls.iter_mut().rev();
        if let Some(call) = latest.find(|it| it.decision_id == decision_id && it.name == name) {
            self.calls_bytes += changed.len();
            self.calls_bytes -= call.changed.len();
            call.changed = changed;
        }
    }

    /// The calls of a decision that are still kept, in their order.
    pub(crate) fn calls_of(&self, decision_id: &str) -> Vec<CallRecord> {
        let calls = self.calls.iter().filter(|it| it.decision_id == decision_id);
        calls.cloned().collect()
    }

    pub(crate) fn event(&mut self, event: PolicyEvent) {
        push_bounded(&mut self.events, event, EVENTS_MAX);
    }

    pub(crate) fn drain_calls(&mut self) -> Vec<CallRecord> {
        self.calls_bytes = 0;
        std::mem::take(&mut self.calls).into()
    }

    pub(crate) fn drain_events(&mut self) -> Vec<PolicyEvent> {
        self.events.drain(..).collect()
    }

    pub(crate) fn drain_events_of(&mut self, binding: &ObjectKey) -> Vec<PolicyEvent> {
        let all = std::mem::take(&mut self.events);
        let (theirs, others) = all
            .into_iter()
            .partition::<Vec<_>, _>(|event| event.binding.as_ref() == Some(binding));
        self.events = others.into();
        theirs
    }

    /// Calls and failures of a binding, whatever it was asked and with whatever bytes.
    pub(crate) fn counts_of(&self, name: &str) -> CallCounts {
        let counters = self.counters.iter();
        let theirs = counters.filter(|((_, known, _), _)| known == name);
        theirs.fold(CallCounts::default(), |sum, (_, it)| CallCounts {
            calls: sum.calls + it.calls,
            failures: sum.failures + it.failures,
        })
    }

    pub(crate) fn statistics(&self) -> Vec<PolicyStatistics> {
        self.counters
            .iter()
            .map(|((kind, name, digest), counters)| PolicyStatistics {
                kind: *kind,
                name: name.clone(),
                digest: digest.clone(),
                calls: counters.calls,
                failures: counters.failures,
                fuel: counters.fuel,
                microseconds_p50: median_micros(&counters.durations),
                microseconds_most: micros(counters.longest),
                duration: counters.duration,
                failures_by_reason: counters.failures_by_reason.clone(),
                log_lines_dropped: counters.log_lines_dropped,
                shadow_disagreements: counters.shadow_disagreements,
                shadow_usd_per_hour: counters.shadow_usd_per_hour,
            })
            .collect()
    }
}

fn texts_bytes(record: &CallRecord) -> usize {
    let CallRecord {
        kind: _,
        decision_id,
        name,
        digest,
        config_digest,
        outcome,
        fuel: _,
        duration: _,
        log,
        log_lines_dropped: _,
        shadow: _,
        mode: _,
        order: _,
        changed,
    } = record;
    let texts = [decision_id, name, digest, config_digest, changed];
    let texts = texts.into_iter().chain(log).map(String::len);
    texts.sum::<usize>() + outcome.as_str().len()
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, bound: usize) {
    if queue.len() == bound {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn median_micros(durations: &VecDeque<Duration>) -> u64 {
    let mut sorted: Vec<Duration> = durations.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().map_or(0, micros)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_nobody_drains_take_no_more_than_their_share() {
        let mut records = PolicyRecords::default();
        for number in 0..2000_u64 {
            records.call(CallRecord {
                kind: PolicyKind::Rank,
                decision_id: format!("rank-{number}"),
                name: "talks".to_owned(),
                digest: String::new(),
                config_digest: String::new(),
                outcome: UseOutcome::Ok,
                fuel: number,
                duration: Duration::ZERO,
                log: vec!["x".repeat(1000); 16],
                log_lines_dropped: 0,
                shadow: None,
                mode: Mode::Enforce,
                order: 0,
                changed: String::new(),
            });
        }
        assert_eq!(
            records.calls_bytes,
            records.calls.iter().map(texts_bytes).sum::<usize>()
        );
        let kept = records.drain_calls();
        assert!(kept.iter().map(texts_bytes).sum::<usize>() <= RECORDS_BYTES_MAX);
        // The latest are there, and all were counted.
        assert_eq!((kept.len(), kept.last().unwrap().fuel), (16, 1999));
        assert_eq!(records.statistics()[0].calls, 2000);
        assert!(records.drain_calls().is_empty());
    }
}
