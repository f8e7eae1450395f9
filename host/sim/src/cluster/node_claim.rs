//! A NodeClaim as far as the world's truth is held against it.

use apis::{ProviderId, labels};
use jiff::Timestamp;
use serde_json::Value;

use super::amounts::MilliAmounts;
use super::object_meta::{deletion_time, time};

/// What the checkers and the statistics read of a NodeClaim; the claim itself is a hundred times the size.
#[derive(Debug)]
pub(crate) struct NodeClaimRecord {
    pub(crate) node_pool: Option<String>,
    pub(crate) instance_id: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) capacity: MilliAmounts,
    /// Since when it is being deleted.
    pub(crate) deleted_at: Option<Timestamp>,
    /// Until when its node may be drained.
    pub(crate) termination_time: Option<Timestamp>,
}

impl NodeClaimRecord {
    pub(crate) fn parse(claim: &Value) -> Self {
        let (metadata, status) = (&claim["metadata"], &claim["status"]);
        let provider_id = ProviderId::parse(status["providerID"].as_str());
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        Self {
            node_pool: text(&metadata["labels"][labels::NODEPOOL]),
            instance_id: provider_id.map(|it| it.instance_id().to_owned()),
            node: text(&status["nodeName"]),
            capacity: MilliAmounts::from_value(&status["capacity"]),
            deleted_at: deletion_time(claim),
            termination_time: time(
                &metadata["annotations"][labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION],
            ),
        }
    }
}
