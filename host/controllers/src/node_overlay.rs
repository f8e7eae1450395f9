//! NodeOverlays: judges them all together, says in their status what came of it, and lays them on what pools may buy.
//!
//! The controller asks the provider as it is; every other controller hears of types with the overlays on them
//! (`ControllerProvider`). What overlays change is worked out by `scheduling::node_overlay`. Answers to
//! `pkg/controllers/nodeoverlay`.

pub(crate) mod overlays;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::conditions::{self, Conditioned, reason};
use apis::{NodeOverlay, ObjectKey};
use cloudprovider::{CloudProvider, CloudProviderError};
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::node_overlay::{self, OverlayVerdict, PoolCatalogue};
use state::Event;
use tracing::debug;

use self::overlays::{JudgedOverlays, Overlays};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::writer::patching::{PatchTarget, patch};

/// Types and prices change without an event, so overlays are judged again now and then.
const AGAIN: Action = Action::RequeueAfter(Duration::from_hours(6));
/// A pool whose types could not be told is asked again.
const AGAIN_SOON: Action = Action::RequeueAfter(Duration::from_secs(10));

/// The controller; there is one key for all overlays.
pub(crate) struct NodeOverlayController {
    pub(crate) shell: Arc<Shell>,
    /// Tells types as they are without overlays.
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) overlays: Arc<Overlays>,
}

/// Key of the queue, the only one: overlays are judged all together.
pub(crate) fn key() -> ObjectKey {
    ObjectKey::cluster("")
}

/// All overlays, and all that they may change.
struct Observed {
    overlays: Vec<NodeOverlay>,
    pools: Vec<PoolCatalogue>,
    /// Names of pools whose types could not be told, and why.
    untold: BTreeMap<String, CloudProviderError>,
}

/// Verdicts on all overlays, and when to judge again.
struct Decided {
    judged: JudgedOverlays,
    /// Each overlay with its verdict in its status, in the order of those that were observed.
    after: Vec<NodeOverlay>,
    again: Action,
}

impl Reconciler for NodeOverlayController {
    type Key = ObjectKey;

    async fn reconcile(&self, _: &ObjectKey) -> Result<Action, ReconcileError> {
        let observed = self.observe().await;
        let decided = decide(&observed, self.shell.now());
        self.apply(&observed, decided).await
    }
}

impl NodeOverlayController {
    async fn observe(&self) -> Observed {
        let snapshot = self.shell.model.snapshot();
        let overlays = snapshot.node_overlays();
        let mut observed = Observed {
            overlays: overlays
                .filter(|it| it.metadata.deletion_timestamp.is_none())
                .map(|it| (**it).clone())
                .collect(),
            pools: Vec::new(),
            untold: BTreeMap::new(),
        };
        for pool in snapshot.node_pools() {
            let Some(class) = snapshot.class_of(pool) else {
                continue;
            };
            match self.provider.instance_types(pool, class).await {
                Ok(types) => observed.pools.push((Arc::clone(pool), types)),
                Err(error) => {
                    observed.untold.insert(pool.name_any(), error);
                }
            }
        }
        observed
    }

    async fn apply(&self, observed: &Observed, decided: Decided) -> Result<Action, ReconcileError> {
        let Decided {
            judged,
            after,
            again,
        } = decided;
        for (pool, error) in &observed.untold {
            debug!(NodePool = %pool, %error, "overlays not evaluated");
        }
        self.overlays.set(judged);
        self.shell.model.note(Event::OfferingsChanged);
        let api = self.shell.writer.api();
        for (before, after) in observed.overlays.iter().zip(&after) {
            patch(&api, before, after, PatchTarget::Status).await?;
        }
        Ok(again)
    }
}

fn decide(observed: &Observed, now: Timestamp) -> Decided {
    let Observed {
        overlays,
        pools,
        untold,
    } = observed;
    let verdicts = node_overlay::judge(overlays, pools);
    let with_verdict = |overlay: &NodeOverlay| {
        let verdict = verdicts.get(&overlay.name_any());
        verdict.map_or_else(|| overlay.clone(), |it| with_status(overlay, it, now))
    };
    Decided {
        judged: JudgedOverlays {
            accepted: node_overlay::accepted(overlays, &verdicts),
            pools: pools.iter().map(|(pool, _)| pool.name_any()).collect(),
        },
        after: overlays.iter().map(with_verdict).collect(),
        again: if untold.is_empty() { AGAIN } else { AGAIN_SOON },
    }
}

/// The overlay with its verdict in its status.
fn with_status(overlay: &NodeOverlay, verdict: &OverlayVerdict, now: Timestamp) -> NodeOverlay {
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

#[cfg(test)]
mod tests {
    use apis::NodePool;
    use serde_json::{Value, json};

    use super::*;

    fn overlay(name: &str, spec: &Value) -> NodeOverlay {
        let object = json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
            "metadata": {"name": name}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_sound_overlay_is_in_force_and_each_is_told_its_verdict() {
        let mut observed = Observed {
            overlays: vec![
                overlay(
                    "cheap",
                    &json!({"requirements": [], "priceAdjustment": "-10%"}),
                ),
                overlay("torn", &json!({"requirements": [], "price": "much"})),
            ],
            pools: vec![(Arc::new(NodePool::default()), Arc::default())],
            untold: BTreeMap::new(),
        };
        let decided = decide(&observed, Timestamp::UNIX_EPOCH);
        let accepted = decided.judged.accepted.iter().map(ResourceExt::name_any);
        assert_eq!(accepted.collect::<Vec<_>>(), ["cheap"]);
        let verdicts = decided.after.iter().map(|it| {
            let condition = it.condition(conditions::VALIDATION_SUCCEEDED);
            condition.map_or_else(String::new, |it| format!("{}: {}", it.status, it.reason))
        });
        assert_eq!(
            verdicts.collect::<Vec<_>>(),
            ["True: ValidationSucceeded", "False: RuntimeValidation"]
        );
        assert_eq!(decided.again, AGAIN);
        let error = CloudProviderError::Other("throttled".to_owned());
        observed.untold.insert("default".to_owned(), error);
        let again = decide(&observed, Timestamp::UNIX_EPOCH).again;
        assert_eq!(
            again, AGAIN_SOON,
            "a pool that was left out is looked at soon"
        );
    }
}
