//! Creates NodeClaims, for whoever decides that there is to be one: the provisioner, disruption, and what keeps
//! replicas.
//!
//! Whether there may be one, they decide. Answers to `Create` in `pkg/controllers/provisioning/provisioner.go`.

use std::sync::Arc;

use apis::{DisruptionReason, NodeClaim, NodePool, NodeRef};
use kube::ResourceExt;
use scheduling::pod::PodKey;
use scheduling::solution::NewClaim;
use state::Event;

use super::entries::launch::ClaimCreated;
use super::pods_of_claims::PodsOfClaims;
use crate::node_overlay::overlays::Overlays;
use crate::shell::Shell;
use crate::shell::metrics::labels::reason_word;

/// Shared by all that create claims.
pub(crate) struct ClaimCreator {
    pub(crate) shell: Arc<Shell>,
    pub(crate) overlays: Arc<Overlays>,
    pub(crate) pods_of_claims: Arc<PodsOfClaims>,
}

/// Karpenter's reasons for which a claim is created.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CreationReason {
    /// For pods or replicas.
    Provisioned,
    /// In place of nodes that are disrupted for this reason.
    Disrupted(DisruptionReason),
}

impl CreationReason {
    /// As log lines and metrics say it.
    pub(crate) fn word(self) -> String {
        match self {
            Self::Provisioned => "provisioned".to_owned(),
            Self::Disrupted(reason) => reason_word(reason),
        }
    }
}

/// Why a claim is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreationCause<'a> {
    /// The decision, by which what the pool leaves open is picked.
    pub(crate) decision_id: &'a str,
    pub(crate) reason: CreationReason,
    /// The reason for the ledger, where no round of decisions has the claim.
    pub(crate) record: Option<&'a str>,
}

impl ClaimCreator {
    /// Creates the claim and tells of it. What overlays changed is said on it where it names the types that were
    /// decided on: one that is as its pool's template has it may become whatever the pool allows at its launch.
    pub(crate) async fn create(
        &self,
        pool: &NodePool,
        new: &NewClaim,
        cause: CreationCause<'_>,
    ) -> Result<NodeClaim, kube::Error> {
        let CreationCause {
            decision_id,
            reason,
            record,
        } = cause;
        let mut object = new.to_node_claim(pool, self.shell.seed_for(decision_id));
        if !new.is_of_template() {
            self.overlays.mark(&mut object, &new.pool);
        }
        let created = self.shell.writer.create_claim(&object).await?;
        let entry = ClaimCreated {
            reason: &reason.word(),
            record,
        };
        self.shell.journal.write(&created, &entry);
        Ok(created)
    }

    /// Pods were planned for the claim, and these of them are there: else whoever looks at them next plans anew, though
    /// nodes were chosen for an exact fit.
    pub(crate) fn note_pods(&self, claim: &NodeClaim, planned: Vec<PodKey>, there: Vec<PodKey>) {
        let name = claim.name_any();
        self.shell.model.note(Event::Placed {
            node: NodeRef::claim(&*name),
            pods: planned,
        });
        self.pods_of_claims.set(&name, there);
    }
}
