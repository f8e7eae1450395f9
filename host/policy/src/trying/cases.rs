//! Cases for `mortise policy test`: small tables written as rows, and what the policy should make of them.
//!
//! Names follow the columns of the interface in camelCase. A case asks the policy as a cluster would:
//! bound by its ConfigMap, through the hooks, with the settings of the case.

mod budgets;
mod consolidation;
mod rank;
mod recorded;
mod workloads;

use std::collections::BTreeMap;

use apis::ObjectKey;
use hooks::binding::keys::{
    CALENDARS_KEY, CONFIG_KEY, INTERRUPTION_RATES_KEY, TIME_ZONES_KEY, WORKLOAD_LABELS_ANNOTATION,
};
use hooks::binding::{BindingSource, BindingState};
use hooks::disruption::{Civil, Context, PolicyUse};
use serde::Deserialize;
use serde_json::Value;

use crate::host::PolicyHost;
use crate::needs::Need;

pub use recorded::{NoCases, RecordedCases};

/// Noon UTC of Monday 2026-01-05, where a case names no moment.
const NOON_SECONDS: i64 = 1_767_614_400;

const NOT_ASKED: &str = "the policy was not asked: is it of another kind, or off, or is it about moves that its needs do \
    not name?";

/// Why a text holds no cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// Neither a list of cases nor JSON of one.
    #[error("not a list of cases: {0}")]
    Syntax(String),
    /// A list without an entry would pass whatever the policy does.
    #[error("holds no case")]
    Empty,
    /// A case that asks nothing, or of several kinds.
    #[error(
        "case {0:?}: give it `offerings` (rank), `nodes` (consolidation) or `pools` (budgets), one of them"
    )]
    Question(String),
    /// A case that expects nothing.
    #[error("case {0:?}: `expect` holds nothing that a policy of this kind answers")]
    Expectation(String),
}

/// A list of cases.
#[derive(Debug, Clone)]
pub struct Cases(Vec<Case>);

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOutcome {
    pub name: String,
    /// Where the answer differs from what was expected; none means that it passed.
    pub faults: Vec<String>,
    /// Lines that the policy logged.
    pub log: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    /// Takes the place of the binding's settings.
    #[serde(default)]
    config: Option<Value>,
    #[serde(default)]
    now: Option<jiff::Timestamp>,
    #[serde(default)]
    cluster: Option<String>,
    #[serde(default)]
    seed: u64,
    /// What the binding tells, in place of its own: zones, calendars, interruption rates, pod labels.
    #[serde(default)]
    time_zones: Vec<String>,
    #[serde(default)]
    calendars: Option<Value>,
    #[serde(default)]
    interruption_rates: Option<Value>,
    #[serde(default)]
    workload_labels: Vec<String>,
    /// What the policy answered as memory before, as text.
    #[serde(default)]
    memory: Option<String>,
    #[serde(default)]
    offerings: Vec<rank::OfferingRow>,
    /// Nodes that there are.
    #[serde(default)]
    usage: Vec<rank::UsageRow>,
    #[serde(default)]
    claim: rank::ClaimRow,
    /// Pods of the claim, or of the nodes, by owner.
    #[serde(default)]
    workloads: Vec<workloads::WorkloadRow>,
    #[serde(default)]
    nodes: Vec<consolidation::NodeRow>,
    /// NodePools of the nodes, where they have more than these.
    #[serde(default)]
    node_pools: Vec<consolidation::NodePoolRow>,
    #[serde(default)]
    moves: Vec<consolidation::MoveRow>,
    #[serde(default)]
    pools: Vec<budgets::PoolRow>,
    expect: Expect,
}

/// Answer that the policy should give; what is left out may be anything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    /// Words of the reason for which the settings are refused.
    #[serde(default)]
    refused: Option<String>,
    /// Words of the failure at work.
    #[serde(default)]
    fails: Option<String>,
    /// Rank: the first choice.
    #[serde(default)]
    cheapest: Option<String>,
    /// Rank: the offerings that may be launched, best first. Consolidation: the nodes, first to go first.
    #[serde(default)]
    order: Option<Vec<String>>,
    /// Rank: effective USD an hour.
    #[serde(default)]
    costs: BTreeMap<String, f64>,
    /// Rank: offerings never to be launched, with words of the reason.
    #[serde(default)]
    excluded: Option<BTreeMap<String, String>>,
    /// Rank: words of the note.
    #[serde(default)]
    note: Option<String>,
    /// Memory that the policy asks to be told the next time, as text.
    #[serde(default)]
    remembers: Option<String>,
    /// Consolidation: one for each move.
    #[serde(default)]
    verdicts: Option<Vec<consolidation::Expected>>,
    /// Consolidation: nodes that are not tried.
    #[serde(default)]
    skipped: Option<Vec<String>>,
    /// Budgets: nodes by pool and reason.
    #[serde(default)]
    allowed: BTreeMap<String, BTreeMap<budgets::ReasonName, u32>>,
}

impl Cases {
    /// Reads a list of cases in YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, CaseError> {
        let cases: Vec<Case> = serde_saphyr::from_str(text)
            .map_err(|error| CaseError::Syntax(error.to_string().trim().to_owned()))?;
        if cases.is_empty() {
            return Err(CaseError::Empty);
        }
        for case in &cases {
            case.check()?;
        }
        Ok(Self(cases))
    }

    /// Puts every case to a policy, bound to this host for as long as it takes.
    pub fn run(&self, host: &PolicyHost, source: &BindingSource) -> Vec<CaseOutcome> {
        let outcomes = self.0.iter().map(|case| case.run(host, source)).collect();
        host.remove_binding(&source.key());
        outcomes
    }
}

