//! What the controllers are made of, put together; and what runs without a queue of its own.
//!
//! A list, no decisions. Who works on a queue stands in `workers.rs`.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudprovider::sync::lock;
use cloudprovider::{CloudProvider, InterruptionQueue};
use futures::future::FutureExt;
use hooks::binding::PolicyRegistry;
use scheduling::TableCache;
use tracing::Instrument as _;

use super::activity::ControllerActivity;
use super::config::ControllersConfig;
use crate::capacity_reservation::CapacityReservations;
use crate::instance_status::InstanceStatusController;
use crate::interruption::InterruptionController;
use crate::node::eviction::{EvictionKey, EvictionQueue};
use crate::node::health::NodeHealth;
use crate::node_capacity::NodeCapacities;
use crate::node_claim::garbage_collection::GarbageCollection;
use crate::node_class::profiles::Profiles;
use crate::policy_binding::PolicyObjects;
use crate::provisioning::Provisioner;
use crate::provisioning::batcher::Batcher;
use crate::settings::FeatureGates;
use crate::shell::Shell;
use crate::shell::feed::DecisionFeed;
use crate::shell::journal::Journal;
use crate::shell::log_values::loop_span;
use crate::shell::measured_provider::MeasuredProvider;
use crate::shell::notes::overlays::Overlays;
use crate::shell::periodic::{self, Periodic};
use crate::shell::recorder::{EventRecorder, Publisher};
use crate::shell::work_queue::{QueueState, WorkQueue};
use crate::voluntary_disruption::{CommandRounds, PodRanking, VoluntaryDisruption};
use crate::watches::{QueueName, Queues, Router};
use crate::zonal_shift::ZonalShifts;

/// Something that runs until it is dropped or its work is done.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A delayed key counts as activity when it comes due within this time.
const SOON: Duration = Duration::from_secs(6);

const INTERRUPTION: &str = "interruption";

/// A controller without a queue.
struct LoopRow {
    /// As metrics show it.
    name: &'static str,
    /// Whether the settings ask for it.
    is_on: fn(&Wiring) -> bool,
    /// None of what runs as part of another.
    task: fn(&Wiring) -> Option<Task>,
}

/// One row a controller without a queue: its name, whether the settings ask for it, and how it is put together.
macro_rules! loops {
    ($($name:expr, $is_on:expr, $task:expr;)*) => {
        const LOOPS: &[LoopRow] = &[$(LoopRow {
            name: $name,
            is_on: $is_on,
            task: $task,
        },)*];
    };
}

loops! {
    Provisioner::NAME, |_| true, |_| None;
    VoluntaryDisruption::NAME, |_| true, |it| Some(it.disruption());
    CommandRounds::NAME, |_| true, |_| None;
    GarbageCollection::NAME, |_| true, |it| Some(it.periodic(GarbageCollection::new));
    InstanceStatusController::NAME, |_| true, |it| Some(it.periodic(InstanceStatusController::new));
    Profiles::NAME, |_| true, |it| Some(it.periodic(Profiles::new));
    NodeCapacities::NAME, |_| true, |it| Some(it.periodic(NodeCapacities::new));
    ZonalShifts::NAME, |_| true, |it| Some(it.periodic(ZonalShifts::new));
    CapacityReservations::NAME, |it| it.gates().reserved_capacity, |it| Some(it.periodic(CapacityReservations::new));
    INTERRUPTION, |it| it.interruptions.is_some(), Wiring::interruption;
    NodeHealth::NAME, |it| it.gates().node_repair && it.shell.settings.legacy_node_repair, |it| Some(it.health());
    PodRanking::NAME, |it| it.gates().pod_deletion_cost_management, |_| None;
}

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
        // Both look at the same pools, so that what was worked out for one serves the other.
        let tables = Arc::<TableCache>::default();
        let provisioner = Provisioner::new(
            Arc::clone(&shell),
            measured(Provisioner::NAME),
            Arc::clone(&batcher),
            Arc::clone(&tables),
        );
        let disruption = VoluntaryDisruption::new(
            Arc::clone(&shell),
            measured(VoluntaryDisruption::NAME),
            hooks.consolidation,
            hooks.budgets,
            tables,
        );
        Self {
            shell,
            policy_objects: Arc::new(PolicyObjects::new()),
            queues: Queues::new(),
            evictions: Arc::new(WorkQueue::new(EvictionQueue::BACK_OFF)),
            provisioner: Arc::new(provisioner),
            disruption: Arc::new(disruption),
            batcher,
            provider,
            policies,
            interruptions,
            publisher: Mutex::new(Some(publisher)),
        }
    }

    fn gates(&self) -> &FeatureGates {
        &self.shell.settings.feature_gates
    }

    pub(super) fn activity(&self) -> ControllerActivity {
        let mut activity = ControllerActivity {
            is_provisioning: self.provisioner.is_busy(),
            commands: self.disruption.commands(),
            is_synced: self.shell.model.note_sync(),
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

    /// What runs without a queue, in the order in which it begins.
    pub(super) fn loops(&self) -> Vec<Task> {
        let rows = LOOPS.iter().filter(|it| (it.is_on)(self));
        let rows: Vec<&LoopRow> = rows.collect();
        // Metrics show them before they did anything.
        for row in &rows {
            self.shell.metrics.begin_controller(row.name, 1);
        }
        let tasks = rows.iter().filter_map(|it| (it.task)(self));
        tasks.chain([self.nominations()]).collect()
    }

    fn periodic<P>(&self, new: impl FnOnce(Arc<Shell>, Arc<dyn CloudProvider>) -> P) -> Task
    where
        P: Periodic + Send + 'static,
    {
        let shell = Arc::clone(&self.shell);
        let controller = new(Arc::clone(&shell), self.measured(P::NAME));
        named(P::NAME, async move {
            periodic::run(&shell.metrics, controller).await;
        })
    }

    fn disruption(&self) -> Task {
        let disruption = Arc::clone(&self.disruption);
        async move { Box::pin(disruption.run()).await }.boxed()
    }

    fn interruption(&self) -> Option<Task> {
        let interruption = InterruptionController {
            shell: Arc::clone(&self.shell),
            provider: self.measured(INTERRUPTION),
            queue: Arc::clone(self.interruptions.as_ref()?),
            terminations: Arc::clone(self.queues.of(QueueName::NodeTermination)),
        };
        Some(named(INTERRUPTION, async move { interruption.run().await }))
    }

    fn health(&self) -> Task {
        let health = NodeHealth {
            shell: Arc::clone(&self.shell),
            provider: self.measured(NodeHealth::NAME),
        };
        named(NodeHealth::NAME, async move { health.run().await })
    }

    /// Karpenter leaves places to chance, so that its metrics have no name for it.
    fn nominations(&self) -> Task {
        let shell = Arc::clone(&self.shell);
        async move { shell.nominations.run().await }.boxed()
    }

    pub(super) fn provisioning(&self) -> Task {
        let provisioner = Arc::clone(&self.provisioner);
        named(Provisioner::NAME, async move { provisioner.run().await })
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
