//! Which pods a term of topology counts: those of its namespaces that its selector means.
//!
//! Answers to `TopologyGroup.selects` and `buildNamespaceList` of Karpenter's `scheduling/topology.go`.

use std::collections::{BTreeMap, BTreeSet};

use crate::pod::{AffinityTerm, LabelSelector, TopologySpread};

/// The pods that a term counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodSelection {
    namespaces: SelectedNamespaces,
    selector: Option<LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum SelectedNamespaces {
    All,
    Named(BTreeSet<String>),
}

impl PodSelection {
    /// Of a spread constraint of a pod in the namespace `own`.
    pub(crate) fn of_spread(constraint: &TopologySpread, own: &str) -> Self {
        Self {
            namespaces: SelectedNamespaces::Named(BTreeSet::from([own.to_owned()])),
            selector: constraint.selector.clone(),
        }
    }

    /// Of an affinity term of a pod in the namespace `own`; `all` are there, with their labels.
    pub(crate) fn of_affinity(
        term: &AffinityTerm,
        own: &str,
        all: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Self {
        Self {
            namespaces: SelectedNamespaces::of(term, own, all),
            selector: term.selector.clone(),
        }
    }

    /// Whether it is that of an affinity term, as [`Self::of_affinity`] has it.
    pub(crate) fn is_of_affinity(
        &self,
        term: &AffinityTerm,
        own: &str,
        all: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> bool {
        self.selector == term.selector && self.namespaces == SelectedNamespaces::of(term, own, all)
    }

    /// Selector on the labels; without one nobody is counted.
    pub(crate) fn selector(&self) -> Option<&LabelSelector> {
        self.selector.as_ref()
    }

    /// Whether a pod with these labels counts.
    pub(crate) fn selects(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        let is_named = match &self.namespaces {
            SelectedNamespaces::All => true,
            SelectedNamespaces::Named(names) => names.contains(namespace),
        };
        is_named && self.selector().is_some_and(|it| it.matches(labels))
    }
}

impl SelectedNamespaces {
    fn of(
        term: &AffinityTerm,
        own: &str,
        all: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> Self {
        if let Some(selector) = &term.namespace_selector
            && selector.requirements.is_empty()
        {
            return Self::All;
        }
        let mut names: BTreeSet<String> = term.namespaces.iter().cloned().collect();
        if let Some(selector) = &term.namespace_selector {
            let matching = all.iter().filter(|(_, labels)| selector.matches(labels));
            names.extend(matching.map(|(name, _)| name.clone()));
        } else if names.is_empty() {
            names.insert(own.to_owned());
        }
        Self::Named(names)
    }
}
