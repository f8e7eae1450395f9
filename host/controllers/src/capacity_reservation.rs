//! What becomes of nodes when their capacity reservation ends: those of a block that ends soon go in time, and those
//! that run on on-demand afterwards say so.
//!
//! Every minute, and only while there are nodes of reservations. Answers to `pkg/controllers/capacityreservation` of the
//! AWS provider (`expiration` and `capacitytype`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apis::labels;
use cloudprovider::CloudProvider;
use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use tracing::{error, info};

use crate::node_claim::NodeClaimExt;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};

const PERIOD: Duration = Duration::from_mins(1);
/// Labels that only things in a reservation have.
const OF_RESERVATION: [&str; 3] = [
    labels::CAPACITY_RESERVATION_ID,
    labels::CAPACITY_RESERVATION_TYPE,
    labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// The controller.
pub(crate) struct CapacityReservations {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

/// A claim whose instance was launched into a reservation.
#[derive(Debug, PartialEq, Eq)]
struct Reserved {
    claim: String,
    provider_id: String,
    reservation: String,
}

impl CapacityReservations {
    pub(crate) async fn run(&self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let reserved = self.reserved();
            if reserved.is_empty() {
                continue;
            }
            let mut round = self.shell.metrics.round("capacityreservation");
            if let Err(error) = self.expire(&reserved).await {
                error!(%error, "letting nodes of ending capacity reservations go");
                round.failed(error);
            }
            if let Err(error) = self.demote(&reserved).await {
                error!(%error, "labelling nodes whose capacity reservation ended");
                round.failed(error);
            }
        }
    }

    fn reserved(&self) -> Vec<Reserved> {
        let snapshot = self.shell.model.snapshot();
        let claims = snapshot.nodes().filter_map(|node| node.claim.as_ref());
        let living = claims.filter(|claim| claim.deleted_at.is_none());
        let reserved = living.filter_map(|claim| {
            let label = |key: &str| claim.labels.get(key).map(String::as_str);
            let is_reserved = label(labels::CAPACITY_TYPE) == Some(labels::CAPACITY_TYPE_RESERVED);
            is_reserved.then(|| Reserved {
                claim: claim.name.clone(),
                provider_id: claim.provider_id.clone(),
                reservation: label(labels::CAPACITY_RESERVATION_ID)
                    .unwrap_or_default()
                    .to_owned(),
            })
        });
        reserved.collect()
    }

    /// Deletes the claims of blocks that end soon, while there is time to drain.
    async fn expire(&self, reserved: &[Reserved]) -> Result<(), ReconcileError> {
        let ids = reserved.iter().map(|it| it.reservation.clone());
        let ids: BTreeSet<String> = ids.filter(|id| !id.is_empty()).collect();
        let expiring = self.provider.expiring_reservations(&ids).await?;
        for it in reserved
            .iter()
            .filter(|it| expiring.contains(&it.reservation))
        {
            let Some(claim) = self.shell.model.node_claim(&it.claim).await? else {
                continue;
            };
            if claim.metadata.deletion_timestamp.is_none() {
                ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
                info!(NodeClaim = %it.claim, reservation = %it.reservation, "deleting: its capacity block ends soon");
            }
        }
        Ok(())
    }

    /// Where the cloud says on-demand by now, claim and node say so too.
    async fn demote(&self, reserved: &[Reserved]) -> Result<(), ReconcileError> {
        let listed = self.provider.list().await?;
        let on_demand: BTreeSet<&str> = listed
            .iter()
            .filter(|it| {
                let capacity_type = it.labels.get(labels::CAPACITY_TYPE);
                capacity_type.is_some_and(|it| it == labels::CAPACITY_TYPE_ON_DEMAND)
            })
            .map(|it| it.provider_id.as_str())
            .collect();
        for it in reserved
            .iter()
            .filter(|it| on_demand.contains(it.provider_id.as_str()))
        {
            let Some(claim) = self.shell.model.node_claim(&it.claim).await? else {
                continue;
            };
            if claim.metadata.deletion_timestamp.is_some() {
                continue;
            }
            // Nodes first: a claim that says on-demand is not looked at again.
            for node in self.shell.model.nodes_of(&it.provider_id).await? {
                if is_reserved(node.labels()) && is_registered(&node) {
                    let after = demoted(node.as_ref());
                    self.shell.writer.write_node(&node, &after).await?;
                }
            }
            let after = demoted(claim.as_ref());
            self.shell.writer.write_claim(&claim, &after).await?;
            info!(NodeClaim = %claim.name_any(), pool = claim.pool_name(), "its capacity reservation ended: it is on-demand now");
        }
        Ok(())
    }
}

fn is_reserved(found: &BTreeMap<String, String>) -> bool {
    let capacity_type = found.get(labels::CAPACITY_TYPE);
    capacity_type.is_some_and(|it| it == labels::CAPACITY_TYPE_RESERVED)
}

/// The labels of others are still to come.
fn is_registered(node: &Node) -> bool {
    let registered = node.labels().get(labels::REGISTERED);
    registered.is_some_and(|it| it == "true")
}

fn demoted<K: Resource + Clone>(object: &K) -> K {
    let mut after = object.clone();
    let found = after.labels_mut();
    let on_demand = labels::CAPACITY_TYPE_ON_DEMAND.to_owned();
    found.insert(labels::CAPACITY_TYPE.to_owned(), on_demand);
    for key in OF_RESERVATION {
        found.remove(key);
    }
    after
}
