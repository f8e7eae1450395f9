//! PodDisruptionBudgets, and what they say of a pod.
//!
//! Answers to Karpenter's `pkg/utils/pdb`. The eviction API has the last word; this only foresees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::policy::v1;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use scheduling::pod::{LabelSelector, Pod};

/// A PodDisruptionBudget of the cluster.
#[derive(Debug, Clone)]
pub struct Pdb {
    pub namespace: String,
    pub name: String,
    selector: Option<LabelSelector>,
    /// Evictions allowed now, from `status.disruptionsAllowed`; 0 without a status.
    disruptions_allowed: i32,
    /// Can never allow an eviction by its own definition.
    is_fully_blocking: bool,
    /// Lets pods go that are not Ready.
    always_allows_unhealthy: bool,
}

/// Answer of the PodDisruptionBudgets to evicting a pod now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PdbVerdict {
    /// Nothing stands in the way.
    Free,
    /// The eviction API refuses pods matched by several; names as `namespace/name`.
    Many(Vec<String>),
    /// No disruption is allowed at present.
    Blocked(String),
}

impl Pdb {
    /// Reads the API object.
    pub fn parse(object: &v1::PodDisruptionBudget) -> Self {
        let spec = object.spec.as_ref();
        let is = |value: Option<&IntOrString>, int: Option<i32>, text: &[&str]| match value {
            Some(IntOrString::Int(it)) => Some(*it) == int,
            Some(IntOrString::String(it)) => text.contains(&it.as_str()),
            None => false,
        };
        Self {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
            selector: spec
                .and_then(|it| it.selector.as_ref())
                .map(LabelSelector::parse),
            disruptions_allowed: object
                .status
                .as_ref()
                .map_or(0, |it| it.disruptions_allowed),
            is_fully_blocking: spec.is_some_and(|it| {
                is(it.max_unavailable.as_ref(), Some(0), &["0", "0%"])
                    || is(it.min_available.as_ref(), None, &["100%"])
            }),
            always_allows_unhealthy: spec
                .and_then(|it| it.unhealthy_pod_eviction_policy.as_deref())
                == Some("AlwaysAllow"),
        }
    }

    /// Name for people, `namespace/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn selects(&self, pod: &Pod) -> bool {
        self.namespace == pod.key.namespace
            && self
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&pod.shape.labels))
    }

    fn exempts(&self, pod: &Pod) -> bool {
        self.always_allows_unhealthy && !pod.is_ready
    }
}

/// All PodDisruptionBudgets, by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct Pdbs(BTreeMap<String, BTreeMap<String, Arc<Pdb>>>);

impl Pdbs {
    pub(crate) fn insert(&mut self, pdb: Pdb) {
        self.0
            .entry(pdb.namespace.clone())
            .or_default()
            .insert(pdb.name.clone(), Arc::new(pdb));
    }

    pub(crate) fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(named) = self.0.get_mut(namespace) {
            named.remove(name);
        }
    }

    /// Every one, in order of namespace and name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Pdb>> {
        self.0.values().flat_map(BTreeMap::values)
    }

    fn matching<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<Pdb>> {
        self.0
            .get(&pod.key.namespace)
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter(move |pdb| pdb.selects(pod))
    }

    /// Whether the pod can be evicted now. The caller has checked that it is evictable at all.
    pub fn verdict(&self, pod: &Pod) -> PdbVerdict {
        let matching: Vec<_> = self.matching(pod).collect();
        if matching.len() > 1 {
            return PdbVerdict::Many(matching.iter().map(|pdb| pdb.key()).collect());
        }
        match matching.first() {
            Some(pdb) if pdb.disruptions_allowed <= 0 && !pdb.exempts(pod) => {
                PdbVerdict::Blocked(pdb.key())
            }
            Some(_) | None => PdbVerdict::Free,
        }
    }

    /// How many pods like this one may be evicted now; `None` where no budget selects it. That of several is none: the
    /// eviction API refuses their pods, whatever each of them allows.
    pub(crate) fn evictions_allowed(&self, pod: &Pod) -> Option<u32> {
        let mut matching = self.matching(pod);
        let allowed = matching.next()?.disruptions_allowed.max(0);
        match matching.next() {
            Some(_) => Some(0),
            None => Some(allowed.unsigned_abs()),
        }
    }

    /// Whether no eviction of the pod can succeed, whatever else happens.
    pub fn can_never_evict(&self, pod: &Pod) -> bool {
        let mut count = 0;
        let mut blocked = false;
        for pdb in self.matching(pod) {
            count += 1;
            blocked |= pdb.is_fully_blocking && !pdb.exempts(pod);
        }
        count > 1 || blocked
    }
}
