//! What the controllers are made of, put together; and what runs without a queue of its own.
//!
//! A list, no decisions. Who works on a queue stands in `workers.rs`.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudprovider::{CloudProvider, InterruptionQueue};
use futures::future::FutureExt;
use hooks::binding::PolicyRegistry;
use tracing::Instrument as _;

use super::activity::ControllerActivity;
use super::config::ControllersConfig;
use crate::capacity_reservation::CapacityReservations;
use crate::instance_status::InstanceStatusController;
use crate::interruption::InterruptionController;
use crate::node::eviction::EvictionKey;
use crate::node::health::NodeHealth;
use crate::node_capacity::NodeCapacities;
use crate::node_claim::garbage_collection;
use crate::node_class::profiles::Profiles;
use crate::policy_binding::PolicyObjects;
use crate::provisioning::Provisioner;
use crate::provisioning::batcher::Batcher;
use crate::shell::Shell;
use crate::shell::feed::DecisionFeed;
use crate::shell::journal::Journal;
use crate::shell::log_values::loop_span;
use crate::shell::measured_provider::MeasuredProvider;
use crate::shell::notes::overlays::Overlays;
use crate::shell::recorder::{EventRecorder, Publisher};
use crate::shell::sync::lock;
use crate::shell::work_queue::{BackOff, QueueState, WorkQueue};
use crate::voluntary_disruption::VoluntaryDisruption;
use crate::watches::{QueueName, Queues, Router};
use crate::zonal_shift::ZonalShifts;

/// Something that runs until it is dropped or its work is done.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A delayed key counts as activity when it comes due within this time.
const SOON: Duration = Duration::from_secs(6);

/// The parts, shared by all that runs.
pub(super) struct Wiring {
    pub(super) shell: Arc<Shell>,
    pub(super) queues: Queues,
    pub(super) evictions: Arc<WorkQueue<EvictionKey>>,
    provisioner: Arc<Provisioner>,
    disruption: Arc<VoluntaryDisruption>,
    pub(super) batcher: Arc<Batcher>,
    provider: Arc<dyn CloudProvider>,
    pub(super) policies: Arc<dyn PolicyRegistry>,
    pub(super) policy_objects: Arc<PolicyObjects>,
    interruptions: Option<Arc<dyn InterruptionQueue>>,
    publisher: Mutex<Option<Publisher>>,
}

