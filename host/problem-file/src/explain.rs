//! Explanations of pods without a place: how each pool's instance types fell away, rule by rule.
//!
//! Tells more than the solver's reason and decides nothing: the funnel looks at one pod alone, and the solver's own
//! cause, which knows of limits, topology and other pods, stands beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use scheduling::Solution;
use scheduling::error::PodError;
use scheduling::instance_type::InstanceType;
use scheduling::pod::{Pod, PodShape};
use scheduling::problem::Pool;
use scheduling::requirements::{AllowUndefined, Operator, Requirement, Requirements};
use serde::Serialize;

use crate::WorldProblem;

/// Pods that failed alike, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Namespace and name of the pods.
    pub pods: Vec<String>,
    /// Reason of the solver as a word that stays the same.
    pub reason: String,
    /// The reason in words, where it is not a matter of pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Each pool that took part.
    pub pools: Vec<PoolExplanation>,
}

/// Explanation of one pool for a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolExplanation {
    /// Name of the NodePool.
    pub node_pool: String,
    /// Rule that stood in the way, in words.
    pub cause: String,
    /// The smallest single change that would have helped, when one would.
    pub nearest_miss: Option<String>,
    /// How the pool's types fell away; each step counts those that the steps before it left.
    pub funnel: Vec<FunnelStep>,
}

/// A rule and what it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunnelStep {
    pub rule: String,
    /// Who made it: the pod, the pool, or both.
    pub from: &'static str,
    /// Instance types left after it.
    pub left: usize,
}

/// Why pods have no place, pods that failed alike together.
pub fn explain(question: &WorldProblem, solution: &Solution) -> Vec<Explanation> {
    let mut groups: Vec<(&Arc<PodShape>, &PodError, Explanation)> = Vec::new();
    let mut known: BTreeMap<*const PodShape, Vec<usize>> = BTreeMap::new();
    for pod in &question.problem.pods {
        let Some(error) = solution.pod_errors.get(&pod.key) else {
            continue;
        };
        let same = known.entry(Arc::as_ptr(&pod.shape)).or_default();
        let found = same.iter().find(|index| groups[**index].1 == error);
        if let Some(index) = found {
            groups[*index].2.pods.push(pod.key.to_string());
            continue;
        }
        same.push(groups.len());
        groups.push((&pod.shape, error, one(pod, error, question)));
    }
    groups.into_iter().map(|(_, _, it)| it).collect()
}

fn one(pod: &Pod, error: &PodError, question: &WorldProblem) -> Explanation {
    let failures = error.pool_failures();
    let pools = failures.iter().map(|failure| {
        let name = failure.pool.as_str();
        let pool = question
            .problem
            .pools
            .iter()
            .find(|it| it.node_pool.metadata.name.as_deref() == Some(name));
        PoolExplanation {
            node_pool: failure.pool.clone(),
            cause: failure.cause.to_string(),
            nearest_miss: failure.nearest_miss.as_ref().map(ToString::to_string),
            funnel: pool
                .map(|pool| funnel(pool, &pod.shape))
                .unwrap_or_default(),
        }
    });
    Explanation {
        pods: vec![pod.key.to_string()],
        reason: error.reason().to_owned(),
        message: failures.is_empty().then(|| error.to_string()),
        pools: pools.collect(),
    }
}

/// The funnel of the alternative of the pod's node affinity that leaves most.
fn funnel(pool: &Pool, shape: &PodShape) -> Vec<FunnelStep> {
    let selector = Requirements::from_labels(&shape.node_selector);
    let alternatives: Vec<Requirements> = if shape.required_node_affinity.is_empty() {
        vec![selector]
    } else {
        let with = |term: &Vec<Requirement>| {
            let mut requirements = selector.clone();
            requirements.extend_with(&term.iter().cloned().collect());
            requirements
        };
        shape.required_node_affinity.iter().map(with).collect()
    };
    let left = |steps: &Vec<FunnelStep>| steps.last().map_or(0, |it| it.left);
    let funnels = alternatives.iter().map(|it| funnel_of(pool, shape, it));
    // The first of equal ones.
    let mut best: Option<Vec<FunnelStep>> = None;
    for steps in funnels {
        if best.as_ref().is_none_or(|best| left(&steps) > left(best)) {
            best = Some(steps);
        }
    }
    best.unwrap_or_default()
}

fn funnel_of(pool: &Pool, shape: &PodShape, asked: &Requirements) -> Vec<FunnelStep> {
    let offered = Requirements::from_template(&pool.node_pool.spec.template);
    let mut both = offered.clone();
    both.extend_with(asked);
    let mut types: Vec<&Arc<InstanceType>> = pool.instance_types.iter().collect();
    let mut steps = vec![FunnelStep {
        rule: "types of the pool".to_owned(),
        from: "pool",
        left: types.len(),
    }];
    let mut retain = |rule: String, from, keep: &dyn Fn(&InstanceType) -> bool| {
        let before = types.len();
        types.retain(|it| keep(it));
        // What everything passes says nothing.
        if types.len() < before {
            let left = types.len();
            steps.push(FunnelStep { rule, from, left });
        }
    };
    for requirement in both.iter() {
        let key = requirement.key();
        let from = match (offered.find(key), asked.find(key)) {
            (Some(_), Some(_)) => "both",
            (None, Some(_)) => "pod",
            (_, None) => "pool",
        };
        retain(
            requirement.to_string(),
            from,
            &|it| match it.requirements.find(key) {
                Some(of_type) => requirement.has_intersection(of_type),
                None => may_be_absent(requirement, &offered),
            },
        );
    }
    let room = format!("room for {}", amounts(shape));
    retain(room, "pod", &|it| shape.requests.fits(&it.allocatable()));
    let rule = "an available offering in zone and capacity type".to_owned();
    retain(rule, "both", &|it| {
        it.offerings.iter().any(|offering| {
            let allow = AllowUndefined::WellKnown;
            offering.is_launchable() && both.compatible(&offering.requirements, allow).is_ok()
        })
    });
    steps
}

/// Whether a type may lack the label: offerings have it, the pool puts it on its nodes, or its absence is asked for.
fn may_be_absent(requirement: &Requirement, offered: &Requirements) -> bool {
    let key = requirement.key();
    labels::is_well_known(key)
        || key == labels::HOSTNAME
        || matches!(
            requirement.operator(),
            Operator::NotIn | Operator::DoesNotExist
        )
        || offered
            .find(key)
            .is_some_and(|it| it.has_intersection(requirement))
}

fn amounts(shape: &PodShape) -> String {
    let list = shape.requests.to_list();
    let amounts = list
        .iter()
        .map(|(name, quantity)| format!("{name} {}", quantity.0));
    amounts.collect::<Vec<_>>().join(", ")
}