impl Case {
    fn check(&self) -> Result<(), CaseError> {
        let Expect {
            refused,
            fails,
            cheapest,
            order,
            costs,
            excluded,
            note,
            remembers,
            verdicts,
            skipped,
            allowed,
        } = &self.expect;
        let asks = [
            !self.offerings.is_empty(),
            !self.nodes.is_empty(),
            !self.pools.is_empty(),
        ];
        let expects = match asks {
            [true, false, false] => {
                let costs = cheapest.is_some() || order.is_some() || !costs.is_empty();
                costs || excluded.is_some() || note.is_some()
            }
            [false, true, false] => order.is_some() || verdicts.is_some() || skipped.is_some(),
            [false, false, true] => !allowed.is_empty(),
            [false, false, false] if refused.is_some() => true,
            _ => return Err(CaseError::Question(self.name.clone())),
        };
        if expects || refused.is_some() || fails.is_some() || remembers.is_some() {
            Ok(())
        } else {
            Err(CaseError::Expectation(self.name.clone()))
        }
    }

    fn run(&self, host: &PolicyHost, source: &BindingSource) -> CaseOutcome {
        let mut faults = CaseFaults(Vec::new());
        let mut source = source.clone();
        if let Some(config) = &self.config {
            source
                .data
                .insert(CONFIG_KEY.to_owned(), config.to_string());
        }
        self.write_facts(&mut source);
        let status = host.apply(&source);
        let is_ready = status.state == BindingState::Ready;
        match (&self.expect.refused, is_ready) {
            (Some(words), false) => {
                if !status.message.contains(words.as_str()) {
                    faults.add(format!(
                        "refused for another reason: {}: {}",
                        status.reason, status.message
                    ));
                }
            }
            (Some(_), true) => faults.add("was let in, and should have been refused".to_owned()),
            (None, false) => faults.add(format!("refused: {}: {}", status.reason, status.message)),
            (None, true) => self.ask(host, &source.key(), &mut faults),
        }
        let log = host.drain_records().into_iter().flat_map(|it| it.log);
        CaseOutcome {
            name: self.name.clone(),
            log: log.collect(),
            faults: faults.0,
        }
    }

    /// Has the binding tell what the case says.
    fn write_facts(&self, source: &mut BindingSource) {
        let mut put = |key: &str, text: String| source.data.insert(key.to_owned(), text);
        if !self.time_zones.is_empty() {
            put(TIME_ZONES_KEY, self.time_zones.join(","));
        }
        if let Some(calendars) = &self.calendars {
            put(CALENDARS_KEY, calendars.to_string());
        }
        if let Some(rates) = &self.interruption_rates {
            put(INTERRUPTION_RATES_KEY, rates.to_string());
        }
        if !self.workload_labels.is_empty() {
            let key = WORKLOAD_LABELS_ANNOTATION.to_owned();
            let labels = self.workload_labels.join(",");
            source.annotations.insert(key, labels);
        }
    }

    /// Gives the policy the memory of the case.
    fn remind(&self, host: &PolicyHost, key: &ObjectKey, faults: &mut CaseFaults) {
        host.inner.memories.forget(key);
        let Some(memory) = &self.memory else { return };
        let policy = host.inner.policy(key);
        match policy.filter(|it| it.needs.has(Need::Memory)) {
            Some(policy) => host.inner.memories.remember(&policy, memory.as_bytes()),
            None => faults.add("the policy's needs do not name `memory`".to_owned()),
        }
    }

    fn ask(&self, host: &PolicyHost, key: &ObjectKey, faults: &mut CaseFaults) {
        self.remind(host, key, faults);
        host.drain_records();
        let uses = if !self.offerings.is_empty() {
            self.ask_rank(host, faults)
        } else if !self.nodes.is_empty() {
            self.ask_consolidation(host, faults)
        } else {
            self.ask_budgets(host, faults)
        };
        if let (Some(expected), Some(policy)) = (&self.expect.remembers, host.inner.policy(key)) {
            let kept = policy.kinds.iter();
            let kept = kept.map(|kind| host.inner.memories.of(&policy, *kind));
            let kept: Vec<u8> = kept.flatten().collect();
            let kept = String::from_utf8_lossy(&kept).into_owned();
            faults.equal("memory", expected, &kept);
        }
        let failure = match uses.iter().find(|it| it.name == key.name) {
            Some(it) if it.outcome.is_ok() => None,
            Some(it) => Some(it.outcome.to_string()),
            None => Some(NOT_ASKED.to_owned()),
        };
        match (&self.expect.fails, failure) {
            (Some(words), Some(failure)) if failure.contains(words.as_str()) => faults.0.clear(),
            (_, Some(failure)) => faults.0 = vec![failure],
            (Some(words), None) => {
                faults.add(format!("answers, and should fail with {words:?}"));
            }
            (None, None) => {}
        }
    }

    fn context(&self) -> Context {
        let now = self
            .now
            .or_else(|| jiff::Timestamp::from_second(NOON_SECONDS).ok())
            .unwrap_or_default();
        Context {
            now_seconds: u64::try_from(now.as_second()).unwrap_or_default(),
            civil: vec![Civil::utc(now)],
            cluster: self.cluster.clone().unwrap_or_else(|| "test".to_owned()),
            decision_id: "test-1".to_owned(),
            seed: self.seed,
        }
    }
}

/// Where an answer differs.
struct CaseFaults(Vec<String>);

impl CaseFaults {
    fn add(&mut self, fault: String) {
        self.0.push(fault);
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: &T, found: &T) {
        if expected != found {
            self.add(format!("{what}: expected {expected:?}, got {found:?}"));
        }
    }
}

/// The policy asked and those that stood in for it.
type Uses = Vec<PolicyUse>;

const NEVER: u32 = hooks::ranking::NEVER_SECONDS;
