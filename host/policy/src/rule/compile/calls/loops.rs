//! What CEL calls macros: loops, and bindings with a variable of their own, seen by their bodies alone.

use super::super::super::evaluate::Variable;
use super::super::super::node::{Loop, LoopKind, RuleNode};
use super::super::super::parse::Expr;
use super::super::super::place::SourcePosition;
use super::super::super::types::RuleType;
use super::super::{Compiler, Scoped, Takes, Typed};

impl<V: Variable> Compiler<'_, V> {
    /// Compiles what sees one variable more.
    fn scoped<T>(
        &mut self,
        variable: &Expr,
        of: RuleType,
        work: impl FnOnce(&mut Self, usize) -> T,
    ) -> T {
        let name = self.variable_name(variable);
        let slot = self.scope.len();
        self.scope.push(Scoped { name, slot, of });
        self.slots = self.slots.max(self.scope.len());
        let done = work(self, slot);
        self.scope.pop();
        done
    }

    pub(super) fn looped(
        &mut self,
        at: SourcePosition,
        kind: LoopKind,
        of: &Expr,
        args: &[Expr],
    ) -> Typed<V> {
        let list = self.node(of);
        let item = match &list.of {
            RuleType::List(item) => (**item).clone(),
            RuleType::Map(_) => RuleType::Text,
            RuleType::Unknown => RuleType::Unknown,
            other => {
                let message = format!("{other} stands where a list or a map of one type is wanted");
                self.fault(at, message);
                RuleType::Unknown
            }
        };
        let (Some(variable), Some(body)) = (args.first(), args.last()) else {
            return Typed::wrong();
        };
        let condition = match args {
            [_, condition, _] => Some(condition),
            _ => None,
        };
        let (slot, condition, body) = self.scoped(variable, item.clone(), |compiler, slot| {
            let condition = condition.map(|it| compiler.operand(it, Takes::Bool).node);
            let body = match kind {
                LoopKind::Map => compiler.node(body),
                LoopKind::Exists | LoopKind::All | LoopKind::ExistsOne | LoopKind::Filter => {
                    compiler.operand(body, Takes::Bool)
                }
            };
            (slot, condition, body)
        });
        let of = match kind {
            LoopKind::Exists | LoopKind::All | LoopKind::ExistsOne => RuleType::Bool,
            LoopKind::Map => RuleType::list(body.of.clone()),
            LoopKind::Filter => RuleType::list(item),
        };
        let looped = Loop {
            kind,
            list: list.node,
            slot,
            condition,
            body: body.node,
        };
        Typed::new(RuleNode::Loop(Box::new(looped)), of)
    }

    pub(super) fn bound(
        &mut self,
        variable: &Expr,
        value: Typed<V>,
        body: &Expr,
        is_optional: bool,
    ) -> Typed<V> {
        let (slot, body) = self.scoped(variable, value.of, |compiler, slot| {
            (slot, compiler.node(body))
        });
        let of = if is_optional {
            RuleType::optional(body.of)
        } else {
            body.of
        };
        let node = RuleNode::Bind {
            slot,
            parts: Box::new([value.node, body.node]),
            is_optional,
        };
        Typed::new(node, of)
    }
}
