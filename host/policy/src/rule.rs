//! Policies of a few lines: CEL expressions in the ConfigMap itself, run natively, for those who have no
//! toolchain.
//!
//! A rule is held to what a component is held to: sample questions and made-up rounds before it may decide, a budget
//! of steps, answers that are checked, quarantine. A consolidation rule narrows what Karpenter's rules approve; it
//! cannot approve what they reject. Whatever is written in a ConfigMap, checking it takes some milliseconds and a few
//! megabytes: trees, texts, lists and patterns have named bounds, and nothing in a tree is there twice.

mod apply;
mod civil;
mod compile;
mod evaluate;
mod evaluation_error;
mod expressions;
mod facts;
mod functions;
mod judged;
mod moves;
mod node;
mod parse;
pub(crate) mod pattern;
pub(crate) mod place;
mod ranked;
pub(crate) mod source;
mod steps;
mod tokens;
mod types;
mod value;
pub(crate) mod words;

use hooks::disruption::MoveKind;
use hooks::policy_use::PolicyKind;

use crate::guest::call_failure::CallFailure;
use crate::needs::{Need, PolicyNeeds};
use compile::{KnownVariable, RuleVocabulary, Wanted};
use evaluation_error::EvaluationError;
use expressions::{RuleExpressions, one_line};
use facts::{
    MOVE_LABELS, MOVE_VARIABLES, MoveVariable, POOL_LABELS, POOL_VARIABLES, PoolVariable,
    RANK_LABELS, RANK_VARIABLES, RankVariable,
};
use moves::Moves;
use place::RuleError;
use source::RuleSource;
use steps::{Spent, Steps};
use value::Literal;

/// Wasm operations that a step stands for: one node of an expression.
const OPERATIONS_A_STEP: u64 = 40;
/// Settings that a rule may read.
const CONFIG_BYTES_MAX: usize = 64 << 10;
/// All expressions of a binding together.
const SOURCE_BYTES_MAX: usize = 16 << 10;

/// A variable that rules may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleVariable {
    /// As rules write it.
    pub name: &'static str,
    /// Its type, by CEL's words.
    pub type_name: &'static str,
    /// Meaning of the variable.
    pub about: &'static str,
}

/// The variables that rules of a kind may name.
pub fn rule_variables(kind: PolicyKind) -> Vec<RuleVariable> {
    fn listed<V>(known: &[KnownVariable<V>]) -> Vec<RuleVariable> {
        let of = |it: &KnownVariable<V>| RuleVariable {
            name: it.name,
            type_name: it.of.as_str(),
            about: it.about,
        };
        known.iter().map(of).collect()
    }
    match kind {
        PolicyKind::Rank => listed(RANK_VARIABLES),
        PolicyKind::Consolidation => listed(MOVE_VARIABLES),
        PolicyKind::Budgets => listed(POOL_VARIABLES),
    }
}

#[derive(Debug)]
pub(crate) struct PolicyRule {
    pub(crate) digest: String,
    pub(crate) kind: PolicyKind,
    pub(crate) source: RuleSource,
    text: String,
    judgement: Judgement,
}

#[derive(Debug)]
enum Judgement {
    Rank(RuleExpressions<RankVariable>),
    Consolidation(RuleExpressions<MoveVariable>, Moves),
    Budgets(RuleExpressions<PoolVariable>),
}

/// Result of running a rule, and the steps it took, in operations.
pub(crate) struct Ran<T> {
    pub(crate) result: Result<T, CallFailure>,
    pub(crate) fuel: u64,
}

impl PolicyRule {
    /// Compiles the expressions of a binding; `config` is JSON or empty.
    pub(crate) fn compile(
        source: &RuleSource,
        kinds: &[PolicyKind],
        config: &str,
    ) -> Result<Self, RuleError> {
        let general = |text: &str| RuleError::new(vec![text.to_owned()], Vec::new());
        let [kind] = kinds else {
            return Err(general(
                "data.rule: a rule is for one kind; label it rank, consolidation or budgets",
            ));
        };
        let mut faults = general_faults(source, *kind);
        let config = settings(config).unwrap_or_else(|fault| {
            faults.push(fault);
            Literal::Absent
        });
        let moves = Moves::parse(&source.applies_to).unwrap_or_else(|fault| {
            faults.push(fault);
            Moves::default()
        });
        // Nobody waits for megabytes to be read.
        if !faults.is_empty() && source_bytes(source) > SOURCE_BYTES_MAX {
            return Err(RuleError::new(faults, Vec::new()));
        }
        let faults = &mut faults;
        let judgement = match kind {
            PolicyKind::Rank => {
                let words = RuleVocabulary {
                    variables: RANK_VARIABLES,
                    labels: RANK_LABELS,
                    config,
                };
                RuleExpressions::compile(source, Wanted::Number, &words, faults)
                    .map(Judgement::Rank)
            }
            PolicyKind::Consolidation => {
                let words = RuleVocabulary {
                    variables: MOVE_VARIABLES,
                    labels: MOVE_LABELS,
                    config,
                };
                RuleExpressions::compile(source, Wanted::Condition, &words, faults)
                    .map(|it| Judgement::Consolidation(it, moves))
            }
            PolicyKind::Budgets => {
                let words = RuleVocabulary {
                    variables: POOL_VARIABLES,
                    labels: POOL_LABELS,
                    config,
                };
                RuleExpressions::compile(source, Wanted::Number, &words, faults)
                    .map(Judgement::Budgets)
            }
        }?;
        let RuleSource { rule, exclude, .. } = source;
        Ok(Self {
            digest: source.digest(),
            kind: *kind,
            source: source.clone(),
            text: one_line(if rule.is_empty() { exclude } else { rule }),
            judgement,
        })
    }

