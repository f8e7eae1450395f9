//! Nodes, daemons, owners and usage as the solver takes them in.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use scheduling::pod::Pod;
use scheduling::problem::{DaemonPod, ExistingNode, OfferingKey};
use scheduling::ranking::{FactsByOwner, Usage, UsageKey, WorkloadFacts};

use super::Snapshot;
use crate::state_node::StateNode;

impl Snapshot {
    /// One pod a DaemonSet: the newest live one, else the template's.
    pub fn daemon_pods(&self) -> Vec<DaemonPod> {
        self.data
            .daemon_sets
            .iter()
            .map(|(key, daemon_set)| {
                let live = daemon_set.newest_pod.as_ref().and_then(|key| self.pod(key));
                let template = &daemon_set.template;
                let shape = match live {
                    // The live pod is pinned to its node by a field match that the template does not have.
                    Some(live)
                        if live.shape.has_match_fields
                            || !template.required_node_affinity.is_empty() =>
                    {
                        let mut shape = (*live.shape).clone();
                        shape.has_match_fields = false;
                        shape
                            .required_node_affinity
                            .clone_from(&template.required_node_affinity);
                        Arc::new(shape)
                    }
                    Some(live) => Arc::clone(&live.shape),
                    None => Arc::clone(template),
                };
                DaemonPod {
                    key: key.clone(),
                    shape,
                }
            })
            .collect()
    }

    /// Managed nodes by pool and offering, those on their way included once it is known what they are. Prices are the
    /// caller's to add.
    pub fn usage(&self) -> BTreeMap<UsageKey, Usage> {
        let mut usage: BTreeMap<UsageKey, Usage> = BTreeMap::new();
        for node in self.nodes().filter(|it| it.is_managed()) {
            let Some(instance_type) = node.instance_type() else {
                continue;
            };
            let key = UsageKey {
                pool: node.node_pool().unwrap_or_default().to_owned(),
                offering: OfferingKey {
                    instance_type: instance_type.to_owned(),
                    zone: node.zone().map(str::to_owned),
                    capacity_type: node.capacity_type(),
                },
            };
            let count = usage.entry(key).or_default();
            count.nodes += 1;
            count.launching += u32::from(!node.is_registered());
        }
        usage
    }

    /// Facts about the owners of some pods, by UID.
    pub fn owners<'p>(&self, pods: impl Iterator<Item = &'p Arc<Pod>>) -> FactsByOwner {
        let mut facts = FactsByOwner::new();
        let mut deployments = None;
        for pod in pods {
            let Some(owner) = &pod.shape.owner else {
                continue;
            };
            if !facts.contains_key(&owner.uid) {
                let of_deployment = match pod.shape.workload() {
                    ("Deployment", name) => deployments
                        .get_or_insert_with(|| self.replicas_by_deployment())
                        .get(&(pod.shape.namespace.as_str(), name)),
                    _ => None,
                };
                let own = self.replicas(pod);
                let fact = WorkloadFacts {
                    replicas: of_deployment.map_or(own, |it| own.max(*it)),
                    disruptions_allowed: self.pdbs().evictions_allowed(pod).unwrap_or(u32::MAX),
                };
                facts.insert(owner.uid.clone(), fact);
            }
        }
        facts
    }

    /// Pods by namespace and name of the Deployment, over all its ReplicaSets: in the midst of a roll-out it has two.
    fn replicas_by_deployment(&self) -> BTreeMap<(&str, &str), u32> {
        let mut replicas = BTreeMap::new();
        for owned in self.data.owned.values() {
            if let Some((_, shape)) = &owned.newest
                && let ("Deployment", name) = shape.workload()
            {
                let key = (shape.namespace.as_str(), name);
                *replicas.entry(key).or_default() += owned.pods;
            }
        }
        replicas
    }

    /// Whether pods came or went too recently for consolidation to send others there. Not the contrary of the condition
    /// `Consolidatable`, which says whether the node itself may go: a node that is not initialized, or whose pool never
    /// consolidates, is neither. And this is of the moment, while the condition waits to be written.
    pub fn is_within_consolidate_after(&self, node: &StateNode, now: Timestamp) -> bool {
        let Some(claim) = node.claim() else {
            return false;
        };
        let Some(pool) = node.node_pool().and_then(|name| self.node_pool(name)) else {
            return false;
        };
        let after = pool.spec.disruption.consolidate_after.duration();
        let since = claim.last_pod_event_at.or(claim.conditions.initialized_at);
        match (after, since) {
            (Some(after), Some(since)) => now.duration_since(since) < after.to_signed_duration(),
            (Some(_) | None, _) => false,
        }
    }

    /// A node as the solver sees it.
    pub fn existing_node(&self, node: &StateNode, now: Timestamp) -> ExistingNode {
        let bound = self.bound(node);
        let limits = node
            .node_name()
            .and_then(|name| self.volumes().published_limits(name));
        ExistingNode {
            node_ref: node.node_ref(),
            hostname: node.hostname().to_owned(),
            pool: node.node_pool().map(str::to_owned),
            node_claim: node.claim_name().map(str::to_owned),
            labels: node.labels().clone(),
            taints: node.taints(),
            capacity: node.capacity(),
            allocatable: node.allocatable(),
            pods: bound.pods().cloned().collect(),
            requests: bound.requests().clone(),
            daemon_requests: bound.daemon_requests().clone(),
            is_initialized: node.is_initialized(),
            is_schedulable: !node.is_marked_for_deletion(),
            is_within_consolidate_after: self.is_within_consolidate_after(node, now),
            volume_limits: limits
                .into_iter()
                .flatten()
                .filter_map(|(driver, limit)| Some((driver.clone(), (*limit)?)))
                .collect(),
            volumes: self.volumes().attached(bound.pods()),
        }
    }
}
