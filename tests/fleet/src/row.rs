//! One row: a fleet in a world, beside its plan and the goals.

use std::fmt;

use serde::Serialize;

use crate::asked::{Asked, Way};
use crate::goals::{Goal, goals};
use crate::manifests::Fleet;
use crate::mortise::Plan;

/// Nodes that there are and what they cost.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Nodes {
    pub(crate) nodes: u64,
    pub(crate) price_per_hour: f64,
}

/// The moment at which the last pod ran.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Full {
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) nodes: Nodes,
    pub(crate) launches: u64,
    pub(crate) evictions: u64,
    /// The one that waited longest from its creation.
    pub(crate) slowest_pod: Option<String>,
    pub(crate) slowest_pod_seconds: f64,
    pub(crate) slowest_boot_seconds: f64,
}

/// What became of a fleet.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lived {
    /// None where not all pods ever ran.
    pub(crate) all_running: Option<Full>,
    pub(crate) end: Nodes,
    pub(crate) launches: u64,
    pub(crate) terminations: u64,
    pub(crate) evictions: u64,
    pub(crate) pods_off_plan: u64,
    pub(crate) claims_off_plan: u64,
    /// Of the demo with its world; of the controller alone on a cluster.
    pub(crate) cpu_seconds: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    family: String,
    pods: u64,
    deployments: usize,
    seed: u64,
    way: Way,
    is_on_cluster: bool,
    plan: Plan,
    lived: Lived,
    goals: Vec<Goal>,
}

impl Row {
    pub(crate) const HEAD: &str = "\
family    pods seed way     | plan: nodes USD/h bound | all run: s nodes USD/h ratio late s | launches ratio | evicted gain  | off plan opened | end: nodes USD/h ratio | CPU s | reached";

    pub(crate) fn new(asked: &Asked, fleet: &Fleet, way: Way, plan: Plan, lived: Lived) -> Self {
        let is_on_cluster = asked.kubeconfig.is_some();
        Self {
            family: fleet.family.clone(),
            pods: fleet.pods,
            deployments: fleet.deployments,
            seed: fleet.seed,
            way,
            is_on_cluster,
            goals: goals(way, is_on_cluster, &plan, &lived),
            plan,
            lived,
        }
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.goals.iter().all(|it| it.is_reached)
    }

    fn measured(&self, name: &str) -> f64 {
        let goal = self.goals.iter().find(|it| it.name == name);
        goal.map_or(f64::NAN, |it| it.measured)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plan, lived) = (&self.plan, &self.lived);
        let way = match self.way {
            Way::AtOnce => "at once",
            Way::Stream => "stream",
        };
        write!(
            f,
            "{:<8} {:>5} {:>4} {way:<7} | {:>11} {:>5.2} {:>5.2} |",
            self.family,
            self.pods,
            self.seed,
            plan.nodes,
            plan.price_per_hour,
            plan.lower_bound_per_hour,
        )?;
        match &lived.all_running {
            Some(full) => write!(
                f,
                " {:>10.1} {:>5} {:>5.2} {:>5.3} {:>6.1} |",
                full.seconds,
                full.nodes.nodes,
                full.nodes.price_per_hour,
                self.measured("bill"),
                self.measured("lateSeconds"),
            )?,
            None => write!(f, " {:<35} |", "some pods never ran")?,
        }
        write!(
            f,
            " {:>8} {:>5.3} | {:>7} {:>5.3} | {:>8} {:>6} | {:>10} {:>5.2} {:>5.3} | {:>5.1} |",
            lived.launches,
            self.measured("launches"),
            lived.evictions,
            self.measured("gainByEviction"),
            lived.pods_off_plan,
            lived.claims_off_plan,
            lived.end.nodes,
            lived.end.price_per_hour,
            lived.end.price_per_hour / plan.price_per_hour,
            lived.cpu_seconds,
        )?;
        let missed = self.goals.iter().filter(|it| !it.is_reached);
        let missed: Vec<&str> = missed.map(|it| it.name).collect();
        if missed.is_empty() {
            f.write_str(" yes")
        } else {
            write!(f, " no: {}", missed.join(", "))
        }
    }
}
