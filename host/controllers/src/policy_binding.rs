//! Binds policies: ConfigMaps labelled `mortise.dev/policy` in the system namespace go to the policy registry,
//! and what became of them goes back to their status annotation and into events.
//!
//! It knows nothing of WebAssembly: the registry is a port that the operator implements. Karpenter has no such
//! thing; the design is in `design/policies.md`.

mod pace;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracing::{info, warn};

use crate::error::{ReconcileError, ignore_not_found};
use crate::policy_binding::pace::SwapPace;
use crate::recorder::{EventType, Notice};
use crate::runtime::{Action, ObjectKey, Reconciler};
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
}

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
}

/// The port to the policies. Applying is idempotent.
#[async_trait::async_trait]
pub trait PolicyRegistry: Send + Sync {
    /// Loads what the binding names and swaps it in between two rounds, or refuses it and keeps the old one.
    async fn apply(&self, source: BindingSource) -> BindingReport;

    /// Takes the binding away.
    async fn remove(&self, namespace: &str, name: &str);

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
        BindingReport {
            state: BindingState::Degraded,
            digest: None,
            reason: "NotSupported".to_owned(),
            message: "this process runs without policies".to_owned(),
        }
    }

    async fn remove(&self, _namespace: &str, _name: &str) {}
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct StatusAnnotation {
    state: BindingState,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    message: String,
    since: String,
}

/// The controller.
pub(crate) struct PolicyBinding {
    shell: Arc<Shell>,
    registry: Arc<dyn PolicyRegistry>,
    known: Mutex<BTreeMap<ObjectKey, Known>>,
}

/// What was applied of a binding, and when it may be swapped again.
struct Known {
    source: BindingSource,
    pace: SwapPace,
    /// When its ConfigMap was found gone.
    gone_since: Option<Timestamp>,
}

struct Observed {
    source: BindingSource,
    shown: Option<StatusAnnotation>,
    unchanged: bool,
    config_map: ConfigMap,
}

