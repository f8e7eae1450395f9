//! Instances of the cluster: looking them up, ending them, tagging them.
//!
//! Launching is [`crate::launch`]'s. Only instances that carry this cluster's tags are ever listed. Answers to
//! Karpenter's `pkg/providers/instance/instance.go` and `types.go`.

mod describe;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::{CapacityType, NodeClaim, ProviderId, labels};
use aws_sdk_ec2::operation::create_tags::CreateTagsInput;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::reboot_instances::RebootInstancesInput;
use aws_sdk_ec2::types::{
    CapacityReservationPreference, Filter, Instance as Ec2Instance, InstanceLifecycleType,
    InstanceStateName,
};
use cloudprovider::{CloudProviderError, Impairment, InstanceLife, RebootError};
use jiff::Timestamp;
use locks::lock;

use crate::batcher::{BatchWindow, CallBatcher};
use crate::error::{call_failure, invalid, reboot_error};
use crate::instance_status::impairments;
use crate::interruption_history::Exposed;
use crate::metrics::AwsMetrics;
use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::{Tags, filter, tag_value, to_ec2};

use describe::{DescribeCall, FindCall, TerminateCall};

const PAGE: i32 = 1000;
const WINDOW: BatchWindow = BatchWindow {
    idle: Duration::from_millis(100),
    max: Duration::from_secs(1),
    items_max: 500,
};
const LIVE_STATES: [&str; 5] = ["pending", "running", "stopping", "stopped", "shutting-down"];

/// An instance as EC2 describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instance {
    /// Such as `i-0123`.
    pub(crate) id: String,
    /// Such as `m7i.large`.
    pub(crate) instance_type: String,
    /// Name of the zone.
    pub(crate) zone: String,
    /// Zone id, where EC2 tells it.
    pub(crate) zone_id: Option<String>,
    /// Id of the image that it booted.
    pub(crate) image_id: String,
    pub(crate) capacity_type: CapacityType,
    /// Reservation it runs in.
    pub(crate) capacity_reservation_id: Option<String>,
    /// Whether that is a capacity block.
    pub(crate) is_capacity_block: bool,
    /// Whether that may be taken back.
    pub(crate) is_interruptible: bool,
    /// How far its life has got.
    pub(crate) life: InstanceLife,
    /// When it was launched.
    pub(crate) launched_at: Option<Timestamp>,
    /// Subnet of its first interface.
    pub(crate) subnet_id: Option<String>,
    /// Groups of its interfaces.
    pub(crate) security_group_ids: Vec<String>,
    /// Id of the placement group that it runs in; none outside of one.
    pub(crate) placement_group_id: Option<String>,
    /// Partition of it, once EC2 has chosen.
    pub(crate) partition: Option<i32>,
    /// Tags of the instance, by key.
    pub(crate) tags: Tags,
}

impl Instance {
    /// Provider id by which Kubernetes knows it.
    pub(crate) fn provider_id(&self) -> ProviderId {
        ProviderId::of_instance(&self.zone, &self.id)
    }

    /// Whether it runs in one of the zones of those ids.
    pub(crate) fn is_in(&self, zone_ids: &BTreeSet<String>) -> bool {
        let own = self.zone_id.as_ref();
        own.is_some_and(|id| zone_ids.contains(id))
    }

    /// The reservation that it was bought into.
    pub(crate) fn reservation(&self) -> Option<&str> {
        let id = self.capacity_reservation_id.as_deref();
        id.filter(|_| self.capacity_type == CapacityType::Reserved)
    }