    /// For the status: what decides.
    pub(crate) fn summary(&self) -> String {
        format!("rule: {}", self.text)
    }

    /// Facts beside the plain tables that it needs.
    pub(crate) fn needs(&self) -> PolicyNeeds {
        let (needs, moves) = match &self.judgement {
            Judgement::Rank(expressions) => (&expressions.needs, None),
            Judgement::Consolidation(expressions, moves) => (&expressions.needs, Some(moves)),
            Judgement::Budgets(expressions) => (&expressions.needs, None),
        };
        let expire = moves.filter(|it| it.contains(MoveKind::Expire));
        let expire = expire.map(|_| Need::Expire);
        PolicyNeeds::of(needs.iter().copied().chain(expire))
    }

    fn failure(&self, error: EvaluationError, steps: &Steps) -> CallFailure {
        match error {
            EvaluationError::Spent(Spent::Call) => CallFailure::OutOfFuel(operations(steps)),
            EvaluationError::Spent(spent @ (Spent::Row | Spent::RowBytes)) => {
                let row = match self.kind {
                    PolicyKind::Rank => "offering",
                    PolicyKind::Consolidation => "move",
                    PolicyKind::Budgets => "NodePool",
                };
                CallFailure::TooCostly(format!("the rule {}: {}", spent.describe(row), self.text))
            }
            EvaluationError::At(wrong) => {
                let (at, problem) = *wrong;
                CallFailure::Refused {
                    message: format!("{at}: {problem}"),
                    transient: false,
                }
            }
        }
    }

    fn of_another_kind(&self) -> CallFailure {
        CallFailure::InvalidAnswer(format!("the rule is for {}", self.kind.as_str()))
    }
}

/// Faults of the keys, whatever they hold.
fn general_faults(source: &RuleSource, kind: PolicyKind) -> Vec<String> {
    let mut faults = Vec::new();
    if kind != PolicyKind::Rank && !source.exclude.is_empty() {
        faults.push("data.exclude: only rank rules exclude; say it in data.rule".to_owned());
    }
    if kind != PolicyKind::Consolidation && !source.applies_to.is_empty() {
        faults
            .push("data.applies-to: only consolidation rules judge moves; leave it out".to_owned());
    }
    if source.rule.is_empty() && (kind != PolicyKind::Rank || source.exclude.is_empty()) {
        faults.push(format!(
            "data.rule: there is none; write what the {} policy decides",
            kind.as_str()
        ));
    }
    let bytes = source_bytes(source);
    if bytes > SOURCE_BYTES_MAX {
        faults.push(format!(
            "data.rule: the expressions of all keys have {bytes} bytes and may have {SOURCE_BYTES_MAX}; write a module"
        ));
    }
    faults
}

fn source_bytes(source: &RuleSource) -> usize {
    source.keys().into_iter().map(|(_, text)| text.len()).sum()
}

/// The settings of a rule.
fn settings(config: &str) -> Result<Literal, String> {
    if config.len() > CONFIG_BYTES_MAX {
        return Err(format!(
            "data.config: has {} bytes, and a rule reads up to {CONFIG_BYTES_MAX}; keep what it needs, or write a \
             module",
            config.len()
        ));
    }
    if config.is_empty() {
        return Ok(Literal::settings(serde_json::Value::Object(
            serde_json::Map::new(),
        )));
    }
    serde_json::from_str(config)
        .map(Literal::settings)
        .map_err(|error| format!("data.config: {error}"))
}

fn with_steps<T>(fuel: u64, work: impl FnOnce(&mut Steps) -> Result<T, CallFailure>) -> Ran<T> {
    let mut steps = Steps::new(fuel / OPERATIONS_A_STEP);
    let result = work(&mut steps);
    Ran {
        result,
        fuel: operations(&steps),
    }
}

fn operations(steps: &Steps) -> u64 {
    steps.spent().saturating_mul(OPERATIONS_A_STEP)
}
