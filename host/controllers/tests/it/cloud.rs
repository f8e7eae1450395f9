//! A cloud small enough to see through: three instance types, two zones, and faults on request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::conditions::Conditioned;
use apis::ec2nodeclass::Subnet;
use apis::resources::Resources;
use apis::{
    Ec2NodeClass, GoDuration, NodeClaim, NodePool, ProviderId, RepairAction, RepairPolicy, labels,
};
use cloudprovider::{
    CloudProvider, CloudProviderError, Impairment, InstanceLife, Interruption, InterruptionKind,
    InterruptionQueue, LaunchAttempt, LaunchRequest, Launched, NodeClassStatus, RebootError,
    RegisteredNode, Registrable,
};
use kube::ResourceExt;
use scheduling::instance_type::{Availability, InstanceType, Offering, Overhead};
use scheduling::requirements::{Operator, Requirement, Requirements};
use sim::SimulatedClock;

use crate::process::Process;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) instances: BTreeMap<ProviderId, Launched>,
    by_uid: BTreeMap<String, ProviderId>,
    pub(crate) launches: usize,
    /// How often a launch was asked for, by UID of the claim.
    pub(crate) asked: BTreeMap<String, usize>,
    /// Types without capacity, and what is said where none is left.
    pub(crate) dry: BTreeSet<String>,
    pub(crate) refusal: String,
    /// Types that nobody tells a price of.
    pub(crate) unpriced: BTreeSet<String>,
    /// It lists no instance, and of none tells whether it is there.
    pub(crate) looks_elsewhere: bool,
    /// Launches hang.
    pub(crate) hangs: bool,
    /// Launches are written on their claims first.
    pub(crate) writes_attempts: bool,
    /// Whether classes are fit for launches is not found out.
    pub(crate) leaves_classes_unknown: bool,
    pub(crate) released: usize,
    /// Capacity reservations that end soon.
    pub(crate) expiring: BTreeSet<String>,
    /// Ids of zones that traffic is shifted away from.
    pub(crate) shifted: BTreeSet<String>,
    /// The subnets of classes.
    pub(crate) subnets: Vec<Subnet>,
    /// The instance profile of classes, and those that were said to be in use.
    pub(crate) profile: Option<String>,
    pub(crate) profiles_in_use: Option<BTreeSet<String>>,
    /// What was told of nodes that registered, and how often.
    pub(crate) learned: BTreeMap<String, usize>,
    /// The hash of the class and its version, as this version of the provider reckons it.
    pub(crate) class_stamps: BTreeMap<String, String>,
    /// What the cloud finds wrong with instances.
    pub(crate) impairments: Vec<Impairment>,
    /// Conditions that count as sick.
    pub(crate) repair: Vec<RepairPolicy>,
    /// What is said of nodes that are about to register; nothing for "they may".
    pub(crate) registrable: Option<Registrable>,
    /// Reboots asked for: instance, when.
    pub(crate) reboots: Vec<(ProviderId, jiff::Timestamp)>,
    /// What a reboot is answered with, and whether a machine comes back from one.
    pub(crate) reboot_error: Option<RebootError>,
    pub(crate) stays_away: bool,
    /// Somebody else runs instances here.
    pub(crate) orphans_are_expected: bool,
    /// What the queue holds, and until when each is hidden.
    queue: Vec<(Option<jiff::Timestamp>, Interruption)>,
    /// Messages taken off the queue.
    pub(crate) deleted: usize,
    /// Offerings of which a notice was taken.
    pub(crate) noted: Vec<InterruptionKind>,
    number: usize,
}

#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) clock: SimulatedClock,
    process: Process,
}

impl Cloud {
    pub(crate) fn new(clock: SimulatedClock, process: Process) -> Self {
        let cloud = Self {
            state: Arc::default(),
            clock,
            process,
        };
        let fallback = RepairPolicy {
            condition_type: "Ready".to_owned(),
            condition_status: "False".to_owned(),
            reason_regex: String::new(),
            toleration: GoDuration::from_seconds(1_800),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::Replace,
        };
        cloud.with(|state| state.repair = vec![fallback]);
        cloud
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap())
    }

    pub(crate) fn running(&self) -> usize {
        self.with(|state| {
            state
                .instances
                .values()
                .filter(|it| it.life != InstanceLife::Ends)
                .count()
        })
    }
}

