//! The controllers that work on queues, each put together and given its queue.
//!
//! A list, no decisions. Their names and numbers are the rows of `watches/queues.rs`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use apis::ObjectKey;
use cloudprovider::CloudProvider;
use futures::future::FutureExt;

use super::parts::{Task, Wiring};
use crate::capacity_buffer::CapacityBufferController;
use crate::node::eviction::EvictionQueue;
use crate::node::hydration::NodeHydration;
use crate::node::termination::Termination;
use crate::node_claim::lifecycle::Lifecycle;
use crate::node_claim::lifecycle::finalize::Finalizer;
use crate::node_claim::lifecycle::launch::Launcher;
use crate::node_claim::{
    consistency, disruption, expiration, hydration, pod_events, reboot, tagging,
};
use crate::node_class::NodeClassController;
use crate::node_overlay::NodeOverlayController;
use crate::node_pool::{counter, hash, readiness, validation};
use crate::policy_binding::PolicyBinding;
use crate::provisioning::trigger::{NodeTrigger, PodTrigger};
use crate::shell::Shell;
use crate::shell::runtime::log_spans::ControllerName;
use crate::shell::runtime::work_queue::WorkQueue;
use crate::shell::runtime::{ControllerRun, Reconciler, run};
use crate::static_capacity::StaticPools;
use crate::watches::{QueueName, QueueRow};

/// Its queue is fed by the watch of policies, which has no row among those of objects that the model keeps.
const BINDINGS: ControllerName = ControllerName {
    name: "policy.binding",
    kind: ("", "ConfigMap"),
};

impl Wiring {
    fn worker<R: Reconciler<Key = ObjectKey>>(&self, queue: QueueName, reconciler: R) -> Task {
        let QueueRow {
            name,
            kind,
            at_work,
            ..
        } = queue.row();
        let controller = ControllerName { name, kind };
        self.worker_over(controller, at_work, self.queues.of(queue), reconciler)
    }

    /// Over a queue whose keys may be of another make. Keys at work are the fewest on one core and the most on sixty.
    fn worker_over<R: Reconciler>(
        &self,
        controller: ControllerName,
        at_work: RangeInclusive<usize>,
        queue: &Arc<WorkQueue<R::Key>>,
        reconciler: R,
    ) -> Task {
        let (fewest, most) = at_work.into_inner();
        let concurrency = self.shell.settings.concurrency(fewest, most);
        self.notes.queue_loads.add(controller.name, queue);
        run(
            ControllerRun {
                controller,
                concurrency,
            },
            Arc::clone(queue),
            Arc::new(reconciler),
            Arc::clone(&self.shell.metrics),
            self.turn.clone(),
        )
        .boxed()
    }

    /// The provider as the controller of that queue calls it.
    fn measured_for(&self, queue: QueueName) -> Arc<dyn CloudProvider> {
        self.measured(queue.row().name)
    }

    fn shell(&self) -> Arc<Shell> {
        Arc::clone(&self.shell)
    }

    /// All but that of static pools, in the order in which they begin.
    pub(super) fn workers(&self) -> Vec<Task> {
        let mut tasks = Vec::from(self.claim_lifecycle());
        tasks.extend(self.living_claims());
        tasks.extend(self.node_pools());
        tasks.extend(self.around_pools());
        tasks
    }

    pub(super) fn static_pools(&self) -> Task {
        let reconciler = StaticPools {
            shell: self.shell(),
            claims: self.notes.claims(&self.shell),
            pending: Arc::clone(&self.notes.static_pending),
        };
        self.worker(QueueName::StaticPools, reconciler)
    }

