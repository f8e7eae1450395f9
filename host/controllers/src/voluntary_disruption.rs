//! Takes away nodes that are not needed or not right any more: asks `disruption::decide_watched` every ten seconds,
//! and soon after pods have left, checks what has to be checked twice, and carries commands out.
//!
//! Which nodes go is not decided here. Answers to `pkg/controllers/disruption/controller.go`.

mod command_entry;
pub(crate) mod deletion_cost;
mod events;
mod observation;
mod orchestration;
mod scan_entry;
pub(crate) mod sold_types;
mod stale;
mod waiting;

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cloudprovider::CloudProvider;
use disruption::repair::RepairPolicies;
use disruption::{Command, Decision, DisruptionInput, Memory, Method, decide_watched};
use jiff::Timestamp;
use locks::lock;
use planning::coming::awaiting_nodes;
use scheduling::{Interrupt, TableCache};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::node_claim::creation::ClaimCreator;
use crate::provisioning::passes::Passes;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::metrics::labels::{
    ConsolidationTypeLabel, NodePoolLabel, ReasonLabel, Series, consolidation_type_label,
    reason_label,
};
use crate::shell::runtime::log_spans::loop_span;
use crate::shell::runtime::periodic::Periodic as _;
use crate::static_capacity::pending::StaticPending;
use crate::voluntary_disruption::deletion_cost::written::WrittenCosts;
use crate::voluntary_disruption::orchestration::{CommandStart, Orchestration};
use crate::voluntary_disruption::scan_entry::ScanEntry;
use crate::voluntary_disruption::sold_types::SoldTypes;
use crate::voluntary_disruption::waiting::{VALIDATED_AFTER, WaitingCommand};
use crate::wiring::ControllersHooks;

pub(crate) use deletion_cost::PodRanking;
pub(crate) use events::repair_blocked;
pub(crate) use orchestration::CommandRounds;

/// How long the loop rests when it found nothing to do.
const POLL: Duration = Duration::from_secs(10);
const UNSYNCED_POLL: Duration = Duration::from_secs(1);
/// How long after something happened the loop looks: once a pod has left, since others leave with it; and once it found
/// a command, since what emptied these nodes is often still under way.
const LOOK_SOON: Duration = Duration::from_secs(2);
/// A scan is cut off after this long, and keeps what it found; so is a second look, whose command is then dropped.
const SCAN_TIMEOUT: Duration = Duration::from_mins(3);

/// Controller of voluntary disruption: one loop, one scan at a time.
pub(crate) struct VoluntaryDisruption {
    shell: Arc<Shell>,
    parts: DisruptionParts,
    hooks: ControllersHooks,
    orchestration: Orchestration,
    memory: Mutex<Memory>,
    looks: AtomicU64,
    waiting: Mutex<VecDeque<WaitingCommand>>,
}

/// Parts that it works with beside the shell and the policies.
pub(crate) struct DisruptionParts {
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) passes: Arc<Passes>,
    pub(crate) sold_types: Arc<SoldTypes>,
    pub(crate) written_costs: Arc<WrittenCosts>,
    /// Notified when a pod left a node that stays.
    pub(crate) pod_left: Arc<Notify>,
    /// Policies that say which nodes are sick; none where no node is repaired, or not by this controller.
    pub(crate) repair: Option<Arc<RepairPolicies>>,
}

/// Result of a scan.
enum ScanResult {
    /// It found a command that began, or waits to be looked at a second time.
    Acted,
    /// There is nothing to do before this long.
    LookAgain(Duration),
}

/// Cause that ended a sleep between two scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeUp {
    Due,
    PodLeft,
}

/// The decision, and how long each method took.
struct TimedDecision {
    decision: Decision,
    method_durations: Vec<(Method, Duration)>,
}

impl VoluntaryDisruption {
    /// Karpenter's name of it, as metrics show it.
    pub(crate) const NAME: &'static str = "disruption";

