//! What is shown of a binding: the annotation `mortise.dev/status`, and the events that tell of a change.
//!
//! Its fields are documented in `policies/README.md`. Counters alone are written now and then only, so that a policy
//! that is asked every ten seconds does not write as often.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{BindingReport, BindingState, InCharge};
use crate::recorder::EventType;

/// Counters are shown anew after this long.
const COUNTED_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// NodePools named in a sentence; of the others the number is told.
const NAMES_IN_SENTENCE: usize = 5;
/// NodePools named in the annotation.
const NAMES_MAX: usize = 50;

/// The annotation.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnnotation {
    pub(super) state: BindingState,
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    pub(super) message: String,
    pub(super) since: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    applies_to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_charge: Option<InCharge>,
    #[serde(default)]
    calls: u64,
    #[serde(default)]
    failures: u64,
    #[serde(default)]
    counted: String,
}

/// What there is to write and to tell.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Decided {
    pub(super) annotation: Option<StatusAnnotation>,
    pub(super) event: Option<(EventType, &'static str)>,
    /// What keeps it from doing what was meant.
    pub(super) warning: Option<String>,
}

/// The annotation and the events that tell what became of the binding; nothing when that is told already.
pub(super) fn decide(
    report: BindingReport,
    shown: Option<&StatusAnnotation>,
    now: Timestamp,
) -> Decided {
    let event = match report.state {
        BindingState::Ready => (EventType::Normal, "PolicyActivated"),
        BindingState::Degraded => (EventType::Warning, "PolicyRejected"),
        BindingState::Quarantined => (EventType::Warning, "PolicyQuarantined"),
    };
    let mut annotation = annotation(report, now);
    let Some(shown) = shown else {
        return Decided {
            warning: warning(&annotation),
            annotation: Some(annotation),
            event: Some(event),
        };
    };
    let is_told = shown.state == annotation.state
        && shown.reason == annotation.reason
        && shown.digest == annotation.digest
        && shown.message == annotation.message;
    if is_told {
        annotation.since.clone_from(&shown.since);
    }
    let is_placed = shown.in_charge == annotation.in_charge;
    let is_counted = (shown.calls, shown.failures) == (annotation.calls, annotation.failures)
        || shown
            .counted
            .parse()
            .is_ok_and(|counted: Timestamp| now.duration_since(counted) < COUNTED_EVERY);
    if is_told && is_placed && is_counted {
        return Decided::default();
    }
    let told_warning = warning(shown);
    Decided {
        warning: warning(&annotation).filter(|it| Some(it) != told_warning.as_ref()),
        annotation: Some(annotation),
        event: (!is_told).then_some(event),
    }
}

fn annotation(report: BindingReport, now: Timestamp) -> StatusAnnotation {
    let BindingReport {
        state,
        digest,
        reason,
        message,
        mut in_charge,
        calls,
        failures,
    } = report;
    let now = now.strftime("%FT%TZ").to_string();
    let applies_to = in_charge.as_ref().map_or_else(String::new, applies_to);
    if let Some(in_charge) = &mut in_charge {
        in_charge.node_pools.truncate(NAMES_MAX);
    }
    StatusAnnotation {
        state,
        reason,
        digest,
        message,
        since: now.clone(),
        applies_to,
        in_charge,
        calls,
        failures,
        counted: now,
    }
}

fn applies_to(in_charge: &InCharge) -> String {
    let (names, total) = (&in_charge.node_pools, in_charge.node_pools_total);
    if names.is_empty() {
        return format!("none of {total}");
    }
    if names.len() == total {
        return format!("all of {total}");
    }
    let mut text = names
        .iter()
        .take(NAMES_IN_SENTENCE)
        .map(String::as_str)
        .collect::<Vec<&str>>()
        .join(", ");
    let more = names.len().saturating_sub(NAMES_IN_SENTENCE);
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    format!("{text} ({} of {total})", names.len())
}

