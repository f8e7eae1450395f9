//! Binds policies: ConfigMaps labelled `mortise.dev/policy` in the policy namespace go to the policy registry,
//! and what became of them goes back to their status annotation and into events.
//!
//! It knows nothing of WebAssembly: the registry is a port that the operator implements. Karpenter has no such
//! thing; what a binding may say is in `policies/README.md`.

mod objects;
mod pace;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apis::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{info, warn};

use crate::error::{ReconcileError, ignore_not_found};
pub(crate) use crate::policy_binding::objects::PolicyObjects;
use crate::policy_binding::pace::SwapPace;
use crate::policy_binding::status::{Decided, StatusAnnotation, decide};
use crate::recorder::{EventType, Notice};
use crate::runtime::{Action, Reconciler};
use crate::shell::Shell;

/// Label of a binding; its value is the kind of policy.
pub const POLICY_LABEL: &str = "mortise.dev/policy";
/// Where the state of a binding is shown, as JSON.
pub const STATUS_ANNOTATION: &str = "mortise.dev/status";

/// How long a deleted policy goes on deciding: whoever replaces a ConfigMap deletes it for a moment.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// A binding as its ConfigMap states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindingSource {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Name of the ConfigMap.
    pub name: String,
    /// UID of the ConfigMap.
    pub uid: String,
    /// Version of the ConfigMap that this was read from.
    pub resource_version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, the status excepted.
    pub annotations: BTreeMap<String, String>,
    /// Its text values.
    pub data: BTreeMap<String, String>,
    /// Its binary values, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
    /// Of the ConfigMaps beside it that it names, those that there are.
    pub others: BTreeMap<String, OtherConfigMap>,
}

/// A ConfigMap that a binding names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct OtherConfigMap {
    /// Its text values.
    pub data: BTreeMap<String, String>,
    /// Its binary values, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

/// Every NodePool of the cluster, with its labels.
pub type NodePoolLabels = BTreeMap<String, BTreeMap<String, String>>;

/// Where a binding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingState {
    /// This very binding decides, or would if its mode let it.
    Ready,
    /// It was refused; what decided before goes on.
    Degraded,
    /// It failed too often at work and is held back until it changes.
    Quarantined,
}

/// What the registry made of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingReport {
    /// Where it stands.
    pub state: BindingState,
    /// Digest of the component that decides under this binding, if any.
    pub digest: Option<String>,
    /// CamelCase word for the state.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
    /// What is in charge under this binding, if anything.
    pub in_charge: Option<InCharge>,
    /// Calls since the process started.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
}

impl BindingReport {
    /// A binding of which nothing is in charge.
    pub fn refused(reason: &str, message: String) -> Self {
        Self {
            state: BindingState::Degraded,
            digest: None,
            reason: reason.to_owned(),
            message,
            in_charge: None,
            calls: 0,
            failures: 0,
        }
    }
}

/// How a policy is in charge, in the words of its binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InCharge {
    /// What its answer does.
    pub mode: String,
    /// Place in the chain.
    pub order: i32,
    /// Who decides when it fails.
    pub on_failure: String,
    /// How far a budgets policy reaches.
    pub authority: String,
    /// The NodePools it is for.
    pub node_pools: Vec<String>,
    /// How many NodePools there are.
    pub node_pools_total: usize,
    /// What in its annotations matches no NodePool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
}

/// The port to the policies. Applying is idempotent.
#[async_trait::async_trait]
pub trait PolicyRegistry: Send + Sync {
    /// Loads what the binding names and swaps it in between two rounds, or refuses it and keeps the old one.
    async fn apply(&self, source: BindingSource) -> BindingReport;

    /// Takes the binding away.
    async fn remove(&self, namespace: &str, name: &str);

    /// Names of the ConfigMaps beside a binding without which it cannot be read.
    fn named(&self, _source: &BindingSource) -> Vec<String> {
        Vec::new()
    }

    /// Hears what NodePools there are, before the first binding and whenever that changes.
    fn tell_node_pools(&self, _pools: NodePoolLabels) {}

    /// Where a binding stands now, when that changed by itself since it was applied.
    fn report(&self, _namespace: &str, _name: &str) -> Option<BindingReport> {
        None
    }

