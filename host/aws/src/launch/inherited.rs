//! Instances that a Karpenter bought and died before it said so.
//!
//! It writes nothing on a claim before it asks EC2, and names the instance after its claim only when there is a node:
//! until then the instance bears its pool and its class alone. Which of the pool's claims takes it is all the same.
//! Nothing here ends an instance; what nobody takes is collected like any other.

use apis::labels;
use cloudprovider::{CloudProviderError, InstanceLife, Launched};
use jiff::{SignedDuration, Timestamp};

use super::claim::{ClaimUid, node_pool};
use super::launched::Bought;
use super::{InstanceLauncher, LaunchContext};
use crate::instance::Instance;

/// A claim that this process made is launched sooner, and EC2 is not asked about it.
const INHERITED_AFTER: SignedDuration = SignedDuration::from_secs(3);

impl InstanceLauncher {
    /// An instance for a claim that another process left, if it left one.
    pub(super) async fn find_inherited(
        &self,
        context: &LaunchContext<'_>,
    ) -> Result<Option<Launched>, CloudProviderError> {
        let Some(created) = inherited_since(context) else {
            return Ok(None);
        };
        let claim = &context.request.node_claim;
        let pool = node_pool(claim);
        let listed = context.instances.launched_for(pool).await?;
        let free = listed.iter().filter(|it| {
            is_untold(it, context)
                && it.launched_at.is_some_and(|at| at >= created)
                && !context.request.record.is_owned(&it.provider_id())
                && Bought::from(*it).suits(context)
        });
        let ids = free.map(|it| it.id.clone());
        // No token looks like this, as it is made of a UID.
        let token = format!("of {pool}");
        let assigned = self
            .launches
            .assign(&token, &ClaimUid::of(claim), context.now, ids);
        let found = assigned.and_then(|id| listed.iter().find(|it| it.id == id));
        match found {
            Some(instance) => self.adopt(context, instance).await.map(Some),
            None => Ok(None),
        }
    }
}

/// When the claim was made, if that was long before its first attempt.
fn inherited_since(context: &LaunchContext<'_>) -> Option<Timestamp> {
    let created = &context.request.node_claim.metadata.creation_timestamp;
    let created = created.as_ref()?.0;
    (context.now.duration_since(created) >= INHERITED_AFTER).then_some(created)
}

/// Whether it runs for the claim's class and bears the name of no claim and of no launch.
fn is_untold(instance: &Instance, context: &LaunchContext<'_>) -> bool {
    let class = context.request.node_class.metadata.name.as_ref();
    let tags = &instance.tags;
    instance.life == InstanceLife::Runs
        && tags.get(labels::EC2_NODE_CLASS) == class
        && !tags.contains_key(labels::NODECLAIM_TAG)
        && !tags.contains_key(labels::LAUNCH_TAG)
}
