//! Label selectors, in a form that can be compared and shared.
//!
//! A selector matches labels and knows of no object. Answers to Kubernetes' `metav1.LabelSelector`.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "objects")]
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

/// A conjunction of requirements on labels; without any it matches everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabelSelector {
    /// Requirements, all of which must hold.
    pub requirements: BTreeSet<SelectorRequirement>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorRequirement {
    /// Key of the label.
    pub key: String,
    /// Operator that compares the label with the values.
    pub operator: SelectorOperator,
    /// Values to compare with; empty for `Exists` and `DoesNotExist`.
    pub values: BTreeSet<String>,
}

/// Operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SelectorOperator {
    /// One of the values.
    In,
    /// None of the values, or absent.
    NotIn,
    /// The label is there, whatever its value.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

#[cfg(feature = "objects")]
impl LabelSelector {
    /// Reads the wire form; an unknown operator matches nothing, as an empty `In` does.
    pub fn parse(selector: &meta::LabelSelector) -> Self {
        let mut parsed = Self::default();
        for (key, value) in selector.match_labels.iter().flatten() {
            parsed.require(key, SelectorOperator::In, [value.clone()]);
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.iter().flatten().cloned();
            match expression.operator.as_str() {
                "NotIn" => parsed.require(&expression.key, SelectorOperator::NotIn, values),
                "Exists" => parsed.require(&expression.key, SelectorOperator::Exists, []),
                "DoesNotExist" => {
                    parsed.require(&expression.key, SelectorOperator::DoesNotExist, []);
                }
                "In" => parsed.require(&expression.key, SelectorOperator::In, values),
                _ => parsed.require(&expression.key, SelectorOperator::In, []),
            }
        }
        parsed
    }
}

impl LabelSelector {
    /// Adds a requirement on a label.
    pub fn require(
        &mut self,
        key: &str,
        operator: SelectorOperator,
        values: impl IntoIterator<Item = String>,
    ) {
        self.requirements.insert(SelectorRequirement {
            key: key.to_owned(),
            operator,
            values: values.into_iter().collect(),
        });
    }

    /// Whether labels meet every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match requirement.operator {
                SelectorOperator::In => value.is_some_and(|v| requirement.values.contains(v)),
                SelectorOperator::NotIn => value.is_none_or(|v| !requirement.values.contains(v)),
                SelectorOperator::Exists => value.is_some(),
                SelectorOperator::DoesNotExist => value.is_none(),
            }
        })
    }
}
