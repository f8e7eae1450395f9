//! EC2's request buckets, for when throttling is switched on.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use jiff::Timestamp;

use super::AccountState;

/// Tokens left per bucket.
#[derive(Debug, Default)]
pub(super) struct TokenBuckets {
    levels: BTreeMap<&'static str, (f64, Timestamp)>,
    pub(super) refused: u64,
}

/// (bucket, size, refill per second): mutating calls share a small bucket, as EC2 documents.
fn bucket(operation: &str) -> (&'static str, f64, f64) {
    match operation {
        "CreateFleet"
        | "CreateFleet DryRun"
        | "RunInstances DryRun"
        | "TerminateInstances"
        | "CreateTags"
        | "CreateLaunchTemplate"
        | "DeleteLaunchTemplate" => ("mutating", 50.0, 5.0),
        _ => ("describe", 100.0, 20.0),
    }
}

impl AccountState {
    pub(super) fn throttle(&mut self, operation: &str) -> ApiResult<()> {
        if !self.config.faults.throttling {
            return Ok(());
        }
        let now = self.now();
        let (name, size, refill_per_second) = bucket(operation);
        let (level, since) = self.buckets.levels.entry(name).or_insert((size, now));
        *level = (*level + now.duration_since(*since).as_secs_f64() * refill_per_second).min(size);
        *since = now;
        if *level < 1.0 {
            self.buckets.refused += 1;
            return Err(ApiError::client(
                "RequestLimitExceeded",
                "Request limit exceeded.",
            ));
        }
        *level -= 1.0;
        Ok(())
    }
}
