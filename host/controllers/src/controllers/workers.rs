//! The controllers that work on queues: each with its name, how many of its keys are worked on at once, and its queue.
//!
//! A list, no decisions. Names and numbers are those of Karpenter's controllers (`pkg/controllers/controllers.go` and
//! their `Register`).

use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::future::FutureExt;

use super::wiring::{Task, Wiring};
use crate::capacity_buffer::CapacityBufferController;
use crate::node::eviction::EvictionQueue;
use crate::node::hydration::NodeHydration;
use crate::node::termination::Termination;
use crate::node_claim::finalize::Finalizer;
use crate::node_claim::launch::Launcher;
use crate::node_claim::lifecycle::Lifecycle;
use crate::node_claim::{
    consistency, disruption as markers, expiration, hydration, pod_events, reboot, tagging,
};
use crate::node_class::NodeClassController;
use crate::node_overlay::NodeOverlayController;
use crate::node_pool::{counter, hash, readiness, validation};
use crate::policy_binding::PolicyBinding;
use crate::provisioning::trigger::{NodeTrigger, PodTrigger};
use crate::shell::Shell;
use crate::shell::runtime::{Profile, Reconciler, run};
use crate::shell::work_queue::WorkQueue;
use crate::static_capacity::StaticPools;

impl Wiring {
    /// Keys at work are the fewest on one core and the most on sixty.
    fn spawn<R: Reconciler>(
        &self,
        name: &'static str,
        at_work: RangeInclusive<usize>,
        queue: &Arc<WorkQueue<R::Key>>,
        reconciler: R,
    ) -> Task {
        let (fewest, most) = at_work.into_inner();
        let concurrency = self.shell.settings.concurrency(fewest, most);
        self.shell.queue_loads.add(name, queue);
        run(
            Profile { name, concurrency },
            Arc::clone(queue),
            Arc::new(reconciler),
            Arc::clone(&self.shell.metrics),
            self.shell.turn.clone(),
        )
        .boxed()
    }

    fn shell(&self) -> Arc<Shell> {
        Arc::clone(&self.shell)
    }

    /// All but that of static pools, in the order in which they begin.
    pub(super) fn workers(&self) -> Vec<Task> {
        let mut tasks = Vec::from(self.claim_lifecycle());
        tasks.extend(self.claim_markers());
        tasks.extend(self.node_pools());
        tasks.extend(self.around_pools());
        tasks
    }

    /// Makes and ends claims of its own accord, as the provisioner does.
    pub(super) fn static_pools(&self) -> Task {
        let reconciler = StaticPools {
            shell: self.shell(),
        };
        self.spawn(
            "static.provisioning",
            10..=1000,
            &self.queues.static_pools,
            reconciler,
        )
    }

    /// From a claim's launch to the end of its instance.
    fn claim_lifecycle(&self) -> [Task; 3] {
        let queues = &self.queues;
        let provider = self.measured("nodeclaim.lifecycle");
        let launcher = Launcher::new(self.shell(), Arc::clone(&provider));
        let finalizer = Finalizer::new(self.shell(), Arc::clone(&provider));
        let lifecycle = Lifecycle::new(self.shell(), provider, launcher, finalizer);
        let provider = self.measured("node.termination");
        let evictions = || Arc::clone(&self.evictions);
        let termination = Termination::new(self.shell(), provider, evictions());
        let eviction = EvictionQueue::new(self.shell());
        [
            self.spawn(
                "nodeclaim.lifecycle",
                1000..=5000,
                &queues.lifecycle,
                lifecycle,
            ),
            self.spawn(
                "node.termination",
                100..=5000,
                &queues.node_termination,
                termination,
            ),
            self.spawn("eviction-queue", 100..=5000, &self.evictions, eviction),
        ]
    }

