//! Whether the model knows enough to be decided by.

use super::Cluster;

/// Whether the model may be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncGate {
    /// It may.
    Synced,
    /// Claims without an instance yet: their capacity is unknown, so nothing may be decided.
    Unlaunched(Vec<String>),
    /// The API has objects that the model has not seen.
    Missing(Vec<String>),
}

impl Cluster {
    /// Whether every claim has its instance. Asked before each decision.
    pub fn sync_gate(&self) -> SyncGate {
        let unlaunched: Vec<String> = self
            .data
            .claim_keys
            .iter()
            .filter(|(_, key)| key.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        if unlaunched.is_empty() {
            SyncGate::Synced
        } else {
            SyncGate::Unlaunched(unlaunched)
        }
    }

    /// The gate of the first time: also everything the API listed must have been seen.
    pub fn first_sync_gate<'a>(
        &self,
        claims: impl IntoIterator<Item = &'a str>,
        nodes: impl IntoIterator<Item = &'a str>,
    ) -> SyncGate {
        let missing_claims = claims
            .into_iter()
            .filter(|it| !self.data.claim_keys.contains_key(*it));
        let missing_nodes = nodes
            .into_iter()
            .filter(|it| !self.data.node_keys.contains_key(*it));
        let missing: Vec<String> = missing_claims
            .chain(missing_nodes)
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            self.sync_gate()
        } else {
            SyncGate::Missing(missing)
        }
    }
}
