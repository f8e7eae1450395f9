//! The pods of one controller that are there, and what it lacks.
//!
//! What is about to come is not guessed here.

use std::sync::Arc;

use jiff::Timestamp;
use scheduling::pod::PodShape;

use crate::workloads::KeptWorkload;

/// The pods of one controller that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    /// Number of pods that are there.
    pub(crate) pods: u32,
    /// When the latest was first seen, and what it asks for: admission may have changed the template.
    pub(crate) newest: Option<(Timestamp, Arc<PodShape>)>,
}

/// How many pods the controller lacks.
pub(super) fn missing(kept: &KeptWorkload, owned: Option<&Owned>) -> usize {
    let there = owned.map_or(0, |it| it.pods);
    let wanted = u32::try_from(kept.replicas).unwrap_or_default();
    usize::try_from(wanted.saturating_sub(there)).unwrap_or_default()
}

/// Shape of the next pod of the controller: that of its newest pod, or of its template.
pub(super) fn expected<'a>(
    kept: &'a KeptWorkload,
    owned: Option<&'a Owned>,
) -> Option<&'a Arc<PodShape>> {
    let newest = owned.and_then(|it| it.newest.as_ref());
    newest
        .map(|(_, shape)| shape)
        .or_else(|| kept.shape.as_ref().ok())
}
