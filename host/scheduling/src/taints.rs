//! Taints and tolerations.
//!
//! Answers to Karpenter's `pkg/scheduling/taints.go` and Kubernetes' comparison operators on taint values.

use apis::labels;
use k8s_openapi::api::core::v1::Taint;

use crate::pod::Toleration;

/// The first taint that is not tolerated. `PreferNoSchedule` counts like the others; the solver relaxes it.
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .find(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
}

/// Whether the toleration covers the taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    let value = taint.value.as_deref().unwrap_or("");
    match toleration.operator.as_str() {
        "Exists" => true,
        _ if toleration.key.is_empty() => false,
        "" | "Equal" => toleration.value == value,
        "Lt" => compare(value, &toleration.value).is_some_and(std::cmp::Ordering::is_lt),
        "Gt" => compare(value, &toleration.value).is_some_and(std::cmp::Ordering::is_gt),
        _ => false,
    }
}

/// Whether the taint only asks for preference.
pub fn is_preference(taint: &Taint) -> bool {
    taint.effect == labels::PREFER_NO_SCHEDULE
}

fn compare(taint: &str, toleration: &str) -> Option<std::cmp::Ordering> {
    Some(
        taint
            .parse::<i64>()
            .ok()?
            .cmp(&toleration.parse::<i64>().ok()?),
    )
}
