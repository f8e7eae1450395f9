//! Follows the ends of capacity reservations: nodes of a block that ends soon go in time, and those that run on
//! on-demand afterwards say so.
//!
//! Every minute, and only while there are nodes of reservations. Answers to `pkg/controllers/capacityreservation` of
//! the AWS provider (`expiration` and `capacitytype`).

mod decision;
mod entries;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::{CapacityType, ProviderId, labels};
use cloudprovider::CloudProvider;
use tracing::error;

use self::decision::{End, Observed, Step, decide};
use self::entries::ReservationEntry;
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::runtime::periodic::{PastRound, Periodic};

const PERIOD: Duration = Duration::from_mins(1);

/// Controller of nodes whose capacity reservation ends; one round a minute.
pub(crate) struct CapacityReservations {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
}

/// A claim whose instance was launched into a reservation.
#[derive(Debug, PartialEq, Eq)]
struct Reserved {
    claim: String,
    provider_id: ProviderId,
    reservation: String,
}

impl Periodic for CapacityReservations {
    const NAME: &'static str = "capacityreservation";
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    fn is_due(&self) -> bool {
        !self.reserved().is_empty()
    }

    /// The second half is gone through whatever became of the first.
    async fn round(&mut self) -> Result<(), ReconcileError> {
        let reserved = self.reserved();
        let expired = self.expire(&reserved).await;
        let demoted = self.demote(&reserved).await;
        expired.and(demoted)
    }

    fn pause(&self, _: PastRound) -> Duration {
        PERIOD
    }
}

impl CapacityReservations {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self { shell, provider }
    }

    fn reserved(&self) -> Vec<Reserved> {
        let snapshot = self.shell.model.snapshot();
        let claims = snapshot.nodes().filter_map(|node| node.claim());
        let living = claims.filter(|claim| claim.deleted_at.is_none());
        let reserved = living.filter_map(|claim| {
            let label = |key: &str| claim.labels.get(key).map(String::as_str);
            let is_reserved = label(labels::CAPACITY_TYPE) == Some(CapacityType::Reserved.as_str());
            let provider_id = claim.provider_id.clone().filter(|_| is_reserved)?;
            Some(Reserved {
                claim: claim.name.clone(),
                provider_id,
                reservation: label(labels::CAPACITY_RESERVATION_ID)
                    .unwrap_or_default()
                    .to_owned(),
            })
        });
        reserved.collect()
    }

    /// Lets the claims of blocks that end soon go, while there is time to drain.
    async fn expire(&self, reserved: &[Reserved]) -> Result<(), ReconcileError> {
        let ids = reserved.iter().map(|it| it.reservation.clone());
        let ids: BTreeSet<String> = ids.filter(|id| !id.is_empty()).collect();
        let expiring = self.provider.expiring_reservations(&ids).await;
        let expiring = expiring
            .inspect_err(|error| error!(%error, "asking which capacity reservations end soon"))?;
        let ending = reserved.iter();
        let ending = ending.filter(|it| expiring.contains(&it.reservation));
        let ending: Vec<&Reserved> = ending.collect();
        self.handle_each(&ending, End::OfBlock).await
    }

    /// Where the cloud says on-demand by now, claim and node say so too.
    async fn demote(&self, reserved: &[Reserved]) -> Result<(), ReconcileError> {
        let listed = self.provider.list().await;
        let listed =
            listed.inspect_err(|error| error!(%error, "listing what runs in reservations"))?;
        let on_demand = listed.iter().filter(|it| {
            let capacity_type = it.labels.get(labels::CAPACITY_TYPE);
            capacity_type.is_some_and(|it| it == CapacityType::OnDemand.as_str())
        });
        let on_demand: BTreeSet<&ProviderId> = on_demand.map(|it| &it.provider_id).collect();
        let ended = reserved.iter();
        let ended = ended.filter(|it| on_demand.contains(&it.provider_id));
        let ended: Vec<&Reserved> = ended.collect();
        self.handle_each(&ended, End::OfReservation).await
    }

    /// A claim that cannot be written keeps nobody else waiting; fails with the first error once all had their turn.
    async fn handle_each(&self, reserved: &[&Reserved], end: End) -> Result<(), ReconcileError> {
        let mut outcome = Ok(());
        for it in reserved {
            if let Err(error) = self.handle(it, end).await {
                error!(NodeClaim = %it.claim, %error, "following the end of a capacity reservation");
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    async fn handle(&self, reserved: &Reserved, end: End) -> Result<(), ReconcileError> {
        let Some(observed) = self.observe(reserved, end).await? else {
            return Ok(());
        };
        for step in decide(&observed) {
            self.apply(&observed, step).await?;
        }
        Ok(())
    }

    /// The claim as it is now, and its nodes where it matters what they say.
    async fn observe(
        &self,
        reserved: &Reserved,
        end: End,
    ) -> Result<Option<Observed>, ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&reserved.claim).await? else {
            return Ok(None);
        };
        let nodes = match end {
            End::OfReservation if claim.metadata.deletion_timestamp.is_none() => {
                self.shell.model.nodes_of(&reserved.provider_id).await?
            }
            End::OfReservation | End::OfBlock => Vec::new(),
        };
        Ok(Some(Observed {
            reservation: reserved.reservation.clone(),
            claim,
            nodes,
            end,
        }))
    }

    async fn apply(&self, observed: &Observed, step: Step) -> Result<(), ReconcileError> {
        let (claim, writer) = (observed.claim.as_ref(), &self.shell.writer);
        match step {
            Step::DeleteClaim => {
                ignore_not_found(writer.delete(claim).await)?;
                let reservation = &observed.reservation;
                let entry = ReservationEntry::BlockEnds { reservation };
                self.shell.journal.write(claim, &entry);
            }
            Step::WriteNode { before, after } => {
                writer.write_node(&before, &after).await?;
            }
            Step::WriteClaim { after } => {
                writer.write_claim(claim, &after).await?;
                self.shell.journal.write(claim, &ReservationEntry::Ended);
            }
        }
        Ok(())
    }
}
