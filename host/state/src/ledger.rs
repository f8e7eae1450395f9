//! The ledger: every decision as a compact record, kept in a bounded ring and hashed as it is written.
//!
//! Records hold virtual timestamps and never wall durations, so two runs with one seed give one hash.
//! Records are data for events, `why`, metrics and replay; wording lives in [`OutcomeId`]. Karpenter has
//! logs only.

mod gate;
mod outcome;
mod record;
mod subject;
mod why;

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

pub use outcome::OutcomeId;
pub use record::{
    ClaimOutcome, CommandRecord, CommandStep, DisruptionRound, LaunchStepRecord, NodeOutcome,
    PlacementRecord, PodGroupOutcome, PoolOutcome, ProvisioningRound, Record, TerminationRecord,
};
pub use subject::Subject;
pub use why::{GateResult, PolicyPart, ScanGate, Why, WhyStep};

/// Outcome lines kept by default: a few megabytes at most.
pub const LINES_MAX: usize = 60_000;

/// A record with its place in the sequence.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LedgerEntry {
    /// Counts from 1 and never repeats.
    pub sequence: u64,
    /// Scans that found exactly the same are folded into one entry; how many there were.
    pub times: u32,
    /// When the latest of them was.
    pub last_at: jiff::Timestamp,
    /// The record, as first written.
    pub record: Record,
}

/// A bounded ring of records and the running hash of all that were ever written.
#[derive(Debug, Clone)]
pub struct Ledger {
    entries: VecDeque<LedgerEntry>,
    lines: usize,
    lines_max: usize,
    sequence: u64,
    hasher: Sha256,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::with_lines_max(LINES_MAX)
    }
}

impl Ledger {
    /// A ledger that forgets its oldest records once it holds more outcome lines than given.
    pub(crate) fn with_lines_max(lines_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            lines: 0,
            lines_max,
            sequence: 0,
            hasher: Sha256::new(),
        }
    }

    /// Writes a record and returns its sequence number.
    pub fn push(&mut self, record: Record) -> u64 {
        self.sequence += 1;
        // A record always serialises: it holds strings, numbers and lists only. Should that ever change,
        // the sequence number alone still enters the hash.
        let canonical = serde_json::to_vec(&record).unwrap_or_default();
        self.hasher.update(self.sequence.to_be_bytes());
        self.hasher.update((canonical.len() as u64).to_be_bytes());
        self.hasher.update(&canonical);
        if !self.fold(&record) {
            self.lines += record.lines();
            self.entries.push_back(LedgerEntry {
                sequence: self.sequence,
                times: 1,
                last_at: record.at(),
                record,
            });
        }
        while self.lines > self.lines_max && self.entries.len() > 1 {
            if let Some(oldest) = self.entries.pop_front() {
                self.lines -= oldest.record.lines();
            }
        }
        self.sequence
    }

    /// An idle cluster scans every few seconds and finds the same each time; such scans share one entry.
    fn fold(&mut self, record: &Record) -> bool {
        let Some(last) = self.entries.back_mut() else {
            return false;
        };
        let (Record::DisruptionRound(before), Record::DisruptionRound(after)) =
            (&last.record, record)
        else {
            return false;
        };
        if !before.same_findings(after) {
            return false;
        }
        last.times = last.times.saturating_add(1);
        last.last_at = after.at;
        true
    }

    /// SHA-256 over everything written so far, in hex.
    pub fn hash(&self) -> String {
        let digest = self.hasher.clone().finalize();
        digest
            .iter()
            .fold(String::with_capacity(64), |mut hex, byte| {
                for nibble in [byte >> 4, byte & 0xf] {
                    hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
                }
                hex
            })
    }

    /// Everything kept, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LedgerEntry> {
        self.entries.iter()
    }

    /// Entries that say something about a subject, oldest first.
    pub fn about<'a>(
        &'a self,
        subject: &'a Subject,
    ) -> impl DoubleEndedIterator<Item = &'a LedgerEntry> {
        self.entries
            .iter()
            .filter(move |entry| entry.record.mentions(subject))
    }
}

#[cfg(test)]
mod tests;