/// What there is to write.
#[derive(Debug, PartialEq, Eq)]
struct Decided {
    annotation: Option<StatusAnnotation>,
    event: Option<(EventType, &'static str)>,
}

impl PolicyBinding {
    pub(crate) fn new(shell: Arc<Shell>, registry: Arc<dyn PolicyRegistry>) -> Self {
        Self {
            shell,
            registry,
            known: Mutex::new(BTreeMap::new()),
        }
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, ReconcileError> {
        let api: Api<ConfigMap> = Api::namespaced(self.shell.client.clone(), &key.namespace);
        let Some(config_map) = api.get_opt(&key.name).await? else {
            return Ok(None);
        };
        if config_map.metadata.deletion_timestamp.is_some()
            || !config_map
                .metadata
                .labels
                .as_ref()
                .is_some_and(|l| l.contains_key(POLICY_LABEL))
        {
            return Ok(None);
        }
        let (source, shown) = source_of(&config_map);
        let mut known = self.known();
        let known = known.get_mut(key);
        let unchanged = known.is_some_and(|known| {
            known.gone_since = None;
            same_binding(&known.source, &source)
        });
        Ok(Some(Observed {
            source,
            shown,
            unchanged,
            config_map,
        }))
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
            self.shell.say(format!(
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
        let Decided { annotation, event } = decided;
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
        let Some((event_type, reason)) = event else {
            return Ok(());
        };
        let message = annotation.message;
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
            .say(format!("policy {} {verb}: {message}", key.name));
        let notice = Notice::new(
            config_map.object_ref(&()),
            event_type,
            reason,
            message.clone(),
        )
        .distinct_by(&message);
        self.shell.events.publish(notice);
        Ok(())
    }
}

#[async_trait::async_trait]
impl Reconciler for PolicyBinding {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, ReconcileError> {
        let Some(observed) = self.observe(key).await? else {
            return Ok(self.let_go(key).await);
        };
        let Observed {
            source,
            shown,
            unchanged,
            config_map,
        } = observed;
        let report = if unchanged {
            self.registry.report(&key.namespace, &key.name)
        } else {
            let now = self.shell.clock.now();
            let mut pace = SwapPace::first(now);
            if let Some(known) = self.known().get_mut(key) {
                if let Err(wait) = known.pace.swap(now, &source.resource_version) {
                    return Ok(Action::RequeueAfter(wait));
                }
                pace = known.pace.clone();
            }
            let report = self.registry.apply(source.clone()).await;
            let known = Known {
                source,
                pace,
                gone_since: None,
            };
            self.known().insert(key.clone(), known);
            Some(report)
        };
        if let Some(report) = report {
            let decided = decide(report, shown.as_ref(), self.shell.clock.now());
            self.apply(key, &config_map, decided).await?;
        }
        for failure in self.registry.failures(&key.namespace, &key.name) {
            let regarding = config_map.object_ref(&());
            let notice = Notice::new(regarding, EventType::Warning, "PolicyFailed", failure);
            self.shell.events.publish(notice);
        }
        // A policy can fall into quarantine by itself.
        Ok(Action::RequeueAfter(Duration::from_secs(10)))
    }
}

/// The annotation and the event that tell what became of the binding; nothing when that is told already.
fn decide(
    report: BindingReport,
    shown: Option<&StatusAnnotation>,
    now: jiff::Timestamp,
) -> Decided {
    let BindingReport {
        state,
        digest,
        reason,
        message,
    } = report;
    let annotation = StatusAnnotation {
        state,
        reason,
        digest,
        message,
        since: now.strftime("%FT%TZ").to_string(),
    };
    let told = shown.is_some_and(|shown| {
        shown.state == annotation.state
            && shown.reason == annotation.reason
            && shown.digest == annotation.digest
            && shown.message == annotation.message
    });
    if told {
        return Decided {
            annotation: None,
            event: None,
        };
    }
    let event = match state {
        BindingState::Ready => (EventType::Normal, "PolicyActivated"),
        BindingState::Degraded => (EventType::Warning, "PolicyRejected"),
        BindingState::Quarantined => (EventType::Warning, "PolicyQuarantined"),
    };
    Decided {
        annotation: Some(annotation),
        event: Some(event),
    }
}

fn source_of(config_map: &ConfigMap) -> (BindingSource, Option<StatusAnnotation>) {
    let meta = &config_map.metadata;
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    let shown = annotations.remove(STATUS_ANNOTATION);
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    let binary = config_map.binary_data.iter().flatten();
    let source = BindingSource {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        labels: meta.labels.clone().unwrap_or_default(),
        annotations,
        data: config_map.data.clone().unwrap_or_default(),
        binary_data: binary
            .map(|(name, bytes)| (name.clone(), bytes.0.clone()))
            .collect(),
    };
    (
        source,
        shown.and_then(|text| serde_json::from_str(&text).ok()),
    )
}

/// Whether two readings say the same; our own status patch changes only the version.
fn same_binding(a: &BindingSource, b: &BindingSource) -> bool {
    let BindingSource {
        namespace,
        name,
        uid,
        resource_version: _,
        labels,
        annotations,
        data,
        binary_data,
    } = a;
    *namespace == b.namespace
        && *name == b.name
        && *uid == b.uid
        && *labels == b.labels
        && *annotations == b.annotations
        && *data == b.data
        && *binary_data == b.binary_data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: BindingState) -> BindingReport {
        BindingReport {
            state,
            digest: Some("sha256:1".to_owned()),
            reason: "Why".to_owned(),
            message: "because".to_owned(),
        }
    }

    #[test]
    fn each_state_has_its_event_and_is_told_once() {
        let cases = [
            (BindingState::Ready, EventType::Normal, "PolicyActivated"),
            (BindingState::Degraded, EventType::Warning, "PolicyRejected"),
            (
                BindingState::Quarantined,
                EventType::Warning,
                "PolicyQuarantined",
            ),
        ];
        for (state, event_type, reason) in cases {
            let now = jiff::Timestamp::UNIX_EPOCH;
            let first = decide(report(state), None, now);
            assert_eq!(first.event, Some((event_type, reason)));
            let again = decide(report(state), first.annotation.as_ref(), now);
            assert_eq!(
                again,
                Decided {
                    annotation: None,
                    event: None
                }
            );
        }
    }

    #[test]
    fn the_status_annotation_is_no_part_of_the_binding() {
        let mut config_map = ConfigMap::default();
        let (before, _) = source_of(&config_map);
        let annotation = decide(
            report(BindingState::Ready),
            None,
            jiff::Timestamp::UNIX_EPOCH,
        );
        let text = serde_json::to_string(&annotation.annotation.unwrap()).unwrap();
        config_map.metadata.annotations = Some([(STATUS_ANNOTATION.to_owned(), text)].into());
        config_map.metadata.resource_version = Some("2".to_owned());
        let (after, shown) = source_of(&config_map);
        assert!(same_binding(&before, &after));
        assert_eq!(shown.unwrap().digest.as_deref(), Some("sha256:1"));
    }
}
