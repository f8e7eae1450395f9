//! Whether the instance of a claim still is what its class asks for: in Karpenter's order. The first reason wins,
//! and what only later ones need is not asked.
//!
//! What each of them is, `drift.rs` says. Answers to Karpenter's `pkg/cloudprovider/drift.go` of the AWS provider.

use apis::{Ec2NodeClass, NodeClaim};
use cloudprovider::CloudProviderError;

use super::AwsProvider;
use crate::drift::{
    CAPACITY_RESERVATION_DRIFT, ami_drift, instance_drift, placement_drift, static_drift,
};

impl AwsProvider {
    /// Why the claim has drifted, if it has.
    pub(super) async fn drift(
        &self,
        claim: &NodeClaim,
        class: &Ec2NodeClass,
    ) -> Result<Option<&'static str>, CloudProviderError> {
        // Elsewhere classes come to something else, from which nothing here has drifted.
        let id = self.instance_id_of(claim)?;
        if let Some(reason) = static_drift(claim, class) {
            return Ok(Some(reason));
        }
        let instance_type = self.instance_type_of(claim, class).await?;
        if let Some(reason) = ami_drift(claim, class, &instance_type)? {
            return Ok(Some(reason));
        }
        let mut reason = instance_drift(class, &self.instances.get_seen(&id).await?)?;
        if reason == Some(CAPACITY_RESERVATION_DRIFT) {
            // An instance leaves its reservation while it runs, and then it is on-demand and not drifted.
            reason = instance_drift(class, &self.instances.get(&id).await?)?;
        }
        if reason.is_some() {
            return Ok(reason);
        }
        // A group of which nothing is known drifts nothing.
        let group = self.placement_group(class, self.clock.now()).await.ok();
        Ok(group.and_then(|it| placement_drift(claim, it.as_ref())))
    }
}
