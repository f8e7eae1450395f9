//! How to delete. Answers to `DeleteOptions` of `meta/v1`.

use serde_json::Value;

use crate::status::StatusError;

/// Fate of owned objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They are deleted after their owner.
    #[default]
    Background,
    /// They are deleted before their owner goes.
    Foreground,
    /// They lose their reference and stay.
    Orphan,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Seconds a pod may take; its own wish when absent. Zero removes it now.
    pub grace_period_seconds: Option<i64>,
    /// UID that the object must have; any when absent.
    pub uid: Option<String>,
    /// Revision that the object must have; any when absent.
    pub resource_version: Option<String>,
    /// Fate of owned objects.
    pub propagation: Propagation,
    /// Go through everything and delete nothing.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Removes without grace, as a kubelet does once containers are gone.
    pub fn now() -> Self {
        Self {
            grace_period_seconds: Some(0),
            ..Self::default()
        }
    }

    /// Only the object with this UID.
    pub fn of_uid(uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            ..Self::default()
        }
    }
}

/// Reads the name of a propagation policy.
pub(super) fn propagation(policy: &str) -> Result<Propagation, StatusError> {
    match policy {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => Err(StatusError::bad_request(format!(
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
             {other:?}: supported values: \"Background\", \"Foreground\", \"Orphan\""
        ))),
    }
}

/// Reads the options in the body of a request.
pub(super) fn parse(body: &Value) -> Result<DeleteOptions, StatusError> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut options = DeleteOptions {
        grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: Propagation::default(),
        dry_run: body["dryRun"]
            .as_array()
            .is_some_and(|list| !list.is_empty()),
    };
    if let Some(policy) = body["propagationPolicy"].as_str() {
        options.propagation = propagation(policy)?;
    } else if body["orphanDependents"].as_bool() == Some(true) {
        options.propagation = Propagation::Orphan;
    }
    Ok(options)
}