    /// From a claim's launch to the end of its instance.
    fn claim_lifecycle(&self) -> [Task; 3] {
        let provider = self.measured_for(QueueName::Lifecycle);
        let launcher = Launcher::new(
            self.shell(),
            Arc::clone(&provider),
            Arc::clone(&self.rank),
            Arc::clone(&self.notes.launching),
            Arc::clone(&self.notes.pods_of_claims),
        );
        let finalizer = Finalizer::new(self.shell(), Arc::clone(&provider));
        let transitions = self.notes.transitions(&self.shell);
        let lifecycle = Lifecycle::new(self.shell(), provider, transitions, launcher, finalizer);
        let provider = self.measured_for(QueueName::NodeTermination);
        let evictions = || Arc::clone(&self.evictions);
        let termination = Termination::new(self.shell(), provider, evictions());
        let eviction = EvictionQueue::new(self.shell());
        [
            self.worker(QueueName::Lifecycle, lifecycle),
            self.worker(QueueName::NodeTermination, termination),
            self.worker_over(
                EvictionQueue::CONTROLLER,
                EvictionQueue::AT_WORK,
                &self.evictions,
                eviction,
            ),
        ]
    }

    /// Workers for claims and Nodes that live.
    fn living_claims(&self) -> [Task; 8] {
        let shell = || self.shell();
        let provider = self.measured_for(QueueName::ClaimDisruption);
        let known = Arc::clone(&self.notes.known_claims);
        let conditions = disruption::NodeClaimDisruption::new(shell(), provider, known);
        let expiration = expiration::Expiration { shell: shell() };
        let consistency = consistency::Consistency { shell: shell() };
        let claims = hydration::NodeClaimHydration { shell: shell() };
        let nodes = NodeHydration { shell: shell() };
        let tagging = tagging::Tagging::new(shell(), self.measured_for(QueueName::Tagging));
        let provider = self.measured_for(QueueName::Reboots);
        let reboots = reboot::Reboot::new(shell(), provider, Arc::clone(&self.evictions));
        let pods = pod_events::PodEvents { shell: shell() };
        [
            self.worker(QueueName::ClaimDisruption, conditions),
            self.worker(QueueName::Expiration, expiration),
            self.worker(QueueName::Consistency, consistency),
            self.worker(QueueName::ClaimHydration, claims),
            self.worker(QueueName::NodeHydration, nodes),
            self.worker(QueueName::Tagging, tagging),
            self.worker(QueueName::Reboots, reboots),
            self.worker(QueueName::PodEvents, pods),
        ]
    }

    fn node_pools(&self) -> [Task; 4] {
        let shell = || self.shell();
        let hash = hash::Hash { shell: shell() };
        let readiness = readiness::Readiness {
            shell: shell(),
            registration_health: Arc::clone(&self.notes.registration_health),
        };
        let validation = validation::Validation { shell: shell() };
        let counter = counter::Counter { shell: shell() };
        [
            self.worker(QueueName::PoolHash, hash),
            self.worker(QueueName::PoolReadiness, readiness),
            self.worker(QueueName::PoolValidation, validation),
            self.worker(QueueName::PoolCounter, counter),
        ]
    }

    /// Workers for what pools buy, what they buy it for, and who has a say in it.
    fn around_pools(&self) -> [Task; 6] {
        let shell = || self.shell();
        let batcher = || Arc::clone(&self.batcher);
        let node_class = NodeClassController {
            shell: shell(),
            provider: self.measured_for(QueueName::NodeClass),
        };
        let buffers = CapacityBufferController {
            shell: shell(),
            batcher: batcher(),
        };
        let overlays = NodeOverlayController {
            shell: shell(),
            provider: self.measured_bare(QueueName::NodeOverlays.row().name),
            overlays: Arc::clone(&self.notes.overlays),
        };
        let pods = PodTrigger {
            shell: shell(),
            batcher: batcher(),
            undecided_pods: Arc::clone(&self.notes.undecided_pods),
        };
        let nodes = NodeTrigger {
            shell: shell(),
            batcher: batcher(),
        };
        let (policies, objects) = (Arc::clone(&self.policies), Arc::clone(&self.policy_objects));
        let bindings = PolicyBinding::new(shell(), policies, objects);
        [
            self.worker(QueueName::NodeClass, node_class),
            self.worker(QueueName::CapacityBuffers, buffers),
            self.worker(QueueName::NodeOverlays, overlays),
            self.worker(QueueName::PodTrigger, pods),
            self.worker(QueueName::NodeTrigger, nodes),
            self.worker_over(BINDINGS, 2..=2, &self.policy_objects.queue, bindings),
        ]
    }
}
