//! A native harness: a policy's unit tests write small tables as rows, ask the hook, and read the answer.
//!
//! Every field of the interface is a field of a row, so that no test needs to know how columns are laid out. Nothing
//! here ends up in a component, since nothing there calls it.

mod consolidation;
mod rank;

use crate::budgets::{Activity, Allowances, BudgetPolicy, DeclaredBudget, Pool, Reason, Reasons};
use crate::config::Settings;
use crate::consolidation::{ConsolidationPolicy, Verdict, Verdicts};
use crate::policy::{Civil, ConfigIssue, Context, NEVER, NO_SYM, Policy, PolicyError};
use crate::rank::{RankPolicy, Ranking, Rankings};
use crate::workloads::Workloads;

pub use consolidation::{
    ConsolidationQuestion, ConsolidationTables, MoveRow, NodeRow, PoolRow, proposed,
};
pub use rank::{ClaimRow, OfferingRow, PodsRow, RankQuestion, RankTables, RequirementRow, UsedRow};

/// Keys and values of labels, as a row writes them.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// A configured policy under test.
#[derive(Debug)]
pub struct Harness<P> {
    /// The policy itself.
    pub policy: P,
    /// What it warned of while it was configured.
    pub warnings: Vec<ConfigIssue>,
    /// The context of every call; tests may change it.
    pub context: Context,
}

impl<P: Policy> Harness<P> {
    /// Configures the policy as the host would.
    pub fn new(config: &str) -> Result<Self, Vec<ConfigIssue>> {
        let (policy, warnings) = Settings::read(config)?;
        Ok(Self {
            policy,
            warnings,
            context: context(),
        })
    }
}

impl<P: RankPolicy> Harness<P> {
    /// The whole answer.
    pub fn ask(&self, question: &RankQuestion<'_>) -> Result<Rankings, PolicyError> {
        let tables = RankTables::of(question);
        self.policy.rank(&tables.call(&self.context))
    }

    /// The ranking of the first claim.
    pub fn ranking(&self, question: &RankQuestion<'_>) -> Ranking {
        let mut rankings = self
            .ask(question)
            .unwrap_or_else(|error| panic!("{} refused: {}", P::NAME, error.message));
        assert!(!rankings.items.is_empty(), "{} ranked nothing", P::NAME);
        rankings.items.swap_remove(0)
    }

    /// The ranking of all rows for one claim without requirements, in a cluster without nodes.
    pub fn rank(&self, rows: &[OfferingRow<'_>]) -> Ranking {
        self.ranking(&RankQuestion {
            offerings: rows,
            ..RankQuestion::default()
        })
    }

    /// The scores of all rows.
    pub fn scores(&self, rows: &[OfferingRow<'_>]) -> Vec<f64> {
        self.rank(rows).scores
    }

    /// Instance type of the row with the lowest score among those not excluded; ties go to the earlier.
    pub fn cheapest<'a>(&self, rows: &[OfferingRow<'a>]) -> &'a str {
        let row = self.first_choice(&RankQuestion {
            offerings: rows,
            ..RankQuestion::default()
        });
        row.and_then(|row| rows.get(row as usize))
            .map_or("", |row| row.instance_type)
    }

    /// The row with the lowest score for the first claim of a question; ties go to the earlier.
    pub fn first_choice(&self, question: &RankQuestion<'_>) -> Option<u32> {
        let ranking = self.ranking(question);
        let listed = question.claims.first().map_or(&[][..], |it| it.candidates);
        (0_u32..)
            .zip(&ranking.scores)
            .filter(|(position, _)| !ranking.excluded.contains(position))
            .min_by(|(_, left), (_, right)| left.total_cmp(right))
            .map(|(position, _)| listed.get(position as usize).copied().unwrap_or(position))
    }
}

impl<P: ConsolidationPolicy> Harness<P> {
    /// The order keys of the nodes of a question.
    pub fn order_of(&self, question: &ConsolidationQuestion<'_>) -> Result<Vec<f64>, PolicyError> {
        let tables = ConsolidationTables::of(question);
        self.policy.order(&tables.call(&self.context))
    }

