//! Rules that need no cluster, as rows: the algebra of requirements, tolerations, host ports, effective requests.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ContainerPort, Pod, Taint};
use scheduling::pod::{PodShape, ShapeTable};
use scheduling::requirements::{AllowUndefined, Operator, Requirement, Requirements};
use scheduling::taints;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::{Named, PodGiven, Text};
use crate::objects::{self, read};
use crate::types;
use crate::words;

/// Costs that differ by less are equal.
const COST_TOLERANCE: f64 = 1e-9;

/// Two requirements on a key, or two sets of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RequirementRow {
    /// What exists: one requirement, or several.
    pub left: Words,
    /// What comes in.
    #[serde(default)]
    pub right: Words,
    /// What both together come to, as they are written on a NodeClaim.
    #[serde(default)]
    pub both: Option<Words>,
    /// Whether there is a value that both allow.
    #[serde(default)]
    pub meet: Option<bool>,
    /// Whether `right` is compatible with `left`, labels that are undefined being unknown.
    #[serde(default)]
    pub compatible: Option<bool>,
    /// The same with well-known labels allowed to be undefined.
    #[serde(default)]
    pub compatible_on_new_nodes: Option<bool>,
    /// Part of the message when it is not compatible.
    #[serde(default)]
    pub message: Option<String>,
    /// Values that `left` allows.
    #[serde(default)]
    pub has: Vec<Text>,
    /// Values that it does not.
    #[serde(default)]
    pub lacks: Vec<Text>,
    /// The operator that `left`, or both, read as.
    #[serde(default)]
    pub operator: Option<String>,
    /// The greatest minValues of both.
    #[serde(default)]
    pub min: Option<u32>,
}

/// One line of words, or several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// Nothing.
    #[default]
    None,
    /// One requirement.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Words {
    fn list(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::One(words) => vec![words.clone()],
            Self::Many(list) => list.clone(),
        }
    }

    fn parse(&self) -> Result<Requirements> {
        let all: Vec<Requirement> = self
            .list()
            .iter()
            .map(|it| requirement(it))
            .collect::<Result<_>>()?;
        Ok(all.into_iter().collect())
    }

    fn wire(&self) -> Result<Value> {
        let list: Vec<Value> = self
            .list()
            .iter()
            .map(|it| words::requirement(it))
            .collect::<Result<_>>()?;
        Ok(json!(list))
    }
}

fn requirement(text: &str) -> Result<Requirement> {
    let wire = words::requirement(text)?;
    let operator = wire["operator"].as_str().and_then(Operator::parse);
    let operator = operator.ok_or_else(|| anyhow::anyhow!("no operator in {text:?}"))?;
    let values: Vec<&str> = wire["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let key = wire["key"].as_str().unwrap_or_default();
    let mut made = Requirement::new(key, operator, values);
    made.min_values = wire["minValues"].as_u64().and_then(|it| it.try_into().ok());
    Ok(made)
}

impl RequirementRow {
    /// For the report.
    pub fn name(&self) -> String {
        let right = self.right.list().join(", ");
        let left = self.left.list().join(", ");
        if right.is_empty() {
            left
        } else {
            format!("{left} and {right}")
        }
    }

    /// Whether the row holds.
    pub fn check(&self) -> Result<()> {
        let (left, right) = (self.left.parse()?, self.right.parse()?);
        let mut both = left.clone();
        both.extend_with(&right);
        if let Some(wanted) = &self.both {
            let got = serde_json::to_value(both.to_node_selector_requirements())?;
            ensure!(got == wanted.wire()?, "both come to {got}");
        }
        if let Some(wanted) = self.meet {
            for one in left.iter() {
                let other = right.get(one.key());
                ensure!(one.has_intersection(&other) == wanted, "meet: {}", !wanted);
                ensure!(
                    other.has_intersection(one) == wanted,
                    "the other way: {}",
                    !wanted
                );
            }
        }
        let modes = [
            (self.compatible, AllowUndefined::None),
            (self.compatible_on_new_nodes, AllowUndefined::WellKnown),
        ];
        for (wanted, allow) in modes {
            let result = left.compatible(&right, allow);
            if let Some(wanted) = wanted {
                ensure!(result.is_ok() == wanted, "{allow:?}: {result:?}");
            }
            if let (Err(error), Some(message)) = (&result, &self.message) {
                let told = error.to_string();
                ensure!(told.contains(message.as_str()), "the message is {told:?}");
            }
        }
        self.check_values(&both)
    }

    fn check_values(&self, both: &Requirements) -> Result<()> {
        for one in both.iter() {
            for value in &self.has {
                ensure!(one.has(&value.0), "{value} should be in");
            }
            for value in &self.lacks {
                ensure!(!one.has(&value.0), "{value} should be out");
            }
            if let Some(wanted) = &self.operator {
                let operator = serde_json::to_value(one.operator())?;
                ensure!(operator == json!(wanted), "operator {operator}");
            }
            ensure!(
                self.min.is_none() || one.min_values == self.min,
                "minValues {:?}",
                one.min_values
            );
        }
        Ok(())
    }
}

/// A taint and what tolerates it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TolerationRow {
    /// The taint, in words.
    pub taint: String,
    /// These do.
    #[serde(default)]
    pub tolerated: Vec<String>,
    /// These do not.
    #[serde(default)]
    pub refused: Vec<String>,
}

