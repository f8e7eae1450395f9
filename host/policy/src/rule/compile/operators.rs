//! Operators, conditionals and lists: what their operands must be, and what comes of them.

use super::super::evaluate::Variable;
use super::super::node::{Arithmetic, Comparison, Computation, RuleNode};
use super::super::parse::Expr;
use super::super::place::SourcePosition;
use super::super::types::RuleType;
use super::super::value::Literal;
use super::super::words::{arithmetic, comparison};
use super::{Compiler, Takes, Typed, optional_hint};

impl<V: Variable> Compiler<'_, V> {
    pub(super) fn conditional(&mut self, at: SourcePosition, parts: &[Expr; 3]) -> Typed<V> {
        let [condition, yes, no] = parts;
        let condition = self.operand(condition, Takes::Bool).node;
        let (yes, no) = (self.node(yes), self.node(no));
        match yes.of.joined(&no.of) {
            Some(of) => Typed::new(RuleNode::If(Box::new([condition, yes.node, no.node])), of),
            None => self.wrong(
                at,
                format!("one branch gives {}, the other {}", yes.of, no.of),
            ),
        }
    }

    pub(super) fn list(&mut self, at: SourcePosition, items: &[Expr]) -> Typed<V> {
        let items: Vec<Typed<V>> = items.iter().map(|it| self.node(it)).collect();
        let of = items
            .iter()
            .try_fold(RuleType::Unknown, |of, item| of.joined(&item.of));
        let Some(of) = of else {
            let mut types: Vec<String> = items.iter().map(|it| it.of.to_string()).collect();
            types.dedup();
            let types = types.join(", ");
            return self.wrong(
                at,
                format!("the items of a list are of one type, and not {types}"),
            );
        };
        let literals: Option<Vec<Literal>> = items
            .iter()
            .map(|item| item.node.literal().cloned())
            .collect();
        let node = literals.map_or_else(
            || RuleNode::List(items.into_iter().map(|it| it.node).collect()),
            |literals| RuleNode::Literal(Literal::list(literals)),
        );
        Typed::new(node, RuleType::list(of))
    }

    pub(super) fn binary(
        &mut self,
        at: SourcePosition,
        sign: &str,
        operands: &[Expr; 2],
    ) -> Typed<V> {
        let [left, right] = operands;
        if sign == "in" {
            return self.member(at, left, right);
        }
        let (left, right) = (self.node(left), self.node(right));
        match (arithmetic(sign), comparison(sign)) {
            (Some(operator), _) => self.computed(at, operator, [left, right]),
            (None, Some(comparison)) => self.compared(at, comparison, [left, right]),
            (None, None) => self.wrong(at, format!("`{sign}` is no operator of rules")),
        }
    }

    pub(super) fn computed(
        &mut self,
        at: SourcePosition,
        operator: Arithmetic,
        [left, right]: [Typed<V>; 2],
    ) -> Typed<V> {
        let (one, other) = (left.of, right.of);
        let is_sum = operator == Arithmetic::Add;
        let is_shift = is_sum || operator == Arithmetic::Subtract;
        let (computation, of) = match (&one, &other) {
            (RuleType::Unknown, RuleType::Unknown) => {
                (Computation::Real(operator), RuleType::Unknown)
            }
            (RuleType::Int, RuleType::Int) if operator != Arithmetic::Divide => {
                (Computation::Whole(operator, at), RuleType::Int)
            }
            (RuleType::Text, RuleType::Text | RuleType::Unknown)
            | (RuleType::Unknown, RuleType::Text)
                if is_sum =>
            {
                (Computation::Join, RuleType::Text)
            }
            (RuleType::Moment, RuleType::Moment) if operator == Arithmetic::Subtract => {
                (Computation::Real(operator), RuleType::Double)
            }
            (RuleType::Moment, number) if is_shift && number.is_number() => {
                (Computation::Shift(operator), RuleType::Moment)
            }
            (number, RuleType::Moment) if is_sum && number.is_number() => {
                (Computation::Shift(operator), RuleType::Moment)
            }
            (one, other) if one.is_number() && other.is_number() => {
                (Computation::Real(operator), RuleType::Double)
            }
            _ => {
                let hint = either_hint(&one, &other);
                return self.wrong(
                    at,
                    format!("{one} and {other} cannot be computed with{hint}"),
                );
            }
        };
        let parts = Box::new([left.node, right.node]);
        Typed::new(RuleNode::Compute(computation, parts), of)
    }

    fn compared(
        &mut self,
        at: SourcePosition,
        comparison: Comparison,
        [left, right]: [Typed<V>; 2],
    ) -> Typed<V> {
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let is_ordered = |of: &RuleType| {
            matches!(
                of,
                RuleType::Bool
                    | RuleType::Int
                    | RuleType::Double
                    | RuleType::Text
                    | RuleType::Moment
                    | RuleType::Unknown
            )
        };
        let joined = left.of.joined(&right.of);
        let fits = joined
            .is_some_and(|of| is_ordered(&of) || (is_equality && matches!(of, RuleType::List(_))));
        if fits {
            let parts = Box::new([left.node, right.node]);
            return Typed::new(RuleNode::Compare(comparison, parts), RuleType::Bool);
        }
        let hint = either_hint(&left.of, &right.of);
        self.wrong(
            at,
            format!("{} cannot be compared with {}{hint}", left.of, right.of),
        )
    }
}

fn either_hint(one: &RuleType, other: &RuleType) -> &'static str {
    match optional_hint(one) {
        "" => optional_hint(other),
        hint => hint,
    }
}
