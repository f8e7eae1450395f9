//! Why a pool gives no instance: the errors of a fleet, in EC2's codes and words.
//!
//! Takes nothing from a pool: that is the launch's (`launch.rs`).

use super::PossibleOverride;
use super::launch::{addresses, reservation_of};
use crate::catalogue::CatalogueEntry;
use crate::ec2::AccountState;
use apis::CapacityType;

impl AccountState {
    /// Why a pool gives no instance now, in EC2's codes and words.
    pub(super) fn refusal(&self, candidate: &PossibleOverride) -> Option<(&'static str, String)> {
        let PossibleOverride {
            type_name,
            zone,
            pool,
            ..
        } = candidate;
        let Some(t) = candidate.instance_type else {
            return Some((
                "InvalidParameterValue",
                format!("Invalid value '{type_name}' for InstanceType."),
            ));
        };
        let Some(subnet) = candidate.subnet else {
            return Some((
                "InvalidSubnetID.NotFound",
                "The subnet ID does not exist".to_owned(),
            ));
        };
        if !t.is_offered_in(zone) {
            let message = format!(
                "Your requested instance type ({type_name}) is not supported in your requested Availability Zone ({zone})."
            );
            return Some(("Unsupported", message));
        }
        let Some(image) = self.images.get(&candidate.image_id) else {
            let message = format!("The image id '[{}]' does not exist", candidate.image_id);
            return Some(("InvalidAMIID.NotFound", message));
        };
        if !t.architectures.contains(&image.architecture) {
            let message = format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the specified AMI.",
                t.architectures.join(","),
                image.architecture
            );
            return Some(("InvalidParameterValue", message));
        }
        if pool.is_spot() && !t.has_usage_class("spot") {
            let message =
                "Unable to fulfill capacity due to your request configuration.".to_owned();
            return Some(("UnfulfillableCapacity", message));
        }
        if let Some(id) = reservation_of(&candidate.template.data) {
            let full = self.reservations.get(&id).is_none_or(|r| {
                r.used >= r.spec.instances
                    || r.spec.instance_type != *type_name
                    || r.spec.zone != *zone
            });
            if full {
                let message =
                    format!("The requested reservation ({id}) has no remaining capacity.");
                return Some(("ReservationCapacityExceeded", message));
            }
            return None;
        }
        self.shortage(candidate, t, subnet)
    }

    fn shortage(
        &self,
        candidate: &PossibleOverride,
        t: &CatalogueEntry,
        subnet: usize,
    ) -> Option<(&'static str, String)> {
        let now = self.now();
        if self.subnets[subnet].free < addresses(t) {
            let id = &self.subnets[subnet].id;
            let message = format!(
                "There are not enough free addresses in subnet '{id}' to satisfy the requested number of instances."
            );
            return Some(("InsufficientFreeAddressesInSubnet", message));
        }
        if !candidate.pool.is_spot()
            && let Some(limit) = self.config.faults.on_demand_vcpus_max
        {
            let used: u32 = self
                .instances
                .values()
                .filter(|i| i.is_billed(now) && i.capacity_type == CapacityType::OnDemand)
                .map(|instance| instance.instance_type.vcpus)
                .sum();
            if used + t.vcpus > limit {
                let message = format!(
                    "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the specified instance type belongs to."
                );
                return Some(("VcpuLimitExceeded", message));
            }
        }
        if self.available(t, &candidate.pool, now) == 0 {
            let message = format!(
                "We currently do not have sufficient {} capacity in the Availability Zone you requested ({}). Our system will be working on provisioning additional capacity.",
                candidate.type_name, candidate.zone
            );
            return Some(("InsufficientInstanceCapacity", message));
        }
        None
    }
}
