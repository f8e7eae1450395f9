//! Configuration of the simulated EC2's account, faults included.

use api_server::KUBERNETES_MINOR;

use super::capacity::{CapacityReservationSpec, PlacementGroupSpec};

/// Name of the simulated cluster where nobody gives it another, and of who applies what the demo brings.
pub const DEMO_NAME: &str = "mortise-demo";

/// Configuration of the account and its region.
#[derive(Debug, Clone)]
pub struct Ec2Config {
    /// Source of all chance.
    pub seed: u64,
    /// For example `us-east-1`.
    pub region: String,
    /// Zone names that have a subnet, for example `us-east-1a`.
    pub zones: Vec<String>,
    /// Families that the region offers, for example `m5`; all that it has in truth where none is named.
    pub families: Vec<String>,
    /// Cluster whose discovery tag the subnets and security groups carry.
    pub cluster_name: String,
    /// Kubernetes minor version for which images are published.
    pub kubernetes_version: String,
    /// Milliseconds from launch to the registration of the Node, at least and at most.
    pub boot_millis: (u64, u64),
    /// Milliseconds from the registration of the Node until it is Ready, at least and at most.
    pub ready_millis: (u64, u64),
    /// Seconds that termination takes, at least and at most.
    pub termination_seconds: (u64, u64),
    /// Whether calls take time, as over a network.
    pub latency: bool,
    /// Free addresses of each subnet at the start.
    pub addresses_per_subnet: i32,
    /// Capacity reservations of the account.
    pub capacity_reservations: Vec<CapacityReservationSpec>,
    /// Placement groups of the account.
    pub placement_groups: Vec<PlacementGroupSpec>,
    /// Faults that are injected.
    pub faults: Ec2Faults,
}

impl Default for Ec2Config {
    fn default() -> Self {
        Self {
            seed: 0,
            region: "us-east-1".to_owned(),
            zones: ["us-east-1a", "us-east-1b", "us-east-1c"]
                .map(str::to_owned)
                .to_vec(),
            families: Vec::new(),
            cluster_name: DEMO_NAME.to_owned(),
            kubernetes_version: format!("1.{KUBERNETES_MINOR}"),
            boot_millis: (20_000, 45_000),
            ready_millis: (2_000, 9_000),
            termination_seconds: (15, 35),
            latency: true,
            addresses_per_subnet: 16_379,
            capacity_reservations: Vec::new(),
            placement_groups: Vec::new(),
            faults: Ec2Faults::default(),
        }
    }
}

/// Faults of EC2 that can be switched on; by default only a few pools are dry, as on any day.
#[derive(Debug, Clone, PartialEq)]
pub struct Ec2Faults {
    /// Share of on-demand pools that are dry in any quarter of an hour.
    pub on_demand_pools_dry: f64,
    /// Share of spot pools that are dry in any quarter of an hour.
    pub spot_pools_dry: f64,
    /// Seconds, at most, until DescribeInstances knows a new instance.
    pub visibility_delay_seconds_max: u64,
    /// Chance of a spot instance to be taken back within an hour.
    pub spot_interruptions_per_hour: f64,
    /// Token buckets answer RequestLimitExceeded.
    pub throttling: bool,
    /// vCPU quota of running on-demand instances.
    pub on_demand_vcpus_max: Option<u32>,
    /// Chance of each call to fail with InternalError.
    pub internal_error_chance: f64,
    /// Chance of CreateFleet to answer with a time-out although it committed.
    pub lost_answer_chance: f64,
    /// Chance of a message to come from the queue once more, although it was deleted.
    pub repeated_message_chance: f64,
    /// Roles that IAM does not know.
    pub missing_roles: Vec<String>,
    /// The controller's session has expired.
    pub is_expired: bool,
    /// Operations that the controller's role may not do, for example `CreateFleet`; dry runs of them neither.
    pub denied: Vec<String>,
    /// Seconds until EC2 knows a new instance profile.
    pub profile_delay_seconds: u64,
}

impl Ec2Faults {
    /// No pool is dry either.
    pub fn calm() -> Self {
        Self {
            on_demand_pools_dry: 0.0,
            spot_pools_dry: 0.0,
            ..Self::default()
        }
    }
}

impl Default for Ec2Faults {
    fn default() -> Self {
        Self {
            on_demand_pools_dry: 0.01,
            spot_pools_dry: 0.04,
            visibility_delay_seconds_max: 2,
            spot_interruptions_per_hour: 0.0,
            throttling: false,
            on_demand_vcpus_max: None,
            internal_error_chance: 0.0,
            lost_answer_chance: 0.0,
            repeated_message_chance: 0.0,
            missing_roles: Vec::new(),
            is_expired: false,
            denied: Vec::new(),
            profile_delay_seconds: 0,
        }
    }
}