    pub(crate) fn new(
        shell: Arc<Shell>,
        hooks: ControllersHooks,
        claims: ClaimCreator,
        static_pending: Arc<StaticPending>,
        parts: DisruptionParts,
    ) -> Self {
        Self {
            orchestration: Orchestration::new(Arc::clone(&shell), claims, static_pending),
            shell,
            parts,
            hooks,
            memory: Mutex::new(Memory::default()),
            looks: AtomicU64::new(0),
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
        self.shell.metrics.begin_controller(Self::NAME, 1);
        let (mut back_off, mut woken_by) = (POLL, WakeUp::Due);
        loop {
            if !self.shell.model.note_sync() {
                tokio::time::sleep(UNSYNCED_POLL).await;
                continue;
            }
            let result = self.round().await;
            let ScanResult::LookAgain(look_again) = result else {
                back_off = LOOK_SOON;
                continue;
            };
            let look_again = look_again.min(back_off);
            let span = self.until_due().map_or(look_again, |it| it.min(look_again));
            woken_by = self.sleep(span, woken_by).await;
            back_off = (back_off * 2).min(POLL);
        }
    }

    /// Cleans up, looks a second time at what waits, and scans, if it may. The round fails where either look did.
    async fn round(&self) -> ScanResult {
        let mut round = self.shell.metrics.round(Self::NAME);
        stale::remove(&self.shell, &self.orchestration.claims()).await;
        if let Err(error) = self.begin_what_still_holds().await {
            round.failed(error);
        }
        if !self.may_look() {
            return ScanResult::LookAgain(POLL);
        }
        self.scan().await.unwrap_or_else(|error| {
            round.failed(error);
            ScanResult::LookAgain(POLL)
        })
    }

    /// Sleeps until something is due, or until soon after a pod left. Where that was what ended the last sleep, it does
    /// not end this one: a cluster whose pods come and go all the time is looked at twice a poll, not every two
    /// seconds.
    async fn sleep(&self, span: Duration, last: WakeUp) -> WakeUp {
        let until = Instant::now() + span;
        tokio::select! { biased;
            () = tokio::time::sleep_until(until) => WakeUp::Due,
            () = self.parts.pod_left.notified(), if last == WakeUp::Due => {
                tokio::time::sleep_until(until.min(Instant::now() + LOOK_SOON)).await;
                WakeUp::PodLeft
            }
        }
    }

    /// One look for nodes to disrupt.
    async fn scan(&self) -> Result<ScanResult, ReconcileError> {
        self.nominate_awaiting();
        let observed = self.observe(self.next_number()).await;
        self.show_costs(&observed);
        let observed = Arc::new(self.supposing_begun(observed));
        let now = observed.options.now;
        let passes = &self.parts.passes;
        passes.begin(Self::NAME, &observed.options.decision_id, 0);
        let decided = self.compute(&observed).await;
        passes.end(Self::NAME, 0);
        // The snapshot would make every later fact copy what it shares.
        drop(observed);
        Ok(self.apply(decided?, now).await)
    }

    /// Tells of the decision, keeps what the next loop needs of it, and has its commands begin.
    async fn apply(&self, timed: TimedDecision, now: Timestamp) -> ScanResult {
        let TimedDecision {
            decision,
            method_durations,
        } = timed;
        let entry = ScanEntry {
            decision: &decision,
            method_durations: &method_durations,
            now,
            repairs_nodes: self.shell.settings.feature_gates.node_repair,
        };
        self.shell
            .journal
            .write(&self.shell.model.snapshot(), &entry);
        let changes_in = decision.next_look_seconds;
        let changes_in = changes_in.map(|it| Duration::from_secs(u64::from(it.get())));
        let look_again = changes_in.map_or(POLL, |it| it.min(POLL));
        let Decision {
            commands, memory, ..
        } = decision;
        *self.memory() = memory;
        if self.begin(commands).await {
            ScanResult::Acted
        } else {
            ScanResult::LookAgain(look_again)
        }
    }

    /// Starts commands, or has them wait for their second look; whether there is one that did either.
    async fn begin(&self, commands: Vec<Command>) -> bool {
        let mut acted = false;
        for command in commands {
            acted |= if command.method.needs_validation() {
                let due = Instant::now() + VALIDATED_AFTER;
                self.waiting().push_back(WaitingCommand { command, due });
                true
            } else {
                self.orchestration.start(command).await == CommandStart::Begun
            };
        }
        acted
    }

    /// What awaits pods of its plan is to be left alone by whoever looks next; a second look may come long after the
    /// scan before it.
    fn nominate_awaiting(&self) {
        let shell = &self.shell;
        if !shell.settings.plans_coming_pods() {
            return;
        }
        for node in awaiting_nodes(&shell.model.snapshot(), shell.now()) {
            shell.model.nominate(node);
        }
    }

    /// What nodes cost is summed up when somebody asks; what cannot be is counted now.
    fn show_costs(&self, observed: &DisruptionInput) {
        let shell = &self.shell;
        if shell.settings.disable_cluster_state_observability {
            return;
        }
        let sold_types = &self.parts.sold_types;
        sold_types.set(observed.types.clone());
        for pool in sold_types.newly_unpriced(&observed.snapshot) {
            let errors = &shell.metrics.cost_tracker_errors;
            errors.get_or_create(&Series(NodePoolLabel(pool))).inc();
        }
    }

    /// Runs the pure decision where the settings want it, and cuts it off when time is over.
    async fn compute(
        &self,
        observed: &Arc<DisruptionInput>,
    ) -> Result<TimedDecision, ReconcileError> {
        let (input, hooks) = (Arc::clone(observed), self.hooks.clone());
        let work = move |stop: &Interrupt| {
            let hooks = hooks.lent();
            let (mut method_durations, mut started) = (Vec::new(), Instant::now());
            let mut done = |method| {
                let now = Instant::now();
                method_durations.push((method, now - started));
                started = now;
            };
            let decision = decide_watched(&input, hooks, stop, &mut done);
            TimedDecision {
                decision,
                method_durations,
            }
        };
        self.shell.compute_within(SCAN_TIMEOUT, work).await
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// How metrics call a method.
fn method_labels(method: Method) -> (ReasonLabel, ConsolidationTypeLabel) {
    (
        reason_label(method.reason()),
        consolidation_type_label(method),
    )
}