    /// What went wrong while the binding was at work, since the last time: a sentence for each.
    fn failures(&self, _namespace: &str, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A registry that refuses everything, for runs without policies.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoPolicies;

#[async_trait::async_trait]
impl PolicyRegistry for NoPolicies {
    async fn apply(&self, _source: BindingSource) -> BindingReport {
        let message = "this process runs without policies".to_owned();
        BindingReport::refused("NotSupported", message)
    }

    async fn remove(&self, _namespace: &str, _name: &str) {}
}

/// The controller.
pub(crate) struct PolicyBinding {
    shell: Arc<Shell>,
    registry: Arc<dyn PolicyRegistry>,
    known: Mutex<BTreeMap<ObjectKey, Known>>,
    /// Held while the registry hears of NodePools: nothing is bound before that.
    telling: Mutex<()>,
}

/// What was applied of a binding, and when it may be swapped again.
struct Known {
    /// Version of its ConfigMap that was looked at last.
    version: String,
    fingerprint: u64,
    pace: SwapPace,
    /// When its ConfigMap was found gone.
    gone_since: Option<Timestamp>,
}

impl PolicyBinding {
    pub(crate) fn new(shell: Arc<Shell>, registry: Arc<dyn PolicyRegistry>) -> Self {
        Self {
            shell,
            registry,
            known: Mutex::new(BTreeMap::new()),
            telling: Mutex::new(()),
        }
    }

    fn tell_node_pools(&self) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.shell.policies().take_untold_pools() {
            return;
        }
        let snapshot = self.shell.model.snapshot();
        let pools = snapshot
            .node_pools()
            .map(|pool| (pool.name_any(), pool.labels().clone()))
            .collect();
        self.registry.tell_node_pools(pools);
    }

    /// The binding's ConfigMap as the watch told it, if it is to decide.
    fn told(&self, key: &ObjectKey) -> Option<Arc<ConfigMap>> {
        let told = self.shell.policies().binding(key);
        told.filter(|it| it.metadata.deletion_timestamp.is_none())
    }

    /// What the binding says and its fingerprint, if that is not what was applied last.
    async fn changed(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
    ) -> Result<Option<(BindingSource, u64)>, ReconcileError> {
        let is_stale = self.shell.policies().take_stale(key);
        let version = config_map.metadata.resource_version.as_ref();
        let is_known = self.known().get_mut(key).is_some_and(|known| {
            known.gone_since = None;
            Some(&known.version) == version
        });
        if is_known && !is_stale {
            return Ok(None);
        }
        let mut source = source_of(config_map);
        if let Err(error) = self.read_others(key, &mut source).await {
            self.shell.policies().read_anew(key);
            return Err(error);
        }
        let fingerprint = fingerprint(&source);
        if let Some(known) = self.known().get_mut(key)
            && known.fingerprint == fingerprint
        {
            known.version.clone_from(&source.resource_version);
            return Ok(None);
        }
        Ok(Some((source, fingerprint)))
    }

    /// Reads the ConfigMaps that the binding names.
    async fn read_others(
        &self,
        key: &ObjectKey,
        source: &mut BindingSource,
    ) -> Result<(), ReconcileError> {
        let names: BTreeSet<String> = self.registry.named(source).into_iter().collect();
        // Before they are read: what changes from now on is heard of.
        let known = names.clone();
        self.shell.policies().names(key, known);
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
    async fn swap(
        &self,
        key: &ObjectKey,
        (source, fingerprint): (BindingSource, u64),
    ) -> Result<BindingReport, Duration> {
        let now = self.shell.clock.now();
        let mut pace = SwapPace::first(now);
        if let Some(known) = self.known().get_mut(key) {
            if let Err(wait) = known.pace.swap(now, &fingerprint.to_string()) {
                self.shell.policies().read_anew(key);
                return Err(wait);
            }
            pace = known.pace.clone();
        }
        let version = source.resource_version.clone();
        let report = self.registry.apply(source).await;
        let known = Known {
            version,
            fingerprint,
            pace,
            gone_since: None,
        };
        self.known().insert(key.clone(), known);
        Ok(report)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a deleted policy go, a while after it was deleted.
    async fn let_go(&self, key: &ObjectKey) -> Action {
        let now = self.shell.clock.now();
        let left = {
            let mut known = self.known();
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
        self.registry.remove(&key.namespace, &key.name).await;
        if self.known().remove(key).is_some() {
            self.shell.journal.say(format!(
                "policy {} removed: what it replaced decides again",
                key.name
            ));
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
            self.announce(key, config_map, (event_type, reason), &annotation);
        }
        if let Some(warning) = warning {
            warn!(policy = %key.name, "{warning}");
            let regarding = config_map.object_ref(&());
            let reason = "PolicyNodePoolNotFound";
            let notice = Notice::new(regarding, EventType::Warning, reason, warning.clone());
            self.shell.journal.publish(notice.distinct_by(&warning));
        }
        Ok(())
    }

    /// Tells people what became of the binding.
    fn announce(
        &self,
        key: &ObjectKey,
        config_map: &ConfigMap,
        (event_type, reason): (EventType, &'static str),
        annotation: &StatusAnnotation,
    ) {
        let message = &annotation.message;
        match event_type {
            EventType::Normal => {
                info!(policy = %key.name, reason = %annotation.reason, "activated policy");
            }
            EventType::Warning => {
                warn!(policy = %key.name, reason = %annotation.reason, error = %message, "rejected policy");
            }
        }
        let verb = if event_type == EventType::Normal {
            "activated"
        } else {
            "rejected"
        };
        self.shell
            .journal
            .say(format!("policy {} {verb}: {message}", key.name));
        let notice = Notice::new(
            config_map.object_ref(&()),
            event_type,
            reason,
            message.clone(),
        )
        .distinct_by(message);
        self.shell.journal.publish(notice);
    }
}

#[async_trait::async_trait]
impl Reconciler for PolicyBinding {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        self.tell_node_pools();
        let Some(config_map) = self.told(key) else {
            return Ok(self.let_go(key).await);
        };
        let report = match self.changed(key, &config_map).await? {
            None => self.registry.report(&key.namespace, &key.name),
            Some(changed) => match self.swap(key, changed).await {
                Ok(report) => Some(report),
                Err(wait) => return Ok(Action::RequeueAfter(wait)),
            },
        };
        if let Some(report) = report {
            let shown = shown_of(&config_map);
            let decided = decide(report, shown.as_ref(), self.shell.clock.now());
            self.apply(key, &config_map, decided).await?;
        }
        for failure in self.registry.failures(&key.namespace, &key.name) {
            let regarding = config_map.object_ref(&());
            let notice = Notice::new(regarding, EventType::Warning, "PolicyFailed", failure);
            self.shell.journal.publish(notice);
        }
        // A policy can fall into quarantine by itself.
        Ok(Action::RequeueAfter(Duration::from_secs(10)))
    }
}

fn source_of(config_map: &ConfigMap) -> BindingSource {
    let meta = &config_map.metadata;
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.remove(STATUS_ANNOTATION);
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    BindingSource {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations,
        data: config_map.data.clone().unwrap_or_default(),
        binary_data: decoded(config_map.binary_data.clone()),
        others: BTreeMap::new(),
    }
}

fn decoded(binary: Option<BTreeMap<String, ByteString>>) -> BTreeMap<String, Vec<u8>> {
    let binary = binary.into_iter().flatten();
    binary.map(|(name, bytes)| (name, bytes.0)).collect()
}

fn shown_of(config_map: &ConfigMap) -> Option<StatusAnnotation> {
    let shown = config_map.annotations().get(STATUS_ANNOTATION)?;
    serde_json::from_str(shown).ok()
}

/// Tells two readings apart that do not say the same; our own status patch changes only the version.
fn fingerprint(source: &BindingSource) -> u64 {
    let BindingSource {
        namespace,
        name,
        uid,
        resource_version: _,
        labels,
        annotations,
        data,
        binary_data,
        others,
    } = source;
    let mut hasher = DefaultHasher::new();
    (namespace, name, uid).hash(&mut hasher);
    (labels, annotations, data, binary_data, others).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_annotation_is_no_part_of_the_binding() {
        let mut config_map = ConfigMap::default();
        let before = source_of(&config_map);
        let report = BindingReport::refused("Why", "because".to_owned());
        let annotation = decide(report, None, Timestamp::UNIX_EPOCH).annotation;
        let text = serde_json::to_string(&annotation.unwrap()).unwrap();
        config_map.metadata.annotations = Some([(STATUS_ANNOTATION.to_owned(), text)].into());
        config_map.metadata.resource_version = Some("2".to_owned());
        let after = source_of(&config_map);
        assert_eq!(fingerprint(&before), fingerprint(&after));
        let shown = shown_of(&config_map).unwrap();
        assert_eq!(
            (shown.reason, shown.message),
            ("Why".to_owned(), "because".to_owned())
        );
        config_map.data = Some(BTreeMap::from([("rule".to_owned(), "1".to_owned())]));
        assert_ne!(fingerprint(&before), fingerprint(&source_of(&config_map)));
    }
}