    /// The verdicts on the moves of a question.
    pub fn judge_all(&self, question: &ConsolidationQuestion<'_>) -> Result<Verdicts, PolicyError> {
        let tables = ConsolidationTables::of(question);
        self.policy
            .judge(&tables.call(&self.context), &tables.moves)
    }

    /// The order keys of the nodes.
    pub fn order(&self, rows: &[NodeRow<'_>]) -> Result<Vec<f64>, PolicyError> {
        self.order_of(&ConsolidationQuestion {
            nodes: rows,
            ..ConsolidationQuestion::default()
        })
    }

    /// The verdict on one move; the NodePools are what their nodes add up to.
    pub fn judge(&self, rows: &[NodeRow<'_>], proposed: MoveRow<'_>) -> Verdict {
        self.verdict(&ConsolidationQuestion {
            nodes: rows,
            moves: &[proposed],
            ..ConsolidationQuestion::default()
        })
    }

    /// The verdict on the first move of a question.
    pub fn verdict(&self, question: &ConsolidationQuestion<'_>) -> Verdict {
        let mut verdicts = self
            .judge_all(question)
            .unwrap_or_else(|error| panic!("{} refused: {}", P::NAME, error.message));
        assert!(!verdicts.items.is_empty(), "{} judged nothing", P::NAME);
        verdicts.items.swap_remove(0)
    }
}

impl<P: BudgetPolicy> Harness<P> {
    /// The allowances of the pools.
    pub fn allow(&self, pools: &[Pool]) -> Result<Allowances, PolicyError> {
        self.policy.allow(&self.context, pools)
    }
}

/// Noon UTC of Monday 2026-01-05.
pub fn context() -> Context {
    Context {
        now: 1_767_614_400,
        civil: vec![civil("UTC", 12)],
        cluster: "test".to_owned(),
        decision_id: "test-1".to_owned(),
        seed: 1,
        memory: Vec::new(),
        extra: Vec::new(),
    }
}

/// An hour of Monday 2026-01-05 in a zone.
pub fn civil(zone: &str, hour: u8) -> Civil {
    Civil {
        zone: zone.to_owned(),
        year: 2026,
        month: 1,
        day: 5,
        weekday: 0,
        hour,
        minute: 0,
        utc_offset_minutes: 0,
        calendars: Vec::new(),
    }
}

/// Pods of one owner on a claim or node, written as a row.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadRow<'a> {
    /// Position of the claim or node; [`NEVER`](crate::NEVER) for every claim.
    pub of: u32,
    /// Namespace.
    pub namespace: &'a str,
    /// Kind of the owner.
    pub owner_kind: &'a str,
    /// Name of the owner.
    pub owner_name: &'a str,
    /// Priority class.
    pub priority_class: &'a str,
    /// Highest priority.
    pub priority: i32,
    /// Labels that the binding asks for.
    pub labels: Labels<'a>,
    /// Pods there.
    pub pods: u32,
    /// Those that carry do-not-disrupt.
    pub do_not_disrupt: u32,
    /// CPU requests.
    pub cpu_milli: u32,
    /// Memory requests.
    pub memory_mib: u32,
    /// Accelerator requests.
    pub gpus: u32,
    /// Pods in the whole cluster.
    pub replicas: u32,
    /// What PodDisruptionBudgets let go.
    pub disruptions_allowed: u32,
    /// Seconds without a node.
    pub oldest_wait: u32,
}

impl Default for WorkloadRow<'_> {
    fn default() -> Self {
        Self {
            of: 0,
            namespace: "default",
            owner_kind: "Deployment",
            owner_name: "web",
            priority_class: "",
            priority: 0,
            labels: &[],
            pods: 1,
            do_not_disrupt: 0,
            cpu_milli: 100,
            memory_mib: 128,
            gpus: 0,
            replicas: 1,
            disruptions_allowed: NEVER,
            oldest_wait: 0,
        }
    }
}

