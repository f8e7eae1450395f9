//! The expressions of a binding, compiled together and run for one row.

use std::collections::BTreeSet;

use super::compile::{CompiledExpression, Compiler, RuleVocabulary, Wanted};
use super::evaluate::{Evaluation, RowFacts, Variable};
use super::node::RuleNode;
use super::place::{RuleError, RuleFault, SourcePosition};
use super::source::RuleSource;
use super::steps::Steps;
use crate::needs::Need;

/// Lines that `data.exclude` may have.
const EXCLUSIONS_MAX: usize = 64;

/// The expressions of a binding.
#[derive(Debug)]
pub(super) struct RuleExpressions<V> {
    pub(super) named: Vec<RuleNode<V>>,
    pub(super) slots: usize,
    pub(super) rule: Option<RuleNode<V>>,
    pub(super) exclusions: Vec<Exclusion<V>>,
    pub(super) message: Option<RuleNode<V>>,
    /// Whether the answer for a row hangs on the claim.
    pub(super) is_of_claim: bool,
    pub(super) needs: BTreeSet<Need>,
}

#[derive(Debug)]
pub(super) struct Exclusion<V> {
    pub(super) condition: RuleNode<V>,
    /// Comment of the line, or the condition itself.
    pub(super) reason: String,
    pub(super) has_comment: bool,
}

impl<V: Variable> RuleExpressions<V> {
    pub(super) fn compile(
        source: &RuleSource,
        wanted: Wanted,
        words: &RuleVocabulary<V>,
        general: &mut Vec<String>,
    ) -> Result<Self, RuleError> {
        let mut compiler = Compiler::new(words);
        compiler.variables("variables", &source.variables);
        let mut is_of_claim = false;
        let mut compiled = |key, text: &str, wanted, compiler: &mut Compiler<'_, V>| {
            if text.is_empty() {
                return None;
            }
            let compiled = compiler.expression(text, SourcePosition::line(key, 1), wanted)?;
            is_of_claim |= compiled.is_of_claim;
            Some(compiled.node)
        };
        let rule = compiled("rule", &source.rule, wanted, &mut compiler);
        let message = compiled("message", &source.message, Wanted::Text, &mut compiler);
        let mut exclusions = Vec::new();
        for (number, line) in (1..).zip(source.exclude.lines()).take(EXCLUSIONS_MAX + 1) {
            let (text, reason) = with_reason(line);
            if text.trim().is_empty() {
                continue;
            }
            let begin = SourcePosition::line("exclude", number);
            if exclusions.len() == EXCLUSIONS_MAX {
                let message = format!("there may be {EXCLUSIONS_MAX} lines; join them with ||");
                compiler.faults.push(RuleFault::new(begin, message));
                break;
            }
            let Some(CompiledExpression {
                node: condition,
                is_of_claim: of_claim,
            }) = compiler.expression(text, begin, Wanted::Condition)
            else {
                continue;
            };
            is_of_claim |= of_claim;
            exclusions.push(Exclusion {
                condition,
                reason: reason.unwrap_or_else(|| text.trim()).to_owned(),
                has_comment: reason.is_some(),
            });
        }
        let Compiler {
            named,
            slots,
            needs,
            faults,
            ..
        } = compiler;
        if !general.is_empty() || !faults.is_empty() {
            return Err(RuleError::new(std::mem::take(general), faults));
        }
        Ok(Self {
            named,
            slots,
            rule,
            exclusions,
            message,
            is_of_claim,
            needs,
        })
    }

    pub(super) fn run<'a, 's, F: RowFacts<Variable = V>>(
        &'a self,
        facts: &'a F,
        steps: &'s mut Steps,
    ) -> Evaluation<'a, 's, F> {
        Evaluation::new(facts, &self.named, self.slots, steps)
    }

    /// Text that `data.message` gives for a row; nothing when it is not there or has no value.
    pub(super) fn message<'a, F: RowFacts<Variable = V>>(
        &'a self,
        run: &mut Evaluation<'a, '_, F>,
    ) -> Option<String> {
        let value = run.value(self.message.as_ref()?).ok()?;
        let has_text = value.is_text() && !value.as_text().is_empty();
        has_text.then(|| crate::guest::limits::short(value.as_text().to_owned()))
    }
}

/// An expression, and what its comment says.
fn with_reason(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    let mut previous = ' ';
    for (at, it) in line.char_indices() {
        match quote {
            Some(open) if it == open && previous != '\\' => quote = None,
            None if it == '"' || it == '\'' => quote = Some(it),
            None if it == '/' && previous == '/' => {
                let (text, reason) = line.split_at(at - 1);
                let reason = reason.trim_start_matches('/').trim();
                return (text, (!reason.is_empty()).then_some(reason));
            }
            Some(_) | None => {}
        }
        previous = it;
    }
    (line, None)
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
