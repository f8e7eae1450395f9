//! NodeOverlays: judges them all together, says in their status what came of it, and lays them on what pools may buy.
//!
//! The controller asks the provider as it is; every other controller asks through [`OverlaidProvider`]. What overlays
//! change is worked out by `scheduling::node_overlay`. Answers to `pkg/controllers/nodeoverlay` and
//! `pkg/cloudprovider/overlay`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use apis::ObjectKey;
use apis::conditions::{self, Conditioned, reason};
use apis::{Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use cloudprovider::{
    CloudProvider, CloudProviderError, Impairment, LaunchRequest, Launched, NodeClassStatus,
    RebootError, Registrable, RepairPolicy,
};
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::instance_type::InstanceType;
use scheduling::node_overlay::{self, Overlaid, PoolCatalogue, Verdict};
use state::Event;
use tracing::debug;

use crate::error::ReconcileError;
use crate::patching::{Part, patch};
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

/// Types and prices change without an event, so overlays are judged again now and then.
const AGAIN: Action = Action::RequeueAfter(Duration::from_hours(6));
/// A pool whose types could not be told is asked again.
const AGAIN_SOON: Action = Action::RequeueAfter(Duration::from_secs(10));

/// Overlays in force, once they were judged, and what they make of the types told last.
#[derive(Debug, Default)]
pub(crate) struct Overlays {
    judged: RwLock<Option<Arc<Judged>>>,
    latest: Mutex<BTreeMap<String, Latest>>,
}

#[derive(Debug)]
struct Judged {
    accepted: Vec<NodeOverlay>,
    pools: BTreeSet<String>,
}

#[derive(Debug)]
struct Latest {
    judged: Arc<Judged>,
    told: Arc<[Arc<InstanceType>]>,
    overlaid: Arc<Overlaid>,
}

impl Overlays {
    /// The pool's types under the overlays in force; nothing as long as the pool was not part of a judgement.
    fn overlay(
        &self,
        pool: &NodePool,
        told: &Arc<[Arc<InstanceType>]>,
    ) -> Option<Arc<[Arc<InstanceType>]>> {
        let judged = self.judged.read().unwrap_or_else(PoisonError::into_inner);
        let name = pool.name_any();
        let judged = judged.clone().filter(|it| it.pools.contains(&name))?;
        let mut all = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all
            .get(&name)
            .filter(|it| Arc::ptr_eq(&it.told, told) && Arc::ptr_eq(&it.judged, &judged));
        let overlaid = known.map_or_else(
            || {
                let catalogue = (Arc::new(pool.clone()), Arc::clone(told));
                Arc::new(node_overlay::apply(&judged.accepted, &[catalogue]))
            },
            |known| Arc::clone(&known.overlaid),
        );
        let types = overlaid.instance_types.get(&name).cloned();
        let told = Arc::clone(told);
        let latest = Latest {
            judged,
            told,
            overlaid,
        };
        all.insert(name, latest);
        types
    }

    /// Says on a claim what overlays changed about the types it may become.
    pub(crate) fn mark(&self, claim: &mut NodeClaim, pool: &str) {
        let all = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = all.get(pool) {
            latest.overlaid.mark(claim, pool);
        }
    }
}

/// The controller; there is one key for all overlays.
pub(crate) struct Controller {
    pub(crate) shell: Arc<Shell>,
    /// Tells types as they are without overlays.
    pub(crate) provider: Arc<dyn CloudProvider>,
}

/// The one key.
pub(crate) fn key() -> ObjectKey {
    ObjectKey::cluster("")
}

#[async_trait::async_trait]
impl Reconciler for Controller {
    type Key = ObjectKey;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, ReconcileError> {
        let snapshot = self.shell.model.snapshot();
        let overlays: Vec<NodeOverlay> = snapshot
            .node_overlays()
            .filter(|it| it.metadata.deletion_timestamp.is_none())
            .map(|it| (**it).clone())
            .collect();
        let mut pools: Vec<PoolCatalogue> = Vec::new();
        let mut again = AGAIN;
        for pool in snapshot.node_pools() {
            let class = &pool.spec.template.spec.node_class_ref.name;
            let Some(class) = self.shell.model.node_class(class) else {
                continue;
            };
            match self.provider.instance_types(pool, &class).await {
                Ok(types) => pools.push((Arc::clone(pool), types)),
                Err(error) => {
                    debug!(NodePool = %pool.name_any(), %error, "overlays not evaluated");
                    again = AGAIN_SOON;
                }
            }
        }
        drop(snapshot);
        let verdicts = node_overlay::judge(&overlays, &pools);
        let judged = Judged {
            accepted: node_overlay::accepted(&overlays, &verdicts),
            pools: pools.iter().map(|(pool, _)| pool.name_any()).collect(),
        };
        let store = &self.shell.overlays;
        *store.judged.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(judged));
        self.shell.model.apply(Event::OfferingsChanged).ok();
        for overlay in &overlays {
            if let Some(verdict) = verdicts.get(&overlay.name_any()) {
                let after = told(overlay, verdict, self.shell.now());
                patch(&self.shell.writer.api(), overlay, &after, Part::Status).await?;
            }
        }
        Ok(again)
    }
}

/// The overlay with its verdict in its status.
fn told(overlay: &NodeOverlay, verdict: &Verdict, now: Timestamp) -> NodeOverlay {
    let mut after = overlay.clone();
    after.edit_conditions(now, |editor| match verdict {
        Verdict::Applied => {
            editor.set_true(conditions::VALIDATION_SUCCEEDED);
        }
        Verdict::Conflict => {
            let condition = conditions::VALIDATION_SUCCEEDED;
            editor.set_false(condition, reason::CONFLICT, "conflict with another overlay");
        }
        Verdict::Invalid(message) => {
            let condition = conditions::VALIDATION_SUCCEEDED;
            editor.set_false(condition, reason::RUNTIME_VALIDATION, message);
        }
    });
    after
}

/// A provider whose instance types have the overlays on them.
pub(crate) struct OverlaidProvider {
    pub(crate) inner: Arc<dyn CloudProvider>,
    pub(crate) overlays: Arc<Overlays>,
}

#[async_trait::async_trait]
impl CloudProvider for OverlaidProvider {
    async fn create(&self, request: LaunchRequest) -> Result<Launched, CloudProviderError> {
        self.inner.create(request).await
    }

    async fn delete(&self, provider_id: &str) -> Result<(), CloudProviderError> {
        self.inner.delete(provider_id).await
    }

    async fn get(&self, provider_id: &str) -> Result<Launched, CloudProviderError> {
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

    async fn resolve_node_class(
        &self,
        node_class: &Ec2NodeClass,
    ) -> Result<NodeClassStatus, CloudProviderError> {
        self.inner.resolve_node_class(node_class).await
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

    async fn tag(&self, node_claim: &NodeClaim) -> Result<(), CloudProviderError> {
        self.inner.tag(node_claim).await
    }

    async fn reboot(&self, provider_id: &str, operation_id: &str) -> Result<(), RebootError> {
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
