//! The hook through which a policy says what an offering is worth, as plain columns.
//!
//! [`OfferingTable`] mirrors the record `offerings` of the policy package field for field. One call a round: the
//! answer is a cost vector that the packer reads natively. Nothing here may know how a policy is run.

mod premium;
mod table;
mod usage;
mod workloads;

use serde::{Deserialize, Serialize};

pub use crate::policy_use::PolicyUse;
pub use premium::{InvalidPremium, ListPrices, PremiumMax};
pub use table::{ExtraColumn, ExtraValues, NO_SYMBOL, OfferingTable, Symbols};
pub use usage::UsageTable;
pub use workloads::{EVERY_CLAIM, WorkloadTable};

/// Value of `ice_age` and of similar columns for "never".
pub const NEVER_SECONDS: u32 = u32::MAX;

/// One call of a ranking policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RankRound {
    /// Moment of the call, in seconds since 1970-01-01T00:00:00Z.
    pub now_seconds: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// Stable id of the decision, for logs.
    pub decision_id: String,
    /// Seed derived from the inputs of the decision.
    pub seed: u64,
    /// Offerings that may be bought, of all pools.
    pub table: OfferingTable,
    /// Nodes that there are.
    pub usage: UsageTable,
    /// Pods of the claims by owner; empty unless a policy needs them.
    pub workloads: WorkloadTable,
    /// Claims to buy for: one entry a pool in a solve, one claim before a launch.
    pub claims: Vec<ClaimView>,
}

/// When a ranking is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RankStage {
    /// Before packing: the claim stands for all nodes that a pool may get.
    #[default]
    Packing,
    /// Before the launch of one claim.
    Launch,
    /// For the price of nodes that run.
    Appraisal,
}

/// Facts that policies need beside the plain tables: the union of what those in charge ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether they need the pods by owner.
    pub workloads: bool,
    /// Whether they need the labels of Nodes.
    pub node_labels: bool,
    /// Whether they need the free addresses of subnets.
    pub free_addresses: bool,
    /// Whether they are to judge moves that renew nodes some time before they expire.
    pub expire: bool,
}

/// A claim, or a pool's future claims, as the policy sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimView {
    /// Symbol of the pool's name.
    pub nodepool: u32,
    /// Weight of the pool.
    pub weight: u32,
    /// Occasion of the ranking.
    #[serde(default)]
    pub stage: RankStage,
    /// Rows that may be bought; empty means all.
    pub candidates: Vec<u32>,
    pub requirements: Vec<ClaimRequirement>,
    pub pods: PodsSummary,
    /// Labels of the template, as pairs of symbols.
    pub labels: Vec<(u32, u32)>,
    /// Labels of the pool, as pairs of symbols.
    pub nodepool_labels: Vec<(u32, u32)>,
    /// Symbols of zones with the free addresses of the class's subnets there; empty unless a policy needs them.
    pub free_addresses: Vec<(u32, u32)>,
}

/// Operator of a requirement as policies know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClaimOperator {
    /// One of the values.
    InSet,
    /// None of the values.
    NotIn,
    /// The label is there, whatever its value.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// An integer above the value.
    Greater,
    /// An integer below the value.
    Less,
}

/// A requirement of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRequirement {
    /// Symbol of the key.
    pub key: u32,
    pub operator: ClaimOperator,
    /// Symbols of the values.
    pub values: Vec<u32>,
    /// `minValues`, 0 when unset.
    pub min_values: u32,
}

/// The pods in a few numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsSummary {
    /// Number of pods.
    pub count: u32,
    /// Sum of their CPU requests, milli-CPU.
    pub cpu_milli: u32,
    /// Sum of their memory requests, MiB.
    pub memory_mib: u32,
    /// Sum of the GPUs that they request.
    pub gpus: u32,
    /// Highest priority among them.
    pub max_priority: i32,
    /// Pods that may not be disrupted.
    pub do_not_disrupt: u32,
    /// Pods whose controller keeps at least two replicas.
    pub replicated: u32,
    /// Seconds that the longest waiting of them has been without a node; 0 when none waits.
    pub oldest_wait_seconds: u32,
}

/// The policy's answer for one claim.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ranking {
    /// Effective USD an hour of each candidate, in the order given; finite and not negative.
    pub scores: Vec<f64>,
    /// Candidates never to be launched, by position among the candidates, with the reason.
    pub excluded: Vec<(u32, String)>,
    /// One line for events and records.
    pub note: Option<String>,
    /// Set by the host, never by a guest: the tightest bound that the bindings put on what their policies may cost.
    #[serde(default, skip)]
    pub premium_max: Option<PremiumMax>,
}

/// Answers for all claims of the round, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RankAnswer {
    /// One entry a claim.
    pub rankings: Vec<Ranking>,
    /// Policies that were asked, and how it went.
    pub uses: Vec<PolicyUse>,
}

/// A valuer of offerings. Never fails: an implementor that can fail falls back inside.
pub trait RankHook: Send + Sync {
    /// Ranks the candidates of each claim.
    fn rank(&self, round: &RankRound) -> RankAnswer;

    /// Facts beside the plain tables that the policies need to be told.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Who ranks, by name and digest: another text is another judgement, so that what came to nothing before is looked
    /// at again.
    fn identity(&self) -> String {
        String::new()
    }
}

/// The price as it is: for tests, and where no policy can be had.
#[derive(Debug, Clone, Copy, Default)]
pub struct PriceRank;

impl RankHook for PriceRank {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let scores = |claim: &ClaimView| -> Vec<f64> {
            if claim.candidates.is_empty() {
                return round.table.price.clone();
            }
            claim
                .candidates
                .iter()
                .map(|row| round.table.price.get(*row as usize).copied().unwrap_or(0.0))
                .collect()
        };
        RankAnswer {
            rankings: round
                .claims
                .iter()
                .map(|claim| Ranking {
                    scores: scores(claim),
                    excluded: Vec::new(),
                    note: None,
                    premium_max: None,
                })
                .collect(),
            uses: Vec::new(),
        }
    }
}
