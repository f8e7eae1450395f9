//! The trait a cloud implements, and the values that cross it.
//!
//! Nothing is decided here. Answers to the interface `CloudProvider` of Karpenter's `pkg/cloudprovider/types.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apis::resources::Resources;
use apis::{Ec2NodeClass, NodeClaim, NodePool, ProviderId, RepairPolicy};
use scheduling::instance_type::InstanceType;
use scheduling::ranking::RankedOffering;

use crate::{AttemptRecord, CloudProviderError, Impairment, RebootError};

/// Everything a launch needs. The shell that builds it has already asked the ranking policy.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    /// The persisted claim; what it bears of an earlier [`crate::LaunchAttempt`] is taken up.
    pub node_claim: Arc<NodeClaim>,
    /// Where the attempt is written before the cloud is asked.
    pub record: Arc<dyn AttemptRecord>,
    /// The resolved class of the claim.
    pub node_class: Arc<Ec2NodeClass>,
    /// Offerings the claim may become, best first by effective cost. The provider keeps this order
    /// wherever the cloud lets it, and never launches what is absent.
    pub offerings: Arc<[RankedOffering]>,
    /// Whether the order differs from the order of prices, so that the cloud must be asked to honour it.
    pub order_differs_from_price: bool,
    /// The instance types behind `offerings`.
    pub instance_types: Arc<[Arc<InstanceType>]>,
}

/// Instance that a claim got, as the cloud tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// By which cluster and cloud name the instance.
    pub provider_id: ProviderId,
    /// Machine image of the instance.
    pub image_id: String,
    /// Name of the owning claim as the cloud's tags tell it, when they do.
    pub node_claim_name: Option<String>,
    /// Token of the launch that made it as the cloud's tags tell it, when they do; claims that wait for their instance
    /// bear the same.
    pub launch_token: Option<String>,
    /// NodePool as the cloud's tags tell it, when they do.
    pub node_pool_name: Option<String>,
    /// Single-valued labels of the instance: type, zone, capacity type and the provider's own.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the claim, such as the class hash.
    pub annotations: BTreeMap<String, String>,
    /// Expected capacity of the node.
    pub capacity: Resources,
    /// Expected allocatable of the node.
    pub allocatable: Resources,
    /// When the instance was launched.
    pub launched_at: Option<jiff::Timestamp>,
    /// How far its life has got.
    pub life: InstanceLife,
}

/// How far the life of an instance has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceLife {
    /// It runs or is about to.
    Runs,
    /// It has stopped or is about to.
    Stopped,
    /// The cloud is taking it away, or has.
    Ends,
}

/// Result of resolving a NodeClass: the whole status to write.
#[derive(Debug, Clone)]
pub struct NodeClassStatus {
    /// The status, conditions included.
    pub status: apis::Ec2NodeClassStatus,
    /// Annotations to merge (the hash and its version).
    pub annotations: BTreeMap<String, String>,
    /// How long until the class is to be looked at again, at the latest.
    pub requeue_after: Duration,
}

/// Answer of the provider whether a node may register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registrable {
    /// It may; with labels that could not be known before.
    Ready(BTreeMap<String, String>),
    /// Not before this is done.
    Pending(&'static str),
}

/// Facts that a node tells of its kind once it has registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisteredNode<'a> {
    /// Name of its instance type.
    pub instance_type: &'a str,
    /// Id of the machine image that it booted.
    pub image_id: &'a str,
    /// Memory as its kubelet counts it.
    pub memory_bytes: i64,
}

/// A cloud, as the controllers see it. Every method may be called again after any failure. None has a default: a
/// provider says itself that it has no such thing.
#[async_trait::async_trait]
pub trait CloudProvider: Send + Sync {
    /// Launches one instance for the claim, or finds the one that was launched for it before, by this process or
    /// another.
    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError>;

    /// Starts to terminate the instance; [`CloudProviderError::NotFound`] when it is gone.
    async fn delete(&self, provider_id: &ProviderId) -> Result<(), CloudProviderError>;

    /// The instance as it is now; [`CloudProviderError::NotFound`] when it is gone or terminated.
    async fn get(&self, provider_id: &ProviderId) -> Result<Launched, CloudProviderError>;

    /// All instances of this cluster, terminated ones excluded.
    async fn list(&self) -> Result<Vec<Launched>, CloudProviderError>;

    /// The instance types a pool may use, with offerings, prices and what is known of their availability now.
    async fn instance_types(
        &self,
        node_pool: &NodePool,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError>;

    /// Free addresses of the class's subnets by zone, as far as the cloud has such a thing.
    async fn free_addresses(&self, node_class: &Ec2NodeClass) -> BTreeMap<String, u32>;

    /// Why a running claim no longer matches its class, if it does not.
    async fn is_drifted(
        &self,
        node_claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Option<String>, CloudProviderError>;

    /// Resolves the selectors of a class (subnets, groups, images, profile) to its status, and says whether the cloud
    /// would launch what its pools may ask for.
    async fn resolve_node_class(
        &self,
        node_class: &Ec2NodeClass,
        node_pools: &[Arc<NodePool>],
    ) -> Result<NodeClassStatus, CloudProviderError>;

    /// Releases what the provider made for a class (launch templates, profiles) before its finalizer goes.
    async fn release_node_class(&self, node_class: &Ec2NodeClass)
    -> Result<(), CloudProviderError>;

    /// Deletes what was made for classes and nothing uses any more: profiles that are not among these.
    async fn release_unused(&self, profiles: &BTreeSet<String>) -> Result<(), CloudProviderError>;

    /// Those of the capacity reservations that end so soon that their nodes must go.
    async fn expiring_reservations(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, CloudProviderError>;

    /// Asks which zones traffic is shifted away from, by id. Nothing is launched, changed or ended there from then on.
    async fn shifted_zones(&self) -> Result<BTreeSet<String>, CloudProviderError>;

    /// Whether a node whose Node object is there may register; pods stay away from it until it may. Answers to
    /// Karpenter's `NodeLifecycleHook.Registered`.
    async fn registrable(&self, node_claim: &NodeClaim) -> Result<Registrable, CloudProviderError>;

    /// Takes note of what a node of the class turned out to be: others of its kind will be like it.
    async fn learn(&self, node: RegisteredNode<'_>, node_class: &Ec2NodeClass);

    /// Marks an instance with its claim and node names, where the cloud has tags.
    async fn tag(&self, node_claim: &NodeClaim) -> Result<(), CloudProviderError>;

    /// Asks for a reboot of the instance in place; answers once that is accepted.
    async fn reboot(&self, provider_id: &ProviderId) -> Result<(), RebootError>;

    /// Instances of the account, this cluster's or not, that the cloud finds sick or has plans with.
    async fn impairments(&self) -> Result<Vec<Impairment>, CloudProviderError>;

    /// Conditions that count as unhealthy.
    fn repair_policies(&self) -> Vec<RepairPolicy>;

    /// Name of the provider, for metrics.
    fn name(&self) -> &'static str;
}
