//! Feeds the model with what watches tell, and queues with what the model answers.
//!
//! Who is to look at what is not decided here but in `routing.rs`.

use std::sync::Arc;

use state::cluster::Change;
use tokio::sync::Notify;
use tracing::warn;

use super::fact::WatchFact;
use super::pod_starts::PodStarts;
use super::queues::{QueueName, Queues};
use super::routing::{Reaction, reactions};
use crate::node_claim::disruption::KnownClaims;
use crate::node_claim::pods_of_claims::PodsOfClaims;
use crate::node_pool::registration_health::RegistrationHealth;
use crate::pod_nomination::PodNominations;
use crate::policy_binding::PolicyObjects;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::shell::Shell;
use crate::shell::turn::{Turn, TurnStage};
use crate::status_conditions::StatusConditions;

/// Feeds model and queues, and what remembers pods, pools and conditions.
pub(crate) struct Router {
    pub(crate) shell: Arc<Shell>,
    pub(crate) turn: Turn,
    pub(crate) queues: Queues,
    pub(crate) policies: Arc<PolicyObjects>,
    pub(crate) pod_nominations: Arc<PodNominations>,
    pub(crate) undecided_pods: Arc<UndecidedPods>,
    pub(crate) pod_starts: Arc<PodStarts>,
    pub(crate) status_conditions: Arc<StatusConditions>,
    pub(crate) registration_health: Arc<RegistrationHealth>,
    pub(crate) pods_of_claims: Arc<PodsOfClaims>,
    pub(crate) known_claims: Arc<KnownClaims>,
    /// Notified when a pod left a node that stays.
    pub(crate) pod_left: Arc<Notify>,
}

impl Router {
    pub(super) fn take(&self, fact: WatchFact) {
        let event = match fact {
            WatchFact::Model(event) => event,
            WatchFact::Policy(fact) => return self.policies.take(fact),
        };
        let changes = self.shell.model.apply(event).unwrap_or_else(|refused| {
            warn!(error = %refused, "object left out of cluster state");
            refused.changes
        });
        for change in changes {
            self.report(&change);
            let reactions = reactions(&change, &self.shell.model.snapshot());
            // The next fact would have to copy what somebody still looks at.
            drop(change);
            for reaction in reactions {
                self.react(reaction);
            }
        }
    }

    /// Reports pods that got on and conditions that changed. A replica that stands by remembers them only: whoever
    /// leads has reported them.
    fn report(&self, change: &Change) {
        let (shell, now) = (&self.shell, self.shell.now());
        if shell.settings.disable_cluster_state_observability {
            return;
        }
        let leads = self.turn.stage() >= TurnStage::Leads;
        if let Change::Pod { after: pod, .. } = change {
            for (start, entry) in self.pod_starts.observe(pod, now) {
                if leads {
                    shell.journal.write(&start, &entry);
                }
            }
        }
        let snapshot = shell.model.snapshot();
        for (seen, entry) in self.status_conditions.observe(change, &snapshot, now) {
            if leads {
                shell.journal.write(&seen, &entry);
            }
        }
    }

    fn react(&self, reaction: Reaction) {
        match reaction {
            Reaction::Enqueue(queue, key) => self.queues.of(queue).add(key),
            Reaction::EnqueueNew(queue, key) => self.queues.of(queue).add_new(key),
            Reaction::Forget(queue, key) => self.queues.of(queue).forget(&key),
            Reaction::Overlays => {
                if self.shell.settings.feature_gates.node_overlay {
                    let queue = self.queues.of(QueueName::NodeOverlays);
                    queue.add(crate::node_overlay::key());
                }
            }
            Reaction::Policies => self.policies.node_pools_changed(),
            Reaction::PodBound { pod, node, planned } => {
                self.pod_nominations.check_place(&pod, &node, &planned);
            }
            Reaction::PodEnded(pod) => {
                self.undecided_pods.forget(&pod);
                self.pod_starts.note_end(&pod);
                self.queues.of(QueueName::PodTrigger).forget(&pod);
            }
            Reaction::PodLeft => self.pod_left.notify_one(),
            Reaction::PoolGone(uid) => self.registration_health.forget(&uid),
            Reaction::ClaimGone(name) => {
                self.pods_of_claims.settle(&name);
                self.known_claims.forget(&name);
            }
        }
    }
}