impl Wiring {
    /// Puts them together; nothing runs yet.
    pub(super) fn new(config: ControllersConfig) -> Self {
        let ControllersConfig {
            client,
            provider,
            hooks,
            clock,
            settings,
            ledger,
            metrics,
            policies,
            interruptions,
        } = config;
        let (events, publisher) = EventRecorder::new(client.clone(), Arc::clone(&clock));
        let journal = Arc::new(Journal {
            clock: Arc::clone(&clock),
            events,
            metrics,
            feed: Arc::new(DecisionFeed::default()),
            ledger,
        });
        let shell = Arc::new(Shell::new(client, clock, settings, hooks.rank, journal));
        let settings = &shell.settings;
        let batcher = Arc::new(Batcher::new(
            settings.batch_idle_duration,
            settings.batch_max_duration,
        ));
        let measured = |controller| overlaid(&provider, &shell, controller);
        let provisioner = Provisioner::new(
            Arc::clone(&shell),
            measured("provisioner"),
            Arc::clone(&batcher),
        );
        let disruption = VoluntaryDisruption::new(
            Arc::clone(&shell),
            measured("disruption"),
            hooks.consolidation,
            hooks.budgets,
        );
        let eviction_back_off = BackOff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
        };
        Self {
            shell,
            policy_objects: Arc::new(PolicyObjects::new()),
            queues: Queues::new(),
            evictions: Arc::new(WorkQueue::new(eviction_back_off)),
            provisioner: Arc::new(provisioner),
            disruption: Arc::new(disruption),
            batcher,
            provider,
            policies,
            interruptions,
            publisher: Mutex::new(Some(publisher)),
        }
    }

    pub(super) fn activity(&self) -> ControllerActivity {
        let mut activity = ControllerActivity {
            is_provisioning: self.provisioner.is_busy(),
            commands: self.disruption.commands(),
            is_synced: self.shell.model.is_synced(),
            ..ControllerActivity::default()
        };
        let policies = QueueState {
            // A chore: what policies count is shown now and then.
            due_soon: 0,
            ..self.policy_objects.queue.state(SOON)
        };
        let others = [self.evictions.state(SOON), policies];
        for state in self.queues.states(SOON).chain(others) {
            activity.queued += state.ready + state.processing;
            activity.failing += state.failing;
            activity.due_soon += state.due_soon;
        }
        activity
    }

    pub(super) fn measured(&self, controller: &'static str) -> Arc<dyn CloudProvider> {
        overlaid(&self.provider, &self.shell, controller)
    }

    /// The provider that knows nothing of overlays.
    pub(super) fn measured_bare(&self, controller: &'static str) -> Arc<dyn CloudProvider> {
        measured(&self.provider, None, &self.shell, controller)
    }

    pub(super) fn router(&self) -> Router {
        Router::new(
            Arc::clone(&self.shell),
            self.queues.clone(),
            Arc::clone(&self.policy_objects),
        )
    }

    pub(super) fn loops(&self) -> Vec<Task> {
        let shell = || Arc::clone(&self.shell);
        self.begin_loops();
        let disruption = Arc::clone(&self.disruption);
        let collection = garbage_collection::GarbageCollection {
            shell: shell(),
            provider: self.measured("nodeclaim.garbagecollection"),
        };
        let task = async move { collection.run().await };
        let mut tasks = vec![
            async move { Box::pin(disruption.run()).await }.boxed(),
            named("nodeclaim.garbagecollection", task),
        ];
        let pods_again = shell();
        tasks.push(async move { pods_again.nominations.run().await }.boxed());
        let instance_status = InstanceStatusController {
            shell: shell(),
            provider: self.measured("interruption.instancestatus"),
        };
        let task = async move { instance_status.run().await };
        tasks.push(named("interruption.instancestatus", task));
        let profiles = Profiles {
            shell: shell(),
            provider: self.measured("instanceprofile.garbagecollection"),
        };
        let task = async move { profiles.run().await };
        tasks.push(named("instanceprofile.garbagecollection", task));
        let capacities = NodeCapacities {
            shell: shell(),
            provider: self.measured("providers.instancetype.capacity"),
        };
        let task = async move { capacities.run().await };
        tasks.push(named("providers.instancetype.capacity", task));
        let shifts = ZonalShifts {
            shell: shell(),
            provider: self.measured("zonalshift"),
        };
        let task = async move { shifts.run().await };
        tasks.push(named("zonalshift", task));
        if self.shell.settings.feature_gates.reserved_capacity {
            let reservations = CapacityReservations {
                shell: shell(),
                provider: self.measured("capacityreservation"),
            };
            let task = async move { reservations.run().await };
            tasks.push(named("capacityreservation", task));
        }
        if let Some(queue) = &self.interruptions {
            let interruption = InterruptionController {
                shell: shell(),
                provider: self.measured("interruption"),
                queue: Arc::clone(queue),
                terminations: Arc::clone(self.queues.of(QueueName::NodeTermination)),
            };
            let task = async move { interruption.run().await };
            tasks.push(named("interruption", task));
        }
        let settings = &self.shell.settings;
        if settings.feature_gates.node_repair && settings.legacy_node_repair {
            let health = NodeHealth {
                shell: shell(),
                provider: self.measured("node.health"),
            };
            let task = async move { health.run().await };
            tasks.push(named("node.health", task));
        }
        tasks
    }

    /// Shows the controllers without a queue before they did anything.
    fn begin_loops(&self) {
        let settings = &self.shell.settings;
        let gates = &settings.feature_gates;
        let repairs = gates.node_repair && settings.legacy_node_repair;
        let loops = [
            ("provisioner", true),
            ("disruption", true),
            ("disruption.queue", true),
            ("nodeclaim.garbagecollection", true),
            ("interruption.instancestatus", true),
            ("instanceprofile.garbagecollection", true),
            ("providers.instancetype.capacity", true),
            ("zonalshift", true),
            ("capacityreservation", gates.reserved_capacity),
            ("interruption", self.interruptions.is_some()),
            ("node.health", repairs),
            ("pod.deletioncost", gates.pod_deletion_cost_management),
        ];
        for (name, _) in loops.into_iter().filter(|it| it.1) {
            self.shell.metrics.begin_controller(name, 1);
        }
    }

    pub(super) fn provisioning(&self) -> Task {
        let provisioner = Arc::clone(&self.provisioner);
        named("provisioner", async move { provisioner.run().await })
    }

    /// Writes what the others have to tell.
    pub(super) fn publisher(&self) -> Option<Task> {
        let publisher = &self.publisher;
        let mut publisher = lock(publisher);
        let turn = self.shell.turn.clone();
        Some(publisher.take()?.run(turn).boxed())
    }
}

/// A controller without a queue, whose log lines bear its name.
fn named(controller: &'static str, task: impl Future<Output = ()> + Send + 'static) -> Task {
    task.instrument(loop_span(controller)).boxed()
}

/// The provider as a controller calls it, with the overlays if the settings switch them on.
fn overlaid(
    provider: &Arc<dyn CloudProvider>,
    shell: &Shell,
    controller: &'static str,
) -> Arc<dyn CloudProvider> {
    let is_overlaid = shell.settings.feature_gates.node_overlay;
    let overlays = is_overlaid.then(|| Arc::clone(&shell.overlays));
    measured(provider, overlays, shell, controller)
}

fn measured(
    provider: &Arc<dyn CloudProvider>,
    overlays: Option<Arc<Overlays>>,
    shell: &Shell,
    controller: &'static str,
) -> Arc<dyn CloudProvider> {
    let (provider, metrics) = (Arc::clone(provider), Arc::clone(&shell.metrics));
    Arc::new(MeasuredProvider::new(
        provider, overlays, metrics, controller,
    ))
}
