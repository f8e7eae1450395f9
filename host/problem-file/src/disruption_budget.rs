//! The status of PodDisruptionBudgets from files, which no disruption controller has looked at.
//!
//! Answers to Kubernetes' `pkg/controller/disruption`.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use scheduling::pod::LabelSelector;
use state::snapshot::Snapshot;

/// Fills in how many disruptions the budget allows now, unless somebody said so already.
pub(super) fn judge(budget: &mut PodDisruptionBudget, snapshot: &Snapshot) {
    if budget.status.is_some() {
        return;
    }
    let Some(spec) = &budget.spec else { return };
    let Some(selector) = spec.selector.as_ref().map(LabelSelector::parse) else {
        return;
    };
    let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
    let (mut expected, mut healthy) = (0, 0);
    for pod in snapshot.pods() {
        if pod.key.namespace == namespace && selector.matches(&pod.shape.labels) {
            expected += 1;
            healthy += i32::from(pod.is_ready && !pod.is_terminating());
        }
    }
    let desired = match (&spec.min_available, &spec.max_unavailable) {
        (Some(least), _) => amount(least, expected),
        (None, Some(most)) => amount(most, expected).map(|most| expected.saturating_sub(most)),
        // Without either, one has to stay.
        (None, None) => Some(1),
    };
    let allowed = desired.map_or(0, |desired| healthy.saturating_sub(desired.max(0)).max(0));
    budget.status = Some(PodDisruptionBudgetStatus {
        current_healthy: healthy,
        desired_healthy: desired.unwrap_or(expected).max(0),
        disruptions_allowed: allowed,
        expected_pods: expected,
        ..PodDisruptionBudgetStatus::default()
    });
}

/// A number of pods; percentages are rounded up.
fn amount(value: &IntOrString, total: i32) -> Option<i32> {
    match value {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let scaled = i64::from(total).checked_mul(percent)?.checked_add(99)?;
            i32::try_from(scaled.div_euclid(100)).ok()
        }
    }
}
