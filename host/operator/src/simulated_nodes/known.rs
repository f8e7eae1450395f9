//! What NodeClaims and Nodes tell of the simulated instances that an earlier controller launched.
//!
//! Pure. What nobody wrote down (disks, kubelet settings of a node that has not registered) takes its default.

use std::collections::{BTreeMap, BTreeSet};

use apis::{CapacityType, Ec2NodeClass, InstanceName, NodeClaim, ProviderId, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt as _;
use sim::ec2::{KnownInstance, KubeletSettings, SimulatedInstance};

/// What is read of the cluster.
#[derive(Debug, Default)]
pub(crate) struct KnownObjects {
    pub(crate) claims: Vec<NodeClaim>,
    /// Nodes of simulated instances.
    pub(crate) nodes: BTreeMap<ProviderId, Node>,
    pub(crate) classes: Vec<Ec2NodeClass>,
}

impl KnownObjects {
    /// The instances of all claims that have one, and of Nodes whose claim is gone.
    pub(crate) fn instances(&self, cluster_name: &str) -> Vec<KnownInstance> {
        let with_id = self.claims.iter();
        let with_id = with_id.filter_map(|claim| Some((claim.provider_id()?, claim)));
        let claims: BTreeMap<ProviderId, &NodeClaim> = with_id.collect();
        let ids: BTreeSet<&ProviderId> = claims.keys().chain(self.nodes.keys()).collect();
        let known = ids.into_iter().map(|id| InstanceObjects {
            provider_id: id,
            claim: claims.get(id).copied(),
            node: self.nodes.get(id),
        });
        known
            .filter_map(|known| known.instance(&self.classes, cluster_name))
            .collect()
    }
}

/// One instance, as the two objects that speak of it.
struct InstanceObjects<'a> {
    provider_id: &'a ProviderId,
    claim: Option<&'a NodeClaim>,
    node: Option<&'a Node>,
}

impl InstanceObjects<'_> {
    fn instance(&self, classes: &[Ec2NodeClass], cluster_name: &str) -> Option<KnownInstance> {
        let InstanceName { zone, id } = self.provider_id.instance()?;
        let class_name = self.class_name();
        let class = classes.iter().find(|it| it.name_any() == class_name);
        let class_status = class.and_then(|class| class.status.as_ref());
        let groups = class_status.map(|status| status.security_groups.as_slice());
        let groups = groups.unwrap_or_default();
        Some(KnownInstance {
            id: id.to_owned(),
            instance_type: self.label(labels::INSTANCE_TYPE)?.to_owned(),
            zone: zone.to_owned(),
            capacity_type: self
                .label(labels::CAPACITY_TYPE)
                .and_then(CapacityType::parse)
                // As EC2 has it of an instance of which it says neither of the others.
                .unwrap_or(CapacityType::OnDemand),
            capacity_reservation_id: self
                .label(labels::CAPACITY_RESERVATION_ID)
                .map(ToOwned::to_owned),
            image_id: self
                .claim
                .and_then(|claim| claim.status.as_ref()?.image_id.clone())
                .unwrap_or_default(),
            private_ip: self.node.and_then(internal_ip),
            bootstrap: self.bootstrap(),
            security_group_ids: groups.iter().map(|group| group.id.clone()).collect(),
            instance_profile: class_status.and_then(|status| status.instance_profile.clone()),
            tags: self.tags(class, cluster_name),
            launched_at: self.created_at()?,
            reboots: self
                .node
                .map_or(0, |node| SimulatedInstance::reboots_of(id, boot_id(node))),
            is_registered: self.node.is_some(),
        })
    }

    fn label(&self, key: &str) -> Option<&str> {
        let of_claim = self.claim.and_then(|claim| claim.labels().get(key));
        let of_node = self.node.and_then(|node| node.labels().get(key));
        of_claim.or(of_node).map(String::as_str)
    }

    fn class_name(&self) -> String {
        let of_claim = self
            .claim
            .map(|claim| claim.spec.node_class_ref.name.clone());
        let of_node = || self.label(labels::EC2_NODE_CLASS).map(ToOwned::to_owned);
        of_claim.or_else(of_node).unwrap_or_default()
    }

    fn created_at(&self) -> Option<Timestamp> {
        let of_claim = self
            .claim
            .and_then(|it| it.metadata.creation_timestamp.clone());
        let of_node = || self.node?.metadata.creation_timestamp.clone();
        of_claim.or_else(of_node).map(|time| time.0)
    }

    /// What a kubelet that has yet to register is told, as its claim says it.
    fn bootstrap(&self) -> KubeletSettings {
        let labels = match (self.node, self.claim) {
            (Some(node), _) => node.labels().clone(),
            (None, Some(claim)) => claim.labels().clone(),
            (None, None) => BTreeMap::new(),
        };
        let taints = match (self.node, self.claim) {
            (Some(node), _) => node
                .spec
                .as_ref()
                .and_then(|spec| spec.taints.clone())
                .unwrap_or_default(),
            (None, Some(claim)) => {
                let own = [labels::unregistered_taint()];
                let spec = &claim.spec;
                [&own[..], &spec.taints, &spec.startup_taints].concat()
            }
            (None, None) => Vec::new(),
        };
        let parts = |taint: Taint| (taint.key, taint.value.unwrap_or_default(), taint.effect);
        KubeletSettings {
            labels,
            taints: taints.into_iter().map(parts).collect(),
            ..KubeletSettings::default()
        }
    }

    fn tags(&self, class: Option<&Ec2NodeClass>, cluster_name: &str) -> BTreeMap<String, String> {
        let node_pool = self.label(labels::NODEPOOL).unwrap_or_default();
        let mut tags = class
            .map(|class| aws::launch_tags(class, cluster_name, node_pool))
            .unwrap_or_default();
        if let Some(claim) = self.claim {
            tags.insert(labels::NODECLAIM_TAG.to_owned(), claim.name_any());
        }
        tags
    }
}

/// The boot that a Node tells of; empty before its kubelet spoke.
pub(super) fn boot_id(node: &Node) -> &str {
    let info = node.status.as_ref().and_then(|it| it.node_info.as_ref());
    info.map_or("", |it| &it.boot_id)
}

fn internal_ip(node: &Node) -> Option<String> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    let internal = addresses.iter().find(|it| it.type_ == "InternalIP")?;
    Some(internal.address.clone())
}
