//! Feeds the model with what watches tell, and queues with what the model answers.

use std::sync::Arc;

use apis::ObjectKey;
use tracing::warn;

use super::queues::Queues;
use super::routing::{Wake, wakes};
use super::{Fact, PolicyFact};
use crate::shell::Shell;

/// Feeds model and queues.
pub(crate) struct Router {
    shell: Arc<Shell>,
    queues: Queues,
}

impl Router {
    pub(crate) fn new(shell: Arc<Shell>, queues: Queues) -> Self {
        Self { shell, queues }
    }

    pub(super) fn take(&self, fact: Fact) {
        let event = match fact {
            Fact::Model(event) => event,
            Fact::Policy(fact) => return self.take_policy(fact),
        };
        let changes = self.shell.model.apply(event).unwrap_or_else(|refused| {
            warn!(error = %refused, "object left out of cluster state");
            refused.changes
        });
        for change in changes {
            let wakes = wakes(&change, &self.shell.model.snapshot());
            // The next fact would have to copy what somebody still looks at.
            drop(change);
            for wake in wakes {
                self.wake(wake);
            }
        }
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Add(queue, key) => self.queues.of(queue).add(key),
            Wake::AddNew(queue, key) => self.queues.of(queue).add_new(key),
            Wake::Forget(queue, key) => self.queues.of(queue).forget(&key),
            Wake::Overlays => {
                if self.shell.settings.feature_gates.node_overlay {
                    self.queues.node_overlays.add(crate::node_overlay::key());
                }
            }
            Wake::Policies => {
                let bindings = self.shell.policies().pools_touched();
                self.look_at(bindings);
            }
            Wake::PodBound { pod, node, planned } => {
                self.shell.nominations.pod_bound(&pod, &node, &planned)
            }
            Wake::PodEnded(pod) => {
                self.shell.pods.decided(&pod);
                self.queues.pod_trigger.forget(&pod);
            }
            Wake::RoomFreed => self.shell.room_freed.notify_one(),
            Wake::PoolGone(uid) => self.shell.registration_health.forget(&uid),
        }
    }

    fn take_policy(&self, fact: PolicyFact) {
        match fact {
            PolicyFact::Applied(key, object) => {
                self.data_touched(&key);
                self.shell.policies().applied(key.clone(), object);
                self.queues.policies.add(key);
            }
            PolicyFact::Deleted(key) => self.policy_gone(&key),
            PolicyFact::Listed(keys) => {
                let gone = self.shell.policies().beside(&keys);
                for key in gone {
                    self.policy_gone(&key);
                }
            }
            PolicyFact::DataTouched(key) => self.data_touched(&key),
            PolicyFact::DataListed(keys) => {
                let naming = self.shell.policies().listed(&keys);
                self.look_at(naming);
            }
        }
    }

    fn policy_gone(&self, key: &ObjectKey) {
        self.data_touched(key);
        self.shell.policies().deleted(key);
        self.queues.policies.add(key.clone());
    }

    /// Bindings that name a ConfigMap are read anew when it changes.
    fn data_touched(&self, key: &ObjectKey) {
        let naming = self.shell.policies().touched(&key.name);
        self.look_at(naming);
    }

    fn look_at(&self, bindings: Vec<ObjectKey>) {
        for key in bindings {
            self.queues.policies.add(key);
        }
    }
}
