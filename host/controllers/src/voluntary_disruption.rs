//! Takes away nodes that are not needed or not right any more: asks `disruption::decide` every ten seconds, and soon
//! after pods have left, checks what has to be checked twice, and carries commands out.
//!
//! Which nodes go is not decided here. Answers to `pkg/controllers/disruption/controller.go`.

mod command_entry;
mod deletion_cost;
mod events;
mod orchestration;
mod scan_entry;
mod stale;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::RepairPolicy;
use cloudprovider::CloudProvider;
use disruption::candidate::TypesByPool;
use disruption::consolidation::Gates;
use disruption::history::History;
use disruption::hooks::{BudgetsHook, ConsolidationHook};
use disruption::repair::RepairPolicies;
use disruption::validation::{
    ValidatedCommand, WAITING_MAX, may_be_supposed_begun, supposing_begun, validate,
};
use disruption::{Command, Decision, DisruptionInput, Memory, Method, decide_watched};
use kube::ResourceExt;
use scheduling::problem::{Options, ReservedMode};
use scheduling::{Interrupt, TableCache};
use state::Snapshot;
use state::coming::awaiting_nodes;
use state::provisioning::{PoolTypes, provisionable_pools};
use tokio::time::Instant;
use tracing::{Instrument as _, debug, error};

use crate::settings::{Settings, SolverRun};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::log_values::loop_span;
use crate::shell::metrics::Labels;
use crate::shell::periodic::Periodic as _;
use crate::shell::sync::lock;
use crate::voluntary_disruption::command_entry::{CommandEntry, Underway};
use crate::voluntary_disruption::orchestration::Orchestration;
use crate::voluntary_disruption::scan_entry::ScanEntry;

pub(crate) use deletion_cost::PodRanking;
pub(crate) use events::repair_blocked;
pub(crate) use orchestration::CommandRounds;

const UNSYNCED_POLL: Duration = Duration::from_secs(1);
/// How long after something happened the loop looks: once a pod has left, since others leave with it; and once it found
/// a command, since what emptied these nodes is often still under way.
const LOOK_SOON: Duration = Duration::from_secs(2);
/// A scan is cut off after this long, and keeps what it found.
const SCAN_TIMEOUT: Duration = Duration::from_mins(3);

/// The policies that judge disruption.
#[derive(Clone)]
struct Judges {
    consolidation: Arc<dyn ConsolidationHook>,
    budgets: Arc<dyn BudgetsHook>,
}

/// The controller.
pub(crate) struct VoluntaryDisruption {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    judges: Judges,
    orchestration: Orchestration,
    memory: Mutex<Memory>,
    repair: Option<Arc<RepairPolicies>>,
    tables: Arc<TableCache>,
    scans: AtomicU64,
    waiting: Mutex<VecDeque<WaitingCommand>>,
}

/// A command that is looked at a second time before it begins.
#[derive(Clone)]
struct WaitingCommand {
    command: Command,
    due: Instant,
}

/// What a scan looks at.
struct Observed {
    snapshot: Snapshot,
    types: TypesByPool,
    pools: Vec<PoolTypes>,
    queued: BTreeSet<String>,
    history: History,
    memory: Memory,
    options: Options,
    gates: Gates,
    repair: Option<Arc<RepairPolicies>>,
    tables: Arc<TableCache>,
}

impl VoluntaryDisruption {
    /// Karpenter's name of it, as metrics show it.
    pub(crate) const NAME: &'static str = "disruption";

