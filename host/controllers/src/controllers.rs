//! Puts the controllers together and runs them; what the binary sees of them.
//!
//! A list, no decisions. Answers to `pkg/controllers/controllers.go`.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudprovider::{Clock, CloudProvider, InterruptionQueue};
use disruption::hooks::{BudgetsHook, ConsolidationHook};
use futures::future::FutureExt;
use hooks::binding::PolicyRegistry;
use kube::Client;
use scheduling::ranking::RankHook;
use state::Snapshot;
use tokio::task::JoinSet;

use crate::capacity_buffer;
use crate::capacity_reservation::CapacityReservations;
use crate::feed::DecisionFeed;
use crate::instance_status::InstanceStatusController;
use crate::interruption::InterruptionController;
use crate::journal::{Journal, SharedLedger};
use crate::measured_provider::MeasuredProvider;
use crate::metrics::Metrics;
use crate::node::eviction::{EvictionKey, EvictionQueue};
use crate::node::health::Health;
use crate::node::termination::Termination;
use crate::node_claim::finalize::Finalizer;
use crate::node_claim::launch::Launcher;
use crate::node_claim::lifecycle::Lifecycle;
use crate::node_claim::{
    consistency, disruption as markers, expiration, garbage_collection, hydration, pod_events,
    reboot, tagging,
};
use crate::node_class::NodeClassController;
use crate::node_class::profiles::Profiles;
use crate::node_overlay;
use crate::node_overlay::overlaid_provider::OverlaidProvider;
use crate::node_overlay::overlays::Overlays;
use crate::node_pool::{counter, hash, readiness, validation};
use crate::observability::StateMetrics;
use crate::policy_binding::{PolicyBinding, PolicyObjects};
use crate::provisioning::Provisioner;
use crate::provisioning::batcher::Batcher;
use crate::provisioning::trigger::{NodeTrigger, PodTrigger};
use crate::recorder::{Publisher, Recorder};
use crate::runtime::{Profile, Reconciler, run};
use crate::settings::Settings;
use crate::shell::Shell;
use crate::static_capacity::StaticPools;
use crate::turn::Stage;
use crate::voluntary_disruption::{VoluntaryDisruption, repair_policies};
use crate::watches::{self, Queues, Router};
use crate::work_queue::{BackOff, WorkQueue};

/// The policies that judge.
#[derive(Clone)]
pub struct Hooks {
    /// Which offering is worth what.
    pub rank: Arc<dyn RankHook>,
    /// Which consolidation is worth its while.
    pub consolidation: Arc<dyn ConsolidationHook>,
    /// How many nodes may be disrupted now.
    pub budgets: Arc<dyn BudgetsHook>,
}

/// Everything the controllers need from outside.
pub struct ControllersConfig {
    /// Client of the API server.
    pub client: Client,
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// The policies.
    pub hooks: Hooks,
    /// Tells the time of day.
    pub clock: Arc<dyn Clock>,
    /// Settings.
    pub settings: Settings,
    /// Where decisions are recorded.
    pub ledger: SharedLedger,
    /// Metrics; the caller registers and serves them.
    pub metrics: Arc<Metrics>,
    /// Takes policy bindings.
    pub policies: Arc<dyn PolicyRegistry>,
    /// Where the cloud says that it takes instances back, if it is to be listened to.
    pub interruptions: Option<Arc<dyn InterruptionQueue>>,
}

impl ControllersConfig {
    /// What would keep the controllers from doing what the settings say; they must not start then.
    pub fn check(&self) -> Result<(), String> {
        repair_policies(&self.settings, self.provider.as_ref()).map(drop)
    }
}

/// How busy the controllers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Keys waiting or at work, periodic chores left out.
    pub queued: usize,
    /// Keys that failed and wait for another try.
    pub failing: usize,
    /// Keys that will be worked on within seconds.
    pub due_soon: usize,
    /// Whether a batch of pods is being collected or solved.
    pub is_provisioning: bool,
    /// Disruption commands under way.
    pub commands: usize,
    /// Whether the model is synced: every kind listed, no claim without instance.
    pub is_synced: bool,
}

