//! The events of voluntary disruption.
//!
//! Words alone: which are told, the entries say. Answers to `pkg/controllers/disruption/events/events.go`.

use std::time::Duration;

use apis::{NodeClaim, labels};
use disruption::candidate::Blocked;
use hooks::disruption::BalancedScore;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use scheduling::pod::{DoNotDisrupt, Pod};
use state::Snapshot;
use state::ledger::NodeOutcome;

use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::journal::references;

/// Time after which a fact that stays as it is is told again.
const REPEAT: Duration = Duration::from_mins(15);

/// On the node, the claim, or both. Another cause is news however lately the last one was told.
pub(super) fn blocked(snapshot: &Snapshot, blocked: &Blocked, why: &str) -> Vec<KubernetesEvent> {
    let node = blocked.node.as_deref();
    let node = node.map(|it| references::node(snapshot, it));
    let claim = blocked.claim.as_deref();
    let claim = claim.map(|it| references::node_claim(snapshot, it));
    let regarding = node.into_iter().chain(claim);
    regarding
        .map(|regarding| {
            let about = blocked.obstacle.about.as_deref();
            KubernetesEvent::new(regarding, EventType::Normal, "DisruptionBlocked", why)
                .distinct_by(blocked.obstacle.outcome.name())
                .distinct_by(about.unwrap_or_default())
        })
        .collect()
}

/// Too much of a pool, or of a cluster, is sick for anything of it to be repaired.
pub(crate) fn repair_blocked(
    snapshot: &Snapshot,
    node: &str,
    claim: &str,
    pool: Option<&str>,
    why: &str,
) -> Vec<KubernetesEvent> {
    let pool = pool.map(|it| references::node_pool(snapshot, it));
    let regarding = references::node_and_claim(snapshot, node, claim);
    let regarding = regarding.into_iter().chain(pool);
    regarding
        .map(|regarding| {
            KubernetesEvent::new(regarding, EventType::Warning, "NodeRepairBlocked", why)
                .at_most_every(REPEAT)
        })
        .collect()
}

pub(super) fn pool_blocked(snapshot: &Snapshot, pool: &str, reason: &str) -> KubernetesEvent {
    let message =
        format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
    let regarding = references::node_pool(snapshot, pool);
    KubernetesEvent::new(regarding, EventType::Normal, "DisruptionBlocked", message)
        .distinct_by(reason)
        .at_most_every(Duration::from_mins(1))
}

/// Prices in the text change all the time, so that only the outcome makes it another event.
pub(super) fn unconsolidatable(
    regarding: [ObjectReference; 2],
    outcome: &NodeOutcome,
) -> [KubernetesEvent; 2] {
    let why = match outcome.reason.as_str() {
        "" => outcome.outcome.meaning().to_owned(),
        reason => format!("{} ({reason})", outcome.outcome.meaning()),
    };
    regarding.map(|regarding| {
        let why = why.clone();
        KubernetesEvent::new(regarding, EventType::Normal, "Unconsolidatable", why)
            .distinct_by(outcome.outcome.name())
            .at_most_every(REPEAT)
    })
}

/// A move that pays for a Balanced pool.
pub(super) fn approved(
    regarding: Vec<ObjectReference>,
    found: &BalancedScore,
) -> Vec<KubernetesEvent> {
    let message = format!(
        "score {:.2} >= threshold {:.2} (k={}, savings {:.1}%, disruption {:.1}%)",
        found.score,
        BalancedScore::THRESHOLD,
        BalancedScore::K,
        found.savings_share * 100.0,
        found.disruption_share * 100.0,
    );
    let notice = |regarding| {
        let reason = "ConsolidationApproved";
        KubernetesEvent::new(regarding, EventType::Normal, reason, message.clone())
    };
    regarding.into_iter().map(notice).collect()
}

/// What do-not-disrupt comes to for a pod that carries it with a time, or with something that cannot be read. That it
/// is over is told for a quarter of an hour: a pod may live on for weeks.
pub(super) fn protection(pod: &Pod, now: Timestamp) -> Option<KubernetesEvent> {
    let annotation = labels::DO_NOT_DISRUPT_ANNOTATION;
    let tell = |event_type, reason, message: String| {
        let regarding = references::pod(&pod.key, &pod.uid);
        let notice = KubernetesEvent::new(regarding, event_type, reason, message.clone());
        Some(notice.distinct_by(&message).at_most_every(REPEAT))
    };
    match pod.shape.do_not_disrupt {
        DoNotDisrupt::Unset | DoNotDisrupt::Always => None,
        DoNotDisrupt::Invalid => {
            let value = pod.shape.annotations.get(annotation);
            let value = value.map_or("", String::as_str);
            let message = format!(
                "Invalid {annotation} annotation, ignoring it: {value:?} is neither \"true\" nor a positive \
                 duration such as \"30m\""
            );
            tell(EventType::Warning, "InvalidDoNotDisruptAnnotation", message)
        }
        DoNotDisrupt::For(window) => {
            let end = pod
                .started_at?
                .checked_add(window.to_signed_duration())
                .ok()?;
            let over_for = now.duration_since(end);
            if over_for.is_negative() {
                let end = NodeClaim::deadline_text(end);
                let message = format!("The {annotation} grace period will elapse at {end}");
                return tell(EventType::Normal, "DoNotDisruptUntil", message);
            }
            if over_for.unsigned_abs() >= REPEAT {
                return None;
            }
            let message =
                format!("The {annotation} grace period has elapsed, the pod may be disrupted now");
            tell(EventType::Normal, "DoNotDisruptGracePeriodElapsed", message)
        }
    }
}

pub(super) fn candidate(regarding: [ObjectReference; 2], command: &str) -> [KubernetesEvent; 2] {
    regarding.map(|regarding| {
        KubernetesEvent::new(
            regarding,
            EventType::Normal,
            "ConsolidationCandidate",
            command,
        )
        .distinct_by(command)
    })
}

pub(super) fn rejected(
    regarding: [ObjectReference; 2],
    command: &str,
    class: &str,
) -> [KubernetesEvent; 2] {
    let message = format!("{command} was rejected: {class}");
    regarding.map(|regarding| {
        KubernetesEvent::new(
            regarding,
            EventType::Normal,
            "ConsolidationRejected",
            message.clone(),
        )
        .distinct_by(&message)
    })
}

pub(super) fn terminating(regarding: [ObjectReference; 2], reason: &str) -> [KubernetesEvent; 2] {
    regarding.map(|regarding| {
        let kind = regarding.kind.as_deref().unwrap_or_default();
        let message = format!("Disrupting {kind}: {reason}");
        KubernetesEvent::new(
            regarding,
            EventType::Normal,
            "DisruptionTerminating",
            message,
        )
        .distinct_by(reason)
    })
}

pub(super) fn launching(claim: &NodeClaim, reason: &str) -> KubernetesEvent {
    let message = format!("Launching NodeClaim: {reason}");
    KubernetesEvent::about(claim, EventType::Normal, "DisruptionLaunching", message)
        .distinct_by(reason)
}
