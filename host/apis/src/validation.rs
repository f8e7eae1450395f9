//! Checks that the API server cannot make by schema alone: label syntax, restricted labels, taints that clash.
//!
//! Reports every fault with its field and value; what to do about them is the caller's business. Answers to
//! Karpenter's `pkg/apis/v1/nodepool_validation.go` and `nodeclaim_validation.go`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Taint;

use crate::nodeoverlay::PriceChange;
use crate::{
    Budget, NodeOverlay, NodePool, NodeSelectorRequirementWithMinValues, Operator, labels,
};

mod fault;
mod syntax;
#[cfg(test)]
mod tests;

use fault::FieldFaults;
pub use fault::{FieldFault, Invalid, message};
pub use syntax::{is_label_value, is_qualified_name};

/// Every fault of a NodePool.
pub fn node_pool(node_pool: &NodePool) -> Vec<Invalid> {
    let mut report = FieldFaults(Vec::new());
    let template = &node_pool.spec.template;
    for (key, value) in &template.metadata.labels {
        let field = "spec.template.metadata.labels";
        if key == labels::NODEPOOL {
            report.push(field, key, FieldFault::RestrictedLabel);
        }
        if !is_qualified_name(key) {
            report.push(field, key, FieldFault::NotQualifiedName);
        }
        if !is_label_value(value) {
            report.push(format!("{field}[{key}]"), value, FieldFault::NotLabelValue);
        }
        if let Some(fault) = restriction(key) {
            report.push(field, key, fault);
        }
    }
    taints(
        &template.spec.taints,
        &template.spec.startup_taints,
        &mut report,
    );
    for (index, requirement) in template.spec.requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{index}]");
        if requirement.key == labels::NODEPOOL {
            report.push(
                format!("{field}.key"),
                &requirement.key,
                FieldFault::RestrictedLabel,
            );
        }
        check_requirement(&field, requirement, &mut report);
    }
    for (index, budget) in node_pool.spec.disruption.budgets.iter().enumerate() {
        check_budget(
            &format!("spec.disruption.budgets[{index}]"),
            budget,
            &mut report,
        );
    }
    report.0
}

/// Every fault of a NodeOverlay.
pub fn node_overlay(overlay: &NodeOverlay) -> Vec<Invalid> {
    let mut report = FieldFaults(Vec::new());
    for (index, requirement) in overlay.spec.requirements.iter().enumerate() {
        let field = format!("spec.requirements[{index}]");
        check_requirement(&field, &requirement.clone().into(), &mut report);
        if requirement.operator == Operator::NotIn && requirement.values.is_empty() {
            report.push(
                format!("{field}.values"),
                "",
                FieldFault::NoValues {
                    operator: Operator::NotIn,
                },
            );
        }
    }
    let (price, adjustment) = (&overlay.spec.price, &overlay.spec.price_adjustment);
    let prices = [
        (
            "spec.price",
            price,
            price.as_deref().map(PriceChange::of_price),
        ),
        (
            "spec.priceAdjustment",
            adjustment,
            adjustment.as_deref().map(PriceChange::of_adjustment),
        ),
    ];
    for (field, text, change) in prices {
        if let (Some(text), Some(Err(error))) = (text, change) {
            report.push(field, text, error.into());
        }
    }
    for resource in overlay.spec.capacity.keys() {
        if labels::WELL_KNOWN_RESOURCES.contains(&resource.as_str()) {
            report.push("spec.capacity", resource, FieldFault::WellKnownResource);
        }
    }
    report.0
}

/// Why a user may not set the label, if so.
pub fn restriction(key: &str) -> Option<FieldFault> {
    if !labels::is_restricted(key) {
        return None;
    }
    Some(match key.split_once('/') {
        Some((domain, _)) if key != labels::HOSTNAME => FieldFault::RestrictedDomain {
            domain: domain.to_owned(),
        },
        _ => FieldFault::RestrictedLabel,
    })
}