    /// As one that EC2 may take back, if it may.
    pub(crate) fn exposed(&self) -> Option<Exposed<'_>> {
        let is_exposed =
            self.capacity_type == CapacityType::Spot && self.life != InstanceLife::Ends;
        is_exposed.then_some(Exposed {
            instance_type: &self.instance_type,
            zone: &self.zone,
            launched_at: self.launched_at,
        })
    }

    /// The tags by which people and others find its claim, its cluster and its node, as far as it has none of these
    /// names.
    pub(crate) fn missing_tags(&self, node_claim: &NodeClaim, cluster_name: &str) -> Tags {
        let status = node_claim.status.as_ref();
        let node_name = status.and_then(|status| status.node_name.clone());
        let claim_name = node_claim.metadata.name.clone().unwrap_or_default();
        let mut tags = Tags::from([
            (labels::NODECLAIM_TAG.to_owned(), claim_name),
            (
                labels::EKS_CLUSTER_NAME_TAG.to_owned(),
                cluster_name.to_owned(),
            ),
        ]);
        tags.extend(node_name.map(|name| ("Name".to_owned(), name)));
        tags.retain(|key, _| !self.tags.contains_key(key));
        tags
    }

    fn from_ec2(instance: &Ec2Instance, is_reserved_enabled: bool) -> Option<Self> {
        let tags = instance.tags();
        let placement = instance.placement();
        let lifecycle = instance.instance_lifecycle();
        let groups = instance
            .security_groups()
            .iter()
            .filter_map(|group| group.group_id());
        Some(Self {
            id: instance.instance_id()?.to_owned(),
            instance_type: instance.instance_type()?.as_str().to_owned(),
            zone: placement?.availability_zone()?.to_owned(),
            zone_id: placement?.availability_zone_id().map(str::to_owned),
            image_id: instance.image_id().unwrap_or_default().to_owned(),
            capacity_type: capacity_type(instance, is_reserved_enabled),
            capacity_reservation_id: instance.capacity_reservation_id().map(str::to_owned),
            is_capacity_block: lifecycle == Some(&InstanceLifecycleType::CapacityBlock),
            is_interruptible: lifecycle
                == Some(&InstanceLifecycleType::InterruptibleCapacityReservation),
            life: life(instance),
            launched_at: instance
                .launch_time()
                .and_then(|time| Timestamp::from_second(time.secs()).ok()),
            subnet_id: instance.subnet_id().map(str::to_owned),
            security_group_ids: groups.map(str::to_owned).collect(),
            placement_group_id: placement?.group_id().map(str::to_owned),
            partition: placement?.partition_number(),
            tags: tags
                .iter()
                .filter_map(|tag| {
                    Some((
                        tag.key()?.to_owned(),
                        tag_value(tags, tag.key()?)?.to_owned(),
                    ))
                })
                .collect(),
        })
    }
}

fn life(instance: &Ec2Instance) -> InstanceLife {
    match instance.state().and_then(|state| state.name()) {
        Some(InstanceStateName::ShuttingDown | InstanceStateName::Terminated) => InstanceLife::Ends,
        Some(InstanceStateName::Stopping | InstanceStateName::Stopped) => InstanceLife::Stopped,
        Some(_) | None => InstanceLife::Runs,
    }
}

fn capacity_type(instance: &Ec2Instance, is_reserved_enabled: bool) -> CapacityType {
    if instance.spot_instance_request_id().is_some()
        || instance.instance_lifecycle() == Some(&InstanceLifecycleType::Spot)
    {
        return CapacityType::Spot;
    }
    let specification = instance.capacity_reservation_specification();
    let preference =
        specification.and_then(|specification| specification.capacity_reservation_preference());
    let is_reserved = instance.capacity_reservation_id().is_some()
        && preference == Some(&CapacityReservationPreference::CapacityReservationsOnly);
    if is_reserved_enabled && is_reserved {
        CapacityType::Reserved
    } else {
        CapacityType::OnDemand
    }
}

/// Looks up and ends instances.
pub(crate) struct InstanceProvider {
    ec2: Arc<dyn Ec2Api>,
    cluster_name: String,
    is_reserved_enabled: bool,
    describe: CallBatcher<DescribeCall>,
    find_by_launch: CallBatcher<FindCall>,
    find_by_pool: CallBatcher<FindCall>,
    terminate: CallBatcher<TerminateCall>,
    /// As last seen; drift reads it rather than asking EC2 about every node.
    seen: Mutex<BTreeMap<String, Instance>>,
}

