//! An account that goes on where an earlier process left it, from what the cluster remembers of its instances.
//!
//! Never makes an instance of what the cluster does not know: what was launched and never told is forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::CapacityType;
use jiff::Timestamp;

use super::fleet::launch::{DEFAULT_EPHEMERAL_BYTES, addresses};
use super::market::CapacityPool;
use super::{AccountState, InstanceEvent, KubeletSettings, SimulatedEc2, SimulatedInstance};
use crate::random::SplitMix64;

/// An instance as NodeClaims and Nodes tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownInstance {
    /// For example `i-0123456789abcdef0`.
    pub id: String,
    /// Name of its type.
    pub instance_type: String,
    /// Name of the zone.
    pub zone: String,
    /// How it was bought.
    pub capacity_type: CapacityType,
    /// Reservation it runs in.
    pub capacity_reservation_id: Option<String>,
    /// Id of the image that it booted.
    pub image_id: String,
    /// First address, once its Node told it.
    pub private_ip: Option<String>,
    /// Settings with which its kubelet registers.
    pub bootstrap: KubeletSettings,
    /// Security groups of its interfaces.
    pub security_group_ids: Vec<String>,
    /// Name of its instance profile.
    pub instance_profile: Option<String>,
    /// Tags of the instance, by key.
    pub tags: BTreeMap<String, String>,
    /// When it was asked for.
    pub launched_at: Timestamp,
    /// How often it was rebooted.
    pub reboots: u32,
    /// Whether its Node is there; if not, it boots as from its launch.
    pub is_registered: bool,
}

impl SimulatedEc2 {
    /// Takes up an account again, and answers the ids that it cannot have: their type or zone does not exist here.
    ///
    /// New ids differ from all that an earlier process with the same seed gave.
    pub fn resume(&self, mut known: Vec<KnownInstance>) -> Vec<String> {
        // Addresses that are taken first, so that those given anew differ from them.
        known.sort_by(|a, b| (a.private_ip.is_none(), &a.id).cmp(&(b.private_ip.is_none(), &b.id)));
        let mut state = self.state();
        let since = state.now().as_millisecond();
        state.ids = SplitMix64::new(state.config.seed, &format!("ec2-ids-{since}"));
        let mut refused = Vec::new();
        for instance in known {
            let id = instance.id.clone();
            if state.take_up(instance).is_none() {
                refused.push(id);
            }
        }
        refused
    }
}

impl AccountState {
    /// Gives an address to nobody else. Whichever subnet it would be of here: names of nodes are made of addresses.
    fn keep_address(&mut self, address: Option<&str>) {
        for subnet in &mut self.subnets {
            if let Some(address) = address {
                subnet.skip_to(address);
            }
        }
    }

    fn take_up(&mut self, known: KnownInstance) -> Option<()> {
        let (id, is_registered) = (known.id.clone(), known.is_registered);
        let instance = self.made_again(known)?;
        self.occupy(&instance);
        self.instances.insert(id.clone(), instance);
        if !is_registered {
            self.tell(&InstanceEvent::Launched(id));
        }
        Some(())
    }

    /// The instance with an address of its subnet; not yet among those of the account.
    fn made_again(&mut self, known: KnownInstance) -> Option<SimulatedInstance> {
        let KnownInstance {
            id,
            instance_type,
            zone,
            capacity_type,
            capacity_reservation_id,
            image_id,
            private_ip,
            bootstrap,
            security_group_ids,
            instance_profile,
            tags,
            launched_at,
            reboots,
            is_registered,
        } = known;
        let t = self.catalogue.get(&instance_type)?;
        let [visible, running, registers, ready] = if is_registered {
            [launched_at; 4]
        } else {
            self.boot_times(launched_at)
        };
        let spot_request_id = (capacity_type == CapacityType::Spot).then(|| self.new_id("sir"));
        let fleet_id = self.new_id("fleet");
        self.keep_address(private_ip.as_deref());
        let subnet = self.subnets.iter_mut().find(|it| it.zone == zone)?;
        subnet.free -= addresses(t);
        let private_ip = private_ip.unwrap_or_else(|| subnet.next_address());
        Some(SimulatedInstance {
            instance_type: t,
            zone_id: subnet.zone_id.clone(),
            subnet_id: subnet.id.clone(),
            price_per_hour: self.price(t, &zone, capacity_type).unwrap_or_default(),
            capacity_type,
            image_id,
            kubernetes_version: self.config.kubernetes_version.clone(),
            bootstrap: Arc::new(bootstrap),
            ephemeral_storage_bytes: DEFAULT_EPHEMERAL_BYTES,
            efa_interfaces: 0,
            security_group_ids,
            instance_profile,
            tenancy: "default".to_owned(),
            placement_group: None,
            capacity_reservation_id,
            tags,
            fleet_id,
            spot_request_id,
            private_ip,
            addresses: addresses(t),
            launched_at,
            visible_at: visible,
            running_at: running,
            registers_at: registers,
            ready_at: ready,
            shutting_down_at: None,
            terminated_at: None,
            termination_reason: None,
            reboots,
            failed_check: None,
            scheduled_event: None,
            notice_at: None,
            interruption_at: None,
            id,
            zone,
        })
    }

    /// Counts an instance as taken from its pool and its reservation.
    pub(super) fn occupy(&mut self, instance: &SimulatedInstance) {
        let pool = CapacityPool::new(
            instance.instance_type.name,
            &instance.zone,
            instance.capacity_type,
        );
        *self.used.entry(pool).or_default() += 1;
        let reservation = instance
            .capacity_reservation_id
            .as_ref()
            .and_then(|id| self.reservations.get_mut(id));
        if let Some(reservation) = reservation {
            reservation.used += 1;
        }
    }
}
