//! Capacity reservations and placement groups, as the world's file describes them.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::describe_capacity_reservations::{
    DescribeCapacityReservationsInput, DescribeCapacityReservationsOutput,
};
use aws_sdk_ec2::operation::describe_placement_groups::{
    DescribePlacementGroupsInput, DescribePlacementGroupsOutput,
};
use aws_sdk_ec2::types::{
    CapacityReservation, CapacityReservationState, CapacityReservationTenancy,
    CapacityReservationType, InstanceMatchCriteria, LaunchTemplatePlacementRequest, PlacementGroup,
    PlacementGroupState, PlacementStrategy,
};

use super::filters::{matches, page, tag_list};
use super::network::{ACCOUNT, zone_id};
use super::{AccountState, Ec2Config, stable_id};

/// A capacity reservation to exist from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityReservationSpec {
    /// Its Name tag, from which the id follows.
    pub name: String,
    /// Type that is reserved.
    pub instance_type: String,
    /// Name of the zone.
    pub zone: String,
    /// Instances that are reserved.
    pub instances: u32,
    /// Tags beside its name.
    pub tags: BTreeMap<String, String>,
}

/// A placement group to exist from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementGroupSpec {
    pub name: String,
    /// `cluster`, `partition` or `spread`.
    pub strategy: String,
    /// Partitions of a partition group.
    pub partitions: Option<i32>,
}

#[derive(Debug)]
pub(super) struct ReservationRecord {
    pub(super) id: String,
    pub(super) spec: CapacityReservationSpec,
    pub(super) used: u32,
}

pub(super) fn reservations(config: &Ec2Config) -> BTreeMap<String, ReservationRecord> {
    let record = |spec: &CapacityReservationSpec| {
        let id = stable_id(
            config.seed,
            "cr",
            &[&spec.name, &spec.instance_type, &spec.zone],
        );
        (
            id.clone(),
            ReservationRecord {
                id,
                spec: spec.clone(),
                used: 0,
            },
        )
    };
    config.capacity_reservations.iter().map(record).collect()
}

impl AccountState {
    pub(super) fn describe_capacity_reservations(
        &self,
        input: &DescribeCapacityReservationsInput,
    ) -> ApiResult<DescribeCapacityReservationsOutput> {
        let ids = input
            .capacity_reservation_ids
            .as_deref()
            .unwrap_or_default();
        if let Some(id) = ids.iter().find(|id| !self.reservations.contains_key(*id)) {
            let message = format!("The capacity reservation ID '{id}' does not exist");
            return Err(ApiError::client(
                "InvalidCapacityReservationId.NotFound",
                message,
            ));
        }
        let filters = input.filters.as_deref().unwrap_or_default();
        let found = self
            .reservations
            .values()
            .filter(|record| ids.is_empty() || ids.contains(&record.id))
            .filter(|record| {
                matches(filters, &tags(record), |name| match name {
                    "state" => vec!["active".to_owned()],
                    "owner-id" => vec![ACCOUNT.to_owned()],
                    "instance-type" => vec![record.spec.instance_type.clone()],
                    "instance-match-criteria" => vec!["targeted".to_owned()],
                    "availability-zone" => vec![record.spec.zone.clone()],
                    _ => Vec::new(),
                })
            })
            .map(|record| self.reservation(record));
        let (found, next) = page(
            found.collect(),
            input.max_results,
            input.next_token.as_deref(),
        )?;
        Ok(DescribeCapacityReservationsOutput::builder()
            .set_capacity_reservations(Some(found))
            .set_next_token(next)
            .build())
    }

    fn reservation(&self, record: &ReservationRecord) -> CapacityReservation {
        let count = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let total = record.spec.instances;
        CapacityReservation::builder()
            .capacity_reservation_id(&record.id)
            .owner_id(ACCOUNT)
            .instance_type(&record.spec.instance_type)
            .availability_zone(&record.spec.zone)
            .availability_zone_id(zone_id(&self.config.region, &record.spec.zone))
            .total_instance_count(count(total))
            .available_instance_count(count(total.saturating_sub(record.used)))
            .instance_match_criteria(InstanceMatchCriteria::Targeted)
            .reservation_type(CapacityReservationType::Default)
            .tenancy(CapacityReservationTenancy::Default)
            .state(CapacityReservationState::Active)
            .set_tags(Some(tag_list(&tags(record))))
            .build()
    }

    fn placement_groups(&self) -> impl Iterator<Item = (String, &PlacementGroupSpec)> {
        let specs = self.config.placement_groups.iter();
        specs.map(|spec| (stable_id(self.config.seed, "pg", &[&spec.name]), spec))
    }

    /// The placement group of a template and, where the group has partitions, the one asked for, else the emptiest.
    pub(super) fn place_in_group(
        &self,
        placement: Option<&LaunchTemplatePlacementRequest>,
    ) -> Option<(String, Option<i32>)> {
        let placement = placement?;
        let id = placement.group_id()?;
        let (id, spec) = self.placement_groups().find(|it| it.0 == id)?;
        let used = |partition: &i32| {
            let place = Some((id.clone(), Some(*partition)));
            let running = self.instances.values();
            let running = running.filter(|it| it.shutting_down_at.is_none());
            running.filter(|it| it.placement_group == place).count()
        };
        let emptiest = || (1..=spec.partitions?).min_by_key(used);
        let partition = placement.partition_number().or_else(emptiest);
        Some((id, partition))
    }

    pub(super) fn describe_placement_groups(
        &self,
        input: &DescribePlacementGroupsInput,
    ) -> ApiResult<DescribePlacementGroupsOutput> {
        let ids = input.group_ids.as_deref().unwrap_or_default();
        let names = input.group_names.as_deref().unwrap_or_default();
        let filters = input.filters.as_deref().unwrap_or_default();
        let groups: Vec<(String, &PlacementGroupSpec)> = self.placement_groups().collect();
        if let Some(name) = names
            .iter()
            .find(|name| groups.iter().all(|(_, spec)| spec.name != **name))
        {
            let message = format!("The Placement Group '{name}' is unknown.");
            return Err(ApiError::client("InvalidPlacementGroup.Unknown", message));
        }
        let no_tags = BTreeMap::new();
        let found = groups.into_iter().filter(|(id, spec)| {
            (ids.is_empty() || ids.contains(id))
                && (names.is_empty() || names.contains(&spec.name))
                && matches(filters, &no_tags, |name| match name {
                    "group-name" => vec![spec.name.clone()],
                    "group-id" => vec![id.clone()],
                    "strategy" => vec![spec.strategy.clone()],
                    "state" => vec!["available".to_owned()],
                    _ => Vec::new(),
                })
        });
        let group = |(id, spec): (String, &PlacementGroupSpec)| {
            PlacementGroup::builder()
                .group_id(id)
                .group_name(&spec.name)
                .strategy(PlacementStrategy::from(spec.strategy.as_str()))
                .set_partition_count(spec.partitions)
                .state(PlacementGroupState::Available)
                .build()
        };
        Ok(DescribePlacementGroupsOutput::builder()
            .set_placement_groups(Some(found.map(group).collect()))
            .build())
    }
}

fn tags(record: &ReservationRecord) -> BTreeMap<String, String> {
    let mut tags = record.spec.tags.clone();
    tags.insert("Name".to_owned(), record.spec.name.clone());
    tags
}
