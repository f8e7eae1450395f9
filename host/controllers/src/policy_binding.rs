//! Binds policies: ConfigMaps labelled `mortise.dev/policy` in the policy namespace go to the policy registry,
//! and what became of them goes back to their status annotation and into events.
//!
//! It knows nothing of WebAssembly: the registry is a port (`hooks::binding`), which wakes the controller when a
//! binding failed at work. Karpenter has no such thing; what a binding may say is in `policies/README.md`.

mod entries;
mod known;
mod objects;
mod pace;
mod source;
mod status;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use apis::ObjectKey;
use hooks::binding::keys::STATUS_ANNOTATION;
use hooks::binding::{BindingSource, BindingStatus, OtherConfigMap, PolicyRegistry};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, Patch};
use locks::lock;
use serde_json::json;

use crate::policy_binding::entries::{BindingEntry, Removed};
use crate::policy_binding::known::{AfterDeletion, AfterReading, BindingReading, KnownBindings};
use crate::policy_binding::source::{binding_of, decoded, fingerprint, shown_of};
use crate::policy_binding::status::{StatusWrite, decide, until_counted};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::Reconciler;
use crate::shell::runtime::action::Action;
use crate::shell::writer::patching::patch_params;

pub use hooks::binding::keys::POLICY_LABEL;
pub(crate) use objects::{PolicyFact, PolicyObjects};
pub use source::source_of;

/// Controller of policy bindings: one ConfigMap a reconcile.
pub(crate) struct PolicyBinding {
    shell: Arc<Shell>,
    registry: Arc<dyn PolicyRegistry>,
    objects: Arc<PolicyObjects>,
    known: Mutex<KnownBindings>,
    /// Held while the registry hears of NodePools: nothing is bound before that.
    telling: Mutex<()>,
}

/// A binding as it is found now.
enum BindingNow {
    /// Its ConfigMap is gone, or going.
    Gone,
    /// Its ConfigMap is as it was looked at last.
    Same(Arc<ConfigMap>),
    /// Its ConfigMap, and what that says with all that it names.
    Read(Arc<ConfigMap>, Box<BindingSource>),
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
            known: Mutex::default(),
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

    /// Reads the binding, and what it names where anything of it may be new. What changes from the first read on is
    /// heard of: that it was to be read anew is taken back before, and what it names is made known.
    async fn observe(&self, key: &ObjectKey) -> Result<BindingNow, ReconcileError> {
        let told = self.objects.binding(key);
        let told = told.filter(|it| it.metadata.deletion_timestamp.is_none());
        let Some(config_map) = told else {
            return Ok(BindingNow::Gone);
        };
        let is_stale = self.objects.take_stale(key);
        let is_seen = lock(&self.known).is_seen(key, version_of(&config_map));
        if is_seen && !is_stale {
            return Ok(BindingNow::Same(config_map));
        }
        let mut source = Box::new(binding_of(&config_map));
        match self.read_others(key, &mut source).await {
            Ok(()) => Ok(BindingNow::Read(config_map, source)),
            Err(error) => {
                self.objects.read_anew(key);
                Err(error)
            }
        }
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

    /// Hands the binding to the registry on a thread for blocking work: compiling a module takes a while.
    async fn load(&self, key: &ObjectKey, source: BindingSource) -> BindingStatus {
        let registry = Arc::clone(&self.registry);
        let loading = tokio::task::spawn_blocking(move || registry.apply(&source));
        loading.await.unwrap_or_else(|error| {
            let message = format!("the loader of policies failed: {error}");
            BindingStatus::refused(key.clone(), "LoaderFailed", message)
        })
    }

    fn take_leave(&self, key: &ObjectKey, next: AfterDeletion) -> Action {
        match next {
            AfterDeletion::Nothing => Action::Await,
            AfterDeletion::Linger(left) => Action::RequeueAfter(left),
            AfterDeletion::LetGo => {
                self.registry.remove(key);
                self.shell.journal.write(key.name.as_str(), &Removed);
                Action::Await
            }
        }
    }

    /// Puts the binding in charge where it says something new.
    async fn take_over(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        source: BindingSource,
    ) -> Result<Action, ReconcileError> {
        let reading = BindingReading {
            version: version_of(config_map),
            fingerprint: fingerprint(config_map, &source),
        };
        let now = self.shell.clock.now();
        let next = lock(&self.known).note_read(key, reading, now);
        let status = match next {
            AfterReading::Keep => self.registry.status(key),
            AfterReading::Swap => Some(self.load(key, source).await),
            AfterReading::Rest(wait) => {
                self.objects.read_anew(key);
                return Ok(Action::RequeueAfter(wait));
            }
        };
        self.show(key, config_map, status).await
    }

    /// Shows what became of the binding, and what failed of it meanwhile.
    async fn show(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        status: Option<BindingStatus>,
    ) -> Result<Action, ReconcileError> {
        let action = match status {
            Some(status) => self.show_status(key, config_map, status).await?,
            None => Action::Await,
        };
        self.tell_failures(key, config_map);
        Ok(action)
    }

    async fn show_status(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        status: BindingStatus,
    ) -> Result<Action, ReconcileError> {
        let now = self.shell.clock.now();
        let shown = shown_of(config_map);
        let write = decide(status, shown.as_ref(), now);
        let shown = write.as_ref().map(|it| &it.annotation).or(shown.as_ref());
        let action = Action::RequeueAfter(until_counted(shown, now));
        if let Some(write) = write {
            self.apply(key, config_map, write).await?;
        }
        Ok(action)
    }

    fn tell_failures(&self, key: &ObjectKey, config_map: &ConfigMap) {
        for failure in self.registry.take_failures(key) {
            let entry = BindingEntry::Failed { failure };
            self.shell.journal.write(config_map, &entry);
        }
    }

    async fn apply(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        write: StatusWrite,
    ) -> Result<(), ReconcileError> {
        let StatusWrite {
            annotation,
            event,
            warning,
        } = write;
        let api: Api<ConfigMap> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        let text = serde_json::to_string(&annotation)?;
        let patch = json!({ "metadata": { "annotations": { STATUS_ANNOTATION: text } } });
        ignore_not_found(
            api.patch(&key.name, &patch_params(), &Patch::Merge(&patch))
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

impl Reconciler for PolicyBinding {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        self.set_node_pools();
        match self.observe(key).await? {
            BindingNow::Gone => {
                let next = lock(&self.known).note_gone(key, self.shell.clock.now());
                Ok(self.take_leave(key, next))
            }
            BindingNow::Same(config_map) => {
                lock(&self.known).note_there(key);
                let status = self.registry.status(key);
                self.show(key, &config_map, status).await
            }
            BindingNow::Read(config_map, source) => self.take_over(key, &config_map, *source).await,
        }
    }
}

fn version_of(config_map: &ConfigMap) -> &str {
    let version = config_map.metadata.resource_version.as_deref();
    version.unwrap_or_default()
}
