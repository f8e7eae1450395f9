//! An EC2 instance of the simulated region, and the moments of its life.
//!
//! All moments are settled at launch from the seed; state is a function of them and the clock, so nothing
//! has to run for an instance to age.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{CapacityType, ProviderId};
use jiff::Timestamp;

use crate::catalogue::CatalogueEntry;
use crate::ec2::bootstrap::KubeletSettings;

/// EC2's instance states that occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// EC2 makes it, and its machine is not on yet.
    Pending,
    /// Its machine is on.
    Running,
    /// On its way out.
    ShuttingDown,
    /// Gone; described for an hour more.
    Terminated,
}

impl InstanceState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }
}

/// Why an instance ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationReason {
    /// Someone called TerminateInstances.
    User,
    /// EC2 took its spot capacity back.
    SpotInterruption,
}

/// An instance of the simulated EC2.
#[derive(Debug, Clone)]
pub struct SimulatedInstance {
    /// For example `i-0123456789abcdef0`.
    pub id: String,
    /// Instance type, as the catalogue has it.
    pub instance_type: &'static CatalogueEntry,
    /// Name of the zone.
    pub zone: String,
    /// Zone id, which differs from the name.
    pub zone_id: String,
    /// Subnet of its first interface.
    pub subnet_id: String,
    /// How it is bought.
    pub capacity_type: CapacityType,
    /// Price, USD an hour.
    pub price_per_hour: f64,
    /// Id of the image that it booted.
    pub image_id: String,
    /// Version of Kubernetes whose kubelet is on its image, such as `1.33`.
    pub kubernetes_version: String,
    /// Kubelet settings from its user data.
    pub bootstrap: Arc<KubeletSettings>,
    /// Size of the disk that holds pods' ephemeral storage.
    pub ephemeral_storage_bytes: i64,
    /// EFA interfaces that the launch asked for.
    pub efa_interfaces: i64,
    /// Security groups of its interfaces.
    pub security_group_ids: Vec<String>,
    /// Name of its instance profile.
    pub instance_profile: Option<String>,
    /// Tenancy: `default` or `dedicated`.
    pub tenancy: String,
    /// Placement group and, if it has partitions, the one it runs in.
    pub placement_group: Option<(String, Option<i32>)>,
    /// Reservation it runs in.
    pub capacity_reservation_id: Option<String>,
    pub tags: BTreeMap<String, String>,
    /// Fleet that made it.
    pub fleet_id: String,
    /// Spot request, for spot.
    pub spot_request_id: Option<String>,
    /// Private IPv4 address of its first interface.
    pub private_ip: String,
    /// Addresses of the subnet that it holds.
    pub addresses: i32,
    /// When it was asked for.
    pub launched_at: Timestamp,
    /// When DescribeInstances begins to know it.
    pub visible_at: Timestamp,
    /// When its machine is on.
    pub running_at: Timestamp,
    /// When its kubelet creates the Node.
    pub registers_at: Timestamp,
    /// When its kubelet says Ready.
    pub ready_at: Timestamp,
    /// Moment at which its termination began; none before.
    pub shutting_down_at: Option<Timestamp>,
    /// When it is gone.
    pub terminated_at: Option<Timestamp>,
    /// Cause of its termination; none before.
    pub termination_reason: Option<TerminationReason>,
    /// How often it was rebooted.
    pub reboots: u32,
    /// The status check that fails, and since when.
    pub failed_check: Option<(StatusCheck, Timestamp)>,
    /// Code of the event that EC2 has scheduled for it.
    pub scheduled_event: Option<String>,
    /// When EC2 will give notice that it takes it back, if it will.
    pub notice_at: Option<Timestamp>,
    /// When EC2 will take it back, once the two-minute notice was given.
    pub interruption_at: Option<Timestamp>,
}

/// One of the checks that EC2 makes of every running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusCheck {
    /// The check of the instance itself.
    Instance,
    /// The check of its host.
    System,
}

impl SimulatedInstance {
    /// By which a Node tells one boot of its machine from the next.
    pub fn boot_id(&self) -> String {
        match self.reboots {
            0 => format!("boot-{}", self.id),
            reboots => format!("boot-{}-{reboots}", self.id),
        }
    }

    /// How often an instance was rebooted whose Node tells of this boot.
    pub fn reboots_of(id: &str, boot_id: &str) -> u32 {
        let of_instance = boot_id
            .strip_prefix("boot-")
            .and_then(|it| it.strip_prefix(id));
        let count = of_instance.and_then(|it| it.strip_prefix('-'));
        count.and_then(|it| it.parse().ok()).unwrap_or(0)
    }

    /// Its state at `now`.
    pub fn state(&self, now: Timestamp) -> InstanceState {
        match (self.terminated_at, self.shutting_down_at) {
            (Some(at), _) if at <= now => InstanceState::Terminated,
            (_, Some(at)) if at <= now => InstanceState::ShuttingDown,
            _ if self.running_at <= now => InstanceState::Running,
            _ => InstanceState::Pending,
        }
    }

    /// When EC2 will do the next thing to take it back, if it will: give notice, or end it.
    pub(super) fn next_reclaim(&self) -> Option<Timestamp> {
        let next = self.interruption_at.or(self.notice_at);
        next.filter(|_| self.shutting_down_at.is_none())
    }

    /// Whether it costs money at `now`.
    pub fn is_billed(&self, now: Timestamp) -> bool {
        matches!(
            self.state(now),
            InstanceState::Pending | InstanceState::Running
        )
    }

    /// The private DNS name, which is also its Node's name.
    pub(crate) fn private_dns_name(&self, region: &str) -> String {
        let host = self.private_ip.replace('.', "-");
        // us-east-1 alone keeps the suffix from before regions had names.
        if region == "us-east-1" {
            format!("ip-{host}.ec2.internal")
        } else {
            format!("ip-{host}.{region}.compute.internal")
        }
    }

    /// The id by which Kubernetes knows it.
    pub fn provider_id(&self) -> ProviderId {
        ProviderId::of_instance(&self.zone, &self.id)
    }
}

/// A change in the fleet that the rest of the world reacts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceEvent {
    /// An instance was launched; its record says when it boots.
    Launched(String),
    /// Termination began; its record says when it is gone.
    ShuttingDown(String),
    /// Termination is over.
    Terminated(String),
    /// The machine went down to boot anew.
    Rebooted(String),
    /// EC2 gave notice that it takes a spot instance back.
    SpotInterruptionWarning(String),
}

#[cfg(test)]
mod tests {
    use super::SimulatedInstance;

    #[test]
    fn a_boot_tells_how_often_its_own_instance_was_rebooted() {
        let of = |boot_id| SimulatedInstance::reboots_of("i-12", boot_id);
        assert_eq!(of("boot-i-12"), 0);
        assert_eq!(of("boot-i-12-3"), 3);
        assert_eq!(of("boot-i-123"), 0, "another instance");
        assert_eq!(of("6d0a6f2e"), 0, "a machine that is none of ours");
    }
}
