//! A node that a solve finds.
//!
//! A value only, apart from [`crate::problem`] because devices look at nodes and a problem has devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;
use apis::{NodeRef, labels};
use k8s_openapi::api::core::v1::Taint;

use crate::pod::Pod;
use crate::requirements::{Requirement, Requirements, is_negative};

/// A node that exists, or a launched claim whose node is expected.
#[derive(Debug, Clone)]
pub struct ExistingNode {
    /// Its Node, or its claim while no Node has registered.
    pub node_ref: NodeRef,
    /// Host name; the label `kubernetes.io/hostname` or the name.
    pub hostname: String,
    /// Name of the NodePool that owns it; none for a node that no pool made.
    pub pool: Option<String>,
    /// Name of the claim, for managed nodes.
    pub node_claim: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Taints that count now.
    pub taints: Vec<Taint>,
    pub capacity: Resources,
    pub allocatable: Resources,
    /// Bound pods that are not terminal, DaemonSet pods included.
    pub pods: Vec<Arc<Pod>>,
    /// Requests of all bound pods.
    pub requests: Resources,
    /// The part of `requests` that belongs to DaemonSet pods.
    pub daemon_requests: Resources,
    /// Whether initialization is done.
    pub is_initialized: bool,
    /// Whether new pods may be placed; nodes that are going away only count for topology.
    pub is_schedulable: bool,
    /// Whether the node is within its pool's `consolidateAfter` window.
    pub is_within_consolidate_after: bool,
    /// Volume limits by CSI driver, from the CSINode.
    pub volume_limits: BTreeMap<String, u32>,
    /// Volumes attached, by CSI driver.
    pub volumes: BTreeMap<String, BTreeSet<String>>,
}

impl ExistingNode {
    /// A node that is ready and has nothing on it, of nobody's pool and without labels.
    pub fn empty(name: impl Into<String>, allocatable: Resources) -> Self {
        let name = name.into();
        Self {
            node_ref: NodeRef::node(&*name),
            hostname: name,
            pool: None,
            node_claim: None,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            capacity: allocatable.clone(),
            allocatable,
            pods: Vec::new(),
            requests: Resources::new(),
            daemon_requests: Resources::new(),
            is_initialized: true,
            is_schedulable: true,
            is_within_consolidate_after: false,
            volume_limits: BTreeMap::new(),
            volumes: BTreeMap::new(),
        }
    }

    /// The value of a label; a node without a host name has its own.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        match self.labels.get(key) {
            None if key == labels::HOSTNAME => Some(&self.hostname),
            known => known.map(String::as_str),
        }
    }

    /// Whether its labels meet a requirement; a label that it lacks meets only negative ones.
    pub(crate) fn meets(&self, requirement: &Requirement) -> bool {
        match self.label(requirement.key()) {
            Some(value) => requirement.has(value),
            None => is_negative(requirement.operator()),
        }
    }

    /// The same of all of them.
    pub(crate) fn meets_all(&self, requirements: &Requirements) -> bool {
        requirements.iter().all(|it| self.meets(it))
    }
}
