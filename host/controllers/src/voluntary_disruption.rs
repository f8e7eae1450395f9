//! Takes away nodes that are not needed or not right any more: asks `disruption::decide` every ten seconds, checks
//! what has to be checked twice, and carries commands out.
//!
//! Which nodes go is not decided here. Answers to `pkg/controllers/disruption/controller.go`.

mod deletion_cost;
mod events;
mod orchestration;
mod report;
mod stale;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apis::duration::GoDuration;
use cloudprovider::CloudProvider;
use disruption::candidate::TypesByPool;
use disruption::consolidation::Gates;
use disruption::history::History;
use disruption::hooks::{BudgetsHook, ConsolidationHook};
use disruption::repair::{RepairAction, RepairPolicies, RepairPolicy};
use disruption::validation::validate;
use disruption::{Command, Decision, Input, Memory, decide};
use kube::ResourceExt;
use scheduling::problem::{Options, ReservedMode};
use scheduling::{Interrupt, TableCache};
use state::Snapshot;
use state::provisioning::{PoolTypes, provisionable_pools};
use tokio::time::Instant;
use tracing::{debug, error};

use crate::settings::Settings;
use crate::shell::Shell;
use crate::voluntary_disruption::orchestration::Orchestration;

pub(crate) use events::repair_blocked;

const UNSYNCED_POLL: Duration = Duration::from_secs(1);
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
    /// A command waits for its validation.
    validating: AtomicU64,
}

/// What a scan looks at.
struct Observed {
    snapshot: Snapshot,
    types: TypesByPool,
    pools: Vec<PoolTypes>,
    queued: BTreeSet<String>,
    /// Nodes that hold the room of CapacityBuffers.
    buffer_nodes: BTreeSet<String>,
    history: History,
    memory: Memory,
    options: Options,
    gates: Gates,
    repair: Option<Arc<RepairPolicies>>,
    tables: Arc<TableCache>,
}

