//! Journal entries about a policy's binding, on its ConfigMap and elsewhere.
//!
//! What a binding comes to is decided before. Karpenter has nothing like it.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use tracing::{info, warn};

use crate::policy_binding::status::StatusAnnotation;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};

/// Something in the life of a binding.
pub(super) enum BindingEntry<'a> {
    /// The policy is in charge, or is not; the Event's reason says which and why.
    Decided {
        event_type: EventType,
        reason: &'static str,
        annotation: &'a StatusAnnotation,
    },
    /// It is in charge, and part of what it says is about nothing that there is.
    NodePoolNotFound { warning: &'a str },
    /// A call of it failed.
    Failed { failure: String },
}

impl JournalEntry for BindingEntry<'_> {
    type Subject = ConfigMap;

    fn log(&self, config_map: &ConfigMap) {
        let policy = config_map.name_any();
        match self {
            Self::Decided {
                event_type: EventType::Normal,
                annotation,
                ..
            } => info!(%policy, reason = %annotation.reason, "activated policy"),
            Self::Decided {
                event_type: EventType::Warning,
                annotation,
                ..
            } => {
                let error = &annotation.message;
                warn!(%policy, reason = %annotation.reason, %error, "rejected policy");
            }
            Self::NodePoolNotFound { warning } => warn!(%policy, "{warning}"),
            Self::Failed { .. } => {}
        }
    }

    fn events(&self, config_map: &ConfigMap) -> Vec<KubernetesEvent> {
        let notice = |event_type, reason: &'static str, message: &str| {
            KubernetesEvent::about(config_map, event_type, reason, message)
        };
        let warning = EventType::Warning;
        vec![match self {
            Self::Decided {
                event_type,
                reason,
                annotation,
            } => {
                let message = &annotation.message;
                notice(*event_type, reason, message).distinct_by(message)
            }
            Self::NodePoolNotFound { warning: why } => {
                notice(warning, "PolicyNodePoolNotFound", why).distinct_by(why)
            }
            Self::Failed { failure } => notice(warning, "PolicyFailed", failure),
        }]
    }

    fn lines(&self, config_map: &ConfigMap) -> Vec<String> {
        let Self::Decided {
            event_type,
            annotation,
            ..
        } = self
        else {
            return Vec::new();
        };
        let verb = match event_type {
            EventType::Normal => "activated",
            EventType::Warning => "rejected",
        };
        let name = config_map.name_any();
        vec![format!("policy {name} {verb}: {}", annotation.message)]
    }
}

/// A policy's ConfigMap is gone, and so is the policy.
pub(super) struct Removed;

impl JournalEntry for Removed {
    /// Name of the ConfigMap.
    type Subject = str;

    fn lines(&self, name: &str) -> Vec<String> {
        let line = format!("policy {name} removed: what it replaced decides again");
        vec![line]
    }
}
