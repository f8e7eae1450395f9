//! Policies of one line: a CEL expression in the ConfigMap itself, run natively, for those who have no
//! toolchain.
//!
//! A rule is held to what a component is held to: sample questions before it may decide, a budget of
//! steps, answers that are checked, quarantine. A consolidation rule narrows what Karpenter's rules
//! approve; it cannot approve what they reject.

mod compile;
mod evaluate;
mod facts;
mod words;

use disruption::hooks::{
    Allowance, BudgetReason, BudgetRound, ConsolidationHook, ConsolidationRound, Context,
    DefaultConsolidation, Move, Verdict, VerdictDecision,
};
use scheduling::ranking::{ClaimView, RankRound, Ranking};

use crate::answer::Allowed;
use crate::call::CallFailure;
use crate::limits::Kind;
use crate::module::digest;
use compile::{Vocabulary, Wanted, compile};
use evaluate::{EvaluationError, Facts, Node, Steps};
use facts::{
    MOVE_VARIABLES, MoveFacts, MoveVariable, OfferingFacts, POOL_VARIABLES, PoolFacts,
    PoolVariable, RANK_VARIABLES, RankVariable,
};

/// Wasm operations that a step stands for: one node of an expression.
const OPERATIONS_A_STEP: u64 = 40;

/// The expressions of a binding, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct RuleSource {
    /// `data.rule`: cost, approval or allowance; empty when there is none.
    pub rule: String,
    /// `data.exclude`: conditions, one a line, each with its reason after `//`. Ranking only.
    pub exclude: String,
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An expression that does not compile.
    #[error("data.{key}: {message}")]
    Expression {
        /// Key of the ConfigMap.
        key: &'static str,
        /// Position and reason.
        message: String,
    },
    /// A rule judges one thing.
    #[error("data.rule: a rule is for one kind; label it rank, consolidation or budgets")]
    SeveralKinds,
    /// Only offerings can be excluded.
    #[error("data.exclude: only rank rules exclude; say it in data.rule")]
    Exclude,
}

/// A variable that rules may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleVariable {
    /// As rules write it.
    pub name: &'static str,
    /// `a number`, `a text` and so on.
    pub type_name: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// The variables that rules of a kind may name.
pub fn rule_variables(kind: Kind) -> Vec<RuleVariable> {
    fn listed<V>(known: &[compile::Known<V>]) -> Vec<RuleVariable> {
        let of = |it: &compile::Known<V>| RuleVariable {
            name: it.name,
            type_name: it.of.as_str(),
            about: it.about,
        };
        known.iter().map(of).collect()
    }
    match kind {
        Kind::Rank => listed(RANK_VARIABLES),
        Kind::Consolidation => listed(MOVE_VARIABLES),
        Kind::Budgets => listed(POOL_VARIABLES),
    }
}

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) digest: String,
    pub(crate) kind: Kind,
    pub(crate) source: RuleSource,
    text: String,
    judgement: Judgement,
}

#[derive(Debug)]
enum Judgement {
    Rank {
        cost: Option<Node<RankVariable>>,
        exclusions: Vec<Exclusion>,
        is_of_claim: bool,
    },
    Consolidation(Node<MoveVariable>),
    Budgets(Node<PoolVariable>),
}

#[derive(Debug)]
struct Exclusion {
    condition: Node<RankVariable>,
    reason: String,
}

/// What came of running a rule, and the steps it took, in operations.
pub(crate) struct Ran<T> {
    pub(crate) result: Result<T, CallFailure>,
    pub(crate) fuel: u64,
}

/// What a rank rule says of one row.
#[derive(Debug, Clone, Copy)]
struct Scored {
    score: f64,
    /// Which exclusion applies.
    excluded: Option<usize>,
}