impl TolerationRow {
    /// For the report.
    pub fn name(&self) -> String {
        format!("taint {}", self.taint)
    }

    /// Whether the row holds.
    pub fn check(&self) -> Result<()> {
        let taint: Taint = read(words::taint(&self.taint)?)?;
        let wanted = (self.tolerated.iter().map(|it| (it, true)))
            .chain(self.refused.iter().map(|it| (it, false)));
        for (text, wanted) in wanted {
            let given = PodGiven {
                tolerate: vec![text.clone()],
                ..PodGiven::default()
            };
            let shape = shape(&given)?;
            let got =
                taints::untolerated(std::slice::from_ref(&taint), &shape.tolerations).is_none();
            ensure!(got == wanted, "toleration {text}: {got}");
        }
        Ok(())
    }
}

/// Two host ports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRow {
    /// One.
    pub one: Text,
    /// The other.
    pub other: Text,
    /// Whether they cannot share a node.
    pub clash: bool,
}

impl PortRow {
    /// For the report.
    pub fn name(&self) -> String {
        format!("ports {} and {}", self.one, self.other)
    }

    /// Whether the row holds.
    pub fn check(&self) -> Result<()> {
        let parse = |text: &Text| -> Result<_> {
            let _: ContainerPort = read(words::port(&text.0)?)?;
            let given = PodGiven {
                ports: vec![text.clone()],
                ..PodGiven::default()
            };
            Ok(shape(&given)?.host_ports[0].clone())
        };
        let (one, other) = (parse(&self.one)?, parse(&self.other)?);
        ensure!(
            one.conflicts_with(&other) == self.clash,
            "clash: {}",
            !self.clash
        );
        ensure!(
            other.conflicts_with(&one) == self.clash,
            "the other way: {}",
            !self.clash
        );
        Ok(())
    }
}

/// A pod and what it counts for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRow {
    /// The behaviour.
    pub name: String,
    /// The pod.
    pub pod: PodGiven,
    /// Its effective requests; `pods: 1` goes without saying.
    pub counts: Named<Text>,
}

impl RequestRow {
    /// Whether the row holds.
    pub fn check(&self) -> Result<()> {
        let mut wanted = types::amounts(&self.counts)?;
        wanted.set("pods", 1000);
        let got = shape(&self.pod)?.requests.clone();
        ensure!(got == wanted, "counts {got:?}, expected {wanted:?}");
        Ok(())
    }
}

/// A pod and what its eviction costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvictionCostRow {
    /// The behaviour.
    pub name: String,
    /// The pod.
    pub pod: PodGiven,
    /// The cost.
    pub cost: f64,
}

impl EvictionCostRow {
    /// Whether the row holds.
    pub fn check(&self) -> Result<()> {
        let pod: Pod = objects::pod("pod", "pod", &self.pod, Some("n1"))?;
        let parsed = scheduling::pod::Pod::parse(&pod, &mut ShapeTable::new())?;
        let got = parsed.eviction_cost();
        ensure!(
            (got - self.cost).abs() < COST_TOLERANCE,
            "costs {got}, expected {}",
            self.cost
        );
        Ok(())
    }
}

fn shape(given: &PodGiven) -> Result<PodShape> {
    let pod: Pod = objects::pod("pod", "pod", given, None)?;
    let parsed = scheduling::pod::Pod::parse(&pod, &mut ShapeTable::new())?;
    Ok((*parsed.shape).clone())
}

/// A configuration of the scheduler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SchedulerConfigRow {
    /// The behaviour, as a sentence.
    pub name: String,
    /// The configuration.
    #[serde(default)]
    pub config: serde_json::Value,
    /// Part of what is said against it; nothing is when absent.
    #[serde(default)]
    pub fault: Option<String>,
}

impl SchedulerConfigRow {
    /// Reads the configuration.
    pub fn check(&self) -> Result<()> {
        let said = planning::scheduler_config::default_constraints(self.config.clone())
            .err()
            .map(|it| it.to_string());
        let is_right = match (&self.fault, &said) {
            (Some(part), Some(said)) => said.contains(part),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        anyhow::ensure!(is_right, "said {said:?}");
        Ok(())
    }
}
