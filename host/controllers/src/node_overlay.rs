//! NodeOverlays: judges them all together, says in their status what came of it, and lays them on what pools may buy.
//!
//! The controller asks the provider as it is; every other controller asks through [`OverlaidProvider`]. What overlays
//! change is worked out by `scheduling::node_overlay`. Answers to `pkg/controllers/nodeoverlay` and
//! `pkg/cloudprovider/overlay`.

pub(crate) mod overlaid_provider;
pub(crate) mod overlays;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use apis::NodeOverlay;
use apis::ObjectKey;
use apis::conditions::{self, Conditioned, reason};
use cloudprovider::CloudProvider;
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::node_overlay::{self, OverlayVerdict, PoolCatalogue};
use state::Event;
use tracing::debug;

use crate::error::ReconcileError;
use crate::node_overlay::overlays::Judged;
use crate::patching::{Part, patch};
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

/// Types and prices change without an event, so overlays are judged again now and then.
const AGAIN: Action = Action::RequeueAfter(Duration::from_hours(6));
/// A pool whose types could not be told is asked again.
const AGAIN_SOON: Action = Action::RequeueAfter(Duration::from_secs(10));

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
fn told(overlay: &NodeOverlay, verdict: &OverlayVerdict, now: Timestamp) -> NodeOverlay {
    let mut after = overlay.clone();
    after.edit_conditions(now, |editor| match verdict {
        OverlayVerdict::Applied => {
            editor.set_true(conditions::VALIDATION_SUCCEEDED);
        }
        OverlayVerdict::Conflict => {
            let condition = conditions::VALIDATION_SUCCEEDED;
            editor.set_false(condition, reason::CONFLICT, "conflict with another overlay");
        }
        OverlayVerdict::Invalid(message) => {
            let condition = conditions::VALIDATION_SUCCEEDED;
            editor.set_false(condition, reason::RUNTIME_VALIDATION, message);
        }
    });
    after
}
