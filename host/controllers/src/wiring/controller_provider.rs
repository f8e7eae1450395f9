//! The cloud provider as one controller sees it: NodeOverlays are on the types, and the calls that Karpenter's metrics
//! name are timed, and their failures counted.
//!
//! Timed are those about one claim or instance, the list of instances and the types. All else passes as it is:
//! Karpenter has no such methods, so that nobody's dashboard knows their series, and free addresses, policies and names
//! are told from memory. Failures of what passes are counted as those of the controller that asked.
//!
//! One decorator, as most calls pass both as they are. Answers to `pkg/cloudprovider/metrics/cloudprovider.go` and
//! `pkg/cloudprovider/overlay/cloudprovider.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{Ec2NodeClass, NodeClaim, NodePool, ProviderId, RepairPolicy};
use cloudprovider::{
    CloudProvider, CloudProviderError, Impairment, LaunchRequest, Launched, NodeClassStatus,
    RebootError, RegisteredNode, Registrable,
};
use kube::ResourceExt as _;
use scheduling::instance_type::InstanceType;
use tokio::time::Instant;

use crate::node_overlay::overlays::Overlays;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{
    ControllerLabel, ErrorLabel, MethodLabel, NodePoolLabel, ProviderLabel, Series,
};

/// The provider as one controller sees it.
pub(crate) struct ControllerProvider {
    inner: Arc<dyn CloudProvider>,
    /// None for who judges the overlays, and where they are switched off.
    overlays: Option<Arc<Overlays>>,
    metrics: Arc<Metrics>,
    controller: &'static str,
}

impl ControllerProvider {
    pub(crate) fn new(
        inner: Arc<dyn CloudProvider>,
        overlays: Option<Arc<Overlays>>,
        metrics: Arc<Metrics>,
        controller: &'static str,
    ) -> Self {
        Self {
            inner,
            overlays,
            metrics,
            controller,
        }
    }

    /// What the pool may buy, with the overlays on it.
    async fn overlaid(
        &self,
        node_pool: &NodePool,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let types = self.inner.instance_types(node_pool, node_class).await?;
        let Some(overlays) = &self.overlays else {
            return Ok(types);
        };
        overlays.overlay(node_pool, &types).ok_or_else(|| {
            let name = node_pool.name_any();
            CloudProviderError::Other(format!(
                "overlays of nodepool {name:?} are not evaluated yet"
            ))
        })
    }

    fn measure<T>(
        &self,
        call: Call<'_>,
        result: Result<T, CloudProviderError>,
    ) -> Result<T, CloudProviderError> {
        let Call {
            method,
            node_pool,
            started,
        } = call;
        let controller = ControllerLabel(self.controller);
        let method = MethodLabel(method);
        let provider = ProviderLabel(self.inner.name());
        let series = Series((controller.clone(), method.clone(), provider.clone()));
        let seconds = started.elapsed().as_secs_f64();
        self.metrics
            .cloud_seconds
            .get_or_create(&series)
            .observe(seconds);
        if let Err(error) = &result {
            let kind = ErrorLabel(kind_of(error));
            let pool = NodePoolLabel(node_pool.unwrap_or_default().to_owned());
            let series = Series((controller, method, provider, kind, pool));
            self.metrics.cloud_errors.get_or_create(&series).inc();
        }
        result
    }
}

/// A call that was begun.
#[derive(Debug, Clone, Copy)]
struct Call<'a> {
    method: &'static str,
    /// None where the call is about no pool.
    node_pool: Option<&'a str>,
    started: Instant,
}

impl<'a> Call<'a> {
    fn begin(method: &'static str, node_pool: Option<&'a str>) -> Self {
        Self {
            method,
            node_pool,
            started: Instant::now(),
        }
    }
}

fn kind_of(error: &CloudProviderError) -> &'static str {
    match error {
        CloudProviderError::InsufficientCapacity(_) => "InsufficientCapacityError",
        CloudProviderError::NodeClassNotReady(_) => "NodeClassNotReadyError",
        CloudProviderError::NotFound(_) => "NodeClaimNotFoundError",
        CloudProviderError::Create { .. }
        | CloudProviderError::NotYet { .. }
        | CloudProviderError::Lost(_)
        | CloudProviderError::Other(_) => "unknown",
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method with a default that is left out here would never reach the cloud"
)]
#[async_trait::async_trait]
impl CloudProvider for ControllerProvider {
    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError> {
        let claim = Arc::clone(&request.node_claim);
        let call = Call::begin("Create", claim.pool_name());
        self.measure(call, self.inner.create(request).await)
    }

    async fn delete(&self, provider_id: &ProviderId) -> Result<(), CloudProviderError> {
        let call = Call::begin("Delete", None);
        self.measure(call, self.inner.delete(provider_id).await)
    }

    async fn get(&self, provider_id: &ProviderId) -> Result<Launched, CloudProviderError> {
        let call = Call::begin("Get", None);
        self.measure(call, self.inner.get(provider_id).await)
    }

    async fn list(&self) -> Result<Vec<Launched>, CloudProviderError> {
        let call = Call::begin("List", None);
        self.measure(call, self.inner.list().await)
    }

    async fn instance_types(
        &self,
        node_pool: &NodePool,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let pool = node_pool.name_any();
        let call = Call::begin("GetInstanceTypes", Some(&pool));
        let types = self.overlaid(node_pool, node_class).await;
        self.measure(call, types)
    }

    async fn free_addresses(&self, node_class: &Ec2NodeClass) -> BTreeMap<String, u32> {
        self.inner.free_addresses(node_class).await
    }

    async fn is_drifted(
        &self,
        node_claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Option<String>, CloudProviderError> {
        let call = Call::begin("IsDrifted", node_claim.pool_name());
        let drifted = self.inner.is_drifted(node_claim, node_class).await;
        self.measure(call, drifted)
    }

    async fn release_unused(&self, profiles: &BTreeSet<String>) -> Result<(), CloudProviderError> {
        self.inner.release_unused(profiles).await
    }

    async fn expiring_reservations(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, CloudProviderError> {
        self.inner.expiring_reservations(ids).await
    }

    async fn shifted_zones(&self) -> Result<BTreeSet<String>, CloudProviderError> {
        self.inner.shifted_zones().await
    }

    async fn resolve_node_class(
        &self,
        node_class: &Ec2NodeClass,
        node_pools: &[Arc<NodePool>],
    ) -> Result<NodeClassStatus, CloudProviderError> {
        self.inner.resolve_node_class(node_class, node_pools).await
    }

    async fn release_node_class(
        &self,
        node_class: &Ec2NodeClass,
    ) -> Result<(), CloudProviderError> {
        self.inner.release_node_class(node_class).await
    }

    async fn registrable(&self, node_claim: &NodeClaim) -> Result<Registrable, CloudProviderError> {
        self.inner.registrable(node_claim).await
    }

    async fn learn(&self, node: RegisteredNode<'_>, node_class: &Ec2NodeClass) {
        self.inner.learn(node, node_class).await;
    }

    async fn tag(&self, node_claim: &NodeClaim) -> Result<(), CloudProviderError> {
        self.inner.tag(node_claim).await
    }

    async fn reboot(&self, provider_id: &ProviderId) -> Result<(), RebootError> {
        let call = Call::begin("Reboot", None);
        let answer = self.inner.reboot(provider_id).await;
        let result = answer.clone();
        let result = result.map_err(|error| CloudProviderError::Other(error.to_string()));
        self.measure(call, result).ok();
        answer
    }

    async fn impairments(&self) -> Result<Vec<Impairment>, CloudProviderError> {
        self.inner.impairments().await
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}