    /// What is said of claims and Nodes that live.
    fn claim_markers(&self) -> [Task; 8] {
        let (shell, queues) = (|| self.shell(), &self.queues);
        let markers = markers::Markers::new(shell(), self.measured("nodeclaim.disruption"));
        let expiration = expiration::Expiration { shell: shell() };
        let consistency = consistency::Consistency { shell: shell() };
        let claims = hydration::NodeClaimHydration { shell: shell() };
        let nodes = NodeHydration { shell: shell() };
        let tagging = tagging::Tagging::new(shell(), self.measured("nodeclaim.tagging"));
        let provider = self.measured("nodeclaim.reboot");
        let reboots = reboot::Reboot::new(shell(), provider, Arc::clone(&self.evictions));
        let pods = pod_events::PodEvents { shell: shell() };
        [
            self.spawn(
                "nodeclaim.disruption",
                10..=1000,
                &queues.claim_disruption,
                markers,
            ),
            self.spawn(
                "nodeclaim.expiration",
                10..=1000,
                &queues.expiration,
                expiration,
            ),
            self.spawn(
                "nodeclaim.consistency",
                10..=1000,
                &queues.consistency,
                consistency,
            ),
            self.spawn(
                "nodeclaim.hydration",
                1000..=5000,
                &queues.claim_hydration,
                claims,
            ),
            self.spawn("node.hydration", 1000..=5000, &queues.node_hydration, nodes),
            self.spawn("nodeclaim.tagging", 10..=1000, &queues.tagging, tagging),
            self.spawn("nodeclaim.reboot", 10..=10, &queues.reboots, reboots),
            self.spawn("nodeclaim.podevents", 10..=1000, &queues.pod_events, pods),
        ]
    }

    fn node_pools(&self) -> [Task; 4] {
        let (shell, queues) = (|| self.shell(), &self.queues);
        let hash = hash::Hash { shell: shell() };
        let readiness = readiness::Readiness { shell: shell() };
        let validation = validation::Validation { shell: shell() };
        let counter = counter::Counter { shell: shell() };
        [
            self.spawn("nodepool.hash", 10..=1000, &queues.pool_hash, hash),
            self.spawn(
                "nodepool.readiness",
                10..=1000,
                &queues.pool_readiness,
                readiness,
            ),
            self.spawn(
                "nodepool.validation",
                10..=1000,
                &queues.pool_validation,
                validation,
            ),
            self.spawn("nodepool.counter", 10..=1000, &queues.pool_counter, counter),
        ]
    }

    /// What pools buy, what they buy it for, and who has a say in it.
    fn around_pools(&self) -> [Task; 6] {
        let (shell, queues) = (|| self.shell(), &self.queues);
        let batcher = || Arc::clone(&self.batcher);
        let node_class = NodeClassController {
            shell: shell(),
            provider: self.measured("nodeclass"),
        };
        let buffers = CapacityBufferController {
            shell: shell(),
            batcher: batcher(),
        };
        let overlays = NodeOverlayController {
            shell: shell(),
            provider: self.measured_bare("nodeoverlay.controller"),
        };
        let pods = PodTrigger {
            shell: shell(),
            batcher: batcher(),
        };
        let nodes = NodeTrigger {
            shell: shell(),
            batcher: batcher(),
        };
        let (policies, objects) = (Arc::clone(&self.policies), Arc::clone(&self.policy_objects));
        let bindings = PolicyBinding::new(shell(), policies, objects);
        [
            self.spawn("nodeclass", 10..=10, &queues.node_class, node_class),
            self.spawn("capacitybuffer", 10..=10, &queues.capacity_buffers, buffers),
            self.spawn(
                "nodeoverlay.controller",
                1..=1,
                &queues.node_overlays,
                overlays,
            ),
            self.spawn(
                "provisioner.trigger.pod",
                10..=1000,
                &queues.pod_trigger,
                pods,
            ),
            self.spawn(
                "provisioner.trigger.node",
                10..=1000,
                &queues.node_trigger,
                nodes,
            ),
            self.spawn(
                "policy.binding",
                2..=2,
                &self.policy_objects.queue,
                bindings,
            ),
        ]
    }
}
