//! What the API server cannot check by schema alone: label syntax, restricted labels, taints that clash.
//!
//! Reports every fault with its field and value; what to do about them is the caller's business. Answers to
//! Karpenter's `pkg/apis/v1/nodepool_validation.go` and `nodeclaim_validation.go`.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::Taint;

use crate::{
    Budget, NodeOverlay, NodePool, NodeSelectorRequirementWithMinValues, Operator, labels,
};

mod syntax;
#[cfg(test)]
mod tests;

pub use syntax::{is_label_value, is_qualified_name};

/// One fault of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the field, such as `spec.template.spec.taints[0].key`.
    pub field: String,
    /// Value of the field.
    pub value: String,
    /// What is wrong with it.
    pub fault: FieldFault,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.field, self.value, self.fault)
    }
}

/// What can be wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// Not a qualified name.
    #[error(
        "not a qualified name: want an optional DNS prefix and '/', then letters, digits, '-', '_' or '.'"
    )]
    NotQualifiedName,
    /// Not a label value.
    #[error(
        "not a label value: want at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"
    )]
    NotLabelValue,
    /// Label that users may not set.
    #[error("label domain {domain:?} is restricted; allowed are its well-known labels only")]
    RestrictedDomain {
        /// The domain.
        domain: String,
    },
    /// Label that users may not set.
    #[error("label is restricted")]
    RestrictedLabel,
    /// The same key and effect twice among a pool's taints.
    #[error("duplicate taint key and effect {effect}")]
    DuplicateTaint {
        /// The effect both have.
        effect: String,
    },
    /// Not a taint effect.
    #[error("unknown taint effect {effect:?}")]
    TaintEffect {
        /// The effect.
        effect: String,
    },
    /// `In` without values.
    #[error("operator {operator} must have a value defined")]
    NoValues {
        /// The operator.
        operator: Operator,
    },
    /// A bound that is not one whole number.
    #[error("operator {operator} must have a single positive integer value")]
    NotOneInteger {
        /// The operator.
        operator: Operator,
    },
    /// Fewer values than minValues asks for.
    #[error(
        "operator In with minValues {min_values} must have at least that many values, has {values}"
    )]
    FewerThanMinValues {
        /// What is asked for.
        min_values: i64,
        /// What there is.
        values: usize,
    },
    /// No value is one that any instance type has.
    #[error("no valid value, want one of {}", expected.join(", "))]
    NoKnownValue {
        /// Values there are.
        expected: Vec<&'static str>,
    },
    /// A budget that cannot be read.
    #[error("{0}")]
    Budget(String),
    /// A price that cannot be read.
    #[error("not a price or adjustment")]
    Price,
    /// A resource that overlays may not change.
    #[error("resource cannot be overlaid")]
    WellKnownResource,
}

/// All faults in one line, as a condition's message.
pub fn message(faults: &[Invalid]) -> String {
    faults
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Collects faults under a path.
struct FieldFaults(Vec<Invalid>);

impl FieldFaults {
    fn push(&mut self, field: impl Into<String>, value: &str, fault: FieldFault) {
        self.0.push(Invalid {
            field: field.into(),
            value: value.to_owned(),
            fault,
        });
    }
}

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
    let is_number = |text: &str| {
        let number = text.trim_start_matches(['+', '-']).trim_end_matches('%');
        number.bytes().any(|b| b.is_ascii_digit())
            && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    let prices = [
        ("spec.price", &overlay.spec.price),
        ("spec.priceAdjustment", &overlay.spec.price_adjustment),
    ];
    for (field, price) in prices {
        if let Some(price) = price.as_deref().filter(|price| !is_number(price)) {
            report.push(field, price, FieldFault::Price);
        }
    }
    for resource in overlay.spec.capacity.keys() {
        if labels::WELL_KNOWN_RESOURCES.contains(&resource.as_str()) {
            report.push("spec.capacity", resource, FieldFault::WellKnownResource);
        }
    }
    report.0
}

/// Every fault of one requirement of a NodePool, NodeClaim or pod, its key normalised first.
pub fn requirement(
    field: &str,
    requirement: &NodeSelectorRequirementWithMinValues,
) -> Vec<Invalid> {
    let mut report = FieldFaults(Vec::new());
    check_requirement(field, requirement, &mut report);
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
        report.push(
            format!("{field}.nodes"),
            &budget.nodes,
            FieldFault::Budget(error.to_string()),
        );
    }
    if budget.schedule.is_some() != budget.duration.is_some() {
        let schedule = budget.schedule.as_deref().unwrap_or("");
        let fault = FieldFault::Budget("'schedule' must be set with 'duration'".to_owned());
        report.push(format!("{field}.schedule"), schedule, fault);
    }
}

/// Keys among an EC2NodeClass's tags that belong to the controller.
pub fn restricted_tags<'a>(tags: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    const CLUSTER: &str = "kubernetes.io/cluster/";
    let is_cluster = |key: &str| {
        key.strip_prefix(CLUSTER).is_some_and(|name| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        })
    };
    let is_ours = |key: &str| {
        matches!(
            key,
            labels::NODEPOOL
                | labels::EKS_CLUSTER_NAME_TAG
                | labels::EC2_NODE_CLASS
                | labels::NODECLAIM_TAG
        )
    };
    tags.into_iter()
        .map(String::as_str)
        .filter(|key| is_ours(key) || is_cluster(key))
        .collect()
}