    pub(crate) fn new(
        shell: Arc<Shell>,
        provider: Arc<dyn CloudProvider>,
        consolidation: Arc<dyn ConsolidationHook>,
        budgets: Arc<dyn BudgetsHook>,
    ) -> Self {
        let repair = repair_policies(&shell.settings, provider.as_ref());
        let repair = repair.unwrap_or_else(|error| {
            error!(%error, "node repair is off");
            None
        });
        Self {
            orchestration: Orchestration::new(Arc::clone(&shell)),
            shell,
            provider,
            judges: Judges {
                consolidation,
                budgets,
            },
            repair,
            memory: Mutex::new(Memory::default()),
            tables: Arc::default(),
            scans: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Scans, and sees commands through, for ever.
    pub(crate) async fn run(&self) {
        tokio::join!(
            self.scan_for_ever().instrument(loop_span(Self::NAME)),
            self.orchestration
                .run()
                .instrument(loop_span(CommandRounds::NAME)),
            self.rank_pods_for_ever()
                .instrument(loop_span(PodRanking::NAME))
        );
    }

    /// Commands under way, those waiting for validation included.
    pub(crate) fn commands(&self) -> usize {
        self.orchestration.len() + self.waiting().len()
    }

    async fn scan_for_ever(&self) {
        let poll = self.shell.settings.disruption_poll;
        let (mut rest, mut heeds_room) = (poll, true);
        loop {
            if !self.shell.model.is_synced() {
                tokio::time::sleep(UNSYNCED_POLL).await;
                continue;
            }
            let round = self.shell.metrics.round(Self::NAME);
            stale::remove(&self.shell, &self.orchestration.claims()).await;
            self.begin_what_still_holds().await;
            let (acted, look_again) = if self.may_look() {
                self.scan().await
            } else {
                (false, poll)
            };
            drop(round);
            if acted {
                rest = LOOK_SOON.min(poll);
                continue;
            }
            let look_again = look_again.min(rest);
            let span = self.until_due().map_or(look_again, |it| it.min(look_again));
            // A cluster whose pods come and go all the time is looked at twice a poll, not every two seconds.
            heeds_room = !self.rest(span, heeds_room).await;
            rest = (rest * 2).min(poll);
        }
    }

    /// Rests until something is due, or until soon after room became free if that counts; whether it did.
    async fn rest(&self, span: Duration, heeds_room: bool) -> bool {
        let until = Instant::now() + span;
        tokio::select! { biased;
            () = tokio::time::sleep_until(until) => false,
            () = self.shell.room_freed.notified(), if heeds_room => {
                tokio::time::sleep_until(until.min(Instant::now() + LOOK_SOON)).await;
                true
            }
        }
    }

    /// One loop; whether it found a command, and when to look again otherwise.
    async fn scan(&self) -> (bool, Duration) {
        self.nominate_awaiting();
        let observed = self.observe().await;
        self.show_costs(&observed);
        let observed = Arc::new(self.supposing_begun(observed));
        let now = observed.options.now;
        let passes = &self.shell.passes;
        passes.begin(Self::NAME, &observed.options.decision_id, 0);
        let decided = self.decide(&observed).await;
        passes.end(Self::NAME, 0);
        let Ok((decision, laps)) = decided else {
            return (false, self.shell.settings.disruption_poll);
        };
        let entry = ScanEntry {
            decision: &decision,
            laps: &laps,
            now,
            repairs_nodes: self.shell.settings.feature_gates.node_repair,
        };
        self.shell
            .journal
            .write(&self.shell.model.snapshot(), &entry);
        let poll = self.shell.settings.disruption_poll;
        let changes_in = decision.next_look_seconds;
        let changes_in = changes_in.map(|it| Duration::from_secs(u64::from(it.get())));
        let look_again = changes_in.map_or(poll, |it| it.min(poll));
        let Decision {
            commands, memory, ..
        } = decision;
        *self.memory() = memory;
        // The snapshot would make every later fact copy what it shares.
        drop(observed);
        let mut acted = false;
        for command in commands {
            acted |= if command.method.needs_validation() {
                let due = Instant::now() + self.shell.settings.consolidation_validation;
                self.waiting().push_back(WaitingCommand { command, due });
                true
            } else {
                self.orchestration.start(command).await
            };
        }
        (acted, look_again)
    }

    /// Whether another loop can take all that waits for granted.
    fn may_look(&self) -> bool {
        let waiting = self.waiting();
        waiting.len() < WAITING_MAX && waiting.iter().all(|it| may_be_supposed_begun(&it.command))
    }

    /// How long the first of the commands that wait has to.
    fn until_due(&self) -> Option<Duration> {
        let due = self.waiting().front()?.due;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Looks a second time at the commands that waited long enough, oldest first, each in the world that those before
    /// it left: it must still agree, or the command is dropped.
    async fn begin_what_still_holds(&self) {
        while self.shell.model.is_synced() && self.until_due().is_some_and(|it| it.is_zero()) {
            let Some(WaitingCommand { command, .. }) = self.waiting().front().cloned() else {
                return;
            };
            self.nominate_awaiting();
            if let Some(survivor) = self.still_holds(command).await {
                self.orchestration.start(survivor).await;
            }
            self.waiting().pop_front();
        }
    }

    /// What is left of the command at its second look.
    async fn still_holds(&self, command: Command) -> Option<Command> {
        let observed = Arc::new(self.observe().await);
        let (judges, rank) = (self.judges.clone(), Arc::clone(&self.shell.rank));
        let checked = command.clone();
        let work = move || {
            let hooks = judges.hooks(rank.as_ref());
            let never = Interrupt::never();
            validate(observed.as_input(), hooks, &never, checked)
        };
        let ValidatedCommand { survivor, dropped } = self.shell.compute(work).await.ok()?;
        let subject = Underway {
            command: &command,
            snapshot: &self.shell.model.snapshot(),
        };
        let journal = &self.shell.journal;
        if !dropped.is_empty() {
            journal.write(&subject, &CommandEntry::Dropped(&dropped));
        }
        if let Err(rejection) = &survivor {
            journal.write(&subject, &CommandEntry::Rejected(rejection));
        }
        survivor.ok()
    }

    /// The world as if what waits had begun.
    fn supposing_begun(&self, observed: Observed) -> Observed {
        let waiting = self.waiting();
        let waiting: Vec<Command> = waiting.iter().map(|it| it.command.clone()).collect();
        if waiting.is_empty() {
            return observed;
        }
        let now = observed.options.now;
        let window = self.shell.settings.nomination_window();
        let until = now.saturating_add(window).unwrap_or(now);
        let (snapshot, history) =
            supposing_begun(&observed.snapshot, &observed.history, &waiting, until, now);
        let claims = waiting.iter().flat_map(|it| &it.candidates);
        let claims = claims.map(|it| it.claim.clone());
        Observed {
            queued: observed.queued.iter().cloned().chain(claims).collect(),
            snapshot,
            history,
            ..observed
        }
    }

    /// Reads, and changes nothing but the number of looks: a second look and the ranking of pods ask for the same.
    async fn observe(&self) -> Observed {
        let number = self.scans.fetch_add(1, Ordering::Relaxed) + 1;
        let (settings, now) = (&self.shell.settings, self.shell.now());
        let snapshot = self.shell.model.snapshot();
        let types = self.types(&snapshot).await;
        let (ready, _) = provisionable_pools(&snapshot);
        let mut pools = Vec::with_capacity(ready.len());
        for node_pool in ready {
            let class = &node_pool.spec.template.spec.node_class_ref.name;
            let class = self.shell.model.node_class(class);
            if let (Some(class), Some(types)) = (class, types.get(&node_pool.name_any())) {
                pools.push(PoolTypes {
                    free_addresses: self.provider.free_addresses(&class).await,
                    instance_types: Arc::clone(types),
                    node_pool,
                });
            }
        }
        let decision_id = format!("disruption-{}-{number}", now.as_second());
        let options = settings.solver(SolverRun {
            seed: self.shell.seed_for(&decision_id),
            id: decision_id,
            now,
            reserved: ReservedMode::Fallback,
        });
        Observed {
            snapshot,
            types,
            pools,
            queued: self.orchestration.claims(),
            history: self.orchestration.history(),
            memory: self.memory().clone(),
            options,
            gates: Gates {
                spot_to_spot: settings.feature_gates.spot_to_spot_consolidation,
                terminate_first_drift: settings.feature_gates.terminate_first_drift,
                terminate_first_repair: settings.feature_gates.terminate_first_repair,
                waits_for_small_gains: settings.waits_for_small_gains(),
            },
            repair: self.repair.clone(),
            tables: Arc::clone(&self.tables),
        }
    }

    /// Instance types of every pool that can be asked for them, static and unready ones included.
    async fn types(&self, snapshot: &Snapshot) -> TypesByPool {
        let mut types = TypesByPool::new();
        for pool in snapshot.node_pools() {
            let class = self
                .shell
                .model
                .node_class(&pool.spec.template.spec.node_class_ref.name);
            let Some(class) = class else { continue };
            match self.provider.instance_types(pool, &class).await {
                Ok(found) => {
                    types.insert(pool.name_any(), found);
                }
                Err(error) => debug!(NodePool = %pool.name_any(), %error, "no instance types"),
            }
        }
        types
    }

    /// What awaits pods of its plan is to be left alone by whoever looks next; a second look may come long after the
    /// scan before it.
    fn nominate_awaiting(&self) {
        let shell = &self.shell;
        if !shell.settings.plans_coming_pods() {
            return;
        }
        for node in awaiting_nodes(&shell.model.snapshot(), shell.now()) {
            shell.model.nominate(&node);
        }
    }

    /// What nodes cost is summed up when somebody asks; what cannot be is counted now.
    fn show_costs(&self, observed: &Observed) {
        let shell = &self.shell;
        if shell.settings.disable_cluster_state_observability {
            return;
        }
        shell.sold_types.set(observed.types.clone());
        for pool in shell.sold_types.newly_unpriced(&observed.snapshot) {
            let errors = &shell.metrics.cost_tracker_errors;
            errors.get_or_create(&vec![("nodepool", pool)]).inc();
        }
    }

    /// The decision, and how long each method took.
    async fn decide(
        &self,
        observed: &Arc<Observed>,
    ) -> Result<(Decision, Vec<(Method, Duration)>), ReconcileError> {
        let interrupt = Interrupt::never();
        let (input, stop) = (Arc::clone(observed), interrupt.clone());
        let (judges, rank) = (self.judges.clone(), Arc::clone(&self.shell.rank));
        let work = self.shell.compute(move || {
            let hooks = judges.hooks(rank.as_ref());
            let (mut laps, mut started) = (Vec::new(), Instant::now());
            let mut done = |method| {
                let now = Instant::now();
                laps.push((method, now - started));
                started = now;
            };
            let decision = decide_watched(input.as_input(), hooks, &stop, &mut done);
            (decision, laps)
        });
        tokio::pin!(work);
        tokio::select! { biased;
            decision = &mut work => decision,
            () = tokio::time::sleep(SCAN_TIMEOUT) => {
                interrupt.trip();
                work.await
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingCommand>> {
        lock(&self.waiting)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// How metrics call a method.
fn method_labels(method: Method) -> Labels {
    vec![
        ("reason", method.reason().to_string().to_lowercase()),
        ("consolidation_type", method.consolidation_type().to_owned()),
    ]
}

/// The provider's repair policies, while repair is a disruption method; what is wrong with them otherwise.
pub(crate) fn repair_policies(
    settings: &Settings,
    provider: &dyn CloudProvider,
) -> Result<Option<Arc<RepairPolicies>>, String> {
    if !settings.feature_gates.node_repair || settings.legacy_node_repair {
        return Ok(None);
    }
    compiled(provider.repair_policies()).map(|it| Some(Arc::new(it)))
}

/// A provider's repair policies, ready to be asked; otherwise all that is wrong with them.
pub fn compiled(policies: Vec<RepairPolicy>) -> Result<RepairPolicies, String> {
    RepairPolicies::new(policies).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        format!("RepairPolicies: {}", faults.join("; "))
    })
}

impl Judges {
    fn hooks<'a>(
        &'a self,
        rank: &'a dyn scheduling::ranking::RankHook,
    ) -> disruption::PolicyHooks<'a> {
        disruption::PolicyHooks {
            rank,
            consolidation: self.consolidation.as_ref(),
            budgets: self.budgets.as_ref(),
        }
    }
}

impl Observed {
    fn as_input(&self) -> DisruptionInput<'_> {
        let Self {
            snapshot,
            types,
            pools,
            queued,
            history,
            memory,
            options,
            gates,
            repair,
            tables,
        } = self;
        DisruptionInput {
            snapshot,
            types,
            pools,
            queued,
            history,
            memory,
            options,
            gates: *gates,
            repair: repair.as_deref(),
            tables,
        }
    }
}
