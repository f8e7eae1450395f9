//! Decisions over several values: membership, `&&` and `||`, and loops, which pay for each turn.

use std::rc::Rc;

use super::super::evaluation_error::Evaluated;
use super::super::node::{Comparison, Loop, LoopKind, RuleNode};
use super::super::steps::ITEM_BYTES;
use super::super::value::Value;
use super::Evaluation;
use super::row_facts::RowFacts;

impl<'a, F: RowFacts> Evaluation<'a, '_, F> {
    pub(super) fn is_in(&mut self, parts: &'a [RuleNode<F::Variable>; 2]) -> Evaluated<'a> {
        let [value, list] = self.both(parts)?;
        if matches!(list, Value::Entries(_)) {
            return Ok(Value::Bool(!list.at(&value).is_absent()));
        }
        for item in list.items() {
            self.steps.take(1)?;
            if self.compared(Comparison::Equal, &value, &item)?.is_true() {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    /// Evaluates `&&`.
    pub(super) fn all_hold(&mut self, parts: &'a [RuleNode<F::Variable>]) -> Evaluated<'a> {
        self.decided(parts, false)
    }

    /// Evaluates `||`.
    pub(super) fn any_holds(&mut self, parts: &'a [RuleNode<F::Variable>]) -> Evaluated<'a> {
        self.decided(parts, true)
    }

    /// As CEL has it, one part that decides makes an error of another one harmless.
    fn decided(&mut self, parts: &'a [RuleNode<F::Variable>], decides: bool) -> Evaluated<'a> {
        let mut failed = None;
        for part in parts {
            match self.value(part) {
                Ok(value) if value.is_true() == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    pub(super) fn looped(&mut self, of_list: &'a Loop<F::Variable>) -> Evaluated<'a> {
        let list = self.value(&of_list.list)?;
        if list.is_absent() {
            return Ok(match of_list.kind {
                LoopKind::Exists | LoopKind::All | LoopKind::ExistsOne => Value::Bool(false),
                LoopKind::Map | LoopKind::Filter => Value::Absent,
            });
        }
        let mut holding = 0_u32;
        let mut made = Vec::new();
        for item in list.items() {
            self.steps.take(1)?;
            self.set(of_list.slot, item.clone());
            if let Some(condition) = &of_list.condition
                && !self.value(condition)?.is_true()
            {
                continue;
            }
            let value = self.value(&of_list.body)?;
            match of_list.kind {
                LoopKind::Exists if value.is_true() => return Ok(Value::Bool(true)),
                LoopKind::All if !value.is_true() => return Ok(Value::Bool(false)),
                LoopKind::ExistsOne if value.is_true() => holding = holding.saturating_add(1),
                LoopKind::Map => {
                    self.steps.make(ITEM_BYTES)?;
                    made.push(value);
                }
                LoopKind::Filter if value.is_true() => {
                    self.steps.make(ITEM_BYTES)?;
                    made.push(item);
                }
                LoopKind::Exists | LoopKind::All | LoopKind::ExistsOne | LoopKind::Filter => {}
            }
        }
        Ok(match of_list.kind {
            LoopKind::Exists => Value::Bool(false),
            LoopKind::All => Value::Bool(true),
            LoopKind::ExistsOne => Value::Bool(holding == 1),
            LoopKind::Map | LoopKind::Filter => Value::List(Rc::new(made)),
        })
    }
}
