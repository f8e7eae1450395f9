//! Facts that one policy is told beside the tables of a round: civil time as its binding wants it, its memory, its own
//! table of interruptions, and which of the costly tables it asked for.
//!
//! No clock is read: the moment is that of the round.

mod round;

use std::borrow::Cow;
use std::collections::BTreeSet;

use hooks::disruption::Context;

use crate::needs::{Need, PolicyNeeds};

/// Facts of a call beside its tables.
pub(crate) struct CallContext<'a> {
    pub(crate) context: Cow<'a, Context>,
    pub(crate) memory: &'a [u8],
    pub(crate) needs: &'a PolicyNeeds,
    /// Pod labels that the binding asks for.
    pub(crate) workload_labels: &'a BTreeSet<String>,
    /// The dictionary of the round.
    pub(crate) symbols: &'a [String],
    /// The column `interruption-rate`, where the binding has a table of its own.
    pub(crate) rates: Option<Vec<f64>>,
}

impl CallContext<'_> {
    pub(crate) fn needs(&self, need: Need) -> bool {
        self.needs.has(need)
    }
}

/// A moment of a round; nothing beyond the years that calendars have.
pub(crate) fn moment(now_seconds: u64) -> Option<jiff::Timestamp> {
    let seconds = i64::try_from(now_seconds).ok()?;
    jiff::Timestamp::from_second(seconds).ok()
}