impl VoluntaryDisruption {
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
            validating: AtomicU64::new(0),
        }
    }

    /// Scans, and sees commands through, for ever.
    pub(crate) async fn run(&self) {
        tokio::join!(
            self.scan_for_ever(),
            self.orchestration.run(),
            self.rank_pods_for_ever()
        );
    }

    /// Commands under way, those waiting for validation included.
    pub(crate) fn commands(&self) -> usize {
        let validating = self.validating.load(Ordering::Relaxed);
        self.orchestration.len() + usize::try_from(validating).unwrap_or(usize::MAX)
    }

    async fn scan_for_ever(&self) {
        loop {
            if !self.shell.is_synced() {
                tokio::time::sleep(UNSYNCED_POLL).await;
                continue;
            }
            stale::remove(&self.shell, &self.orchestration.claims()).await;
            let (acted, look_again) = self.scan().await;
            if !acted {
                tokio::time::sleep(look_again.min(self.shell.settings.disruption_poll)).await;
            }
        }
    }

    /// One loop; whether a command started, and when to look again otherwise.
    async fn scan(&self) -> (bool, Duration) {
        let observed = Arc::new(self.observe().await);
        let now = observed.options.now;
        let started = Instant::now();
        let decision = self.decide(&observed).await;
        report::measure(&self.shell, &decision, started.elapsed());
        report::publish(&self.shell, &decision);
        report::record(&self.shell, &decision, now);
        let look_again = Duration::from_secs(u64::from(decision.next_look_seconds.max(1)));
        let Decision {
            commands, memory, ..
        } = decision;
        *self.memory() = memory;
        // The snapshot would make every later fact copy what it shares.
        drop(observed);
        let mut acted = false;
        for command in commands {
            acted |= self.carry_out(command).await;
        }
        (acted, look_again)
    }

    async fn carry_out(&self, command: Command) -> bool {
        let command = if command.method.needs_validation() {
            self.validating.fetch_add(1, Ordering::Relaxed);
            let survived = self.validate(command).await;
            self.validating.fetch_sub(1, Ordering::Relaxed);
            survived
        } else {
            Some(command)
        };
        match command {
            Some(command) => self.orchestration.start(command).await,
            None => false,
        }
    }

    /// Looks a second time after a while: the world must still agree, or the command is dropped.
    async fn validate(&self, command: Command) -> Option<Command> {
        tokio::time::sleep(self.shell.settings.consolidation_validation).await;
        if !self.shell.is_synced() {
            return None;
        }
        let observed = Arc::new(self.observe().await);
        let (judges, rank) = (self.judges.clone(), Arc::clone(&self.shell.rank));
        let checked = command.clone();
        let work = move || {
            let hooks = judges.hooks(rank.as_ref());
            let never = Interrupt::never();
            Some(validate(observed.as_input(), hooks, &never, checked))
        };
        match self.shell.compute(work).await? {
            Ok(survivor) => Some(survivor),
            Err(rejection) => {
                report::rejected(&self.shell, &command, &rejection);
                None
            }
        }
    }

    async fn observe(&self) -> Observed {
        let number = self.scans.fetch_add(1, Ordering::Relaxed) + 1;
        let (settings, now) = (&self.shell.settings, self.shell.now());
        let snapshot = self.shell.snapshot();
        let types = self.types(&snapshot).await;
        let (ready, _) = provisionable_pools(&snapshot);
        let pools = ready
            .into_iter()
            .filter_map(|node_pool| {
                let instance_types = Arc::clone(types.get(&node_pool.name_any())?);
                Some(PoolTypes {
                    node_pool,
                    instance_types,
                })
            })
            .collect();
        let decision_id = format!("disruption-{}-{number}", now.as_second());
        let options = Options {
            preference_policy: settings.preference_policy,
            min_values_policy: settings.min_values_policy,
            reserved: if settings.feature_gates.reserved_capacity {
                ReservedMode::Fallback
            } else {
                ReservedMode::Off
            },
            now,
            cluster: settings.cluster_name.clone(),
            seed: self.shell.seed_for(&decision_id),
            decision_id,
            threads: settings.solver_threads(),
            ignores_devices: settings.ignore_dra_requests,
            default_spread: Arc::clone(&settings.default_spread),
            ..Options::default()
        };
        Observed {
            snapshot,
            types,
            pools,
            queued: self.orchestration.claims(),
            buffer_nodes: self.shell.buffer_nodes.get(),
            history: self.orchestration.history(),
            memory: self.memory().clone(),
            options,
            gates: Gates {
                spot_to_spot: settings.feature_gates.spot_to_spot_consolidation,
                terminate_first_drift: settings.feature_gates.terminate_first_drift,
                terminate_first_repair: settings.feature_gates.terminate_first_repair,
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

    async fn decide(&self, observed: &Arc<Observed>) -> Decision {
        let interrupt = Interrupt::never();
        let (input, stop) = (Arc::clone(observed), interrupt.clone());
        let (judges, rank) = (self.judges.clone(), Arc::clone(&self.shell.rank));
        let work = self.shell.compute(move || {
            let hooks = judges.hooks(rank.as_ref());
            decide(input.as_input(), hooks, &stop)
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

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The provider's repair policies, while repair is a disruption method; what is wrong with them otherwise.
pub(crate) fn repair_policies(
    settings: &Settings,
    provider: &dyn CloudProvider,
) -> Result<Option<Arc<RepairPolicies>>, String> {
    let gates = &settings.feature_gates;
    if !gates.node_repair || gates.legacy_node_repair {
        return Ok(None);
    }
    let seconds = |it: u64| GoDuration::from_seconds(i64::try_from(it).unwrap_or(i64::MAX));
    let policies = provider.repair_policies().into_iter();
    let policies = policies.map(|it| RepairPolicy {
        condition_type: it.condition_type,
        condition_status: it.condition_status,
        reason_regex: it.reason_regex,
        toleration: seconds(it.toleration_seconds),
        termination_grace_period: it.termination_grace_period_seconds.map(seconds),
        priority: it.priority,
        action: match it.action {
            cloudprovider::RepairAction::Replace => RepairAction::Replace,
            cloudprovider::RepairAction::Reboot => RepairAction::Reboot,
        },
    });
    match RepairPolicies::new(policies.collect()) {
        Ok(policies) => Ok(Some(Arc::new(policies))),
        Err(faults) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Err(format!("RepairPolicies: {}", faults.join("; ")))
        }
    }
}

impl Judges {
    fn hooks<'a>(&'a self, rank: &'a dyn scheduling::ranking::RankHook) -> disruption::Hooks<'a> {
        disruption::Hooks {
            rank,
            consolidation: self.consolidation.as_ref(),
            budgets: self.budgets.as_ref(),
        }
    }
}

impl Observed {
    fn as_input(&self) -> Input<'_> {
        let Self {
            snapshot,
            types,
            pools,
            queued,
            buffer_nodes,
            history,
            memory,
            options,
            gates,
            repair,
            tables,
        } = self;
        Input {
            snapshot,
            types,
            pools,
            queued,
            buffer_nodes,
            history,
            memory,
            options,
            gates: *gates,
            repair: repair.as_deref(),
            tables,
        }
    }
}
