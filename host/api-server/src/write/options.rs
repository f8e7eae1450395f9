//! Options of writes and of deletions. Answers to `CreateOptions`, `UpdateOptions`, `PatchOptions` and `DeleteOptions`
//! of `meta/v1`. Says what is asked for, and does nothing.

use serde_json::Value;

use crate::status::{FieldError, StatusError};

/// Options of a write besides its object.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Which part of the object an update means.
    pub part: ObjectPart,
    /// Go through everything and store nothing.
    pub dry_run: bool,
    /// Who writes; named writers get their fields recorded.
    pub field_manager: Option<String>,
    /// The write is an apply, which does its own bookkeeping of fields.
    pub is_apply: bool,
    /// An apply takes fields over from other managers.
    pub takes_over: bool,
}

impl WriteOptions {
    /// Of a part, by nobody in particular.
    pub(crate) fn of(part: ObjectPart) -> Self {
        Self {
            part,
            ..Self::default()
        }
    }
}

/// The part of an object an update means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectPart {
    /// Everything but status, where status is a subresource.
    #[default]
    Main,
    /// The status alone.
    Status,
    /// Everything, without the split: the server's own bookkeeping.
    Whole,
}

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

fn invalid_options(kind: &str, error: FieldError) -> StatusError {
    StatusError::invalid("meta.k8s.io", kind, "", &[error])
}

/// Reads what a request asks for as `dryRun`: nothing, or all stages.
pub(crate) fn parse_dry_run(kind: &str, given: &[&str]) -> Result<bool, StatusError> {
    match given.iter().find(|it| !matches!(**it, "" | "All")) {
        Some(&other) => {
            let error = FieldError::not_supported("dryRun", &other.into(), &["All".to_owned()]);
            Err(invalid_options(kind, error))
        }
        None => Ok(given.contains(&"All")),
    }
}

/// Reads the name of a propagation policy.
pub(crate) fn parse_propagation(policy: &str) -> Result<Propagation, StatusError> {
    match policy {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => {
            let supported = ["Foreground", "Background", "Orphan"].map(str::to_owned);
            let error = FieldError::not_supported("propagationPolicy", &other.into(), &supported);
            Err(invalid_options("DeleteOptions", error))
        }
    }
}

/// Reads the options in the body of a request.
pub(crate) fn parse_delete_options(body: &Value) -> Result<DeleteOptions, StatusError> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let dry_run = body["dryRun"].as_array().into_iter().flatten();
    let dry_run: Vec<&str> = dry_run.filter_map(Value::as_str).collect();
    let mut options = DeleteOptions {
        grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: Propagation::default(),
        dry_run: parse_dry_run("DeleteOptions", &dry_run)?,
    };
    if let Some(policy) = body["propagationPolicy"].as_str() {
        options.propagation = parse_propagation(policy)?;
    } else if body["orphanDependents"].as_bool() == Some(true) {
        options.propagation = Propagation::Orphan;
    }
    Ok(options)
}
