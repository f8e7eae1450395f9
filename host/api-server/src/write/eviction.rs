//! `pods/eviction`: deletes a pod if every disruption budget that covers it agrees.
//!
//! Answers to Kubernetes' `registry/core/pod/storage/eviction.go`, its codes and its wording. Never removes a pod
//! itself: what is granted is a deletion like any other.

use serde_json::{Value, json};

use crate::conditions::is_true;
use crate::object_key::NamespacedName;
use crate::resource::Resource;
use crate::selectors::{ParsedLabelSelector, Selection};
use crate::status::StatusError;
use crate::store::Store;
use crate::timestamp::time_text;
use crate::write::options::DeleteOptions;
use crate::write::options::{ObjectPart, WriteOptions};

/// Evicts the pod.
pub(crate) fn evict(
    store: &mut Store,
    key: &NamespacedName,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    let pod = store
        .get_to_write(&Resource::PODS, key)
        .ok_or_else(|| StatusError::not_found(&Resource::PODS, &key.name))?;
    if !is_beyond_budgets(&pod) {
        spend_budget(store, key, &pod, options.dry_run)?;
    }
    let kind = store.kind(&Resource::PODS)?;
    store.delete(&kind, key, options).map(|_| ())
}

/// Pods that do no work need no budget.
fn is_beyond_budgets(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Pending")
    ) || pod["metadata"]["deletionTimestamp"].is_string()
}

fn spend_budget(
    store: &mut Store,
    key: &NamespacedName,
    pod: &Value,
    is_dry_run: bool,
) -> Result<(), StatusError> {
    let budgets = store.list(
        &Resource::POD_DISRUPTION_BUDGETS,
        &Selection::namespace(key.namespace.as_str()),
    );
    let covering: Vec<_> = budgets
        .into_iter()
        .filter(|budget| {
            let selector = &budget["spec"]["selector"];
            !selector.is_null() && ParsedLabelSelector::from_object(selector).matches(pod)
        })
        .collect();
    let budget = match covering.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(StatusError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                 does not support.",
            ));
        }
    };
    let status = &budget["status"];
    if !is_true(pod, "Ready") {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"].as_str() == Some("AlwaysAllow");
        let current = status["currentHealthy"].as_i64().unwrap_or(0);
        let desired = status["desiredHealthy"].as_i64().unwrap_or(0);
        if always || (current >= desired && desired > 0) {
            return Ok(());
        }
    }
    check_budget(budget)?;
    if is_dry_run {
        return Ok(());
    }
    let mut changed = (**budget).clone();
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    changed["status"]["disruptionsAllowed"] = (allowed - 1).into();
    changed["status"]["disruptedPods"][&key.name] = time_text(store.now()).into();
    let budget_key = NamespacedName::of(&changed);
    let kind = store.kind(&Resource::POD_DISRUPTION_BUDGETS)?;
    let options = WriteOptions::of(ObjectPart::Status);
    store.update(&kind, &budget_key, changed, &options)?;
    Ok(())
}

fn check_budget(budget: &Value) -> Result<(), StatusError> {
    const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let status = &budget["status"];
    let observed = status["observedGeneration"].as_i64().unwrap_or(0);
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or(0);
    if observed < generation {
        let message =
            format!("The disruption budget {name} is still being processed by the server.");
        let cause = json!({"reason": "DisruptionBudget", "message": message});
        let mut refusal = StatusError::too_many_requests(REFUSAL, &[cause]);
        if let Some(details) = refusal.details.as_mut() {
            details["retryAfterSeconds"] = 10.into();
        }
        return Err(refusal);
    }
    if status["disruptionsAllowed"].as_i64().unwrap_or(0) <= 0 {
        let message = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status["desiredHealthy"].as_i64().unwrap_or(0),
            status["currentHealthy"].as_i64().unwrap_or(0),
        );
        let cause = json!({"reason": "DisruptionBudget", "message": message});
        return Err(StatusError::too_many_requests(REFUSAL, &[cause]));
    }
    Ok(())
}
