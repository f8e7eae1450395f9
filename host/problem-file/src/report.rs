//! The answer of a solve as a value that prints itself as JSON.
//!
//! Prices are those of the cheapest offering that a claim may become, whatever the ranking policy thinks of it.

use std::collections::BTreeMap;

use apis::{CapacityType, NodeSelectorRequirementWithMinValues, Operator, labels};
use scheduling::Solution;
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::problem::Problem;
use scheduling::requirements::{AllowUndefined, Requirement};
use scheduling::solution::{NewClaim, TypeNames};
use serde::ser::{SerializeSeq as _, SerializeStruct as _};
use serde::{Serialize, Serializer};

use crate::{FileWorld, WorldProblem};

/// Output of `mortise simulate -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerReport {
    /// Pods that waited for a node.
    pub pods: usize,
    /// Those that got one.
    pub placed: usize,
    /// Those that did not.
    pub errors: usize,
    /// Number of nodes to make.
    pub nodes: usize,
    /// List price of those nodes, USD an hour.
    pub price_per_hour: f64,
    /// Where the time went.
    #[serde(flatten)]
    pub timing: Timing,
    /// The nodes to make.
    pub claims: Vec<ClaimReport>,
    /// Pods that go to nodes that exist.
    pub existing: Vec<ExistingReport>,
    /// Why pods have no place, by namespace and name.
    pub pod_errors: BTreeMap<String, PodErrorReport>,
    /// Why pools took no part.
    pub pool_errors: BTreeMap<String, String>,
    /// Faults of objects of the input.
    pub faults: Vec<String>,
    /// Remarks on the input that are no faults and yet worth a look.
    pub warnings: Vec<String>,
    /// Policies that were asked: kind, name and how it went.
    pub policies: Vec<String>,
}

/// Where the time went, measured by the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From the model to a prepared problem, the ranking policy's call included.
    pub setup_seconds: f64,
    /// Time of packing, seconds.
    pub solve_seconds: f64,
    /// The ranking policy's share of the setup.
    pub policy_seconds: f64,
    /// Time of setup and packing, seconds.
    pub total_seconds: f64,
    /// Pods by total seconds.
    pub pods_per_second: f64,
    /// Most memory the process had.
    pub peak_rss_bytes: u64,
}

/// A node to make.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReport {
    /// Name of the NodePool.
    pub node_pool: String,
    /// Name of the cheapest instance type that the claim may become.
    pub instance_type: String,
    /// List price of its offering, USD an hour.
    pub price_per_hour: f64,
    pub zone: String,
    pub capacity_type: String,
    /// How many types it may become.
    pub instance_type_options: usize,
    /// Final requirements, the types included.
    pub requirements: ClaimRequirements,
    /// Namespace and name of its pods.
    pub pods: Vec<String>,
}

/// Requirements of a claim. The types, of which there are hundreds, stay in the form that all claims of a pool share.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimRequirements {
    /// By key; none is about the types.
    others: Vec<NodeSelectorRequirementWithMinValues>,
    types: TypeNames,
}

impl Serialize for ClaimRequirements {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { others, types } = self;
        let at = others.partition_point(|it| it.key.as_str() < labels::INSTANCE_TYPE);
        let mut list = serializer.serialize_seq(Some(others.len() + 1))?;
        for it in &others[..at] {
            list.serialize_element(it)?;
        }
        list.serialize_element(&OfTypes(types))?;
        for it in &others[at..] {
            list.serialize_element(it)?;
        }
        list.end()
    }
}

/// The types of a claim as a requirement.
struct OfTypes<'a>(&'a TypeNames);

impl Serialize for OfTypes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut it = serializer.serialize_struct("Requirement", 3)?;
        it.serialize_field("key", labels::INSTANCE_TYPE)?;
        it.serialize_field("operator", Operator::In.as_str())?;
        it.serialize_field("values", &ReportedNames(self.0))?;
        it.end()
    }
}

struct ReportedNames<'a>(&'a TypeNames);

impl Serialize for ReportedNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// Pods that go to a node that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExistingReport {
    pub node: String,
    /// Namespace and name of the pods.
    pub pods: Vec<String>,
}

/// Why a pod has no place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodErrorReport {
    /// Reason of the solver as a word that stays the same.
    pub reason: String,
    /// Reason in words.
    pub message: String,
    /// The smallest change that would have helped.
    pub nearest_miss: Option<String>,
}

impl AnswerReport {
    /// The report of a solve.
    pub fn new(world: &FileWorld, question: &WorldProblem, solution: &Solution) -> Self {
        let claims: Vec<ClaimReport> = solution
            .claims
            .iter()
            .map(|claim| claim_report(claim, &question.problem))
            .collect();
        let existing = solution.existing.iter().map(|it| ExistingReport {
            node: it.node.to_string(),
            pods: it.pods.iter().map(ToString::to_string).collect(),
        });
        let pod_errors = pod_errors(world, question, solution);
        let mut pool_errors = question.pool_errors.clone();
        pool_errors.extend(solution.pool_errors.clone());
        let placed = solution.placed();
        let policy = |it: &scheduling::ranking::PolicyUse| {
            format!("{} {}: {}", it.kind, it.name, it.outcome)
        };
        Self {
            pods: placed + pod_errors.len(),
            placed,
            errors: pod_errors.len(),
            nodes: claims.len(),
            // The sum of no prices is a negative zero.
            price_per_hour: claims.iter().map(|it| it.price_per_hour).sum::<f64>() + 0.0,
            timing: Timing::default(),
            claims,
            existing: existing.collect(),
            pod_errors,
            pool_errors,
            faults: world.faults.iter().map(ToString::to_string).collect(),
            warnings: world.warnings.clone(),
            policies: solution.uses.iter().map(policy).collect(),
        }
    }

