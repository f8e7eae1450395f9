//! The cloud provider with the NodeOverlays in force on the types that it tells of.
//!
//! It hands every other call on as it is. Answers to `pkg/cloudprovider/overlay/cloudprovider.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{Ec2NodeClass, NodeClaim, NodePool, ProviderId, RepairPolicy};
use cloudprovider::{
    CloudProvider, CloudProviderError, Impairment, LaunchRequest, Launched, NodeClassStatus,
    RebootError, RegisteredNode, Registrable,
};
use kube::ResourceExt as _;
use scheduling::instance_type::InstanceType;

use super::overlays::Overlays;

/// What is sold, as all hear of it but who judges the overlays.
pub(crate) struct OverlaidProvider {
    inner: Arc<dyn CloudProvider>,
    overlays: Arc<Overlays>,
}

impl OverlaidProvider {
    pub(crate) fn new(inner: Arc<dyn CloudProvider>, overlays: Arc<Overlays>) -> Self {
        Self { inner, overlays }
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method with a default that is left out here would never reach the cloud"
)]
#[async_trait::async_trait]
impl CloudProvider for OverlaidProvider {
    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError> {
        self.inner.create(request).await
    }

    async fn delete(&self, provider_id: &ProviderId) -> Result<(), CloudProviderError> {
        self.inner.delete(provider_id).await
    }

    async fn get(&self, provider_id: &ProviderId) -> Result<Launched, CloudProviderError> {
        self.inner.get(provider_id).await
    }

    async fn list(&self) -> Result<Vec<Launched>, CloudProviderError> {
        self.inner.list().await
    }

    async fn instance_types(
        &self,
        node_pool: &NodePool,
        node_class: &Ec2NodeClass,
    ) -> Result<Arc<[Arc<InstanceType>]>, CloudProviderError> {
        let types = self.inner.instance_types(node_pool, node_class).await?;
        self.overlays.overlay(node_pool, &types).ok_or_else(|| {
            let name = node_pool.name_any();
            CloudProviderError::Other(format!(
                "overlays of nodepool {name:?} are not evaluated yet"
            ))
        })
    }

    async fn free_addresses(&self, node_class: &Ec2NodeClass) -> BTreeMap<String, u32> {
        self.inner.free_addresses(node_class).await
    }

    async fn is_drifted(
        &self,
        node_claim: &NodeClaim,
        node_class: &Ec2NodeClass,
    ) -> Result<Option<String>, CloudProviderError> {
        self.inner.is_drifted(node_claim, node_class).await
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

    async fn reboot(
        &self,
        provider_id: &ProviderId,
        operation_id: &str,
    ) -> Result<(), RebootError> {
        self.inner.reboot(provider_id, operation_id).await
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
