//! CreateFleet for fleets of type `instant`: which pool gives an instance, and what it costs to ask twice.
//!
//! Whether an instance starts is not decided here. Answers to EC2's CreateFleet and to its errors.

pub(super) mod answered;
mod candidate;
pub(super) mod launch;
mod refusal;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::AccountState;
use super::instance_types::dry_run;
use super::market::CapacityPool;
use crate::random::hash;
use apis::CapacityType;
use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::operation::run_instances::{RunInstancesInput, RunInstancesOutput};
use aws_sdk_ec2::types::{
    CreateFleetInstance, DefaultTargetCapacityType, FleetLaunchTemplateOverridesRequest,
    FleetOnDemandAllocationStrategy, FleetType, InstanceType as Ec2InstanceType,
    SpotAllocationStrategy,
};

use answered::FleetRecord;
use candidate::{FleetTemplate, PossibleOverride, error, lifecycle, response};
use launch::reservation_of;

impl AccountState {
    pub(super) fn create_fleet(
        &mut self,
        input: &CreateFleetInput,
    ) -> ApiResult<CreateFleetOutput> {
        let token = input.client_token.clone().unwrap_or_default();
        let request = hash(self.config.seed, &[&format!("{input:?}")]);
        let now = self.now();
        if let Some(record) = self.fleets.get(&token, now) {
            if record.request == request {
                return Ok(record.answer.clone());
            }
            let message =
                "The request parameters do not match those of the earlier request with this token.";
            return Err(ApiError::client("IdempotentParameterMismatch", message));
        }
        let target = input
            .target_capacity_specification
            .as_ref()
            .ok_or_else(|| {
                ApiError::client(
                    "MissingParameter",
                    "TargetCapacitySpecification is required",
                )
            })?;
        let how = match target.default_target_capacity_type {
            Some(DefaultTargetCapacityType::Spot) => CapacityType::Spot,
            _ => CapacityType::OnDemand,
        };
        let mut candidates = self.candidates(input, how)?;
        if candidates.is_empty() {
            let message = "No overrides were given, or none names an instance type and a subnet.";
            return Err(ApiError::client("InvalidFleetConfig", message));
        }
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        self.order(&mut candidates, input, how);
        let answer = self.fulfil(
            input,
            &candidates,
            target.total_target_capacity.unwrap_or(1),
        );
        if !token.is_empty() {
            let answer = answer.clone();
            let record = FleetRecord { request, answer };
            self.fleets.insert(token, record, now);
        }
        if self.happens(self.config.faults.lost_answer_chance) {
            let why = "the connection was reset before the answer arrived";
            return Err(ApiError::unanswered(why));
        }
        Ok(answer)
    }

    /// Says of a dry run whether its launch template could be used; there are no others here.
    pub(super) fn run_instances(&self, input: &RunInstancesInput) -> ApiResult<RunInstancesOutput> {
        let template = input.launch_template.as_ref();
        let record = self.launch_template(
            template.and_then(|it| it.launch_template_id.as_deref()),
            template.and_then(|it| it.launch_template_name.as_deref()),
        )?;
        self.check_profile(&record.data)?;
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        Err(ApiError::client(
            "UnsupportedOperation",
            "instances are launched by fleets here",
        ))
    }

    fn candidates(
        &self,
        input: &CreateFleetInput,
        how: CapacityType,
    ) -> ApiResult<Vec<PossibleOverride>> {
        let mut candidates = Vec::new();
        for config in input.launch_template_configs.as_deref().unwrap_or_default() {
            let specification = config.launch_template_specification.as_ref();
            let record = self.launch_template(
                specification.and_then(|s| s.launch_template_id.as_deref()),
                specification.and_then(|s| s.launch_template_name.as_deref()),
            )?;
            self.check_profile(&record.data)?;
            let template = FleetTemplate {
                id: record.id.clone(),
                name: record.name.clone(),
                data: Arc::clone(&record.data),
                bootstrap: Arc::clone(&record.bootstrap),
            };
            let how = match (how, reservation_of(&template.data)) {
                (CapacityType::OnDemand, Some(_)) => CapacityType::Reserved,
                _ => how,
            };
            for request in config.overrides.as_deref().unwrap_or_default() {
                candidates.push(self.candidate(request, &template, how, candidates.len()));
            }
        }
        Ok(candidates)
    }