fn check_requirement(
    field: &str,
    requirement: &NodeSelectorRequirementWithMinValues,
    report: &mut FieldFaults,
) {
    let NodeSelectorRequirementWithMinValues {
        key,
        operator,
        values,
        min_values,
    } = requirement;
    let key = labels::normalize(key);
    if let Some(fault) = restriction(key) {
        report.push(format!("{field}.key"), key, fault);
    }
    if !is_qualified_name(key) {
        report.push(format!("{field}.key"), key, FieldFault::NotQualifiedName);
    }
    for value in values.iter().filter(|value| !is_label_value(value)) {
        report.push(format!("{field}.values"), value, FieldFault::NotLabelValue);
    }
    let fault = match operator {
        Operator::In if values.is_empty() => Some(FieldFault::NoValues {
            operator: *operator,
        }),
        Operator::In => min_values
            .filter(|least| i64::try_from(values.len()).is_ok_and(|count| count < *least))
            .map(|min_values| FieldFault::FewerThanMinValues {
                min_values,
                values: values.len(),
            })
            .or_else(|| known_values(key, values, *min_values)),
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => match values.as_slice() {
            [bound] if bound.parse::<i64>().is_ok_and(|bound| bound >= 0) => None,
            _ => Some(FieldFault::NotOneInteger {
                operator: *operator,
            }),
        },
        Operator::NotIn | Operator::Exists | Operator::DoesNotExist => None,
    };
    if let Some(fault) = fault {
        report.push(
            format!("{field}.values"),
            &format!("{key} {operator} [{}]", values.join(" ")),
            fault,
        );
    }
}

/// Keys whose values are a closed set. Unknown values beside known ones are tolerated, for a newer cloud may know them.
fn known_values(key: &str, values: &[String], min_values: Option<i64>) -> Option<FieldFault> {
    let expected: &[&'static str] = match key {
        labels::CAPACITY_TYPE => &labels::CAPACITY_TYPES,
        labels::INSTANCE_TENANCY => &["dedicated", "default"],
        _ => return None,
    };
    let known = values
        .iter()
        .filter(|value| expected.contains(&value.as_str()))
        .count();
    if known == 0 {
        return Some(FieldFault::NoKnownValue {
            expected: expected.to_vec(),
        });
    }
    let least =
        min_values.filter(|least| i64::try_from(known).is_ok_and(|known| known < *least))?;
    Some(FieldFault::FewerThanMinValues {
        min_values: least,
        values: known,
    })
}

/// Taints of both lists end up on one node, so they may not clash across the lists either.
fn taints(taints: &[Taint], startup_taints: &[Taint], report: &mut FieldFaults) {
    let mut seen = BTreeSet::new();
    for (name, list) in [("taints", taints), ("startupTaints", startup_taints)] {
        for (index, taint) in list.iter().enumerate() {
            let field = format!("spec.template.spec.{name}[{index}]");
            if !is_qualified_name(&taint.key) {
                report.push(
                    format!("{field}.key"),
                    &taint.key,
                    FieldFault::NotQualifiedName,
                );
            }
            let value = taint.value.as_deref().unwrap_or("");
            if !value.is_empty() && !is_qualified_name(value) {
                report.push(
                    format!("{field}.value"),
                    value,
                    FieldFault::NotQualifiedName,
                );
            }
            if ![
                labels::NO_SCHEDULE,
                labels::PREFER_NO_SCHEDULE,
                labels::NO_EXECUTE,
            ]
            .contains(&taint.effect.as_str())
            {
                let fault = FieldFault::TaintEffect {
                    effect: taint.effect.clone(),
                };
                report.push(format!("{field}.effect"), &taint.effect, fault);
            }
            if !seen.insert((&taint.key, &taint.effect)) {
                report.push(
                    field,
                    &taint.key,
                    FieldFault::DuplicateTaint {
                        effect: taint.effect.clone(),
                    },
                );
            }
        }
    }
}

fn check_budget(field: &str, budget: &Budget, report: &mut FieldFaults) {
    if let Err(error) = budget.allowed_nodes() {
        report.push(format!("{field}.nodes"), &budget.nodes, error.into());
    }
    if budget.schedule.is_some() != budget.duration.is_some() {
        let schedule = budget.schedule.as_deref().unwrap_or("");
        let fault = FieldFault::ScheduleWithoutDuration;
        report.push(format!("{field}.schedule"), schedule, fault);
    }
}
