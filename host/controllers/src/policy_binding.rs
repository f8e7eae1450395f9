//! Binds policies: ConfigMaps labelled `mortise.dev/policy` in the policy namespace go to the policy registry,
//! and what became of them goes back to their status annotation and into events.
//!
//! It knows nothing of WebAssembly: the registry is a port (`hooks::binding`), which wakes the controller when a
//! binding failed at work. Karpenter has no such thing; what a binding may say is in `policies/README.md`.

mod entries;
mod objects;
mod pace;
mod source;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::ObjectKey;
use cloudprovider::sync::lock;
use hooks::binding::{
    BindingListener, BindingSource, BindingStatus, NodePoolLabels, OtherConfigMap, PolicyRegistry,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::policy_binding::entries::{BindingEntry, Removed};
use crate::policy_binding::pace::SwapPace;
use crate::policy_binding::source::{binding_of, decoded, fingerprint, shown_of};
use crate::policy_binding::status::{Decided, decide, until_counted};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::{Action, Reconciler};

pub use hooks::binding::keys::POLICY_LABEL;
pub(crate) use objects::{PolicyFact, PolicyObjects};
pub use source::source_of;
pub use status::STATUS_ANNOTATION;

/// How long a deleted policy goes on deciding: whoever replaces a ConfigMap deletes it for a moment.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// A registry that refuses everything, for runs without policies.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoPolicies;

impl PolicyRegistry for NoPolicies {
    fn apply(&self, source: &BindingSource) -> BindingStatus {
        let message = "this process runs without policies".to_owned();
        BindingStatus::refused(source.key(), "NotSupported", message)
    }

    fn remove(&self, _key: &ObjectKey) {}

    fn references(&self, _source: &BindingSource) -> Vec<String> {
        Vec::new()
    }

    fn set_node_pools(&self, _pools: NodePoolLabels) {}

    fn status(&self, _key: &ObjectKey) -> Option<BindingStatus> {
        None
    }

    fn take_failures(&self, _key: &ObjectKey) -> Vec<String> {
        Vec::new()
    }

    fn listen(&self, _listener: BindingListener) {}
}

/// The controller.
pub(crate) struct PolicyBinding {
    shell: Arc<Shell>,
    registry: Arc<dyn PolicyRegistry>,
    objects: Arc<PolicyObjects>,
    known: Mutex<BTreeMap<ObjectKey, KnownBinding>>,
    /// Held while the registry hears of NodePools: nothing is bound before that.
    telling: Mutex<()>,
}

/// What was applied of a binding, and when it may be swapped again.
struct KnownBinding {
    /// Version of its ConfigMap that was looked at last.
    version: String,
    fingerprint: u64,
    pace: SwapPace,
    /// When its ConfigMap was found gone.
    gone_since: Option<Timestamp>,
}

/// What a binding says, and how to know it again.
struct Changed {
    version: String,
    fingerprint: u64,
    source: BindingSource,
}

impl PolicyBinding {
    pub(crate) fn new(
        shell: Arc<Shell>,
        registry: Arc<dyn PolicyRegistry>,
        objects: Arc<PolicyObjects>,
    ) -> Self {
        let woken = Arc::clone(&objects);
        registry.listen(Arc::new(move |key| woken.look_at(key)));
        Self {
            shell,
            registry,
            objects,
            known: Mutex::new(BTreeMap::new()),
            telling: Mutex::new(()),
        }
    }

    fn set_node_pools(&self) {
        let _telling = lock(&self.telling);
        if !self.objects.take_untold_pools() {
            return;
        }
        let snapshot = self.shell.model.snapshot();
        let pools = snapshot
            .node_pools()
            .map(|pool| (pool.name_any(), pool.labels().clone()))
            .collect();
        self.registry.set_node_pools(pools);
    }

    /// The binding's ConfigMap as the watch told it, if it is to decide.
    fn binding(&self, key: &ObjectKey) -> Option<Arc<ConfigMap>> {
        let binding = self.objects.binding(key);
        binding.filter(|it| it.metadata.deletion_timestamp.is_none())
    }

    /// What the binding says, if that is not what was applied last.
    async fn changed(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
    ) -> Result<Option<Changed>, ReconcileError> {
        let is_stale = self.objects.take_stale(key);
        let version = config_map.metadata.resource_version.as_ref();
        let is_known = self.lock_known().get_mut(key).is_some_and(|known| {
            known.gone_since = None;
            Some(&known.version) == version
        });
        if is_known && !is_stale {
            return Ok(None);
        }
        let mut source = binding_of(config_map);
        if let Err(error) = self.read_others(key, &mut source).await {
            self.objects.read_anew(key);
            return Err(error);
        }
        let changed = Changed {
            version: config_map.resource_version().unwrap_or_default(),
            fingerprint: fingerprint(config_map, &source),
            source,
        };
        if let Some(known) = self.lock_known().get_mut(key)
            && known.fingerprint == changed.fingerprint
        {
            known.version = changed.version;
            return Ok(None);
        }
        Ok(Some(changed))
    }

    /// Reads the ConfigMaps that the binding names.
    async fn read_others(
        &self,
        key: &ObjectKey,
        source: &mut BindingSource,
    ) -> Result<(), ReconcileError> {
        let names: BTreeSet<String> = self.registry.references(source).into_iter().collect();
        // Before they are read: what changes from now on is heard of.
        let known = names.clone();
        self.objects.set_named(key, known);
        let api: Api<ConfigMap> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        for name in names {
            let Some(found) = api.get_opt(&name).await? else {
                continue;
            };
            let other = OtherConfigMap {
                data: found.data.unwrap_or_default(),
                binary_data: decoded(found.binary_data),
            };
            source.others.insert(name, other);
        }
        Ok(())
    }

    /// Puts the binding in charge, or says how long that has to wait.
    async fn swap(&self, key: &ObjectKey, changed: Changed) -> Result<BindingStatus, Duration> {
        let Changed {
            version,
            fingerprint,
            source,
        } = changed;
        let now = self.shell.clock.now();
        let mut pace = SwapPace::first(now);
        if let Some(known) = self.lock_known().get_mut(key) {
            if let Err(wait) = known.pace.swap(now, &fingerprint.to_string()) {
                self.objects.read_anew(key);
                return Err(wait);
            }
            pace = known.pace.clone();
        }
        let status = self.load(key, source).await;
        let known = KnownBinding {
            version,
            fingerprint,
            pace,
            gone_since: None,
        };
        self.lock_known().insert(key.clone(), known);
        Ok(status)
    }

    /// Hands the binding to the registry on a thread for blocking work: compiling a module takes a while.
    async fn load(&self, key: &ObjectKey, source: BindingSource) -> BindingStatus {
        let registry = Arc::clone(&self.registry);
        let loading = tokio::task::spawn_blocking(move || registry.apply(&source));
        loading.await.unwrap_or_else(|error| {
            let message = format!("the loader of policies failed: {error}");
            BindingStatus::refused(key.clone(), "LoaderFailed", message)
        })
    }

    fn lock_known(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, KnownBinding>> {
        lock(&self.known)
    }

    /// Lets a deleted policy go, a while after it was deleted.
    fn let_go(&self, key: &ObjectKey) -> Action {
        let now = self.shell.clock.now();
        let left = {
            let mut known = self.lock_known();
            let gone_since = known
                .get_mut(key)
                .map(|known| *known.gone_since.get_or_insert(now));
            match gone_since {
                Some(since) => GRACE - now.duration_since(since),
                None => return Action::Await,
            }
        };
        if left.is_positive() {
            return Action::RequeueAfter(left.unsigned_abs());
        }
        self.registry.remove(key);
        if self.lock_known().remove(key).is_some() {
            self.shell.journal.write(key.name.as_str(), &Removed);
        }
        Action::Await
    }

    async fn apply(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        decided: Decided,
    ) -> Result<(), ReconcileError> {
        let Decided {
            annotation,
            event,
            warning,
        } = decided;
        let Some(annotation) = annotation else {
            return Ok(());
        };
        let api: Api<ConfigMap> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        let text = serde_json::to_string(&annotation)?;
        let patch = json!({ "metadata": { "annotations": { STATUS_ANNOTATION: text } } });
        ignore_not_found(
            api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch))
                .await,
        )?;
        if let Some((event_type, reason)) = event {
            let entry = BindingEntry::Decided {
                event_type,
                reason,
                annotation: &annotation,
            };
            self.shell.journal.write(config_map, &entry);
        }
        if let Some(warning) = warning {
            let entry = BindingEntry::NodePoolNotFound { warning: &warning };
            self.shell.journal.write(config_map, &entry);
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Reconciler for PolicyBinding {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        self.set_node_pools();
        let Some(config_map) = self.binding(key) else {
            return Ok(self.let_go(key));
        };
        let status = match self.changed(key, &config_map).await? {
            None => self.registry.status(key),
            Some(changed) => match self.swap(key, changed).await {
                Ok(status) => Some(status),
                Err(wait) => return Ok(Action::RequeueAfter(wait)),
            },
        };
        let mut action = Action::Await;
        if let Some(status) = status {
            let now = self.shell.clock.now();
            let shown = shown_of(&config_map);
            let decided = decide(status, shown.as_ref(), now);
            let shown = decided.annotation.as_ref().or(shown.as_ref());
            action = Action::RequeueAfter(until_counted(shown, now));
            self.apply(key, &config_map, decided).await?;
        }
        for failure in self.registry.take_failures(key) {
            let entry = BindingEntry::Failed { failure };
            self.shell.journal.write(config_map.as_ref(), &entry);
        }
        Ok(action)
    }
}
