//! Status of a binding for people: the annotation `mortise.dev/status`, and the events that tell of a change.
//!
//! Its fields are documented in `policies/README.md`. Counters alone are written now and then only, so that a policy
//! that is asked every ten seconds does not write as often.

use std::time::Duration;

use apis::conditions;
use hooks::binding::{AppliesTo, BindingState, BindingStatus, InCharge};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shell::journal::recorder::EventType;

/// Counters are shown anew after this long.
const COUNTED_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// NodePools named in a sentence; of the others the number is told.
const NAMES_IN_SENTENCE: usize = 5;
/// NodePools named in the annotation.
const NAMES_MAX: usize = 50;

/// Value of the annotation `mortise.dev/status`.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnnotation {
    pub(super) state: BindingState,
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    pub(super) message: String,
    pub(super) since: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    applies_to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_charge: Option<InCharge>,
    #[serde(default)]
    calls: u64,
    #[serde(default)]
    failures: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<Timestamp>,
}

impl StatusAnnotation {
    /// How long its counters stay as they are.
    fn counts_left(&self, now: Timestamp) -> Option<SignedDuration> {
        let left = COUNTED_EVERY - now.duration_since(self.counted?);
        left.is_positive().then_some(left)
    }
}

/// When to look whether there are new counters to show: calls wake nobody.
pub(super) fn until_counted(shown: Option<&StatusAnnotation>, now: Timestamp) -> Duration {
    let left = shown.and_then(|it| it.counts_left(now));
    left.unwrap_or(COUNTED_EVERY).unsigned_abs()
}

/// Annotation to write, and event to tell once it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatusWrite {
    pub(super) annotation: StatusAnnotation,
    pub(super) event: Option<(EventType, &'static str)>,
    /// Fault that keeps the binding from doing what was meant.
    pub(super) warning: Option<String>,
}

/// The annotation and the events that tell what became of the binding; nothing when that is told already.
pub(super) fn decide(
    status: BindingStatus,
    shown: Option<&StatusAnnotation>,
    now: Timestamp,
) -> Option<StatusWrite> {
    let event = match status.state {
        BindingState::Ready => (EventType::Normal, "PolicyActivated"),
        BindingState::Degraded => (EventType::Warning, "PolicyRejected"),
        BindingState::Quarantined => (EventType::Warning, "PolicyQuarantined"),
    };
    let mut annotation = annotation(status, now);
    let Some(shown) = shown else {
        return Some(StatusWrite {
            warning: warning(&annotation),
            annotation,
            event: Some(event),
        });
    };
    let is_told = shown.state == annotation.state
        && shown.reason == annotation.reason
        && shown.digest == annotation.digest
        && shown.message == annotation.message;
    if is_told {
        annotation.since = shown.since;
    }
    let is_placed = shown.in_charge == annotation.in_charge;
    let is_counted = (shown.calls, shown.failures) == (annotation.calls, annotation.failures)
        || shown.counts_left(now).is_some();
    if is_told && is_placed && is_counted {
        return None;
    }
    let told_warning = warning(shown);
    Some(StatusWrite {
        warning: warning(&annotation).filter(|it| Some(it) != told_warning.as_ref()),
        annotation,
        event: (!is_told).then_some(event),
    })
}

fn annotation(status: BindingStatus, now: Timestamp) -> StatusAnnotation {
    let BindingStatus {
        key: _,
        state,
        digest,
        reason,
        message,
        mut in_charge,
        calls,
        failures,
    } = status;
    let now = conditions::whole_seconds(now);
    let applies_to = in_charge
        .as_ref()
        .map_or_else(String::new, |it| applies_to(&it.applies_to));
    if let Some(in_charge) = &mut in_charge {
        in_charge.applies_to.names.truncate(NAMES_MAX);
    }
    StatusAnnotation {
        state,
        reason,
        digest,
        message,
        since: now,
        applies_to,
        in_charge,
        calls,
        failures,
        counted: Some(now),
    }
}

