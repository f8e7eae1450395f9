//! Notes that several controllers share beside the shell: what they did themselves and no object says, or what was told
//! them last.
//!
//! Each stands in a file of its own, with its bound, beside the controller that writes it; here it is made and handed
//! to its few users. All of it is lost with the process, and whoever reads it must do without.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::node_claim::creation::ClaimCreator;
use crate::node_claim::disruption::KnownClaims;
use crate::node_claim::lifecycle::launch::launching::Launching;
use crate::node_claim::lifecycle::transitions::LifecycleTransitions;
use crate::node_claim::pods_of_claims::PodsOfClaims;
use crate::node_overlay::overlays::Overlays;
use crate::node_pool::registration_health::RegistrationHealth;
use crate::pod_nomination::PodNominations;
use crate::provisioning::PassNotes;
use crate::provisioning::passes::Passes;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::shell::Shell;
use crate::shell::runtime::queue_loads::QueueLoads;
use crate::static_capacity::pending::StaticPending;
use crate::status_conditions::StatusConditions;
use crate::voluntary_disruption::deletion_cost::written::WrittenCosts;
use crate::voluntary_disruption::sold_types::SoldTypes;
use crate::watches::pod_starts::PodStarts;

/// Notes that several controllers share; clones share them too.
#[derive(Clone)]
pub(super) struct SharedNotes {
    pub(super) pod_nominations: Arc<PodNominations>,
    /// Choices of the launches under way.
    pub(super) launching: Arc<Launching>,
    pub(super) pods_of_claims: Arc<PodsOfClaims>,
    /// What the marks of claims go by.
    pub(super) known_claims: Arc<KnownClaims>,
    pub(super) registration_health: Arc<RegistrationHealth>,
    pub(super) overlays: Arc<Overlays>,
    pub(super) static_pending: Arc<StaticPending>,
    pub(super) undecided_pods: Arc<UndecidedPods>,
    pub(super) pod_starts: Arc<PodStarts>,
    pub(super) status_conditions: Arc<StatusConditions>,
    /// Passes that solvers are at, or were at last.
    pub(super) passes: Arc<Passes>,
    pub(super) sold_types: Arc<SoldTypes>,
    pub(super) written_costs: Arc<WrittenCosts>,
    pub(super) queue_loads: Arc<QueueLoads>,
    /// Notified when a pod left a node that stays.
    pub(super) pod_left: Arc<Notify>,
}

impl SharedNotes {
    pub(super) fn new(shell: &Arc<Shell>) -> Self {
        Self {
            pod_nominations: Arc::new(PodNominations::new(Arc::clone(shell))),
            launching: Arc::default(),
            pods_of_claims: Arc::default(),
            known_claims: Arc::default(),
            registration_health: Arc::default(),
            overlays: Arc::default(),
            static_pending: Arc::default(),
            undecided_pods: Arc::default(),
            pod_starts: Arc::default(),
            status_conditions: Arc::default(),
            passes: Arc::default(),
            sold_types: Arc::default(),
            written_costs: Arc::default(),
            queue_loads: Arc::default(),
            pod_left: Arc::default(),
        }
    }

    /// For whoever creates claims.
    pub(super) fn claims(&self, shell: &Arc<Shell>) -> ClaimCreator {
        ClaimCreator {
            shell: Arc::clone(shell),
            overlays: Arc::clone(&self.overlays),
            pods_of_claims: Arc::clone(&self.pods_of_claims),
        }
    }

    /// For passes of the provisioner.
    pub(super) fn of_passes(&self) -> PassNotes {
        PassNotes {
            pod_nominations: Arc::clone(&self.pod_nominations),
            launching: Arc::clone(&self.launching),
            passes: Arc::clone(&self.passes),
            undecided_pods: Arc::clone(&self.undecided_pods),
            pod_starts: Arc::clone(&self.pod_starts),
        }
    }

    /// For the parts of the lifecycle of claims.
    pub(super) fn transitions(&self, shell: &Arc<Shell>) -> LifecycleTransitions {
        LifecycleTransitions {
            shell: Arc::clone(shell),
            pod_nominations: Arc::clone(&self.pod_nominations),
            registration_health: Arc::clone(&self.registration_health),
            pods_of_claims: Arc::clone(&self.pods_of_claims),
        }
    }
}