impl InstanceProvider {
    /// With nothing seen yet.
    pub(crate) fn new(
        ec2: Arc<dyn Ec2Api>,
        cluster_name: &str,
        is_reserved_enabled: bool,
        metrics: &AwsMetrics,
    ) -> Self {
        let describe = Arc::new(DescribeCall::new(Arc::clone(&ec2)));
        let describe = CallBatcher::new(describe, WINDOW, "describe_instances", metrics);
        let find_by = |key: &'static str| {
            let find = Arc::new(FindCall::new(Arc::clone(&ec2), cluster_name, key));
            CallBatcher::new(find, WINDOW, "find_instances", metrics)
        };
        let find_by_launch = find_by(labels::LAUNCH_TAG);
        let find_by_pool = find_by(labels::NODEPOOL);
        let terminate = Arc::new(TerminateCall::new(Arc::clone(&ec2)));
        let terminate = CallBatcher::new(terminate, WINDOW, "terminate_instances", metrics);
        let seen = Mutex::default();
        Self {
            ec2,
            cluster_name: cluster_name.to_owned(),
            is_reserved_enabled,
            describe,
            find_by_launch,
            find_by_pool,
            terminate,
            seen,
        }
    }

    /// The instance as EC2 tells it now.
    pub(crate) async fn get(&self, id: &str) -> Result<Instance, CloudProviderError> {
        let answer = self.describe.submit(id.to_owned()).await;
        let answer = answer.ok_or_else(|| {
            CloudProviderError::Other(format!(
                "describing instance {id} was cut off; it is asked again"
            ))
        })?;
        let found = answer.map_err(|error| call_failure("describing an instance", &error))?;
        let Some(found) = found else {
            lock(&self.seen).remove(id);
            return Err(CloudProviderError::NotFound(format!("instance {id}")));
        };
        // It runs and costs, whatever EC2 leaves out of it: taken for gone, it would run for ever.
        let instance = Instance::from_ec2(&found, self.is_reserved_enabled).ok_or_else(|| {
            CloudProviderError::Other(format!(
                "instance {id} is described without its type or zone; it is asked again"
            ))
        })?;
        lock(&self.seen).insert(id.to_owned(), instance.clone());
        Ok(instance)
    }

    /// The instance as last seen, if it was.
    pub(crate) fn seen(&self, id: &str) -> Option<Instance> {
        lock(&self.seen).get(id).cloned()
    }

    /// The instance as last seen, or else as EC2 tells it now.
    pub(crate) async fn get_seen(&self, id: &str) -> Result<Instance, CloudProviderError> {
        match self.seen(id) {
            Some(instance) => Ok(instance),
            None => self.get(id).await,
        }
    }

    /// All instances of the cluster, by id. Those that are no longer told are forgotten, save in `blind_zones` (by id).
    pub(crate) async fn list(
        &self,
        blind_zones: &BTreeSet<String>,
    ) -> Result<Vec<Instance>, CloudProviderError> {
        let cluster = format!("tag:{}", labels::EKS_CLUSTER_NAME_TAG);
        let filters = vec![
            filter("tag-key", [labels::NODEPOOL]),
            filter("tag-key", [labels::EC2_NODE_CLASS]),
            filter(&cluster, [self.cluster_name.as_str()]),
            live_states(),
        ];
        let input = || {
            DescribeInstancesInput::builder()
                .set_filters(Some(filters.clone()))
                .max_results(PAGE)
        };
        let reservations = all_pages!(
            self.ec2,
            describe_instances,
            "describing instances",
            reservations,
            input()
        )?;
        let instances: BTreeMap<String, Instance> = reservations
            .iter()
            .flat_map(aws_sdk_ec2::types::Reservation::instances)
            .filter_map(|instance| self.readable(instance))
            .map(|instance| (instance.id.clone(), instance))
            .collect();
        let mut seen = lock(&self.seen);
        seen.retain(|_, instance| instance.is_in(blind_zones));
        seen.extend(instances.clone());
        drop(seen);
        Ok(instances.into_values().collect())
    }

    /// What a launch made, as far as EC2 lists it by now, in the order of ids; those on their way out are among it.
    pub(crate) async fn launched_under(
        &self,
        token: &str,
    ) -> Result<Vec<Instance>, CloudProviderError> {
        self.find(&self.find_by_launch, token).await
    }

    /// What was launched for a NodePool, likewise.
    pub(crate) async fn launched_for(
        &self,
        node_pool: &str,
    ) -> Result<Vec<Instance>, CloudProviderError> {
        self.find(&self.find_by_pool, node_pool).await
    }

    async fn find(
        &self,
        calls: &CallBatcher<FindCall>,
        value: &str,
    ) -> Result<Vec<Instance>, CloudProviderError> {
        let answer = calls.submit(value.to_owned()).await;
        let answer = answer.ok_or_else(|| {
            CloudProviderError::Other(format!(
                "looking for what was launched for {value} was cut off; it is asked again"
            ))
        })?;
        let found =
            answer.map_err(|error| call_failure("looking for launched instances", &error))?;
        let instances = found.iter().filter_map(|it| self.readable(it));
        let mut instances: Vec<Instance> = instances.collect();
        instances.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(instances)
    }

    /// The instance as far as it can be read; one that cannot is warned of.
    fn readable(&self, instance: &Ec2Instance) -> Option<Instance> {
        let read = Instance::from_ec2(instance, self.is_reserved_enabled);
        if read.is_none() {
            let id = instance.instance_id().unwrap_or("without an id");
            tracing::warn!(
                instance = id,
                "EC2 lists an instance without its type or zone; it is left out until it tells them"
            );
        }
        read
    }

    /// Starts to terminate an instance.
    pub(crate) async fn terminate(&self, id: &str) -> Result<(), CloudProviderError> {
        let answer = self.terminate.submit(id.to_owned()).await;
        let answer = answer.ok_or_else(|| {
            CloudProviderError::Other(format!(
                "terminating instance {id} was cut off; it is asked again"
            ))
        })?;
        lock(&self.seen).remove(id);
        answer.map_err(|error| call_failure("terminating an instance", &error))
    }

    /// Asks an instance to reboot. Not batched: it is rare, and one id that EC2 does not know fails a whole call.
    pub(crate) async fn reboot(&self, id: &str) -> Result<(), RebootError> {
        let input = RebootInstancesInput::builder()
            .instance_ids(id)
            .build()
            .map_err(|error| RebootError::Terminal(error.to_string()))?;
        let answer = self.ec2.reboot_instances(input).await;
        answer
            .map(drop)
            .map_err(|error| reboot_error("rebooting an instance", &error))
    }

    /// Impairments of instances of the account, present or planned.
    pub(crate) async fn impairments(
        &self,
        now: Timestamp,
    ) -> Result<Vec<Impairment>, CloudProviderError> {
        impairments(&self.ec2, now).await
    }

    /// Adds tags to an instance.
    pub(crate) async fn create_tags(
        &self,
        id: &str,
        tags: &Tags,
    ) -> Result<(), CloudProviderError> {
        let input = CreateTagsInput::builder()
            .resources(id)
            .set_tags(Some(to_ec2(tags)))
            .build()
            .map_err(invalid)?;
        self.ec2
            .create_tags(input)
            .await
            .map_err(|error| call_failure("tagging an instance", &error))?;
        if let Some(seen) = lock(&self.seen).get_mut(id) {
            seen.tags.extend(tags.clone());
        }
        Ok(())
    }
}

fn live_states() -> Filter {
    filter("instance-state-name", LIVE_STATES)
}
