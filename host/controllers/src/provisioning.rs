//! Makes room for pending pods: batches them, solves once a batch, creates the NodeClaims that the answer asks for.
//!
//! Nothing here places a pod; `scheduling::solve` does. Answers to
//! `pkg/controllers/provisioning/provisioner.go`.

mod apply;
pub(crate) mod batcher;
mod creation;
mod early;
mod entries;
pub(crate) mod passes;
mod report;
pub(crate) mod trigger;
pub(crate) mod undecided_pods;
mod zones;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use apis::NodePool;
use cloudprovider::{CloudProvider, CloudProviderError};
use jiff::Timestamp;
use kube::ResourceExt;
use planning::coming::gather;
use planning::provisioning::{
    IgnoredReason, PoolTypes, awaits_command, problem_for_provisioning, provisionable_pools,
    types_by_pool, usage,
};
use planning::queue_order::deal_in_queue_order;
use scheduling::play::{PlayStage, SchedulerProfile, choose};
use scheduling::pod::PodKey;
use scheduling::problem::{Options, ReservedMode};
use scheduling::ranking::{RankHook, Usage, UsageKey};
use scheduling::{Interrupt, Prepared, Solution, TableCache, solve_within_premium};
use state::Snapshot;
use state::ledger::{OutcomeId, PoolOutcome};
use state::missing_pods::is_coming;
use tokio::time::Instant;
use tracing::{debug, error};

use crate::node_claim::creation::ClaimCreator;
use crate::node_claim::lifecycle::launch::launching::Launching;
use crate::node_pool::instance_types::types_of_all;
use crate::pod_nomination::PodNominations;
use crate::provisioning::batcher::{Batch, Batcher};
use crate::provisioning::early::full_claims;
use crate::provisioning::passes::Passes;
use crate::provisioning::undecided_pods::UndecidedPods;
use crate::settings::{Settings, SolverRun};
use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::journal::log_values::FirstFew;
use crate::shell::turn::{Turn, TurnStage};
use crate::watches::pod_starts::PodStarts;

/// How often an unsynced model is looked at again.
const SYNC_POLL: Duration = Duration::from_millis(250);
/// An unsynced model is worth an error after this long.
const SYNC_COMPLAINT: Duration = Duration::from_secs(30);

/// Longest time a pass may take to decide; then what was decided so far is kept.
const SOLVE_TIMEOUT: Duration = Duration::from_mins(1);

/// Controller of provisioning: one loop, one pass at a time.
pub(crate) struct Provisioner {
    shell: Arc<Shell>,
    parts: ProvisionerParts,
    /// How many passes there were.
    passes: AtomicU64,
    is_busy: AtomicBool,
}

/// Parts that it works with beside the shell.
pub(crate) struct ProvisionerParts {
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) batcher: Arc<Batcher>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) rank: Arc<dyn RankHook>,
    pub(crate) turn: Turn,
    pub(crate) claims: ClaimCreator,
    pub(crate) notes: PassNotes,
}

/// Notes that passes look up and leave behind for others.
pub(crate) struct PassNotes {
    pub(crate) pod_nominations: Arc<PodNominations>,
    pub(crate) launching: Arc<Launching>,
    pub(crate) passes: Arc<Passes>,
    pub(crate) undecided_pods: Arc<UndecidedPods>,
    pub(crate) pod_starts: Arc<PodStarts>,
}

/// Everything that a pass looks at.
pub(crate) struct Observed {
    /// While it goes on, only claims that are certain are created.
    batch: Batch,
    snapshot: Snapshot,
    pools: Vec<PoolTypes>,
    /// Nodes that there are or are about to be, for the ranking policy.
    usage: BTreeMap<UsageKey, Usage>,
    /// Prices of the nodes that there are, USD an hour, for launches, which know the types of their own pool only.
    prices: Arc<BTreeMap<UsageKey, f64>>,
    /// Every NodePool once, with what its object and its class come to.
    pool_outcomes: Vec<PoolOutcome>,
    /// Why pools that could be used have no instance types, by name.
    without_types: BTreeMap<String, NoInstanceTypes>,
    now: Timestamp,
    decision_id: String,
    /// How the scheduler scores, where plans must do without telling it anything.
    plays_for: Option<Arc<SchedulerProfile>>,
}

/// Why there is nothing that a pool could buy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoInstanceTypes {
    #[error("its NodeClass does not exist")]
    NoClass,
    #[error("no instance types")]
    NoneFit,
    #[error("{0}")]
    Provider(#[from] CloudProviderError),
}

