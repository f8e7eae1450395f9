//! Journal entries about the reboot of a NodeClaim's node.
//!
//! Answers to `pkg/controllers/nodeclaim/reboot/events/events.go` and to `metrics.go` of that package.

use std::time::Duration;

use apis::NodeClaim;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use state::ledger::{OutcomeId, Record};
use tracing::info;

use crate::node_claim::counts::count_disrupted;
use crate::node_claim::launch_record::unranked_record;
use crate::node_claim::reboot::decision::Ending;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{ResultLabel, Series};

const REPEAT: Duration = Duration::from_mins(30);

/// What a reboot that failed comes to.
#[derive(Debug, Clone, Copy)]
pub(super) enum RebootFailure {
    /// Nobody knows what was meant: the node stays.
    Unclear,
    /// The node is replaced.
    Replaced(Ending),
}

impl RebootFailure {
    /// Value of the metric's label `result`.
    fn result(self) -> &'static str {
        match self {
            Self::Unclear => "invalid_request",
            Self::Replaced(Ending::Refused) => "provider_error",
            Self::Replaced(Ending::Lost) => "recovery_timeout",
        }
    }
}

/// A step of a reboot.
#[derive(Debug)]
pub(super) enum RebootEntry<'a> {
    /// The cloud was asked for it.
    Asked,
    /// The node has booted anew.
    Observed,
    /// The node takes pods again.
    Succeeded {
        /// Since the reboot was decided.
        took: SignedDuration,
        /// For so long it took no pods.
        away: SignedDuration,
    },
    /// The node did not reboot, or did not come back.
    Failed {
        failure: RebootFailure,
        why: &'a str,
        took: SignedDuration,
    },
}

impl JournalEntry for RebootEntry<'_> {
    type Subject = NodeClaim;

    fn log(&self, claim: &NodeClaim) {
        let name = claim.name_any();
        match self {
            Self::Asked => info!(NodeClaim = %name, "asked for a reboot"),
            Self::Succeeded { .. } => info!(NodeClaim = %name, "the node rebooted"),
            Self::Observed | Self::Failed { .. } => {}
        }
    }

    fn events(&self, claim: &NodeClaim) -> Vec<KubernetesEvent> {
        let notice = |kind, reason, message: &str| {
            KubernetesEvent::about(claim, kind, reason, message).at_most_every(REPEAT)
        };
        match self {
            Self::Observed => vec![notice(EventType::Normal, "RebootObserved", "Node rebooted")],
            Self::Failed { why, .. } => {
                vec![notice(EventType::Warning, "RebootFailed", why).distinct_by(why)]
            }
            Self::Asked | Self::Succeeded { .. } => Vec::new(),
        }
    }

    fn measure(&self, claim: &NodeClaim, metrics: &Metrics) {
        let (result, took) = match self {
            Self::Asked | Self::Observed => return,
            Self::Succeeded { took, away } => {
                let recovery = &metrics.reboot_recovery_seconds;
                let recovery = recovery.get_or_create(&Series(()));
                recovery.observe(away.as_secs_f64());
                ("succeeded", took)
            }
            Self::Failed {
                failure,
                took,
                why: _,
            } => {
                if let RebootFailure::Replaced(_) = failure {
                    count_disrupted(metrics, claim, "unhealthy", None);
                }
                (failure.result(), took)
            }
        };
        let series = Series(ResultLabel(result));
        metrics.reboots.get_or_create(&series).inc();
        let seconds = &metrics.reboot_seconds;
        seconds.get_or_create(&series).observe(took.as_secs_f64());
    }

    fn lines(&self, claim: &NodeClaim) -> Vec<String> {
        let name = claim.name_any();
        let line = match self {
            Self::Asked | Self::Observed => return Vec::new(),
            Self::Succeeded { .. } => format!("{name} rebooted in place"),
            Self::Failed { why, .. } => format!("reboot of {name} failed: {why}"),
        };
        vec![line]
    }

    fn record(&self, claim: &NodeClaim, at: Timestamp) -> Option<Record> {
        let (outcome, reason) = match self {
            Self::Asked | Self::Observed => return None,
            Self::Succeeded { .. } => (OutcomeId::ClaimRebooted, ""),
            Self::Failed { why, .. } => (OutcomeId::ClaimRebootFailed, *why),
        };
        Some(unranked_record(claim, at, outcome, reason))
    }
}