impl Activity {
    /// Whether nothing is being done and nothing is about to be done.
    pub fn is_idle(&self) -> bool {
        let Self {
            queued,
            failing,
            due_soon,
            is_provisioning,
            commands,
            is_synced,
        } = *self;
        queued == 0
            && failing == 0
            && due_soon == 0
            && !is_provisioning
            && commands == 0
            && is_synced
    }
}

/// The controllers, ready to run. Clones share everything.
#[derive(Clone)]
pub struct Controllers {
    parts: Arc<Parts>,
}

struct Parts {
    shell: Arc<Shell>,
    queues: Queues,
    evictions: Arc<WorkQueue<EvictionKey>>,
    provisioner: Arc<Provisioner>,
    disruption: Arc<VoluntaryDisruption>,
    batcher: Arc<Batcher>,
    provider: Arc<dyn CloudProvider>,
    /// Knows nothing of overlays.
    bare_provider: Arc<dyn CloudProvider>,
    policies: Arc<dyn PolicyRegistry>,
    policy_objects: Arc<PolicyObjects>,
    interruptions: Option<Arc<dyn InterruptionQueue>>,
    publisher: Mutex<Option<Publisher>>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A delayed key counts as activity when it comes due within this time.
const SOON: Duration = Duration::from_secs(6);

impl Controllers {
    /// Puts them together; nothing happens before [`Self::run`].
    pub fn new(config: ControllersConfig) -> Self {
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
        let (events, publisher) = Recorder::new(client.clone(), Arc::clone(&clock));
        let journal = Arc::new(Journal {
            clock: Arc::clone(&clock),
            events,
            metrics: Arc::clone(&metrics),
            feed: Arc::new(DecisionFeed::default()),
            ledger,
        });
        let shell = Arc::new(Shell::new(client, clock, settings, hooks.rank, journal));
        let (settings, bare_provider) = (&shell.settings, Arc::clone(&provider));
        let provider = overlaid(provider, settings, &shell.overlays);
        let batcher = Arc::new(Batcher::new(
            settings.batch_idle_duration,
            settings.batch_max_duration,
        ));
        let measured = |controller| measured(&provider, &metrics, controller);
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
            parts: Arc::new(Parts {
                shell,
                policy_objects: Arc::new(PolicyObjects::new()),
                queues: Queues::new(),
                evictions: Arc::new(WorkQueue::new(eviction_back_off)),
                provisioner: Arc::new(provisioner),
                disruption: Arc::new(disruption),
                batcher,
                provider,
                bare_provider,
                policies,
                interruptions,
                publisher: Mutex::new(Some(publisher)),
            }),
        }
    }

    /// Makes this one of several replicas: [`Self::run`] only watches until [`Self::lead`] is called.
    pub fn stand_by(&self) {
        self.parts.shell.turn.set(Stage::StandsBy);
    }

    /// It is this replica's turn.
    pub fn lead(&self) {
        self.parts.shell.turn.set(Stage::Leads);
    }

    /// Has [`Self::run`] end once what was begun is done and told.
    pub fn stop(&self) {
        self.parts.shell.turn.set(Stage::Stops);
    }

    /// Whether this replica's turn has come and is not over.
    pub fn leads(&self) -> bool {
        self.parts.shell.turn.stage() == Stage::Leads
    }

    /// Returns once this replica's turn has come.
    pub async fn until_leading(&self) {
        self.parts.shell.turn.reached(Stage::Leads).await;
    }

