//! Running a compiled expression: a tree of nodes over the facts of one row.
//!
//! Types were settled when the expression was compiled, so nothing is looked up by name here. Every node costs a step
//! and every loop pays for each turn; the budget of steps is what fuel is to a component, and as repeatable.

mod arithmetic;
mod lists;
mod row_facts;

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::tz::TimeZone;

use super::apply::{apply, concatenated};
use super::civil::{self, CivilField};
use super::evaluation_error::{Evaluated, EvaluationError, EvaluationProblem, problem};
use super::facts::LabelSet;
use super::functions::Function;
use super::node::{Comparison, Computation, RuleNode};
use super::pattern::{COMPILE_STEPS, Pattern};
use super::place::SourcePosition;
use super::steps::{ITEM_BYTES, Steps};
use super::value::Value;
use arithmetic::{real, whole};
pub(crate) use row_facts::{RowFacts, Variable};

/// Steps that breaking a moment down takes.
const CIVIL_STEPS: u64 = 10;

/// The evaluation of a policy's expressions for one row.
pub(crate) struct Evaluation<'a, 's, F: RowFacts> {
    facts: &'a F,
    named: &'a [RuleNode<F::Variable>],
    known: Vec<Option<Value<'a>>>,
    slots: Vec<Value<'a>>,
    steps: &'s mut Steps,
}

impl<'a, 's, F: RowFacts> Evaluation<'a, 's, F> {
    /// Begins a row; `slots` is how many the expressions use.
    pub(crate) fn new(
        facts: &'a F,
        named: &'a [RuleNode<F::Variable>],
        slots: usize,
        steps: &'s mut Steps,
    ) -> Self {
        steps.begin_row();
        Self {
            facts,
            named,
            known: vec![None; named.len()],
            slots: vec![Value::Absent; slots],
            steps,
        }
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, node: &'a RuleNode<F::Variable>) -> Evaluated<'a> {
        self.steps.take(1)?;
        match node {
            RuleNode::Literal(literal) => Ok(literal.value()),
            RuleNode::Variable(variable) => {
                self.steps.take(self.facts.steps(*variable))?;
                Ok(self.facts.value(*variable))
            }
            RuleNode::Slot(slot) => Ok(self.slots.get(*slot).cloned().unwrap_or(Value::Absent)),
            RuleNode::Named(index) => self.named(*index),
            RuleNode::Label(set, key) => {
                let label = self.label(*set, key)?;
                Ok(label.map_or(Value::Absent, Value::text))
            }
            RuleNode::HasLabel(set, key) => Ok(Value::Bool(self.label(*set, key)?.is_some())),
            RuleNode::At(parts) => {
                let [of, key] = self.both(parts)?;
                Ok(of.at(&key))
            }
            RuleNode::Call(function, operands, at) => self.call(*function, operands, *at),
            RuleNode::Matches(text, pattern) => {
                let text = self.value(text)?;
                self.matches(&text, pattern)
            }
            RuleNode::MatchesComputed(parts, at) => self.matches_computed(parts, *at),
            RuleNode::Civil(field, moment, zone) => self.civil(*field, moment, zone),
            RuleNode::Compute(computation, parts) => self.computed(*computation, parts),
            RuleNode::Compare(comparison, parts) => {
                let [left, right] = self.both(parts)?;
                self.compared(*comparison, &left, &right)
            }
            RuleNode::And(parts) => self.all_hold(parts),
            RuleNode::Or(parts) => self.any_holds(parts),
            RuleNode::If(parts) => {
                let [condition, yes, no] = &**parts;
                let is_true = self.value(condition)?.is_true();
                self.value(if is_true { yes } else { no })
            }
            RuleNode::In(parts) => self.is_in(parts),
            RuleNode::List(items) => {
                self.steps.make(items.len() * ITEM_BYTES)?;
                let items: Result<Vec<_>, _> = items.iter().map(|it| self.value(it)).collect();
                Ok(Value::List(Rc::new(items?)))
            }
            RuleNode::Loop(it) => self.looped(it),
            RuleNode::Bind {
                slot,
                parts,
                is_optional,
            } => {
                let [value, body] = &**parts;
                let value = self.value(value)?;
                if *is_optional && value.is_absent() {
                    return Ok(Value::Absent);
                }
                self.set(*slot, value);
                self.value(body)
            }
            RuleNode::OrElse(parts) => self.or_else(parts),
        }
    }

    fn civil(
        &mut self,
        field: CivilField,
        moment: &'a RuleNode<F::Variable>,
        zone: &TimeZone,
    ) -> Evaluated<'a> {
        let moment = self.value(moment)?;
        self.steps.take(CIVIL_STEPS)?;
        let number = moment.int().and_then(|it| civil::field(field, it, zone));
        Ok(number.map_or(Value::Absent, Value::Int))
    }

