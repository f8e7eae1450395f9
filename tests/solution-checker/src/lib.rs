//! The rules of scheduling a second time: takes a problem and the solver's answer, and tells every rule that the answer
//! breaks.
//!
//! Written against the rules, not against the solver: it shares plain data with `scheduling` (pods, types, requirements
//! as lists of values) and none of its decisions. It goes for what a rule makes impossible at the end state, so that it
//! never blames an answer that some order of placements could have led to.

mod alone;
mod amounts;
mod claims;
mod layout;
mod places;
mod pools;
mod requests;
mod sets;
mod topology;

use std::collections::{BTreeMap, BTreeSet};

use scheduling::error::PodError;
use scheduling::pod::PodKey;
use scheduling::{Problem, Solution};

pub use alone::can_stand_alone;
pub use requests::effective_requests;

use layout::Layout;

/// What a broken rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every pod has exactly one place or one reason.
    OnePlace,
    /// Requests with those of daemons stay within what the node has.
    Resources,
    /// Node selectors, required node affinity.
    NodeAffinity,
    /// Taints are tolerated, preferences aside.
    Taints,
    /// Host ports are held once a node.
    HostPorts,
    /// Volumes can be reached and attached.
    Volumes,
    /// Topology spread.
    Spread,
    /// Pod affinity.
    Affinity,
    /// Pod anti-affinity, in both directions.
    AntiAffinity,
    /// Limits of pools.
    Limits,
    /// Every type listed can be bought under the claim's requirements.
    InstanceTypes,
    /// What the claim says of its best offering, order and capacity types.
    Summary,
    /// Distinct values asked of a claim.
    MinValues,
    /// Slots of capacity reservations.
    Reservations,
    /// A reason given where nothing stood in the way.
    Reason,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Which.
    pub rule: Rule,
    /// Where and how.
    pub what: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// Collects faults.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, rule: Rule, what: String) {
        self.0.push(Fault { rule, what });
    }
}

/// Every rule that the answer breaks; none is the answer hoped for.
///
/// Prices are compared as they stand, so the answer must come from a ranking that leaves them alone.
pub fn check(problem: &Problem, solution: &Solution) -> Vec<Fault> {
    let mut faults = Faults::default();
    one_place(problem, solution, &mut faults);
    let layout = Layout::new(problem, solution, &mut faults);
    for place in &layout.places {
        places::check(&layout, place, &mut faults);
        claims::check(problem, place, &mut faults);
    }
    pools::check(problem, &layout, &mut faults);
    topology::check(&layout, &mut faults);
    for (pod, error) in &solution.pod_errors {
        reason(&layout, pod, error, &mut faults);
    }
    faults.0
}

fn one_place(problem: &Problem, solution: &Solution, faults: &mut Faults) {
    let asked: BTreeSet<&PodKey> = problem.pods.iter().map(|pod| &pod.key).collect();
    let mut places: BTreeMap<&PodKey, usize> = BTreeMap::new();
    let in_claims = solution.claims.iter().flat_map(|claim| &claim.pods);
    let on_nodes = solution.existing.iter().flat_map(|it| &it.pods);
    for pod in in_claims.chain(on_nodes).chain(solution.pod_errors.keys()) {
        *places.entry(pod).or_default() += 1;
        if !asked.contains(pod) {
            faults.add(Rule::OnePlace, format!("{pod} was never asked for"));
        }
    }
    for pod in asked {
        let count = places.get(pod).copied().unwrap_or(0);
        if count != 1 {
            faults.add(Rule::OnePlace, format!("{pod} has {count} places"));
        }
    }
}

/// Whether something could stand in the way of a pod that found no place.
fn reason(layout: &Layout<'_>, key: &PodKey, error: &PodError, faults: &mut Faults) {
    let Some(pod) = layout.problem.pods.iter().find(|pod| pod.key == *key) else {
        return;
    };
    let volumes = layout.problem.volumes.get(key);
    let contradiction = match error {
        PodError::Volumes(_) => volumes
            .is_none_or(|v| v.error.is_none())
            .then(|| "its volumes are fine".to_owned()),
        PodError::ResourceClaims | PodError::Devices(_) => {
            (!pod.shape.uses_resource_claims).then(|| "it asks for no dynamic resources".to_owned())
        }
        PodError::ReservedCapacityPending { .. } | PodError::Interrupted => None,
        PodError::NoPools | PodError::Pools(_) => {
            if topology::has_stake(layout, pod) {
                None
            } else {
                alone::place_left(layout, pod)
            }
        }
    };
    if let Some(contradiction) = contradiction {
        let what = format!("{key} was refused ({error}), yet {contradiction}");
        faults.add(Rule::Reason, what);
    }
}