    /// Runs everything until the future is dropped, one of the loops dies of a bug, or all is done after
    /// [`Self::stop`]. Call it once.
    ///
    /// Only the watches run at first: who acts on half of what there is takes a node for drained whose pods are on
    /// the second page. A replica whose turn has not come goes no further.
    pub async fn run(&self) {
        let parts = &self.parts;
        let turn = &parts.shell.turn;
        let mut watching = JoinSet::new();
        watching.spawn(watches::run(Arc::clone(&parts.shell), parts.router()));
        let has_begun = async {
            watches::first_lists(&parts.shell).await;
            turn.reached(Stage::Leads).await;
        };
        tokio::select! {
            () = has_begun => {}
            _ = watching.join_next() => return,
        }
        let (mut loops, mut workers, mut telling) =
            (JoinSet::new(), JoinSet::new(), JoinSet::new());
        workers.spawn(parts.provisioning());
        workers.spawn(parts.static_pools());
        spawn_all(&mut loops, parts.loops());
        spawn_all(&mut telling, parts.telling());
        spawn_all(&mut workers, parts.claim_tasks());
        spawn_all(&mut workers, parts.pool_tasks());
        // None of them ends by itself before. Dropping the sets ends all.
        tokio::select! {
            () = turn.reached(Stage::Stops) => {}
            _ = watching.join_next() => return,
            _ = loops.join_next() => return,
            _ = workers.join_next() => return,
            _ = telling.join_next(), if !telling.is_empty() => return,
        }
        // What these do is looked at anew by whoever comes next, from what was written.
        loops.abort_all();
        while workers.join_next().await.is_some() {}
        turn.set(Stage::Concludes);
        while telling.join_next().await.is_some() {}
    }

    /// The model of the cluster as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.parts.shell.model.snapshot()
    }

    /// The record of decisions.
    pub fn ledger(&self) -> SharedLedger {
        Arc::clone(&self.parts.shell.journal.ledger)
    }

    /// Gauges of what there is now; the caller registers them.
    pub fn state_metrics(&self) -> StateMetrics {
        StateMetrics::new(Arc::clone(&self.parts.shell))
    }

    /// The latest decisions, as lines.
    pub fn feed(&self) -> Arc<DecisionFeed> {
        Arc::clone(&self.parts.shell.journal.feed)
    }

    /// Whether every kind was listed once; for readiness probes.
    pub fn is_started(&self) -> bool {
        self.parts.shell.model.progress().is_complete()
    }

    /// How busy the controllers are.
    pub fn activity(&self) -> Activity {
        self.parts.activity()
    }

    /// Whether nothing is being done and nothing is about to be done.
    pub fn is_idle(&self) -> bool {
        self.activity().is_idle()
    }
}

impl Parts {
    fn activity(&self) -> Activity {
        let queues = &self.queues;
        let working = [
            &queues.lifecycle,
            &queues.node_termination,
            &queues.node_class,
            &queues.node_overlays,
            &queues.capacity_buffers,
            &queues.pool_readiness,
            &queues.pool_validation,
            &queues.pool_hash,
            &queues.pod_events,
        ];
        let mut activity = Activity {
            is_provisioning: self.provisioner.is_busy(),
            commands: self.disruption.commands(),
            is_synced: self.shell.model.is_synced(),
            ..Activity::default()
        };
        for state in working
            .map(|queue| queue.state(SOON))
            .into_iter()
            .chain([self.evictions.state(SOON)])
        {
            activity.queued += state.ready + state.processing;
            activity.failing += state.failing;
            activity.due_soon += state.due_soon;
        }
        activity
    }

