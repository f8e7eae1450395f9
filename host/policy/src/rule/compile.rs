//! From a tree to nodes with settled types.
//!
//! The part of CEL that a rule about one row needs. What is unknown or of the wrong type is refused here, with its
//! place, and everything that is wrong is found in one go; a live rule can only fail on values. Where CEL wants
//! `double(count)`, an int is widened instead, and ints are divided as doubles are.

mod calls;
mod names;
mod operators;
mod vocabulary;

use std::collections::BTreeSet;

use super::apply::apply;
use super::evaluate::Variable;
use super::functions::{Function, Takes};
use super::node::{LoopKind, RuleNode};
use super::parse::{Expr, ExprKind, parse};
use super::place::{RuleFault, SourcePosition};
use super::steps::Steps;
use super::types::RuleType;
use super::value::Literal;
use crate::needs::Need;
pub(crate) use vocabulary::{KnownVariable, RuleVocabulary, VariableType, Wanted};

/// How deep the evaluation of an expression may go, through the variables that it names.
const EVALUATION_DEPTH_MAX: u16 = 256;
/// Steps that a part of an expression may take that hangs on nothing and is computed once.
const CONSTANT_STEPS_MAX: u64 = 1000;
/// Variables that `data.variables` may define.
const VARIABLES_MAX: usize = 32;

/// A node and the type of its values.
struct Typed<V> {
    node: RuleNode<V>,
    of: RuleType,
}

impl<V> Typed<V> {
    fn new(node: RuleNode<V>, of: RuleType) -> Self {
        Self { node, of }
    }

    /// Of what was told to be wrong: fits everywhere, so that nothing is told twice.
    fn wrong() -> Self {
        Self::new(RuleNode::Literal(Literal::Absent), RuleType::Unknown)
    }

    fn literal(literal: Literal) -> Self {
        let of = literal.of();
        Self::new(RuleNode::Literal(literal), of)
    }
}

/// A variable that `data.variables` defines.
struct NamedVariable {
    name: String,
    of: RuleType,
    depth: u16,
    is_of_claim: bool,
}

/// A variable of a loop or a binding.
struct Scoped {
    name: String,
    slot: usize,
    of: RuleType,
}

/// Compiles the expressions of one binding, one after another.
pub(crate) struct Compiler<'a, V: 'static> {
    words: &'a RuleVocabulary<V>,
    variables: Vec<NamedVariable>,
    /// Expressions of `data.variables`, compiled, in their order.
    pub(crate) named: Vec<RuleNode<V>>,
    scope: Vec<Scoped>,
    /// Slots that the deepest scope takes.
    pub(crate) slots: usize,
    patterns: usize,
    /// Depth of the deepest variable that the present expression names.
    depth: u16,
    /// Whether the present expression hangs on the claim.
    is_of_claim: bool,
    /// Facts beside the plain tables that the expressions need.
    pub(crate) needs: BTreeSet<Need>,
    /// Everything that is wrong.
    pub(crate) faults: Vec<RuleFault>,
}

/// A compiled expression.
pub(crate) struct CompiledExpression<V> {
    pub(crate) node: RuleNode<V>,
    /// Whether its value hangs on the claim.
    pub(crate) is_of_claim: bool,
}

impl<'a, V: Variable> Compiler<'a, V> {
    pub(crate) fn new(words: &'a RuleVocabulary<V>) -> Self {
        Self {
            words,
            variables: Vec::new(),
            named: Vec::new(),
            scope: Vec::new(),
            slots: 0,
            patterns: 0,
            depth: 0,
            is_of_claim: false,
            needs: BTreeSet::new(),
            faults: Vec::new(),
        }
    }

