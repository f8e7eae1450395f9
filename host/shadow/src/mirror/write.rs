//! Writes that a mirror asks for.
//!
//! Of the shadow's API server alone: the cluster is never written to.

use apis::ObjectKey;
use serde_json::Value;

use crate::kinds::ReadKind;

/// One write to the shadow's API server.
#[derive(Debug, Clone, PartialEq)]
pub enum MirrorWrite {
    /// The object as it is, status and UID included; one that is there is replaced.
    Restore {
        kind: ReadKind,
        object: Value,
    },
    /// What the object says besides its status, field by field. Labels and annotations are added, and those
    /// that are null taken away.
    Update {
        kind: ReadKind,
        object: Value,
    },
    Delete {
        kind: ReadKind,
        key: ObjectKey,
    },
    /// A pod's containers end.
    Finish {
        pod: ObjectKey,
        phase: String,
    },
}
