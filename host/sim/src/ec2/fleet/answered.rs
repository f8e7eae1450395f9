//! Fleets that were answered, by client token: who asks again is told the same.
//!
//! Launches nothing. A token is known for a day, as at EC2, so that a world that runs for weeks does not keep them all.

use std::collections::{BTreeMap, VecDeque};

use aws_sdk_ec2::operation::create_fleet::CreateFleetOutput;
use jiff::{SignedDuration, Timestamp};

/// How long a client token is known.
const TOKEN_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// An answered fleet.
#[derive(Debug)]
pub(super) struct FleetRecord {
    /// Digest of the request: requests are large and there are many.
    pub(super) request: u64,
    pub(super) answer: CreateFleetOutput,
}

/// Answered fleets by client token.
#[derive(Debug, Default)]
pub(in crate::ec2) struct AnsweredFleets {
    records: BTreeMap<String, FleetRecord>,
    /// Tokens in the order of their answers.
    order: VecDeque<(Timestamp, String)>,
}

impl AnsweredFleets {
    /// What the token stands for, if it was used within a day.
    pub(super) fn get(&mut self, token: &str, now: Timestamp) -> Option<&FleetRecord> {
        let is_over = |(at, _): &(Timestamp, String)| now.duration_since(*at) >= TOKEN_KEPT;
        while self.order.front().is_some_and(is_over) {
            if let Some((_, token)) = self.order.pop_front() {
                self.records.remove(&token);
            }
        }
        self.records.get(token)
    }

    pub(super) fn insert(&mut self, token: String, record: FleetRecord, now: Timestamp) {
        self.order.push_back((now, token.clone()));
        self.records.insert(token, record);
    }
}
