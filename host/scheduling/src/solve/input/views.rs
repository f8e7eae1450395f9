//! A pod's demands at each step of relaxation, as views: the pod itself is never changed.
//!
//! Answers to Karpenter's `scheduling/preferences.go`; the order of steps is its order.

use crate::pod::{AffinityTerm, PodShape, Toleration, TopologySpread};
use crate::problem::PreferencePolicy;
use crate::requirements::{Operator, Requirement, Requirements};
use crate::taints;
use k8s_openapi::api::core::v1::Taint;

/// Demands of a pod at one step of relaxation.
#[derive(Debug, Clone)]
pub(crate) struct PodView {
    /// Node selector, the first required term left, the heaviest preferred term left.
    pub(crate) requirements: Requirements,
    /// Node selector and the first required term left, without preferences.
    pub(crate) strict: Requirements,
    pub(crate) tolerations: Vec<Toleration>,
    pub(super) spread: Vec<TopologySpread>,
    pub(super) affinity: Vec<AffinityTerm>,
    pub(super) anti_affinity: Vec<RepellingTerm>,
}

/// A term that keeps pods apart.
#[derive(Debug, Clone)]
pub(super) struct RepellingTerm {
    pub(super) term: AffinityTerm,
    /// Whether it must hold, which it then does in both directions.
    pub(super) is_required: bool,
}

/// How far a pod has been relaxed.
struct Relaxation<'a> {
    shape: &'a PodShape,
    required_terms: &'a [Vec<Requirement>],
    preferred_affinity: Vec<&'a AffinityTerm>,
    preferred_anti_affinity: Vec<&'a AffinityTerm>,
    preferred_node: Vec<&'a [Requirement]>,
    preferred_spread: Vec<&'a TopologySpread>,
    tolerates_preferences: bool,
    may_tolerate_preferences: bool,
}

/// All views of a shape, strictest first.
pub(crate) fn views(
    shape: &PodShape,
    policy: PreferencePolicy,
    has_preference_taints: bool,
) -> Vec<PodView> {
    let mut relaxation = Relaxation::new(shape, policy, has_preference_taints);
    let mut views = vec![relaxation.view()];
    while relaxation.step() {
        views.push(relaxation.view());
    }
    // Required terms are given up before preferences, so one of those given up may be what the pod can have without.
    let terms = &shape.required_node_affinity;
    let has_preferences = views.len() > terms.len();
    if has_preferences {
        for given_up in 0..terms.len().saturating_sub(1) {
            relaxation.required_terms = &terms[given_up..];
            views.push(relaxation.view());
        }
    }
    views
}

/// The requirements a DaemonSet pod or a spread filter has: the selector with each required term in turn.
pub(super) fn strict_alternatives(shape: &PodShape) -> Vec<Requirements> {
    let selector = Requirements::from_labels(&shape.node_selector);
    if shape.required_node_affinity.is_empty() {
        return vec![selector];
    }
    shape
        .required_node_affinity
        .iter()
        .map(|term| with_term(&selector, term))
        .collect()
}

fn with_term(requirements: &Requirements, term: &[Requirement]) -> Requirements {
    let mut requirements = requirements.clone();
    for requirement in term {
        requirements.add(requirement.clone());
    }
    requirements
}

fn heaviest_last<T>(preferences: &[crate::pod::Weighted<T>]) -> Vec<&T> {
    let mut sorted: Vec<_> = preferences.iter().collect();
    // Popping takes the heaviest, and of equal ones the first.
    sorted.reverse();
    sorted.sort_by_key(|p| p.weight);
    sorted.into_iter().map(|p| &p.value).collect()
}

impl<'a> Relaxation<'a> {
    fn new(shape: &'a PodShape, policy: PreferencePolicy, has_preference_taints: bool) -> Self {
        let mut relaxation = Self {
            shape,
            required_terms: &shape.required_node_affinity,
            preferred_affinity: Vec::new(),
            preferred_anti_affinity: Vec::new(),
            preferred_node: Vec::new(),
            preferred_spread: Vec::new(),
            tolerates_preferences: false,
            may_tolerate_preferences: has_preference_taints,
        };
        if policy == PreferencePolicy::Respect {
            relaxation.preferred_affinity = heaviest_last(&shape.preferred_pod_affinity);
            relaxation.preferred_anti_affinity = heaviest_last(&shape.preferred_pod_anti_affinity);
            relaxation.preferred_node = heaviest_last(&shape.preferred_node_affinity)
                .into_iter()
                .map(Vec::as_slice)
                .collect();
            relaxation.preferred_spread = shape
                .topology_spread
                .iter()
                .filter(|s| !s.is_required)
                .collect();
            // The first declared is given up first.
            relaxation.preferred_spread.reverse();
        }
        relaxation
    }

    /// Gives up what comes next; whether there was anything to give up.
    fn step(&mut self) -> bool {
        if self.required_terms.len() > 1 {
            self.required_terms = &self.required_terms[1..];
            return true;
        }
        if self.preferred_affinity.pop().is_some()
            || self.preferred_anti_affinity.pop().is_some()
            || self.preferred_node.pop().is_some()
            || self.preferred_spread.pop().is_some()
        {
            return true;
        }
        let has_one_left = self.may_tolerate_preferences && !self.tolerates_preferences;
        self.tolerates_preferences |= has_one_left;
        has_one_left
    }

    fn view(&self) -> PodView {
        let shape = self.shape;
        let selector = Requirements::from_labels(&shape.node_selector);
        let strict = match self.required_terms.first() {
            Some(term) => with_term(&selector, term),
            None => selector,
        };
        let requirements = match self.preferred_node.last() {
            Some(term) => with_term(&strict, term),
            None => strict.clone(),
        };
        let mut tolerations = shape.tolerations.clone();
        if self.tolerates_preferences {
            tolerations.push(prefer_no_schedule_toleration());
        }
        let required_spread = shape.topology_spread.iter().filter(|s| s.is_required);
        let repelling = |term: &AffinityTerm, is_required| RepellingTerm {
            term: term.clone(),
            is_required,
        };
        let required_anti = shape.pod_anti_affinity.iter();
        let required_anti = required_anti.map(|term| repelling(term, true));
        let preferred_anti = self.preferred_anti_affinity.iter();
        let preferred_anti = preferred_anti.map(|term| repelling(term, false));
        PodView {
            requirements,
            strict,
            tolerations,
            spread: required_spread
                .chain(self.preferred_spread.iter().copied())
                .cloned()
                .collect(),
            affinity: shape
                .pod_affinity
                .iter()
                .chain(self.preferred_affinity.iter().copied())
                .cloned()
                .collect(),
            anti_affinity: required_anti.chain(preferred_anti).collect(),
        }
    }
}

/// Tolerates all taints that only ask for preference.
pub(super) fn prefer_no_schedule_toleration() -> Toleration {
    Toleration {
        operator: "Exists".to_owned(),
        effect: apis::labels::PREFER_NO_SCHEDULE.to_owned(),
        ..Toleration::default()
    }
}

/// Whether any of the taints only asks for preference.
pub(super) fn has_preference_taint(all: &[Taint]) -> bool {
    all.iter().any(taints::is_preference)
}

/// A label requirement of one value.
pub(crate) fn exactly(key: &str, value: &str) -> Requirement {
    Requirement::new(key, Operator::In, [value])
}