    fn spawn<R: Reconciler>(
        &self,
        profile: (&'static str, usize, usize),
        queue: &Arc<WorkQueue<R::Key>>,
        reconciler: R,
    ) -> Task {
        let (name, min, max) = profile;
        let concurrency = self.shell.settings.concurrency(min, max);
        self.shell.queue_loads.add(name, queue);
        let metrics = Arc::clone(&self.shell.metrics);
        run(
            Profile { name, concurrency },
            Arc::clone(queue),
            Arc::new(reconciler),
            metrics,
            self.shell.turn.clone(),
        )
        .boxed()
    }

    fn measured(&self, controller: &'static str) -> Arc<dyn CloudProvider> {
        measured(&self.provider, &self.shell.metrics, controller)
    }

    fn claim_tasks(&self) -> Vec<Task> {
        let (shell, queues) = (|| Arc::clone(&self.shell), &self.queues);
        let lifecycle = self.measured("nodeclaim.lifecycle");
        let launcher = Launcher::new(shell(), Arc::clone(&lifecycle));
        let finalizer = Finalizer::new(shell(), Arc::clone(&lifecycle));
        let lifecycle = Lifecycle::new(shell(), lifecycle, launcher, finalizer);
        let termination = Termination::new(
            shell(),
            self.measured("node.termination"),
            Arc::clone(&self.evictions),
        );
        let markers = markers::Markers::new(shell(), self.measured("nodeclaim.disruption"));
        let reboots = reboot::Reboot::new(
            shell(),
            self.measured("nodeclaim.reboot"),
            Arc::clone(&self.evictions),
        );
        let tagging = tagging::Tagging::new(shell(), self.measured("nodeclaim.tagging"));
        vec![
            self.spawn(
                ("nodeclaim.lifecycle", 1000, 5000),
                &queues.lifecycle,
                lifecycle,
            ),
            self.spawn(
                ("node.termination", 100, 5000),
                &queues.node_termination,
                termination,
            ),
            self.spawn(
                ("eviction-queue", 100, 5000),
                &self.evictions,
                EvictionQueue::new(shell()),
            ),
            self.spawn(
                ("nodeclaim.disruption", 10, 1000),
                &queues.claim_disruption,
                markers,
            ),
            self.spawn(
                ("nodeclaim.expiration", 10, 1000),
                &queues.expiration,
                expiration::Expiration { shell: shell() },
            ),
            self.spawn(
                ("nodeclaim.consistency", 10, 1000),
                &queues.consistency,
                consistency::Consistency { shell: shell() },
            ),
            self.spawn(
                ("nodeclaim.hydration", 1000, 5000),
                &queues.claim_hydration,
                hydration::Hydration { shell: shell() },
            ),
            self.spawn(
                ("node.hydration", 1000, 5000),
                &queues.node_hydration,
                crate::node::hydration::Hydration { shell: shell() },
            ),
            self.spawn(("nodeclaim.tagging", 10, 1000), &queues.tagging, tagging),
            self.spawn(("nodeclaim.reboot", 10, 10), &queues.reboots, reboots),
            self.spawn(
                ("nodeclaim.podevents", 10, 1000),
                &queues.pod_events,
                pod_events::PodEvents { shell: shell() },
            ),
        ]
    }

    fn pool_tasks(&self) -> Vec<Task> {
        let (shell, queues) = (|| Arc::clone(&self.shell), &self.queues);
        let node_class = NodeClassController {
            shell: shell(),
            provider: self.measured("nodeclass"),
        };
        let pods = PodTrigger {
            shell: shell(),
            batcher: Arc::clone(&self.batcher),
        };
        let nodes = NodeTrigger {
            shell: shell(),
            batcher: Arc::clone(&self.batcher),
        };
        let bare = &self.bare_provider;
        let overlays = node_overlay::Controller {
            shell: shell(),
            provider: measured(bare, &self.shell.metrics, "nodeoverlay.controller"),
        };
        let buffers = capacity_buffer::Controller {
            shell: shell(),
            batcher: Arc::clone(&self.batcher),
        };
        vec![
            self.spawn(
                ("nodepool.hash", 10, 1000),
                &queues.pool_hash,
                hash::Hash { shell: shell() },
            ),
            self.spawn(
                ("nodepool.readiness", 10, 1000),
                &queues.pool_readiness,
                readiness::Readiness { shell: shell() },
            ),
            self.spawn(
                ("nodepool.validation", 10, 1000),
                &queues.pool_validation,
                validation::Validation { shell: shell() },
            ),
            self.spawn(
                ("nodepool.counter", 10, 1000),
                &queues.pool_counter,
                counter::Counter { shell: shell() },
            ),
            self.spawn(("nodeclass", 10, 10), &queues.node_class, node_class),
            self.spawn(
                ("capacitybuffer", 10, 10),
                &queues.capacity_buffers,
                buffers,
            ),
            self.spawn(
                ("nodeoverlay.controller", 1, 1),
                &queues.node_overlays,
                overlays,
            ),
            self.spawn(
                ("provisioner.trigger.pod", 10, 1000),
                &queues.pod_trigger,
                pods,
            ),
            self.spawn(
                ("provisioner.trigger.node", 10, 1000),
                &queues.node_trigger,
                nodes,
            ),
            self.spawn(
                ("policy.binding", 2, 2),
                &self.policy_objects.queue,
                self.policy_binding(),
            ),
        ]
    }

    fn policy_binding(&self) -> PolicyBinding {
        PolicyBinding::new(
            Arc::clone(&self.shell),
            Arc::clone(&self.policies),
            Arc::clone(&self.policy_objects),
        )
    }

    fn router(&self) -> Router {
        Router::new(
            Arc::clone(&self.shell),
            self.queues.clone(),
            Arc::clone(&self.policy_objects),
        )
    }

    fn loops(&self) -> Vec<Task> {
        let shell = || Arc::clone(&self.shell);
        self.begin_loops();
        let disruption = Arc::clone(&self.disruption);
        let collection = garbage_collection::GarbageCollection {
            shell: shell(),
            provider: self.measured("nodeclaim.garbagecollection"),
        };
        let mut tasks = vec![
            async move { Box::pin(disruption.run()).await }.boxed(),
            async move { collection.run().await }.boxed(),
        ];
        let instance_status = InstanceStatusController {
            shell: shell(),
            provider: self.measured("interruption.instancestatus"),
        };
        tasks.push(async move { instance_status.run().await }.boxed());
        let profiles = Profiles {
            shell: shell(),
            provider: self.measured("instanceprofile.garbagecollection"),
        };
        tasks.push(async move { profiles.run().await }.boxed());
        if self.shell.settings.feature_gates.reserved_capacity {
            let reservations = CapacityReservations {
                shell: shell(),
                provider: self.measured("capacityreservation"),
            };
            tasks.push(async move { reservations.run().await }.boxed());
        }
        if let Some(queue) = &self.interruptions {
            let interruption = InterruptionController {
                shell: shell(),
                provider: self.measured("interruption"),
                queue: Arc::clone(queue),
                terminations: Arc::clone(&self.queues.node_termination),
            };
            tasks.push(async move { interruption.run().await }.boxed());
        }
        let settings = &self.shell.settings;
        if settings.feature_gates.node_repair && settings.legacy_node_repair {
            let health = Health {
                shell: shell(),
                provider: self.measured("node.health"),
            };
            tasks.push(async move { health.run().await }.boxed());
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
            ("capacityreservation", gates.reserved_capacity),
            ("interruption", self.interruptions.is_some()),
            ("node.health", repairs),
            ("pod.deletioncost", gates.pod_deletion_cost_management),
        ];
        for (name, _) in loops.into_iter().filter(|it| it.1) {
            self.shell.metrics.begin_controller(name, 1);
        }
    }

    fn provisioning(&self) -> Task {
        let provisioner = Arc::clone(&self.provisioner);
        async move { provisioner.run().await }.boxed()
    }

    fn static_pools(&self) -> Task {
        let shell = Arc::clone(&self.shell);
        let (profile, queue) = (("static.provisioning", 10, 1000), &self.queues.static_pools);
        self.spawn(profile, queue, StaticPools { shell })
    }

    /// Writes what the others have to tell.
    fn telling(&self) -> Option<Task> {
        let publisher = &self.publisher;
        let mut publisher = publisher.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.shell.turn.clone();
        Some(publisher.take()?.run(turn).boxed())
    }
}

fn spawn_all(set: &mut JoinSet<()>, tasks: impl IntoIterator<Item = Task>) {
    for task in tasks {
        set.spawn(task);
    }
}

/// The provider with the overlays that the settings switch on.
fn overlaid(
    inner: Arc<dyn CloudProvider>,
    settings: &Settings,
    overlays: &Arc<Overlays>,
) -> Arc<dyn CloudProvider> {
    if !settings.feature_gates.node_overlay {
        return inner;
    }
    let overlays = Arc::clone(overlays);
    Arc::new(OverlaidProvider { inner, overlays })
}

fn measured(
    provider: &Arc<dyn CloudProvider>,
    metrics: &Arc<Metrics>,
    controller: &'static str,
) -> Arc<dyn CloudProvider> {
    Arc::new(MeasuredProvider::new(
        Arc::clone(provider),
        Arc::clone(metrics),
        controller,
    ))
}