    /// Fills in the time, given the seconds of setup, packing and policy.
    pub fn timed(mut self, timing: Timing) -> Self {
        let total_seconds = timing.setup_seconds + timing.solve_seconds;
        let pods_per_second = if total_seconds > 0.0 {
            self.pods as f64 / total_seconds
        } else {
            0.0
        };
        self.timing = Timing {
            total_seconds,
            pods_per_second,
            ..timing
        };
        self
    }

    /// Whether every pod has a place and nothing is wrong with the input.
    pub fn is_clean(&self) -> bool {
        self.pod_errors.is_empty() && self.faults.is_empty()
    }
}

fn pod_errors(
    world: &FileWorld,
    question: &WorldProblem,
    solution: &Solution,
) -> BTreeMap<String, PodErrorReport> {
    let mut errors = BTreeMap::new();
    for (key, message) in &world.invalid_pods {
        let report = PodErrorReport {
            reason: "Invalid".to_owned(),
            message: message.clone(),
            nearest_miss: None,
        };
        errors.insert(key.to_string(), report);
    }
    for (key, reason) in &question.ignored {
        let report = PodErrorReport {
            reason: "Ignored".to_owned(),
            message: reason.to_string(),
            nearest_miss: None,
        };
        errors.insert(key.to_string(), report);
    }
    for (key, error) in &solution.pod_errors {
        let report = PodErrorReport {
            reason: error.reason().to_owned(),
            message: error.to_string(),
            nearest_miss: error.nearest_miss().map(ToString::to_string),
        };
        errors.insert(key.to_string(), report);
    }
    errors
}

fn claim_report(claim: &NewClaim, problem: &Problem) -> ClaimReport {
    let cheapest = cheapest(claim, problem);
    let best = &claim.best;
    let mut requirements = claim.requirements.clone();
    requirements.remove(labels::HOSTNAME);
    requirements.remove(labels::INSTANCE_TYPE);
    let mut wire = requirements.to_node_selector_requirements();
    let capacity_types = claim.capacity_types.iter().map(|it| it.as_str());
    wire.retain(|it| it.key != labels::CAPACITY_TYPE);
    let capacity = Requirement::new(labels::CAPACITY_TYPE, Operator::In, capacity_types);
    wire.extend(capacity.to_node_selector_requirements());
    wire.sort_by(|a, b| a.key.cmp(&b.key));
    let (instance_type, zone, capacity_type, price_per_hour) = match cheapest {
        Some((instance_type, offering)) => (
            instance_type.name.as_str(),
            offering.zone().unwrap_or_default(),
            offering.label(labels::CAPACITY_TYPE).unwrap_or_default(),
            offering.price_per_hour,
        ),
        None => (
            best.instance_type.as_str(),
            best.zone.as_deref().unwrap_or_default(),
            CapacityType::word(best.capacity_type),
            best.price_per_hour,
        ),
    };
    ClaimReport {
        node_pool: claim.pool.clone(),
        instance_type: instance_type.to_owned(),
        price_per_hour,
        zone: zone.to_owned(),
        capacity_type: capacity_type.to_owned(),
        instance_type_options: claim.instance_types.len(),
        requirements: ClaimRequirements {
            others: wire,
            types: claim.instance_types.clone(),
        },
        pods: claim.pods.iter().map(ToString::to_string).collect(),
    }
}

/// The cheapest offering that the claim may become; of equal ones the one that the packer thought best.
fn cheapest<'a>(
    claim: &NewClaim,
    problem: &'a Problem,
) -> Option<(&'a InstanceType, &'a Offering)> {
    let pool = problem
        .pools
        .iter()
        .find(|it| it.node_pool.metadata.name.as_deref() == Some(&claim.pool))?;
    let names: BTreeMap<&str, usize> = (claim.instance_types.iter().enumerate())
        .map(|(index, name)| (name, index))
        .collect();
    let best = &claim.best;
    let mut found: Option<(&InstanceType, &Offering)> = None;
    let mut rank = (f64::INFINITY, true, usize::MAX);
    for instance_type in pool.instance_types.iter() {
        let Some(index) = names.get(instance_type.name.as_str()) else {
            continue;
        };
        for offering in instance_type
            .offerings
            .iter()
            .filter(|it| it.is_launchable())
        {
            let is_best = instance_type.name == best.instance_type
                && offering.zone() == best.zone.as_deref()
                && offering.capacity_type() == best.capacity_type;
            let this = (offering.price_per_hour, !is_best, *index);
            let is_less = this
                .0
                .total_cmp(&rank.0)
                .then((this.1, this.2).cmp(&(rank.1, rank.2)));
            let is_compatible = || {
                let allow = AllowUndefined::WellKnown;
                claim
                    .requirements
                    .compatible(&offering.requirements, allow)
                    .is_ok()
            };
            if is_less.is_lt() && is_compatible() {
                rank = this;
                found = Some((instance_type, offering));
            }
        }
    }
    found
}
