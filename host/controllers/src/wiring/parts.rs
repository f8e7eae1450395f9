//! Parts of the controllers, put together; and the tasks that run.
//!
//! A list, no decisions. Who works on a queue stands in `workers.rs`.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudprovider::{CloudProvider, InterruptionQueue};
use disruption::repair::{InvalidRepairPolicies, RepairPolicies};
use futures::future::FutureExt;
use hooks::binding::PolicyRegistry;
use locks::lock;
use scheduling::TableCache;
use scheduling::ranking::RankHook;
use tracing::Instrument as _;

use super::activity::ControllerActivity;
use super::config::ControllersConfig;
use super::controller_provider::ControllerProvider;
use super::shared::SharedNotes;
use crate::capacity_reservation::CapacityReservations;
use crate::interruption::InterruptionController;
use crate::interruption::instance_status::InstanceStatusController;
use crate::node::eviction::{EvictionKey, EvictionQueue};
use crate::node::health::NodeHealth;
use crate::node_capacity::NodeCapacities;
use crate::node_claim::garbage_collection::GarbageCollection;
use crate::node_class::profiles::Profiles;
use crate::node_overlay::overlays::Overlays;
use crate::observability::StateMetrics;
use crate::policy_binding::PolicyObjects;
use crate::provisioning::batcher::Batcher;
use crate::provisioning::{Provisioner, ProvisionerParts};
use crate::settings::Settings;
use crate::shell::Shell;
use crate::shell::journal::Journal;
use crate::shell::journal::recorder::{EventRecorder, Publisher};
use crate::shell::runtime::log_spans::loop_span;
use crate::shell::runtime::periodic::{self, Periodic};
use crate::shell::runtime::work_queue::{QueueState, WorkQueue};
use crate::shell::turn::Turn;
use crate::voluntary_disruption::{DisruptionParts, VoluntaryDisruption};
use crate::watches::{QueueName, Queues, Router};
use crate::zonal_shift::ZonalShifts;

/// Something that runs until it is dropped or its work is done.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A delayed key counts as activity when it comes due within this time.
const SOON: Duration = Duration::from_secs(6);

/// When a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskEnd {
    /// As soon as the process is to stop: what it does is looked at anew by whoever comes next, from what was written.
    AtStop,
    /// Once what it had begun by then is done.
    AfterWork,
    /// Once all that the others have to tell is told.
    AfterTelling,
}

/// What runs beside the watches: when it ends, and how it is put together; none of what the settings do not ask for.
type TaskRow = (TaskEnd, fn(&Wiring) -> Option<Task>);

/// What runs, in the order in which it begins; what else has a queue comes after it (`workers.rs`). Whoever has a name
/// of Karpenter's shows itself in metrics before it does anything.
const TASKS: &[TaskRow] = &[
    (TaskEnd::AfterWork, |it| Some(it.provisioning())),
    // Makes and ends claims of its own accord, as the provisioner does.
    (TaskEnd::AfterWork, |it| Some(it.static_pools())),
    (TaskEnd::AtStop, |it| Some(it.disruption())),
    (TaskEnd::AtStop, |it| {
        Some(it.periodic(GarbageCollection::new))
    }),
    (TaskEnd::AtStop, |it| {
        Some(it.periodic(InstanceStatusController::new))
    }),
    (TaskEnd::AtStop, |it| Some(it.periodic(Profiles::new))),
    (TaskEnd::AtStop, |it| Some(it.periodic(NodeCapacities::new))),
    (TaskEnd::AtStop, |it| Some(it.periodic(ZonalShifts::new))),
    (TaskEnd::AtStop, Wiring::capacity_reservations),
    (TaskEnd::AtStop, Wiring::interruption),
    (TaskEnd::AtStop, Wiring::health),
    (TaskEnd::AtStop, |it| Some(it.pod_nominations())),
    (TaskEnd::AfterTelling, Wiring::publisher),
];

/// The parts, shared by all that runs.
pub(super) struct Wiring {
    pub(super) shell: Arc<Shell>,
    pub(super) turn: Turn,
    pub(super) notes: SharedNotes,
    pub(super) rank: Arc<dyn RankHook>,
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
    /// Policies that say which nodes are sick, where nodes are repaired the legacy way.
    health_policies: Option<Arc<RepairPolicies>>,
}