impl Cloud {
    /// Ids of the running instances, as notices name them.
    pub(crate) fn instance_ids(&self) -> Vec<String> {
        self.with(|state| {
            let running = state
                .instances
                .values()
                .filter(|it| it.life != InstanceLife::Ends);
            let ids = running.map(|it| it.provider_id.instance_id());
            ids.map(str::to_owned).collect()
        })
    }

    /// Puts a notice on the queue.
    pub(crate) fn send(&self, notice: Interruption) {
        self.with(|state| state.queue.push((None, notice)));
    }

    pub(crate) fn queued(&self) -> usize {
        self.with(|state| state.queue.len())
    }
}

/// A notice about an instance.
pub(crate) fn notice(
    kind: InterruptionKind,
    instance_id: &str,
    happened_at: jiff::Timestamp,
) -> Interruption {
    static SERIAL: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let serial = SERIAL.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Interruption {
        receipt: format!("receipt-{serial}"),
        kind,
        instance_ids: vec![instance_id.to_owned()],
        happened_at: Some(happened_at),
        fault: None,
    }
}

#[async_trait::async_trait]
impl InterruptionQueue for Cloud {
    async fn receive(&self) -> Result<Vec<Interruption>, CloudProviderError> {
        for _ in 0..20 {
            let now = self.clock.now();
            let received: Vec<Interruption> = self.with(|state| {
                let open = state
                    .queue
                    .iter_mut()
                    .filter(|(hidden, _)| hidden.is_none_or(|until| until <= now));
                let hidden = now + jiff::SignedDuration::from_secs(20);
                let take = |it: &mut (Option<jiff::Timestamp>, Interruption)| {
                    it.0 = Some(hidden);
                    it.1.clone()
                };
                open.take(10).map(take).collect()
            });
            if !received.is_empty() {
                return Ok(received);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(Vec::new())
    }

    async fn delete(&self, receipt: &str) -> Result<(), CloudProviderError> {
        let delete = async {
            self.with(|state| {
                state.queue.retain(|(_, it)| it.receipt != receipt);
                state.deleted += 1;
            });
        };
        self.process.write(delete).await;
        Ok(())
    }

    fn note(&self, kind: InterruptionKind, _: &NodeClaim) {
        self.with(|state| state.noted.push(kind));
    }
}

pub(crate) const CPUS: [(&str, i64); 3] = [("t.small", 2), ("t.medium", 4), ("t.large", 8)];

fn requirement(key: &str, value: &str) -> Requirement {
    Requirement::new(key, Operator::In, [value])
}

fn offering(zone: &str, capacity_type: &str, price_per_hour: f64) -> Offering {
    let mut requirements = Requirements::new();
    requirements.add(requirement(labels::TOPOLOGY_ZONE, zone));
    requirements.add(requirement(labels::CAPACITY_TYPE, capacity_type));
    Offering::new(requirements, price_per_hour)
}

fn capacity(cpus: i64) -> Resources {
    Resources::new()
        .with(labels::RESOURCE_CPU, cpus * 1000)
        .with(labels::RESOURCE_MEMORY, cpus * (4 << 30) * 1000)
        .with(labels::RESOURCE_PODS, 110_000)
}

fn instance_type(name: &str, cpus: i64, is_unpriced: bool) -> Arc<InstanceType> {
    let mut requirements = Requirements::new();
    requirements.add(requirement(labels::INSTANCE_TYPE, name));
    requirements.add(requirement(labels::ARCH, "amd64"));
    requirements.add(requirement(labels::OS, "linux"));
    requirements.add(Requirement::new(
        labels::TOPOLOGY_ZONE,
        Operator::In,
        ["a", "b"],
    ));
    requirements.add(Requirement::new(
        labels::CAPACITY_TYPE,
        Operator::In,
        ["on-demand", "spot"],
    ));
    // A little cheaper by the CPU with size, so that packing has something to gain.
    let on_demand = 0.05 * cpus as f64 - 0.001 * (cpus * cpus) as f64;
    let mut offerings = Vec::new();
    for zone in ["a", "b"] {
        offerings.push(offering(zone, "on-demand", on_demand));
        offerings.push(offering(zone, "spot", on_demand * 0.4));
    }
    for offering in offerings.iter_mut().filter(|_| is_unpriced) {
        offering.price_per_hour = 0.0;
        offering.availability = Availability::NoPrice;
    }
    Arc::new(InstanceType {
        name: name.to_owned(),
        requirements,
        offerings,
        capacity: capacity(cpus),
        overhead: Overhead::default(),
        volume_attachment_limits: BTreeMap::new(),
    })
}

#[async_trait::async_trait]
impl CloudProvider for Cloud {
    async fn free_addresses(&self, _: &Ec2NodeClass) -> BTreeMap<String, u32> {
        [("a".to_owned(), 500), ("b".to_owned(), 200)].into()
    }

    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError> {
        let uid = request.node_claim.uid().unwrap_or_default();
        self.with(|state| *state.asked.entry(uid).or_default() += 1);
        if self.with(|state| state.hangs) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        if self.with(|state| state.writes_attempts) {
            let token = request.node_claim.uid().unwrap_or_default();
            let attempt = LaunchAttempt { number: 0, token };
            request.record.begin(&attempt).await?;
        }
        let now = self.clock.now();
        let launch = async {
            self.with(|state| {
                let uid = request.node_claim.uid().unwrap_or_default();
                if let Some(known) = state
                    .by_uid
                    .get(&uid)
                    .and_then(|id| state.instances.get(id))
                {
                    return Ok(known.clone());
                }
                let first = request
                    .offerings
                    .iter()
                    .find(|it| !state.dry.contains(&*it.instance_type))
                    .ok_or_else(|| {
                        CloudProviderError::InsufficientCapacity(state.refusal.clone())
                    })?;
                state.number += 1;
                state.launches += 1;
                let (_, cpus) = CPUS
                    .iter()
                    .find(|(name, _)| **name == *first.instance_type)
                    .unwrap();
                let id = ProviderId::of_instance(&first.zone, &format!("i-{:04}", state.number));
                let labels = [
                    (labels::INSTANCE_TYPE, &*first.instance_type),
                    (labels::TOPOLOGY_ZONE, &first.zone),
                    (labels::CAPACITY_TYPE, first.capacity_type.as_str()),
                    (labels::ARCH, "amd64"),
                    (labels::OS, "linux"),
                ];
                let launched = Launched {
                    provider_id: id.clone(),
                    image_id: "image-1".to_owned(),
                    node_claim_name: Some(request.node_claim.name_any()),
                    launch_token: None,
                    node_pool_name: None,
                    labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
                    annotations: state.class_stamps.clone(),
                    capacity: capacity(*cpus),
                    allocatable: capacity(*cpus),
                    launched_at: Some(now),
                    life: InstanceLife::Runs,
                };
                state.by_uid.insert(uid, id.clone());
                state.instances.insert(id, launched.clone());
                Ok(launched)
            })
        };
        self.process.write(launch).await
    }

    async fn delete(&self, provider_id: &ProviderId) -> Result<(), CloudProviderError> {
        let delete = async {
            self.with(|state| match state.instances.get_mut(provider_id) {
                None => Err(CloudProviderError::NotFound(provider_id.to_string())),
                // The first call starts it, the second finds it done.
                Some(instance) if instance.life == InstanceLife::Ends => {
                    state.instances.remove(provider_id);
                    Err(CloudProviderError::NotFound(provider_id.to_string()))
                }
                Some(instance) => {
                    instance.life = InstanceLife::Ends;
                    Ok(())
                }
            })
        };
        self.process.write(delete).await
    }

    async fn get(&self, provider_id: &ProviderId) -> Result<Launched, CloudProviderError> {
        if self.with(|state| state.looks_elsewhere) {
            return Err(CloudProviderError::Other("in another region".to_owned()));
        }
        let found = self.with(|state| state.instances.get(provider_id).cloned());
        found.ok_or_else(|| CloudProviderError::NotFound(provider_id.to_string()))
    }

    async fn list(&self) -> Result<Vec<Launched>, CloudProviderError> {
        Ok(self.with(|state| {
            let instances = state.instances.values();
            let listed = instances.filter(|_| !state.looks_elsewhere);
            listed.cloned().collect()
        }))
    }

    async fn instance_types(
        &self,
        _node_pool: &NodePool,
        _node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let unpriced = self.with(|state| state.unpriced.clone());
        // What is dry is known only once a launch has failed, as in life.
        Ok(CPUS
            .iter()
            .map(|(name, cpus)| instance_type(name, *cpus, unpriced.contains(*name)))
            .collect())
    }

    async fn is_drifted(
        &self,
        node_claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Option<String>, CloudProviderError> {
        // The rule of static drift: hashes of two versions say nothing.
        let of = |annotations: Option<&BTreeMap<String, String>>| {
            let get = |key: &str| annotations.and_then(|it| it.get(key)).cloned();
            (
                get(labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION),
                get(labels::EC2_NODE_CLASS_HASH_ANNOTATION),
            )
        };
        let claim = of(node_claim.metadata.annotations.as_ref());
        let class = of(node_class.metadata.annotations.as_ref());
        let is_drifted = claim.0.is_some() && claim.0 == class.0 && claim.1 != class.1;
        Ok(is_drifted.then(|| "NodeClassDrift".to_owned()))
    }

    async fn resolve_node_class(
        &self,
        node_class: &Ec2NodeClass,
        _node_pools: &[Arc<NodePool>],
    ) -> Result<NodeClassStatus, CloudProviderError> {
        let mut resolved = node_class.clone();
        let is_unknown = self.with(|state| state.leaves_classes_unknown);
        resolved.edit_conditions(self.clock.now(), |editor| {
            for condition in apis::conditions::EC2_NODE_CLASS.dependents {
                if is_unknown {
                    editor.set_unknown(condition);
                } else {
                    editor.set_true(condition);
                }
            }
        });
        let mut status = resolved.status.unwrap_or_default();
        status.instance_profile = self.with(|state| state.profile.clone());
        status.subnets = self.with(|state| state.subnets.clone());
        Ok(NodeClassStatus {
            status,
            annotations: self.with(|state| state.class_stamps.clone()),
            requeue_after: Duration::from_mins(5),
        })
    }

    async fn release_node_class(
        &self,
        _node_class: &Ec2NodeClass,
    ) -> Result<(), CloudProviderError> {
        self.with(|state| state.released += 1);
        Ok(())
    }

    async fn release_unused(&self, profiles: &BTreeSet<String>) -> Result<(), CloudProviderError> {
        self.with(|state| state.profiles_in_use = Some(profiles.clone()));
        Ok(())
    }

    async fn expiring_reservations(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, CloudProviderError> {
        Ok(self.with(|state| state.expiring.intersection(ids).cloned().collect()))
    }

    async fn shifted_zones(&self) -> Result<BTreeSet<String>, CloudProviderError> {
        Ok(self.with(|state| state.shifted.clone()))
    }

    async fn registrable(&self, _: &NodeClaim) -> Result<Registrable, CloudProviderError> {
        let told = self.with(|state| state.registrable.clone());
        Ok(told.unwrap_or_else(|| Registrable::Ready(BTreeMap::new())))
    }

    async fn learn(&self, node: RegisteredNode<'_>, _: &Ec2NodeClass) {
        let told = format!(
            "{} {} {}",
            node.instance_type, node.image_id, node.memory_bytes
        );
        self.with(|state| *state.learned.entry(told).or_default() += 1);
    }

    async fn tag(&self, _node_claim: &NodeClaim) -> Result<(), CloudProviderError> {
        Ok(())
    }

    async fn reboot(&self, provider_id: &ProviderId) -> Result<(), RebootError> {
        let now = self.clock.now();
        let reboot = async {
            self.with(|state| {
                if let Some(error) = &state.reboot_error {
                    return Err(error.clone());
                }
                state.reboots.push((provider_id.clone(), now));
                Ok(())
            })
        };
        self.process.write(reboot).await
    }

    async fn impairments(&self) -> Result<Vec<Impairment>, CloudProviderError> {
        Ok(self.with(|state| state.impairments.clone()))
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.with(|state| state.repair.clone())
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}