    fn or_else(&mut self, parts: &'a [RuleNode<F::Variable>; 2]) -> Evaluated<'a> {
        let [first, other] = parts;
        match self.value(first)? {
            Value::Absent => self.value(other),
            value => Ok(value),
        }
    }

    fn set(&mut self, slot: usize, value: Value<'a>) {
        if let Some(known) = self.slots.get_mut(slot) {
            *known = value;
        }
    }

    /// One of `data.variables`, computed when it is asked for first.
    fn named(&mut self, index: usize) -> Evaluated<'a> {
        if let Some(Some(known)) = self.known.get(index) {
            return Ok(known.clone());
        }
        let named = self.named;
        let Some(node) = named.get(index) else {
            return Ok(Value::Absent);
        };
        let value = self.value(node)?;
        if let Some(known) = self.known.get_mut(index) {
            *known = Some(value.clone());
        }
        Ok(value)
    }

    fn label(
        &mut self,
        set: LabelSet,
        key: &'a RuleNode<F::Variable>,
    ) -> Result<Option<&'a str>, EvaluationError> {
        let key = self.value(key)?;
        let labels = u64::try_from(self.facts.labels(set)).unwrap_or(u64::MAX);
        self.steps.take(labels)?;
        Ok(self.facts.label(set, key.as_text()))
    }

    fn both(
        &mut self,
        parts: &'a [RuleNode<F::Variable>; 2],
    ) -> Result<[Value<'a>; 2], EvaluationError> {
        let [left, right] = parts;
        Ok([self.value(left)?, self.value(right)?])
    }

    fn call(
        &mut self,
        function: Function,
        operands: &'a [RuleNode<F::Variable>],
        at: SourcePosition,
    ) -> Evaluated<'a> {
        // Most have one operand, and none of those needs a list.
        if let [operand] = operands {
            let operand = [self.value(operand)?];
            return apply(function, &operand, at, self.steps);
        }
        let values: Result<Vec<_>, _> = operands.iter().map(|it| self.value(it)).collect();
        apply(function, &values?, at, self.steps)
    }

    fn matches(&mut self, text: &Value<'_>, pattern: &Pattern) -> Evaluated<'a> {
        self.steps.take(pattern.steps(text.as_text()))?;
        let is_match = !text.is_absent() && pattern.is_match(text.as_text());
        Ok(Value::Bool(is_match))
    }

    fn matches_computed(
        &mut self,
        parts: &'a [RuleNode<F::Variable>; 2],
        at: SourcePosition,
    ) -> Evaluated<'a> {
        let [text, pattern] = self.both(parts)?;
        if text.is_absent() || pattern.is_absent() {
            return Ok(Value::Bool(false));
        }
        let pattern = pattern.as_text();
        self.steps.look(pattern.len())?;
        let known = self.steps.patterns.known(pattern);
        let compiled = if let Some(known) = known {
            known
        } else {
            self.steps.take(COMPILE_STEPS)?;
            self.steps.patterns.compile(pattern)
        };
        let compiled = compiled.map_err(|error| problem(at, EvaluationProblem::Pattern(error)))?;
        self.matches(&text, &compiled)
    }

    fn computed(
        &mut self,
        computation: Computation,
        parts: &'a [RuleNode<F::Variable>; 2],
    ) -> Evaluated<'a> {
        let [left, right] = self.both(parts)?;
        if left.is_absent() || right.is_absent() {
            return Ok(Value::Absent);
        }
        match computation {
            Computation::Whole(operator, at) => whole(operator, &left, &right, at),
            Computation::Shift(operator) => {
                let seconds = real(operator, left.number(), right.number());
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "saturates, and no calendar has what saturates"
                )]
                let moment = Value::Moment(seconds.floor() as i64);
                Ok(moment)
            }
            Computation::Join => concatenated(&left, &right, self.steps),
            Computation::Real(operator) => {
                let number = real(operator, left.number(), right.number());
                Ok(Value::Double(number))
            }
        }
    }

    fn compared(
        &mut self,
        comparison: Comparison,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Evaluated<'a> {
        self.steps
            .look(left.as_text().len().min(right.as_text().len()))?;
        let is_list = |it: &Value<'_>| matches!(it, Value::List(_) | Value::Items(_));
        if is_list(left) && is_list(right) {
            let are_equal = self.are_equal_lists(left, right)?;
            return Ok(Value::Bool(are_equal == (comparison == Comparison::Equal)));
        }
        let order = left.order(right);
        Ok(Value::Bool(match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }))
    }

    fn are_equal_lists(
        &mut self,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<bool, EvaluationError> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (one, other) in left.items().zip(right.items()) {
            self.steps.take(1)?;
            if !self.compared(Comparison::Equal, &one, &other)?.is_true() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