impl Wiring {
    /// Puts them together; nothing runs yet.
    pub(super) fn new(config: ControllersConfig) -> Result<Self, InvalidRepairPolicies> {
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
            stands_by,
        } = config;
        let repair = repair_policies(&settings, provider.as_ref())?;
        let (events, publisher) = EventRecorder::new(client.clone(), Arc::clone(&clock));
        let journal = Journal {
            clock: Arc::clone(&clock),
            events,
            metrics,
            feed: Arc::default(),
            ledger,
        };
        let shell = Arc::new(Shell::new(client, clock, settings, Arc::new(journal)));
        let (turn, notes) = (Turn::new(stands_by), SharedNotes::new(&shell));
        let settings = &shell.settings;
        let batcher = batcher(settings);
        let measured = |controller| overlaid(&provider, &shell, &notes.overlays, controller);
        // Both look at the same pools, so that what was worked out for one serves the other.
        let tables = Arc::<TableCache>::default();
        let rank = Arc::clone(&hooks.rank);
        let provisioner = ProvisionerParts {
            provider: measured(Provisioner::NAME),
            batcher: Arc::clone(&batcher),
            tables: Arc::clone(&tables),
            rank: Arc::clone(&rank),
            turn: turn.clone(),
            claims: notes.claims(&shell),
            notes: notes.of_passes(),
        };
        let disruption = DisruptionParts {
            provider: measured(VoluntaryDisruption::NAME),
            tables,
            passes: Arc::clone(&notes.passes),
            sold_types: Arc::clone(&notes.sold_types),
            written_costs: Arc::clone(&notes.written_costs),
            pod_left: Arc::clone(&notes.pod_left),
            repair: repair.clone().filter(|_| !settings.legacy_node_repair),
        };
        let health_policies = repair.filter(|_| settings.legacy_node_repair);
        let provisioner = Provisioner::new(Arc::clone(&shell), provisioner);
        let (claims, pending) = (notes.claims(&shell), Arc::clone(&notes.static_pending));
        let disruption =
            VoluntaryDisruption::new(Arc::clone(&shell), hooks, claims, pending, disruption);
        Ok(Self {
            shell,
            turn,
            notes,
            rank,
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
            health_policies,
        })
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
        overlaid(
            &self.provider,
            &self.shell,
            &self.notes.overlays,
            controller,
        )
    }

    /// The provider that knows nothing of overlays.
    pub(super) fn measured_bare(&self, controller: &'static str) -> Arc<dyn CloudProvider> {
        measured(&self.provider, None, &self.shell, controller)
    }

    pub(super) fn router(&self) -> Router {
        let notes = self.notes.clone();
        Router {
            shell: Arc::clone(&self.shell),
            turn: self.turn.clone(),
            queues: self.queues.clone(),
            policies: Arc::clone(&self.policy_objects),
            pod_nominations: notes.pod_nominations,
            undecided_pods: notes.undecided_pods,
            pod_starts: notes.pod_starts,
            status_conditions: notes.status_conditions,
            registration_health: notes.registration_health,
            pods_of_claims: notes.pods_of_claims,
            known_claims: notes.known_claims,
            pod_left: notes.pod_left,
        }
    }

    pub(super) fn state_metrics(&self) -> StateMetrics {
        let notes = self.notes.clone();
        StateMetrics {
            shell: Arc::clone(&self.shell),
            turn: self.turn.clone(),
            undecided_pods: notes.undecided_pods,
            pod_starts: notes.pod_starts,
            status_conditions: notes.status_conditions,
            sold_types: notes.sold_types,
            passes: notes.passes,
            queue_loads: notes.queue_loads,
        }
    }

    /// All that runs beside the watches, in the order in which it begins.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (TaskEnd, Task)> {
        let rows = TASKS.iter();
        let tasks = rows.filter_map(|(end, task)| Some((*end, task(self)?)));
        let workers = self.workers().into_iter();
        tasks.chain(workers.map(|it| (TaskEnd::AfterWork, it)))
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
            provider: self.measured(InterruptionController::NAME),
            queue: Arc::clone(self.interruptions.as_ref()?),
            terminations: Arc::clone(self.queues.of(QueueName::NodeTermination)),
        };
        let name = InterruptionController::NAME;
        Some(named(name, async move { interruption.run().await }))
    }

    fn capacity_reservations(&self) -> Option<Task> {
        let is_on = self.shell.settings.feature_gates.reserved_capacity;
        is_on.then(|| self.periodic(CapacityReservations::new))
    }

    fn health(&self) -> Option<Task> {
        let health = NodeHealth {
            shell: Arc::clone(&self.shell),
            policies: self.health_policies.clone()?,
        };
        Some(named(NodeHealth::NAME, async move { health.run().await }))
    }

    /// Karpenter leaves places to chance, so that its metrics have no name for it.
    fn pod_nominations(&self) -> Task {
        let pod_nominations = Arc::clone(&self.notes.pod_nominations);
        async move { pod_nominations.run().await }.boxed()
    }

    fn provisioning(&self) -> Task {
        let provisioner = Arc::clone(&self.provisioner);
        named(Provisioner::NAME, async move { provisioner.run().await })
    }

    /// Writes what the others have to tell.
    fn publisher(&self) -> Option<Task> {
        let mut publisher = lock(&self.publisher);
        let turn = self.turn.clone();
        Some(publisher.take()?.run(turn).boxed())
    }
}

fn batcher(settings: &Settings) -> Arc<Batcher> {
    let (idle, longest) = (settings.batch_idle_duration, settings.batch_max_duration);
    Arc::new(Batcher::new(idle, longest))
}

/// Policies that say which nodes are sick, where nodes are repaired.
fn repair_policies(
    settings: &Settings,
    provider: &dyn CloudProvider,
) -> Result<Option<Arc<RepairPolicies>>, InvalidRepairPolicies> {
    let is_on = settings.feature_gates.node_repair;
    let policies = is_on.then(|| RepairPolicies::new(provider.repair_policies()));
    Ok(policies.transpose()?.map(Arc::new))
}

/// A controller without a queue, whose log lines bear its name.
fn named(controller: &'static str, task: impl Future<Output = ()> + Send + 'static) -> Task {
    task.instrument(loop_span(controller)).boxed()
}

/// The provider as a controller sees it, with the overlays if the settings switch them on.
fn overlaid(
    provider: &Arc<dyn CloudProvider>,
    shell: &Shell,
    overlays: &Arc<Overlays>,
    controller: &'static str,
) -> Arc<dyn CloudProvider> {
    let is_overlaid = shell.settings.feature_gates.node_overlay;
    let overlays = is_overlaid.then(|| Arc::clone(overlays));
    measured(provider, overlays, shell, controller)
}

fn measured(
    provider: &Arc<dyn CloudProvider>,
    overlays: Option<Arc<Overlays>>,
    shell: &Shell,
    controller: &'static str,
) -> Arc<dyn CloudProvider> {
    let (provider, metrics) = (Arc::clone(provider), Arc::clone(&shell.metrics));
    Arc::new(ControllerProvider::new(
        provider, overlays, metrics, controller,
    ))
}
