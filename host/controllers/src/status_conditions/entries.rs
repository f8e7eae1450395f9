//! Journal entries about conditions: an Event and a count when one changes, how long an object took to go.
//!
//! Answers to `status/controller.go` of awslabs/operatorpkg.

use jiff::Timestamp;

use super::seen::{ConditionSeen, StatusKind, StatusSeen};
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::metrics::Metrics;
use crate::shell::metrics::conditions::ConditionLabels;

/// Change of an object's conditions, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusEntry {
    /// A condition has another status, or is seen for the first time.
    Transition {
        kind: String,
        was: Option<ConditionSeen>,
        is: ConditionSeen,
    },
    /// A finalizer was taken away.
    Finalized { finalizer: String },
    /// The object is gone, so long after it was deleted.
    Gone { millis: i128 },
}

/// Entries that tell of an object after what was seen of it before.
pub(super) fn of_change(
    seen: &StatusSeen,
    before: Option<&StatusSeen>,
) -> Vec<(StatusSeen, StatusEntry)> {
    let mut entries = Vec::new();
    for (kind, is) in &seen.conditions {
        let was = before.and_then(|it| it.conditions.get(kind));
        if was.is_none_or(|was| was.status != is.status) {
            entries.push(StatusEntry::Transition {
                kind: kind.clone(),
                was: was.cloned(),
                is: is.clone(),
            });
        }
    }
    let finalizers = before.into_iter().flat_map(|it| &it.finalizers);
    let removed = finalizers.filter(|it| !seen.finalizers.contains(it));
    entries.extend(removed.map(|it| finalized(it)));
    about(seen, entries)
}

/// Entries that tell of its end.
pub(super) fn of_end(seen: &StatusSeen, now: Timestamp) -> Vec<(StatusSeen, StatusEntry)> {
    let mut entries = Vec::new();
    if let Some(deleted_at) = seen.deleted_at {
        let millis = now.duration_since(deleted_at).as_millis().max(0);
        entries.push(StatusEntry::Gone { millis });
    }
    entries.extend(seen.finalizers.iter().map(|it| finalized(it)));
    about(seen, entries)
}

fn finalized(finalizer: &str) -> StatusEntry {
    StatusEntry::Finalized {
        finalizer: finalizer.to_owned(),
    }
}

fn about(seen: &StatusSeen, entries: Vec<StatusEntry>) -> Vec<(StatusSeen, StatusEntry)> {
    let entries = entries.into_iter();
    entries.map(|entry| (seen.clone(), entry)).collect()
}

impl JournalEntry for StatusEntry {
    type Subject = StatusSeen;

    fn events(&self, seen: &StatusSeen) -> Vec<KubernetesEvent> {
        let (reason, message) = match self {
            Self::Transition {
                kind,
                was: Some(was),
                is,
            } => (kind.clone(), transition(kind, was, is)),
            Self::Finalized { finalizer } => {
                ("Finalized".to_owned(), format!("Finalized {finalizer}"))
            }
            Self::Transition { was: None, .. } | Self::Gone { .. } => return Vec::new(),
        };
        let regarding = seen.regarding.clone();
        let notice = KubernetesEvent::new(regarding, EventType::Normal, reason, message);
        vec![notice.at_most_every(std::time::Duration::ZERO)]
    }

    fn measure(&self, seen: &StatusSeen, metrics: &Metrics) {
        let names = seen.kind.extra_labels().iter().map(|it| it.0);
        let extra: ConditionLabels = names.zip(seen.extra.iter().cloned()).collect();
        let (group, kind) = seen.kind.name();
        let deprecated: ConditionLabels =
            vec![("group", group.to_owned()), ("kind", kind.to_owned())];
        let conditions = &metrics.conditions;
        let twins = seen.kind.has_deprecated().then_some(&conditions.deprecated);
        let own = match seen.kind {
            StatusKind::CapacityBuffer => &conditions.capacity_buffer,
            StatusKind::NodeClass => &conditions.node_class,
            StatusKind::Node => &conditions.node,
            StatusKind::NodeClaim => &conditions.node_claim,
            StatusKind::NodePool => &conditions.node_pool,
        };
        let all = std::iter::once((own, &extra));
        for (families, more) in all.chain(twins.map(|it| (it, &deprecated))) {
            match self {
                Self::Transition { kind, was, is } => {
                    let of = |seen: &ConditionSeen| -> ConditionLabels {
                        vec![("type", kind.clone()), ("status", seen.status.clone())]
                    };
                    let mut labels = of(is);
                    labels.push(("reason", is.reason.clone()));
                    labels.extend(more.iter().cloned());
                    families.transitions.get_or_create(&labels).inc();
                    if let Some((was, seconds)) = was.as_ref().and_then(|it| lasted(it, is)) {
                        let mut labels = of(was);
                        labels.push(("to_status", is.status.clone()));
                        labels.extend(more.iter().cloned());
                        let histogram = families.transition_seconds.get_or_create(&labels);
                        histogram.observe(seconds);
                    }
                }
                Self::Gone { millis } => {
                    let histogram = families.termination_seconds.get_or_create(more);
                    histogram.observe(seconds_of(*millis));
                }
                Self::Finalized { .. } => {}
            }
        }
    }
}

fn transition(kind: &str, was: &ConditionSeen, is: &ConditionSeen) -> String {
    let (from, to, reason) = (&was.status, &is.status, &is.reason);
    let message = match is.message.as_str() {
        "" => String::new(),
        message => format!(", Message: {message}"),
    };
    format!(
        "Status condition transitioned, Type: {kind}, Status: {from} -> {to}, Reason: {reason}{message}"
    )
}

/// The condition before, and for how long it stood so.
fn lasted<'a>(was: &'a ConditionSeen, is: &ConditionSeen) -> Option<(&'a ConditionSeen, f64)> {
    let seconds = is.since?.duration_since(was.since?).as_secs_f64();
    Some((was, seconds.max(0.0)))
}

#[expect(clippy::cast_precision_loss, reason = "no object takes that long")]
fn seconds_of(millis: i128) -> f64 {
    millis as f64 / 1000.0
}