/// Decision of a pass, with its reasons.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    solution: Solution,
    /// Every NodePool once, with what the pass found of it before it placed any pod.
    pools: Vec<PoolOutcome>,
    ignored: Vec<(PodKey, IgnoredReason)>,
    /// How many pods wait; those about to be created do not.
    pods: usize,
    /// How many pending pods can run in which zone alone, where there is one.
    zones: BTreeMap<String, usize>,
}

impl Provisioner {
    /// Karpenter's name of it, as metrics show it.
    pub(crate) const NAME: &'static str = "provisioner";

    pub(crate) fn new(shell: Arc<Shell>, parts: ProvisionerParts) -> Self {
        let (passes, is_busy) = (AtomicU64::new(0), AtomicBool::new(false));
        Self {
            shell,
            parts,
            passes,
            is_busy,
        }
    }

    /// Passes until the process stops; a pass that was begun is finished.
    pub(crate) async fn run(&self) {
        self.shell.metrics.begin_controller(Self::NAME, 1);
        let ProvisionerParts { turn, batcher, .. } = &self.parts;
        loop {
            let batch = tokio::select! { biased;
                () = turn.wait_for(TurnStage::Stops) => return,
                batch = batcher.wait() => batch,
            };
            self.is_busy.store(true, Ordering::Relaxed);
            if self.may_pass(batch).await {
                self.pass(batch).await;
            }
            self.is_busy.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the batch is passed now: a complete one as soon as the model can be relied on, unless the process stops
    /// first.
    async fn may_pass(&self, batch: Batch) -> bool {
        match batch {
            Batch::Complete => tokio::select! { biased;
                () = self.parts.turn.wait_for(TurnStage::Stops) => false,
                () = self.wait_for_sync() => true,
            },
            Batch::GoesOn => {
                self.shell.settings.plans_coming_pods() && self.shell.model.is_synced()
            }
        }
    }

    /// Whether a batch is being collected or solved.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed) || self.parts.batcher.is_batching()
    }

    async fn wait_for_sync(&self) {
        let started = Instant::now();
        let mut complaint = SYNC_COMPLAINT;
        let model = &self.shell.model;
        while !model.note_sync() {
            if started.elapsed() >= complaint {
                let unlaunched = model.unlaunched_claims();
                error!(
                    seconds = started.elapsed().as_secs(),
                    unlisted = ?model.progress().awaited(),
                    unlaunched = %FirstFew(unlaunched.iter()),
                    "cluster state is not synced"
                );
                complaint += Duration::from_secs(10);
            }
            tokio::time::sleep(SYNC_POLL).await;
        }
    }

    async fn pass(&self, batch: Batch) {
        let mut round = self.shell.metrics.round(Self::NAME);
        let observed = Arc::new(self.observe(batch).await);
        let pods = observed.snapshot.pods();
        let waiting = pods.filter(|it| it.is_provisionable()).count();
        let passes = &self.parts.notes.passes;
        passes.begin(Self::NAME, &observed.decision_id, waiting);
        let started = Instant::now();
        let decided = self.compute(&observed).await;
        let took = started.elapsed();
        let failed = decided
            .as_ref()
            .map_or(waiting, |it| it.solution.pod_errors.len());
        passes.end(Self::NAME, failed);
        match decided {
            Ok(decided) => self.apply(&observed, decided, took).await,
            // Pods that wait trigger the next pass.
            Err(error) => round.failed(error),
        }
    }

    async fn observe(&self, batch: Batch) -> Observed {
        let number = self.passes.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.shell.now();
        // The snapshot is taken before anything else, so nothing is decided on facts of two moments.
        let snapshot = self.shell.model.snapshot();
        let provisionable = provisionable_pools(&snapshot);
        let mut pools = Vec::with_capacity(provisionable.node_pools.len());
        let mut without_types = BTreeMap::new();
        for node_pool in provisionable.node_pools {
            let name = node_pool.name_any();
            match self.types_of(&snapshot, node_pool).await {
                Ok(types) => pools.push(types),
                Err(error) => {
                    debug!(NodePool = %name, %error, "skipping, unable to resolve instance types");
                    without_types.insert(name, error);
                }
            }
        }
        let decision_id = format!("provisioning-{}-{number}", now.as_second());
        let provider = &*self.parts.provider;
        let types = types_of_all(provider, &snapshot, types_by_pool(&pools)).await;
        let mut usage = usage(&snapshot, &types);
        let prices = usage.iter();
        let prices = prices.filter_map(|(key, it)| Some((key.clone(), it.price_per_hour?)));
        let prices = Arc::new(prices.collect());
        self.parts.notes.launching.add_choices(&mut usage, None);
        Observed {
            batch,
            snapshot,
            pools,
            usage,
            prices,
            pool_outcomes: provisionable.outcomes,
            without_types,
            now,
            decision_id,
            plays_for: self.plays_for(),
        }
    }

    fn plays_for(&self) -> Option<Arc<SchedulerProfile>> {
        let profile = &self.shell.settings.solving.scheduler.profile;
        let is_told = self.parts.notes.pod_nominations.is_on();
        (!is_told).then(|| Arc::clone(profile))
    }

    /// Instance types that a pool can buy.
    async fn types_of(
        &self,
        snapshot: &Snapshot,
        node_pool: Arc<NodePool>,
    ) -> Result<PoolTypes, NoInstanceTypes> {
        let class = snapshot.class_of(&node_pool);
        let class = class.ok_or(NoInstanceTypes::NoClass)?;
        let instance_types = self
            .parts
            .provider
            .instance_types(&node_pool, class)
            .await?;
        if instance_types.is_empty() {
            return Err(NoInstanceTypes::NoneFit);
        }
        Ok(PoolTypes {
            node_pool,
            instance_types,
            free_addresses: self.parts.provider.free_addresses(class).await,
        })
    }

    /// Runs the pure decision where the settings want it, and trips its interrupt when time is over.
    async fn compute(&self, observed: &Arc<Observed>) -> Result<Decided, ReconcileError> {
        let options = options(
            &self.shell.settings,
            observed,
            self.shell.seed_for(&observed.decision_id),
        );
        let rank = Arc::clone(&self.parts.rank);
        let input = Arc::clone(observed);
        let tables = Arc::clone(&self.parts.tables);
        let work = move |stop: &Interrupt| decide(&input, options, rank.as_ref(), &tables, stop);
        self.shell.compute_within(SOLVE_TIMEOUT, work).await
    }
}

/// Which pods go where. Pure.
fn decide(
    observed: &Observed,
    options: Options,
    rank: &dyn RankHook,
    tables: &TableCache,
    interrupt: &Interrupt,
) -> Decided {
    let usage = observed.usage.clone();
    let input = problem_for_provisioning(&observed.snapshot, &observed.pools, usage, options);
    let keys = input.problem.pods.iter().map(|it| &it.key);
    let pods = keys.filter(|it| !is_coming(it)).count();
    let pools = pool_outcomes(observed);
    if input.problem.pods.is_empty() {
        return Decided {
            pools,
            ignored: input.ignored,
            ..Decided::default()
        };
    }
    let zones = zones::pods_by_zone(&input.problem);
    let prepared = Prepared::new(&input.problem, rank, tables);
    let mut solution = Solution {
        uses: prepared.uses().to_vec(),
        ..solve_within_premium(&input.problem, &prepared, tables, interrupt)
    };
    if let Some(profile) = &observed.plays_for {
        let stage = PlayStage {
            problem: &input.problem,
            prepared: &prepared,
            profile,
            interrupt,
        };
        solution = choose(stage, solution).solution;
    }
    gather(&input.problem.pods, &mut solution);
    deal_in_queue_order(&input.problem.pods, &mut solution);
    // Nobody waits for these yet.
    solution.pod_errors.retain(|key, _| !is_coming(key));
    if observed.batch == Batch::GoesOn {
        solution = full_claims(&input.problem, solution);
    }
    let awaits_command = |pod: &PodKey| awaits_command(&observed.snapshot, pod);
    solution
        .claims
        .retain(|claim| claim.pods.is_empty() || !claim.pods.iter().all(awaits_command));
    Decided {
        solution,
        pools,
        ignored: input.ignored,
        pods,
        zones,
    }
}

/// Outcome of each pool before any pod is placed.
fn pool_outcomes(observed: &Observed) -> Vec<PoolOutcome> {
    let mut outcomes = observed.pool_outcomes.clone();
    for pool in &mut outcomes {
        if let Some(error) = observed.without_types.get(&pool.pool) {
            pool.outcome = OutcomeId::PoolNoInstanceTypes;
            pool.reason = error.to_string();
        }
    }
    outcomes
}

fn options(settings: &Settings, observed: &Observed, seed: u64) -> Options {
    settings.solver(SolverRun {
        id: observed.decision_id.clone(),
        now: observed.now,
        seed,
        reserved: ReservedMode::Strict,
    })
}