    fn candidate(
        &self,
        request: &FleetLaunchTemplateOverridesRequest,
        template: &FleetTemplate,
        how: CapacityType,
        order: usize,
    ) -> PossibleOverride {
        let type_name = request
            .instance_type()
            .map_or("", Ec2InstanceType::as_str)
            .to_owned();
        let subnet = self.subnets.iter().position(|s| match request.subnet_id() {
            Some(id) => s.id == id,
            None => request.availability_zone() == Some(s.zone.as_str()),
        });
        let zone = subnet.map_or_else(String::new, |index| self.subnets[index].zone.clone());
        let instance_type = self.catalogue.get(&type_name);
        let image_id = request
            .image_id()
            .or_else(|| template.data.image_id())
            .unwrap_or_default();
        PossibleOverride {
            price: instance_type.and_then(|t| self.price(t, &zone, how)),
            pool: CapacityPool::new(&type_name, &zone, how),
            instance_type,
            image_id: image_id.to_owned(),
            priority: request.priority().unwrap_or(f64::MAX),
            template: template.clone(),
            type_name,
            zone,
            subnet,
            order,
        }
    }

    /// Sorts as the fleet's allocation strategy would try the pools.
    fn order(
        &self,
        candidates: &mut [PossibleOverride],
        input: &CreateFleetInput,
        how: CapacityType,
    ) {
        let now = self.now();
        let by_price = |c: &PossibleOverride| c.price.unwrap_or(f64::MAX);
        if how == CapacityType::Spot {
            let strategy = input
                .spot_options
                .as_ref()
                .and_then(|o| o.allocation_strategy.clone());
            // Coarse depth: within a class pools count as equally safe, and price or priority decides.
            let class = |c: &PossibleOverride| {
                let Some(t) = c.instance_type else {
                    return u32::MAX;
                };
                let left = self.available(t, &c.pool, now);
                if left == 0 {
                    2
                } else {
                    u32::from(left * 10 < self.depth(t, &c.pool))
                }
            };
            let depth = |c: &PossibleOverride| {
                c.instance_type
                    .map_or(0, |t| self.available(t, &c.pool, now))
            };
            candidates.sort_by(|a, b| {
                match strategy {
                    Some(SpotAllocationStrategy::CapacityOptimized) => depth(b).cmp(&depth(a)),
                    Some(SpotAllocationStrategy::CapacityOptimizedPrioritized) => class(a)
                        .cmp(&class(b))
                        .then(a.priority.total_cmp(&b.priority)),
                    Some(SpotAllocationStrategy::PriceCapacityOptimized) => class(a)
                        .cmp(&class(b))
                        .then(by_price(a).total_cmp(&by_price(b))),
                    _ => by_price(a).total_cmp(&by_price(b)),
                }
                .then(a.order.cmp(&b.order))
            });
            return;
        }
        let strategy = input
            .on_demand_options
            .as_ref()
            .and_then(|o| o.allocation_strategy.clone());
        let prioritized = strategy == Some(FleetOnDemandAllocationStrategy::Prioritized);
        candidates.sort_by(|a, b| {
            let first = if prioritized {
                a.priority.total_cmp(&b.priority)
            } else {
                by_price(a).total_cmp(&by_price(b))
            };
            first.then(a.order.cmp(&b.order))
        });
    }

    fn fulfil(
        &mut self,
        input: &CreateFleetInput,
        candidates: &[PossibleOverride],
        target: i32,
    ) -> CreateFleetOutput {
        let fleet_id = self.new_id("fleet");
        let mut errors = Vec::new();
        let mut refused = BTreeSet::new();
        let mut instances: Vec<(usize, Vec<String>)> = Vec::new();
        for _ in 0..target.max(0) {
            for (index, candidate) in candidates.iter().enumerate() {
                if refused.contains(&index) {
                    continue;
                }
                if let Some((code, message)) = self.refusal(candidate) {
                    refused.insert(index);
                    errors.push(error(candidate, code, &message));
                    continue;
                }
                let Some(id) = self.launch(input, candidate, &fleet_id) else {
                    continue;
                };
                match instances.last_mut().filter(|(last, _)| *last == index) {
                    Some((_, ids)) => ids.push(id),
                    None => instances.push((index, vec![id])),
                }
                break;
            }
        }
        let instances = instances.into_iter().map(|(index, ids)| {
            let candidate = &candidates[index];
            CreateFleetInstance::builder()
                .launch_template_and_overrides(response(candidate))
                .lifecycle(lifecycle(candidate))
                .set_instance_ids(Some(ids))
                .instance_type(Ec2InstanceType::from(candidate.type_name.as_str()))
                .availability_zone(&candidate.zone)
                .set_subnet_id(candidate.subnet.map(|index| self.subnets[index].id.clone()))
                .build()
        });
        CreateFleetOutput::builder()
            .fleet_id(fleet_id)
            .set_instances(Some(instances.collect()))
            .set_errors(Some(errors))
            .build()
    }
}

/// Only `instant` fleets answer with instances; the seam asks for no other.
pub(super) fn check_type(input: &CreateFleetInput) -> ApiResult<()> {
    match input.r#type {
        None | Some(FleetType::Instant) => Ok(()),
        Some(_) => Err(ApiError::client(
            "UnsupportedOperation",
            "only fleets of type instant exist here",
        )),
    }
}