impl Rule {
    /// Compiles the expressions of a binding; `config` is JSON or empty.
    pub(crate) fn compile(
        source: &RuleSource,
        kinds: &[Kind],
        config: &str,
    ) -> Result<Self, RuleError> {
        let RuleSource { rule, exclude } = source;
        let [kind] = kinds else {
            return Err(RuleError::SeveralKinds);
        };
        if *kind != Kind::Rank && !exclude.is_empty() {
            return Err(RuleError::Exclude);
        }
        let config = serde_json::from_str(config).unwrap_or(serde_json::Value::Null);
        let failed = |error: compile::CompileError| RuleError::Expression {
            key: "rule",
            message: error.to_string(),
        };
        let judgement = match kind {
            Kind::Rank => rank_judgement(rule, exclude, &config)?,
            Kind::Consolidation => {
                let words = Vocabulary {
                    variables: MOVE_VARIABLES,
                    config: &config,
                };
                Judgement::Consolidation(compile(rule, Wanted::Condition, &words).map_err(failed)?)
            }
            Kind::Budgets => {
                let words = Vocabulary {
                    variables: POOL_VARIABLES,
                    config: &config,
                };
                Judgement::Budgets(compile(rule, Wanted::Number, &words).map_err(failed)?)
            }
        };
        let whole = if exclude.is_empty() {
            rule.clone()
        } else {
            format!("{rule}\n{exclude}")
        };
        Ok(Self {
            digest: digest(whole.as_bytes()),
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

    pub(crate) fn rank(
        &self,
        round: &RankRound,
        claims: &[&ClaimView],
        prior: &[f64],
        fuel: u64,
    ) -> Ran<Vec<Ranking>> {
        let context = crate::convert::rank_context(round);
        let scoring = Scoring {
            rule: self,
            round,
            prior,
            context: &context,
        };
        with_steps(fuel, |steps| scoring.rankings(claims, steps))
    }

    pub(crate) fn order(round: &ConsolidationRound) -> Ran<Vec<f64>> {
        Ran {
            result: Ok(DefaultConsolidation.order(round).keys),
            fuel: 0,
        }
    }

    pub(crate) fn judge(
        &self,
        round: &ConsolidationRound,
        moves: &[Move],
        fuel: u64,
    ) -> Ran<Vec<Verdict>> {
        let mut verdicts = DefaultConsolidation.judge(round, moves).verdicts;
        with_steps(fuel, |steps| {
            let Judgement::Consolidation(condition) = &self.judgement else {
                return Err(self.of_another_kind());
            };
            for (verdict, proposed) in verdicts.iter_mut().zip(moves) {
                if verdict.decision != VerdictDecision::Approve {
                    continue;
                }
                let facts = MoveFacts {
                    nodes: &round.nodes,
                    proposed,
                    context: &round.context,
                };
                let approved = self.value(condition, &facts, steps)? == Outcome::Yes;
                if !approved {
                    verdict.decision = VerdictDecision::Reject;
                    verdict.score = 0.0;
                    verdict.reason = format!("the rule does not hold: {}", self.text);
                }
            }
            Ok(verdicts)
        })
    }

    pub(crate) fn allow(&self, round: &BudgetRound, fuel: u64) -> Ran<Allowed> {
        with_steps(fuel, |steps| {
            let Judgement::Budgets(allowed) = &self.judgement else {
                return Err(self.of_another_kind());
            };
            let mut items = Vec::with_capacity(round.pools.len() * BudgetReason::ALL.len());
            for (index, pool) in (0_u32..).zip(&round.pools) {
                for reason in BudgetReason::ALL {
                    let facts = PoolFacts {
                        pool,
                        reason,
                        context: &round.context,
                    };
                    let Outcome::Number(number) = self.value(allowed, &facts, steps)? else {
                        return Err(self.of_another_kind());
                    };
                    items.push(Allowance {
                        pool: index,
                        reason,
                        allowed: whole_nodes(number)?,
                        why: self.summary(),
                        replaces_declared: false,
                    });
                }
            }
            Ok(Allowed {
                items,
                valid_for_seconds: 0,
            })
        })
    }

    fn value<F: Facts>(
        &self,
        node: &Node<F::Variable>,
        facts: &F,
        steps: &mut Steps,
    ) -> Result<Outcome, CallFailure> {
        match node.evaluate(facts, steps) {
            Ok(evaluate::Value::Bool(true)) => Ok(Outcome::Yes),
            Ok(evaluate::Value::Bool(false)) => Ok(Outcome::No),
            Ok(number) => Ok(Outcome::Number(number.number())),
            Err(error) => Err(self.failure(&error, steps)),
        }
    }

    fn failure(&self, error: &EvaluationError, steps: &Steps) -> CallFailure {
        let refused = |transient| CallFailure::Refused {
            message: format!("data.rule: {error}, in {}", self.text),
            transient,
        };
        match error {
            EvaluationError::OutOfSteps => CallFailure::OutOfFuel(operations(steps)),
            // The next claim may have it.
            EvaluationError::NoLabel { .. } => refused(true),
            EvaluationError::DivisionByZero { .. } | EvaluationError::Overflow { .. } => {
                refused(false)
            }
        }
    }

    fn of_another_kind(&self) -> CallFailure {
        CallFailure::InvalidAnswer(format!("the rule is for {}", self.kind.as_str()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Yes,
    No,
    Number(f64),
}

struct Scoring<'a> {
    rule: &'a Rule,
    round: &'a RankRound,
    prior: &'a [f64],
    context: &'a Context,
}

impl Scoring<'_> {
    fn rankings(
        &self,
        claims: &[&ClaimView],
        steps: &mut Steps,
    ) -> Result<Vec<Ranking>, CallFailure> {
        let Judgement::Rank {
            exclusions,
            is_of_claim,
            ..
        } = &self.rule.judgement
        else {
            return Err(self.rule.of_another_kind());
        };
        let rows = self.round.table.price.len();
        let mut known: Vec<Option<Scored>> = vec![None; rows];
        let mut rankings = Vec::with_capacity(claims.len());
        for claim in claims {
            if *is_of_claim {
                known.fill(None);
            }
            let all: Vec<u32>;
            let candidates = if claim.candidates.is_empty() {
                all = (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect();
                &all
            } else {
                &claim.candidates
            };
            let mut ranking = Ranking {
                scores: Vec::with_capacity(candidates.len()),
                excluded: Vec::new(),
                note: None,
            };
            for (position, &row) in (0_u32..).zip(candidates) {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                let scored = match known.get(row).copied().flatten() {
                    Some(scored) => scored,
                    None => self.scored(claim, row, steps)?,
                };
                if let Some(slot) = known.get_mut(row) {
                    *slot = Some(scored);
                }
                ranking.scores.push(scored.score);
                if let Some(exclusion) = scored.excluded.and_then(|it| exclusions.get(it)) {
                    ranking.excluded.push((position, exclusion.reason.clone()));
                }
            }
            rankings.push(ranking);
        }
        Ok(rankings)
    }

    fn scored(
        &self,
        claim: &ClaimView,
        row: usize,
        steps: &mut Steps,
    ) -> Result<Scored, CallFailure> {
        let table = &self.round.table;
        let facts = OfferingFacts {
            table,
            prior: self.prior,
            claim,
            context: self.context,
            row,
        };
        let Judgement::Rank {
            cost, exclusions, ..
        } = &self.rule.judgement
        else {
            return Err(self.rule.of_another_kind());
        };
        let score = match cost {
            Some(cost) => match self.rule.value(cost, &facts, steps)? {
                Outcome::Number(score) => score,
                Outcome::Yes | Outcome::No => return Err(self.rule.of_another_kind()),
            },
            None => self.prior.get(row).copied().unwrap_or(0.0),
        };
        if !score.is_finite() || score < 0.0 {
            let name = |column: &[u32]| {
                let sym = column.get(row).and_then(|sym| usize::try_from(*sym).ok());
                sym.and_then(|sym| table.symbols.get(sym))
                    .map_or("", String::as_str)
            };
            return Err(CallFailure::InvalidAnswer(format!(
                "the score {score} of {} in {} is not a finite cost",
                name(&table.instance_type),
                name(&table.zone),
            )));
        }
        for (index, exclusion) in exclusions.iter().enumerate() {
            if self.rule.value(&exclusion.condition, &facts, steps)? == Outcome::Yes {
                return Ok(Scored {
                    score: score + 0.0,
                    excluded: Some(index),
                });
            }
        }
        Ok(Scored {
            score: score + 0.0,
            excluded: None,
        })
    }
}

fn rank_judgement(
    rule: &str,
    exclude: &str,
    config: &serde_json::Value,
) -> Result<Judgement, RuleError> {
    let words = Vocabulary {
        variables: RANK_VARIABLES,
        config,
    };
    let failed = |key, message: String| RuleError::Expression { key, message };
    let cost = if rule.is_empty() {
        None
    } else {
        Some(
            compile(rule, Wanted::Number, &words)
                .map_err(|error| failed("rule", error.to_string()))?,
        )
    };
    let mut exclusions = Vec::new();
    for (number, line) in (1..).zip(exclude.lines()) {
        let (text, reason) = with_reason(line);
        if text.is_empty() {
            continue;
        }
        let condition = compile(text, Wanted::Condition, &words)
            .map_err(|error| failed("exclude", format!("line {number} of it, {error}")))?;
        exclusions.push(Exclusion {
            condition,
            reason: reason.to_owned(),
        });
    }
    let of_claim = |node: &Node<RankVariable>| {
        node.any(&|it| match it {
            Node::Variable(variable) => variable.is_of_claim(),
            Node::Label(..) | Node::HasLabel(_) => true,
            _ => false,
        })
    };
    let is_of_claim =
        cost.as_ref().is_some_and(of_claim) || exclusions.iter().any(|it| of_claim(&it.condition));
    Ok(Judgement::Rank {
        cost,
        exclusions,
        is_of_claim,
    })
}

/// An expression and what its comment says; without a comment it is its own reason.
fn with_reason(line: &str) -> (&str, &str) {
    let mut quote = None;
    let mut previous = ' ';
    for (at, it) in line.char_indices() {
        match quote {
            Some(open) if it == open && previous != '\\' => quote = None,
            None if it == '"' || it == '\'' => quote = Some(it),
            None if it == '/' && previous == '/' => {
                let (text, reason) = line.split_at(at - 1);
                let reason = reason.trim_start_matches('/').trim();
                let text = text.trim();
                return (text, if reason.is_empty() { text } else { reason });
            }
            Some(_) | None => {}
        }
        previous = it;
    }
    (line.trim(), line.trim())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Part of a node is none; less than none is none.
fn whole_nodes(number: f64) -> Result<u32, CallFailure> {
    if number.is_nan() {
        return Err(CallFailure::InvalidAnswer(
            "the rule gives no number of nodes".to_owned(),
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range"
    )]
    let whole = number.clamp(0.0, f64::from(u32::MAX)) as u32;
    Ok(whole)
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