fn workloads(rows: &[WorkloadRow<'_>], words: &mut Words) -> Workloads {
    let mut syms = |text: fn(&WorkloadRow<'_>) -> String| -> Vec<u32> {
        rows.iter().map(|row| words.intern(&text(row))).collect()
    };
    let namespace = syms(|row| row.namespace.to_owned());
    let owner_kind = syms(|row| row.owner_kind.to_owned());
    let owner_name = syms(|row| row.owner_name.to_owned());
    let priority_class = syms(|row| row.priority_class.to_owned());
    let counts = |of: fn(&WorkloadRow<'_>) -> u32| rows.iter().map(of).collect();
    Workloads {
        of: counts(|row| row.of),
        namespace,
        owner_kind,
        owner_name,
        priority_class,
        priority: rows.iter().map(|row| row.priority).collect(),
        labels: rows.iter().map(|row| words.pairs(row.labels)).collect(),
        pods: counts(|row| row.pods),
        do_not_disrupt: counts(|row| row.do_not_disrupt),
        cpu_milli: counts(|row| row.cpu_milli),
        memory_mib: counts(|row| row.memory_mib),
        gpus: counts(|row| row.gpus),
        replicas: counts(|row| row.replicas),
        disruptions_allowed: counts(|row| row.disruptions_allowed),
        oldest_wait: counts(|row| row.oldest_wait),
        extra: Vec::new(),
    }
}

/// A pool of so many ready nodes with active budgets for every reason, already resolved.
pub fn pool(name: &str, total: u32, declared: &[u32]) -> Pool {
    Pool {
        name: name.to_owned(),
        labels: Vec::new(),
        total,
        not_ready: 0,
        deleting: 0,
        drifted: 0,
        drift_target: "0".to_owned(),
        renewed: 0,
        target_age: NEVER,
        price: f64::from(total),
        activity: activity(&[]),
        pending_pods: 0,
        declared: declared
            .iter()
            .map(|&resolved| DeclaredBudget {
                nodes: resolved.to_string(),
                resolved,
                active: true,
                next_change: 0,
                reasons: Reasons::all(),
                extra: Vec::new(),
            })
            .collect(),
        extra: Vec::new(),
    }
}

/// What was and is done for a reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Nodes being disrupted now.
    pub disrupting: u32,
    /// Finished in the last hour.
    pub recent_hour: u32,
    /// Finished in the last day.
    pub recent_day: u32,
    /// Replacements that did not come in the last day.
    pub failed_day: u32,
}

/// The activity of a pool: nothing, but for the reasons given.
pub fn activity(of: &[(Reason, Counts)]) -> Vec<Activity> {
    let count = |reason: Reason| {
        let own = of.iter().find(|(it, _)| *it == reason);
        let Counts {
            disrupting,
            recent_hour,
            recent_day,
            failed_day,
        } = own.map(|(_, counts)| *counts).unwrap_or_default();
        Activity {
            reason,
            disrupting,
            recent_hour,
            recent_day,
            failed_day,
            extra: Vec::new(),
        }
    };
    Reason::ALL.map(count).to_vec()
}

/// The dictionary while tables are written.
#[derive(Debug, Default)]
struct Words(Vec<String>);

impl Words {
    fn intern(&mut self, word: &str) -> u32 {
        if word.is_empty() {
            return NO_SYM;
        }
        let known = self.0.iter().position(|known| known == word);
        let index = known.unwrap_or_else(|| {
            self.0.push(word.to_owned());
            self.0.len() - 1
        });
        u32::try_from(index).unwrap_or(NO_SYM)
    }

    fn pairs(&mut self, labels: Labels<'_>) -> Vec<(u32, u32)> {
        let pairs = labels.iter();
        pairs
            .map(|(key, value)| (self.intern(key), self.intern(value)))
            .collect()
    }
}