/// A name that nobody bears is no reason to refuse, since its NodePool may be yet to come.
fn warning(annotation: &StatusAnnotation) -> Option<String> {
    let in_charge = annotation.in_charge.as_ref()?;
    let applies_to = &annotation.applies_to;
    if !in_charge.unmatched.is_empty() {
        return Some(format!(
            "no NodePool matches {}; the policy applies to {applies_to} NodePools",
            in_charge.unmatched.join(", ")
        ));
    }
    let is_idle = in_charge.node_pools.is_empty() && in_charge.node_pools_total > 0;
    is_idle.then(|| {
        format!(
            "the policy applies to {applies_to} NodePools; see mortise.dev/nodepools, \
             mortise.dev/nodepool-selector and the share of a canary in mortise.dev/mode"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: BindingState) -> BindingReport {
        BindingReport {
            state,
            digest: Some("sha256:1".to_owned()),
            reason: "Why".to_owned(),
            message: "because".to_owned(),
            in_charge: None,
            calls: 0,
            failures: 0,
        }
    }

    fn in_charge(pools: &[&str], unmatched: &[&str]) -> InCharge {
        let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        InCharge {
            mode: "enforce".to_owned(),
            order: 0,
            on_failure: "default".to_owned(),
            authority: "lower".to_owned(),
            node_pools: owned(pools),
            node_pools_total: 7,
            unmatched: owned(unmatched),
        }
    }

    #[test]
    fn each_state_has_its_event_and_is_told_once() {
        let cases = [
            (BindingState::Ready, EventType::Normal, "PolicyActivated"),
            (BindingState::Degraded, EventType::Warning, "PolicyRejected"),
            (
                BindingState::Quarantined,
                EventType::Warning,
                "PolicyQuarantined",
            ),
        ];
        for (state, event_type, reason) in cases {
            let now = Timestamp::UNIX_EPOCH;
            let first = decide(report(state), None, now);
            assert_eq!(first.event, Some((event_type, reason)));
            let again = decide(report(state), first.annotation.as_ref(), now);
            assert_eq!(again, Decided::default());
        }
    }

    #[test]
    fn counters_alone_are_written_now_and_then() {
        let start = Timestamp::UNIX_EPOCH;
        let shown = decide(report(BindingState::Ready), None, start).annotation;
        let after = |minutes: i64| {
            let mut report = report(BindingState::Ready);
            report.calls = 9;
            let now = start + SignedDuration::from_mins(minutes);
            decide(report, shown.as_ref(), now)
        };
        assert_eq!(after(4), Decided::default());
        let written = after(5);
        assert_eq!((written.event, written.warning), (None, None));
        let written = written.annotation.unwrap();
        assert_eq!(
            (written.calls, written.since.as_str()),
            (9, "1970-01-01T00:00:00Z")
        );
    }

    #[test]
    fn pools_are_told_in_a_sentence_and_those_that_are_missing_in_an_event() {
        for (pools, unmatched, sentence, warns) in [
            (&["web", "batch"][..], &[][..], "web, batch (2 of 7)", false),
            (
                &["a", "b", "c", "d", "e", "f"],
                &[],
                "a, b, c, d, e and 1 more (6 of 7)",
                false,
            ),
            (&["a", "b", "c", "d", "e", "f", "g"], &[], "all of 7", false),
            (&["web"], &["wbe"], "web (1 of 7)", true),
            (&[], &[], "none of 7", true),
        ] {
            let report = || BindingReport {
                in_charge: Some(in_charge(pools, unmatched)),
                ..report(BindingState::Ready)
            };
            let now = Timestamp::UNIX_EPOCH;
            let before = decide(super::tests::report(BindingState::Ready), None, now);
            let decided = decide(report(), before.annotation.as_ref(), now);
            assert_eq!(decided.event, None);
            assert_eq!(decided.warning.is_some(), warns, "{decided:?}");
            let shown = decided.annotation.unwrap();
            assert_eq!(shown.applies_to, sentence);
            assert_eq!(decide(report(), Some(&shown), now), Decided::default());
        }
    }
}