fn applies_to(pools: &AppliesTo) -> String {
    let (names, total) = (&pools.names, pools.total);
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
    let pools = &annotation.in_charge.as_ref()?.applies_to;
    let applies_to = &annotation.applies_to;
    if !pools.unmatched.is_empty() {
        return Some(format!(
            "no NodePool matches {}; the policy applies to {applies_to} NodePools",
            pools.unmatched.join(", ")
        ));
    }
    let is_idle = pools.names.is_empty() && pools.total > 0;
    is_idle.then(|| {
        format!(
            "the policy applies to {applies_to} NodePools; see mortise.dev/nodepools, \
             mortise.dev/nodepool-selector and the share of a canary in mortise.dev/mode"
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use apis::ObjectKey;
    use hooks::binding::{Authority, Mode, OnFailure};

    use super::*;

    pub(in crate::policy_binding) fn refused() -> BindingStatus {
        let key = ObjectKey::new("mortise", "it");
        BindingStatus::refused(key, "Why", "because".to_owned())
    }

    fn status(state: BindingState) -> BindingStatus {
        BindingStatus {
            state,
            digest: Some("sha256:1".to_owned()),
            ..refused()
        }
    }

    fn in_charge(pools: &[&str], unmatched: &[&str]) -> InCharge {
        let owned = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        InCharge {
            mode: Mode::Canary { percent: 10 },
            order: 0,
            on_failure: OnFailure::Default,
            authority: Authority::Lower,
            applies_to: AppliesTo {
                names: owned(pools),
                total: 7,
                unmatched: owned(unmatched),
            },
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
            let first = decide(status(state), None, now).unwrap();
            assert_eq!(first.event, Some((event_type, reason)));
            let again = decide(status(state), Some(&first.annotation), now);
            assert_eq!(again, None);
        }
    }

    #[test]
    fn counters_alone_are_written_now_and_then() {
        let start = Timestamp::UNIX_EPOCH;
        let shown = decide(status(BindingState::Ready), None, start).unwrap();
        let shown = shown.annotation;
        let after = |minutes: i64| {
            let mut status = status(BindingState::Ready);
            status.calls = 9;
            let now = start + SignedDuration::from_mins(minutes);
            decide(status, Some(&shown), now)
        };
        assert_eq!(after(4), None);
        let written = after(5).unwrap();
        assert_eq!((written.event, written.warning), (None, None));
        let written = written.annotation;
        assert_eq!((written.calls, written.since), (9, start));
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
            let placed = || BindingStatus {
                in_charge: Some(in_charge(pools, unmatched)),
                ..status(BindingState::Ready)
            };
            let now = Timestamp::UNIX_EPOCH;
            let before = decide(status(BindingState::Ready), None, now).unwrap();
            let decided = decide(placed(), Some(&before.annotation), now).unwrap();
            assert_eq!(decided.event, None);
            assert_eq!(decided.warning.is_some(), warns, "{decided:?}");
            let shown = decided.annotation;
            assert_eq!(shown.applies_to, sentence);
            assert_eq!(decide(placed(), Some(&shown), now), None);
        }
    }

    #[test]
    fn counters_are_looked_at_when_they_may_be_written() {
        let start = Timestamp::UNIX_EPOCH;
        let shown = decide(status(BindingState::Ready), None, start).unwrap();
        for (seconds, left) in [(0, 300), (1, 299), (299, 1), (300, 300), (900, 300)] {
            let now = start + SignedDuration::from_secs(seconds);
            let wait = until_counted(Some(&shown.annotation), now);
            assert_eq!(wait, Duration::from_secs(left), "after {seconds} s");
        }
        assert_eq!(until_counted(None, start), Duration::from_mins(5));
    }

    #[test]
    fn times_are_shown_to_the_second() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_millis(1_999);
        let shown = decide(status(BindingState::Ready), None, now).unwrap();
        let shown = serde_json::to_value(shown.annotation).unwrap();
        let times = [&shown["since"], &shown["counted"]];
        assert_eq!(times, ["1970-01-01T00:00:01Z"; 2]);
    }

    #[test]
    fn how_a_policy_is_in_charge_is_shown_in_the_words_of_its_binding() {
        let shown = serde_json::to_string(&in_charge(&["web"], &[])).unwrap();
        let expected = r#"{"mode":"canary:10%","order":0,"onFailure":"default","authority":"lower","nodePools":["web"],"nodePoolsTotal":7}"#;
        assert_eq!(shown, expected);
        let read: InCharge = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, in_charge(&["web"], &[]));
    }
}
