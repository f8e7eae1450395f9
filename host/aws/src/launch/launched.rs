//! An instance as the claim that it was launched for will tell it.
//!
//! What was bought is taken from the instance, never from what was asked for. Nothing here calls EC2. Answers to
//! Karpenter's `pkg/cloudprovider/cloudprovider.go` (instanceToNodeClaim).

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, ProviderId, labels};
use cloudprovider::{InstanceLife, Launched};
use scheduling::instance_type::InstanceType;
use scheduling::requirements::AllowUndefined;

use super::LaunchContext;
use super::claim::{asks_for, node_pool, requirements, tenancy};
use super::reserved::{Reservation, reservation};
use crate::ami::ami_for;
use crate::hash::hash_annotations;
use crate::instance::Instance;

/// Instance that EC2 gave for a claim.
#[derive(Debug)]
pub(super) struct Bought<'a> {
    pub(super) id: &'a str,
    pub(super) instance_type: &'a str,
    /// Name of the zone.
    pub(super) zone: &'a str,
    pub(super) capacity_type: CapacityType,
    /// Where EC2 tells it.
    pub(super) image_id: Option<String>,
    /// Reservation that it runs in.
    pub(super) reservation_id: Option<&'a str>,
}

impl<'a> From<&'a Instance> for Bought<'a> {
    fn from(instance: &'a Instance) -> Self {
        Self {
            id: &instance.id,
            instance_type: &instance.instance_type,
            zone: &instance.zone,
            capacity_type: instance.capacity_type,
            image_id: Some(instance.image_id.clone()).filter(|id| !id.is_empty()),
            reservation_id: instance.capacity_reservation_id.as_deref(),
        }
    }
}

impl Bought<'_> {
    /// Whether the claim can live with it.
    pub(super) fn suits(&self, context: &LaunchContext<'_>) -> bool {
        let claim = &context.request.node_claim;
        let Some(instance_type) = self.type_in(context) else {
            return false;
        };
        let wanted = requirements(claim);
        let allow = AllowUndefined::WellKnown;
        wanted
            .compatible(&instance_type.requirements, allow)
            .is_ok()
            && wanted.get(labels::TOPOLOGY_ZONE).has(self.zone)
            && wanted
                .get(labels::CAPACITY_TYPE)
                .has(self.capacity_type.as_str())
            && Resources::from_list(&claim.spec.resources.requests)
                .fits(&instance_type.allocatable())
    }

    fn type_in<'t>(&self, context: &'t LaunchContext<'_>) -> Option<&'t Arc<InstanceType>> {
        let mut types = context.request.instance_types.iter();
        types.find(|it| it.name == self.instance_type)
    }

    fn reservation(&self, instance_type: &InstanceType) -> Option<Reservation> {
        let id = self.reservation_id?;
        let mut offerings = instance_type.offerings.iter();
        let found =
            offerings.find(|it| it.zone() == Some(self.zone) && it.reservation_id() == Some(id));
        found.map(reservation)
    }

    /// Nothing where the instance is of a type that nobody knows.
    pub(super) fn launched(&self, context: &LaunchContext<'_>) -> Option<Launched> {
        let instance_type = self.type_in(context)?;
        let class = &context.request.node_class;
        let status = class.status.as_ref();
        let image_id = self
            .image_id
            .clone()
            .or_else(|| ami_for(&status?.amis, instance_type).map(|ami| ami.id.clone()));
        let claim = &context.request.node_claim;
        let has_efa =
            !class.spec.network_interfaces.is_empty() || asks_for(claim, labels::RESOURCE_EFA);
        let advertised = |resources: &Resources| -> Resources {
            let is_there = |(name, amount): &(&str, i64)| {
                *amount != 0 && (*name != labels::RESOURCE_EFA || has_efa)
            };
            resources.iter().filter(is_there).collect()
        };
        let mut annotations = hash_annotations(class, context.options);
        if let Some(profile) = status.and_then(|status| status.instance_profile.clone()) {
            annotations.insert(labels::INSTANCE_PROFILE_ANNOTATION.to_owned(), profile);
        }
        Some(Launched {
            provider_id: ProviderId::of_instance(self.zone, self.id),
            image_id: image_id.unwrap_or_default(),
            node_claim_name: claim.metadata.name.clone(),
            launch_token: None,
            node_pool_name: Some(node_pool(claim).to_owned()),
            labels: self.labels(instance_type, context),
            annotations,
            capacity: advertised(&instance_type.capacity),
            allocatable: advertised(&instance_type.allocatable()),
            launched_at: Some(context.now),
            life: InstanceLife::Runs,
        })
    }

    fn labels(
        &self,
        instance_type: &InstanceType,
        context: &LaunchContext<'_>,
    ) -> BTreeMap<String, String> {
        let mut labels = single_labels(instance_type);
        let group = context.placement_group.as_ref();
        if group.is_some_and(|it| it.partitions > 0) {
            // Empty until EC2 tells which it chose: the registration hook waits for that.
            let partition = context.partition().map(|it| it.to_string());
            let partition = partition.unwrap_or_default();
            labels.insert(labels::PLACEMENT_GROUP_PARTITION.to_owned(), partition);
        }
        let tenancy = tenancy(&context.request.node_claim);
        for (key, value) in [
            (labels::TOPOLOGY_ZONE, self.zone),
            (labels::CAPACITY_TYPE, self.capacity_type.as_str()),
            (labels::INSTANCE_TENANCY, tenancy),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        let offering = instance_type.offering(self.zone, self.capacity_type);
        let zone_id =
            offering.and_then(|offering| offering.requirements.find(labels::TOPOLOGY_ZONE_ID));
        if let Some(zone_id) = zone_id.and_then(|requirement| requirement.values().next()) {
            labels.insert(labels::TOPOLOGY_ZONE_ID.to_owned(), zone_id.to_owned());
        }
        if let Some(reservation) = self.reservation(instance_type) {
            let Reservation {
                id,
                kind,
                is_interruptible,
                free: _,
            } = reservation;
            labels.insert(labels::CAPACITY_RESERVATION_ID.to_owned(), id);
            labels.insert(
                labels::CAPACITY_RESERVATION_TYPE.to_owned(),
                kind.as_str().to_owned(),
            );
            let interruptible = labels::CAPACITY_RESERVATION_INTERRUPTIBLE.to_owned();
            labels.insert(interruptible, is_interruptible.to_string());
        }
        labels
    }
}

/// Labels that the type alone settles.
fn single_labels(instance_type: &InstanceType) -> BTreeMap<String, String> {
    let reservation_keys = [
        labels::CAPACITY_RESERVATION_ID,
        labels::CAPACITY_RESERVATION_TYPE,
        labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
    ];
    let requirements = instance_type.requirements.iter();
    requirements
        .filter(|requirement| {
            !requirement.is_complement() && !reservation_keys.contains(&requirement.key())
        })
        .filter_map(|requirement| {
            let mut values = requirement.values();
            match (values.next(), values.next()) {
                (Some(value), None) => Some((requirement.key().to_owned(), value.to_owned())),
                _ => None,
            }
        })
        .collect()
}
