//! EC2, EKS, SQS, SSM, Pricing and IAM of a simulated account in one region, behind the seam of `aws`.
//!
//! Everything answers from one state under one lock; chance comes from the seed and the names of things.
//! It knows nothing of Kubernetes but what user data say, so it also serves a controller whose API server
//! is real. Answers to the AWS services, not to a file of Karpenter.

mod api;
pub mod bootstrap;
mod capacity;
mod config;
mod eks;
mod filters;
mod fleet;
mod gate;
mod iam;
mod images;
pub mod instance;
mod instance_status;
mod instance_types;
mod instances;
mod launch_templates;
mod market;
mod network;
mod prices;
mod queue;
mod resume;
mod throttle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::CapacityType;
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use tokio::sync::mpsc;

use crate::catalogue::{Catalogue, CatalogueEntry};
use crate::clock::SimulatedClock;
use crate::random::{SplitMix64, hash};

pub use bootstrap::KubeletSettings;
pub use capacity::{CapacityReservationSpec, PlacementGroupSpec};
pub use config::{DEMO_NAME, Ec2Config, Ec2Faults};
pub use gate::Gate;
pub use instance::{
    InstanceEvent, InstanceState, SimulatedInstance, StatusCheck, TerminationReason,
};
pub use network::zone_id;
pub use queue::SimulatedQueue;
pub use resume::KnownInstance;

/// How long a terminated instance is still described.
const TERMINATED_KEPT: SignedDuration = SignedDuration::from_hours(1);

/// A simulated account in a simulated region; clones share it.
#[derive(Debug, Clone)]
pub struct SimulatedEc2 {
    state: Arc<Mutex<AccountState>>,
    latency: bool,
    gate: Option<Arc<dyn Gate>>,
}

/// Everything that exists in the account.
#[derive(Debug)]
struct AccountState {
    config: Ec2Config,
    catalogue: &'static Catalogue,
    clock: SimulatedClock,
    ids: SplitMix64,
    chance: SplitMix64,
    instances: BTreeMap<String, SimulatedInstance>,
    subnets: Vec<network::SubnetRecord>,
    security_groups: Vec<network::SecurityGroupRecord>,
    launch_templates: BTreeMap<String, launch_templates::LaunchTemplateRecord>,
    images: BTreeMap<String, images::ImageRecord>,
    profiles: BTreeMap<String, iam::ProfileRecord>,
    /// Instances on their way out, by when they are gone.
    ending: BTreeSet<(Timestamp, String)>,
    /// Instances taken from a pool, by pool.
    used: BTreeMap<market::CapacityPool, u32>,
    /// Pools that were emptied by hand until a moment.
    drained: BTreeMap<market::CapacityPool, Timestamp>,
    /// Ends of zonal shifts, by zone id.
    shifts: BTreeMap<String, Timestamp>,
    fleets: fleet::answered::AnsweredFleets,
    reservations: BTreeMap<String, capacity::ReservationRecord>,
    buckets: throttle::TokenBuckets,
    calls: BTreeMap<&'static str, u64>,
    subscribers: Vec<mpsc::UnboundedSender<InstanceEvent>>,
    launches: u64,
    terminations: u64,
}

impl SimulatedEc2 {
    /// An account with subnets, security groups and images, and no instance.
    pub fn new(config: Ec2Config, clock: SimulatedClock) -> Self {
        let latency = config.latency;
        let mut state = AccountState {
            catalogue: Catalogue::embedded(),
            clock,
            ids: SplitMix64::new(config.seed, "ec2-ids"),
            chance: SplitMix64::new(config.seed, "ec2-chance"),
            instances: BTreeMap::new(),
            subnets: network::subnets(&config),
            security_groups: network::security_groups(&config),
            launch_templates: BTreeMap::new(),
            images: BTreeMap::new(),
            profiles: BTreeMap::new(),
            ending: BTreeSet::new(),
            used: BTreeMap::new(),
            drained: BTreeMap::new(),
            shifts: BTreeMap::new(),
            fleets: fleet::answered::AnsweredFleets::default(),
            reservations: capacity::reservations(&config),
            buckets: throttle::TokenBuckets::default(),
            calls: BTreeMap::new(),
            subscribers: Vec::new(),
            launches: 0,
            terminations: 0,
            config,
        };
        state.publish_images();
        Self {
            state: Arc::new(Mutex::new(state)),
            latency,
            gate: None,
        }
    }