    /// Compiles an expression that begins at a place.
    pub(crate) fn expression(
        &mut self,
        text: &str,
        begin: SourcePosition,
        wanted: Wanted,
    ) -> Option<CompiledExpression<V>> {
        let known = self.faults.len();
        let (expression, typed) = self.typed(text, begin)?;
        let fits = match wanted {
            Wanted::Condition => typed.of == RuleType::Bool,
            Wanted::Number => matches!(typed.of, RuleType::Int | RuleType::Double),
            Wanted::Text => typed.of == RuleType::Text,
        };
        if !fits && self.faults.len() == known {
            let wanted = match wanted {
                Wanted::Condition => "bool",
                Wanted::Number => "double",
                Wanted::Text => "string",
            };
            let hint = optional_hint(&typed.of);
            self.fault(
                expression.at,
                format!(
                    "the expression gives {}, and {wanted} is wanted{hint}",
                    typed.of
                ),
            );
        }
        Some(CompiledExpression {
            node: typed.node,
            is_of_claim: self.is_of_claim,
        })
    }

    /// Reads `data.variables`: a name, a colon and an expression a line.
    pub(crate) fn variables(&mut self, key: &'static str, text: &str) {
        for (number, line) in (1..).zip(text.lines()) {
            let begin = SourcePosition::line(key, number);
            let content = line.trim_start();
            if content.is_empty() || content.starts_with("//") {
                continue;
            }
            let Some((name, expression)) = line.split_once(':') else {
                self.fault(begin, "a variable is written as `name: expression`");
                continue;
            };
            if self.variables.len() >= VARIABLES_MAX {
                let message = format!("there may be {VARIABLES_MAX} variables; write a module");
                self.fault(begin, message);
                return;
            }
            let after = begin.after(name).after(":");
            self.variable(name.trim(), expression, begin, after);
        }
    }

    fn variable(&mut self, name: &str, text: &str, at: SourcePosition, begin: SourcePosition) {
        let is_name = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            && name
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_');
        if !is_name {
            self.fault(
                at,
                format!("{name:?} is no name; use letters, digits and _"),
            );
        }
        if self.is_taken(name) {
            self.fault(at, format!("`{name}` is there already; use another name"));
        }
        let (depth, typed) = match self.typed(text, begin) {
            Some((expression, typed)) => (expression.depth.saturating_add(self.depth), typed),
            None => (0, Typed::wrong()),
        };
        self.variables.push(NamedVariable {
            name: name.to_owned(),
            of: typed.of,
            depth,
            is_of_claim: self.is_of_claim,
        });
        self.named.push(typed.node);
    }

    fn is_taken(&self, name: &str) -> bool {
        ["config", "variables", "math", "cel"].contains(&name)
            || self.words.labels.iter().any(|(known, _)| *known == name)
            || self.words.variables.iter().any(|it| it.name == name)
            || self.variables.iter().any(|it| it.name == name)
    }

    fn typed(&mut self, text: &str, begin: SourcePosition) -> Option<(Expr, Typed<V>)> {
        self.depth = 0;
        self.is_of_claim = false;
        let expression = parse(text, begin, &mut self.faults)?;
        let typed = self.node(&expression);
        if expression.depth.saturating_add(self.depth) > EVALUATION_DEPTH_MAX {
            self.fault(
                expression.at,
                format!(
                    "the variables that it names build on each other more than {EVALUATION_DEPTH_MAX} levels deep; \
                     write a module"
                ),
            );
        }
        Some((expression, typed))
    }

    fn fault(&mut self, at: SourcePosition, message: impl Into<String>) {
        self.faults.push(RuleFault::new(at, message));
    }

    fn wrong(&mut self, at: SourcePosition, message: impl Into<String>) -> Typed<V> {
        self.fault(at, message);
        Typed::wrong()
    }

    fn node(&mut self, expression: &Expr) -> Typed<V> {
        let at = expression.at;
        match &expression.kind {
            ExprKind::Null => Typed::literal(Literal::Absent),
            ExprKind::Bool(value) => Typed::literal(Literal::Bool(*value)),
            ExprKind::Int(value) => Typed::literal(Literal::Int(*value)),
            ExprKind::Double(value) => Typed::literal(Literal::Double(*value)),
            ExprKind::Text(text) => Typed::literal(Literal::Text(text.as_str().into())),
            ExprKind::Name(name) => self.named(at, name),
            ExprKind::List(items) => self.list(at, items),
            ExprKind::Select {
                of,
                field,
                is_optional,
            } => self.select(at, of, field, *is_optional),
            ExprKind::Index {
                of,
                key,
                is_optional,
            } => self.index(at, of, key, *is_optional),
            ExprKind::Call { name, args } => self.call(at, name, args),
            ExprKind::Method { of, name, args } => self.method(at, name, of, args),
            ExprKind::Not(operand) => {
                let node = self.operand(operand, Takes::Bool).node;
                let not = Function::Not;
                Typed::new(RuleNode::Call(not, vec![node], at), RuleType::Bool)
            }
            ExprKind::Negate(operand) => {
                let Typed { node, of } = self.operand(operand, Takes::Number);
                let negate = Function::Negate;
                Self::constant(Typed::new(RuleNode::Call(negate, vec![node], at), of))
            }
            ExprKind::Binary(sign, operands) => self.binary(at, sign, operands),
            ExprKind::And(parts) => {
                let parts = parts.iter().map(|it| self.operand(it, Takes::Bool).node);
                Typed::new(RuleNode::And(parts.collect()), RuleType::Bool)
            }
            ExprKind::Or(parts) => {
                let parts = parts.iter().map(|it| self.operand(it, Takes::Bool).node);
                Typed::new(RuleNode::Or(parts.collect()), RuleType::Bool)
            }
            ExprKind::If(parts) => self.conditional(at, parts),
        }
    }

    /// An operand that must be such.
    fn operand(&mut self, expression: &Expr, takes: Takes) -> Typed<V> {
        let typed = self.node(expression);
        if takes.admits(&typed.of) {
            return typed;
        }
        let Typed { of, .. } = typed;
        let (wanted, hint) = (takes.as_str(), optional_hint(&of));
        self.wrong(
            expression.at,
            format!("{of} stands where {wanted} is wanted{hint}"),
        )
    }

    /// A call of which every operand is a literal is computed now.
    fn constant(typed: Typed<V>) -> Typed<V> {
        let RuleNode::Call(function, operands, at) = &typed.node else {
            return typed;
        };
        let literals: Option<Vec<&Literal>> = operands.iter().map(RuleNode::literal).collect();
        let Some(literals) = literals else {
            return typed;
        };
        let values: Vec<_> = literals.into_iter().map(Literal::value).collect();
        let applied = apply(*function, &values, *at, &mut Steps::new(CONSTANT_STEPS_MAX));
        match applied.map(|value| value.literal()) {
            Ok(Some(literal)) => Typed::new(RuleNode::Literal(literal), typed.of),
            // It fails in every round, or is a list: left to the rounds.
            Ok(None) | Err(_) => typed,
        }
    }

    /// Whether `exists` and such are written as they must be: a name and an expression.
    fn loop_kind(name: &str, args: usize) -> Option<LoopKind> {
        Some(match (name, args) {
            ("exists", 2) => LoopKind::Exists,
            ("all", 2) => LoopKind::All,
            ("exists_one" | "existsOne", 2) => LoopKind::ExistsOne,
            ("map", 2 | 3) => LoopKind::Map,
            ("filter", 2) => LoopKind::Filter,
            _ => return None,
        })
    }
}

/// Advice on a value that may be absent and says so.
fn optional_hint(of: &RuleType) -> &'static str {
    match of {
        RuleType::Optional(_) => "; say what stands in for it with .orValue(...)",
        RuleType::Bool
        | RuleType::Int
        | RuleType::Double
        | RuleType::Text
        | RuleType::Moment
        | RuleType::List(_)
        | RuleType::Map(_)
        | RuleType::Record
        | RuleType::Unknown => "",
    }
}