    /// Changes of instances from now on. Events of the past are not told.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<InstanceEvent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.state().subscribers.push(sender);
        receiver
    }

    /// One instance as it is in truth, whatever DescribeInstances says by now.
    pub fn instance(&self, id: &str) -> Option<SimulatedInstance> {
        self.state().instances.get(id).cloned()
    }

    /// All instances as they are in truth, in the order of their ids.
    pub fn instances(&self) -> Vec<SimulatedInstance> {
        self.each_instance(SimulatedInstance::clone)
    }

    /// What `look` makes of every instance as it is in truth, in the order of their ids.
    pub fn each_instance<T>(&self, look: impl FnMut(&SimulatedInstance) -> T) -> Vec<T> {
        self.state().instances.values().map(look).collect()
    }

    /// Instances by state: (pending, running, shutting down, terminated).
    pub fn count_by_state(&self) -> BTreeMap<InstanceState, usize> {
        let state = self.state();
        let now = state.clock.now();
        let mut counts = BTreeMap::new();
        for instance in state.instances.values() {
            *counts.entry(instance.state(now)).or_default() += 1;
        }
        counts
    }

    /// Price of all instances that are billed, USD an hour.
    pub fn price_per_hour(&self) -> f64 {
        let state = self.state();
        let now = state.clock.now();
        let billed = state
            .instances
            .values()
            .filter(|instance| instance.is_billed(now));
        billed.map(|instance| instance.price_per_hour).sum()
    }

    /// Instances launched since the start.
    pub fn launches(&self) -> u64 {
        self.state().launches
    }

    /// Terminations begun since the start.
    pub fn terminations(&self) -> u64 {
        self.state().terminations
    }

    /// Calls by operation since the start.
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.state().calls.clone()
    }

    /// Calls that were throttled since the start.
    pub fn throttled(&self) -> u64 {
        self.state().buckets.refused
    }

    /// The region that is simulated.
    pub fn region(&self) -> String {
        self.state().config.region.clone()
    }

    /// Takes all capacity of a pool away until `until`.
    pub fn drain_pool(
        &self,
        instance_type: &str,
        zone: &str,
        capacity: CapacityType,
        until: Timestamp,
    ) {
        let pool = market::CapacityPool::new(instance_type, zone, capacity);
        self.state().drained.insert(pool, until);
    }

    /// Changes what goes wrong from now on.
    pub fn change_faults(&self, change: impl FnOnce(&mut Ec2Faults)) {
        change(&mut self.state().config.faults);
    }

    /// Shifts traffic away from the zone of that id until then.
    pub fn shift_zone(&self, zone_id: &str, until: Timestamp) {
        self.state().shifts.insert(zone_id.to_owned(), until);
    }

    /// Gives the two-minute notice to a spot instance now; false if it is none or ends already.
    pub fn interrupt_spot(&self, id: &str) -> bool {
        self.state().interrupt(id)
    }

    /// Fails a status check of an instance from now on; false if there is none.
    pub fn fail_status_check(&self, id: &str, check: StatusCheck) -> bool {
        let mut state = self.state();
        let now = state.now();
        let found = state.instances.get_mut(id);
        found.is_some_and(|it| it.failed_check.replace((check, now)).is_none())
    }

    /// Schedules an event, such as `instance-retirement`, for an instance; false if there is none.
    pub fn schedule_event(&self, id: &str, code: &str) -> bool {
        let mut state = self.state();
        let found = state.instances.get_mut(id);
        found.is_some_and(|it| it.scheduled_event.replace(code.to_owned()).is_none())
    }

    /// The spot price of a type in a zone: fixed by seed, type and zone.
    pub fn spot_price_per_hour(&self, instance_type: &str, zone: &str) -> Option<f64> {
        self.state().spot_price(instance_type, zone)
    }

    /// What an instance costs an hour here; nothing where the catalogue has no price of it.
    pub fn price_per_hour_of(
        &self,
        instance_type: &str,
        zone: &str,
        how: CapacityType,
    ) -> Option<f64> {
        let state = self.state();
        let found = state.catalogue.get(instance_type)?;
        state.price(found, zone, how)
    }

    /// Lets what is due happen: notices of interruption are given and become terminations, terminations end, old
    /// records go. Returns the moment at which more is due.
    pub fn advance(&self) -> Option<Timestamp> {
        self.state().advance()
    }

    fn state(&self) -> MutexGuard<'_, AccountState> {
        // A panic elsewhere left the state as consistent as any panic does; the world goes on.
        lock(&self.state)
    }
}

impl AccountState {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A resource id such as `i-0…`: 17 hexadecimal digits.
    fn new_id(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{:016x}", self.ids.next_u64())
    }

    fn latency(&mut self, operation: &str) -> Duration {
        let (low, high) = match operation {
            "CreateFleet" => (800, 1_600),
            "CreateLaunchTemplate" | "TerminateInstances" => (150, 400),
            _ => (20, 80),
        };
        Duration::from_millis(self.chance.between(low, high))
    }

    /// Instance types that the region offers, in the order of names.
    fn types(&self) -> impl Iterator<Item = &'static CatalogueEntry> {
        let families = &self.config.families;
        let is_offered = |t: &&CatalogueEntry| {
            let family = t.name.split('.').next().unwrap_or_default();
            families.is_empty() || families.iter().any(|it| it == family)
        };
        self.catalogue.iter().filter(is_offered)
    }

    fn tell(&mut self, event: &InstanceEvent) {
        self.subscribers
            .retain(|subscriber| subscriber.send(event.clone()).is_ok());
    }

    fn advance(&mut self) -> Option<Timestamp> {
        let now = self.now();
        let is_due = |it: &&SimulatedInstance| it.next_reclaim().is_some_and(|at| at <= now);
        let due = self.instances.values().filter(is_due);
        let due: Vec<_> = due
            .map(|it| (it.id.clone(), it.interruption_at.is_some()))
            .collect();
        for (id, was_given_notice) in due {
            if was_given_notice {
                self.begin_termination(&id, TerminationReason::SpotInterruption);
            } else {
                self.interrupt(&id);
            }
        }
        while self.ending.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, id)) = self.ending.pop_first()
        {
            self.tell(&InstanceEvent::Terminated(id));
        }
        let kept = |i: &SimulatedInstance| {
            i.terminated_at
                .is_none_or(|at| now.duration_since(at) < TERMINATED_KEPT)
        };
        if self.instances.values().any(|instance| !kept(instance)) {
            self.instances.retain(|_, instance| kept(instance));
        }
        let instances = self.instances.values();
        let reclaims = instances.filter_map(SimulatedInstance::next_reclaim);
        let ends = self.ending.first().map(|(at, _)| *at);
        reclaims.chain(ends).min()
    }
}

/// A stable id for something that exists from the start.
fn stable_id(seed: u64, prefix: &str, words: &[&str]) -> String {
    format!("{prefix}-0{:016x}", hash(seed, words))
}

/// A moment in the SDK's form.
fn date_time(at: Timestamp) -> aws_smithy_types::DateTime {
    aws_smithy_types::DateTime::from_secs(at.as_second())
}
