//! Names, fields and keys: variables of the tables and of the binding, labels, and settings.

use super::super::evaluate::Variable;
use super::super::facts::LabelSet;
use super::super::node::RuleNode;
use super::super::parse::{Expr, ExprKind};
use super::super::place::SourcePosition;
use super::super::types::RuleType;
use super::super::value::{Entries, Literal};
use super::super::words::nearest;
use super::{Compiler, Takes, Typed};
use crate::needs::Need;

/// Settings that are named when one of them is wanted that is not there.
const SETTINGS_LISTED_MAX: usize = 20;

impl<V: Variable> Compiler<'_, V> {
    pub(super) fn named(&mut self, at: SourcePosition, name: &str) -> Typed<V> {
        if let Some(scoped) = self.scope.iter().rev().find(|it| it.name == name) {
            return Typed::new(RuleNode::Slot(scoped.slot), scoped.of.clone());
        }
        if let Some(variable) = self.binding_variable(name) {
            return variable;
        }
        if let Some(known) = self.words.variables.iter().find(|it| it.name == name) {
            self.is_of_claim |= known.variable.is_of_claim();
            self.needs.extend(known.variable.need());
            return Typed::new(RuleNode::Variable(known.variable), known.of.of());
        }
        if name == "config" {
            return Typed::literal(self.words.config.clone());
        }
        let hint = if self.words.labels.iter().any(|(known, _)| *known == name) {
            format!("; use {name}[\"key\"], or \"key\" in {name}")
        } else {
            self.hint(name)
        };
        self.wrong(at, format!("unknown variable `{name}`{hint}"))
    }

    /// A variable that `data.variables` defines.
    fn binding_variable(&mut self, name: &str) -> Option<Typed<V>> {
        let index = self.variables.iter().position(|it| it.name == name)?;
        let variable = self.variables.get(index)?;
        self.depth = self.depth.max(variable.depth);
        self.is_of_claim |= variable.is_of_claim;
        Some(Typed::new(RuleNode::Named(index), variable.of.clone()))
    }

    fn hint(&self, name: &str) -> String {
        let words = self.words.variables.iter().map(|known| known.name);
        let own = self.variables.iter().map(|it| it.name.as_str());
        let known = || own.clone().chain(words.clone());
        nearest(name, known()).map_or_else(
            || {
                let all: Vec<&str> = known().collect();
                let labels: Vec<&str> = self.words.labels.iter().map(|(it, _)| *it).collect();
                let (all, labels) = (all.join(", "), labels.join(", "));
                format!("; there are {all}, {labels} and config")
            },
            |known| format!("; did you mean `{known}`?"),
        )
    }

    /// The labels that a word means here, when it is no variable of a loop.
    fn label_set(&mut self, expression: &Expr) -> Option<LabelSet> {
        let mut sets = self.words.labels.iter();
        let (_, set) = sets.find(|(word, _)| self.is_word(expression, word))?;
        self.is_of_claim = true;
        if *set == LabelSet::Node {
            self.needs.insert(Need::NodeLabels);
        }
        Some(*set)
    }

    /// Whether a word means what it means everywhere, and no variable of a loop.
    fn is_word(&self, expression: &Expr, word: &str) -> bool {
        matches!(&expression.kind, ExprKind::Name(name) if name == word)
            && !self.scope.iter().any(|it| it.name == word)
    }

    pub(super) fn select(
        &mut self,
        at: SourcePosition,
        of: &Expr,
        field: &str,
        is_optional: bool,
    ) -> Typed<V> {
        let key = || Literal::Text(field.into());
        if let Some(set) = self.label_set(of) {
            return label(set, RuleNode::Literal(key()), is_optional);
        }
        if self.is_word(of, "variables") {
            let variable = self.binding_variable(field);
            return variable.unwrap_or_else(|| {
                self.wrong(at, format!("data.variables has no variable `{field}`"))
            });
        }
        let key = Typed::literal(key());
        self.at_key(at, of, key, is_optional)
    }

    pub(super) fn index(
        &mut self,
        at: SourcePosition,
        of: &Expr,
        key: &Expr,
        is_optional: bool,
    ) -> Typed<V> {
        if let Some(set) = self.label_set(of) {
            let key = self.operand(key, Takes::Text).node;
            return label(set, key, is_optional);
        }
        let key = self.node(key);
        self.at_key(at, of, key, is_optional)
    }

    /// The value that a map or a list holds at a key.
    fn at_key(
        &mut self,
        at: SourcePosition,
        of: &Expr,
        key: Typed<V>,
        is_optional: bool,
    ) -> Typed<V> {
        let of = self.node(of);
        if let (RuleNode::Literal(Literal::Map(map)), RuleNode::Literal(Literal::Text(key))) =
            (&of.node, &key.node)
        {
            return self.setting(at, map, key, is_optional);
        }
        // What may be absent is asked on: absent of absent.
        let is_optional = is_optional || matches!(of.of, RuleType::Optional(_));
        let item = match (of.of.present(), &key.of) {
            (RuleType::Unknown, _) => RuleType::Unknown,
            (RuleType::Map(item), RuleType::Text | RuleType::Unknown)
            | (RuleType::List(item), RuleType::Int | RuleType::Unknown) => *item,
            (RuleType::Record, _) => {
                return self.wrong(
                    at,
                    "the values of this map are of several types, so that its keys must be written out; keep one map \
                     for each type",
                );
            }
            (RuleType::Map(_), other) => {
                return self.wrong(at, format!("the keys of a map are string, and not {other}"));
            }
            (RuleType::List(_), other) => {
                return self.wrong(at, format!("the places of a list are int, and not {other}"));
            }
            (other, _) => {
                let hint = if let RuleNode::Literal(Literal::Text(key)) = &key.node {
                    format!("no field `{key}`")
                } else {
                    "no keys".to_owned()
                };
                return self.wrong(at, format!("{other} has {hint}"));
            }
        };
        let node = RuleNode::At(Box::new([of.node, key.node]));
        Typed::new(node, optionally(item, is_optional))
    }

    /// A setting by its name.
    fn setting(
        &mut self,
        at: SourcePosition,
        map: &Entries,
        key: &str,
        is_optional: bool,
    ) -> Typed<V> {
        if let Some(literal) = map.entries.get(key) {
            let Typed { node, of } = Typed::literal(literal.clone());
            return Typed::new(node, optionally(of, is_optional));
        }
        if is_optional {
            return Typed::new(
                RuleNode::Literal(Literal::Absent),
                RuleType::optional(map.of.clone().unwrap_or(RuleType::Unknown)),
            );
        }
        let names = || map.entries.keys().map(String::as_str);
        let hint = nearest(key, names()).map_or_else(
            || {
                let listed: Vec<&str> = names().take(SETTINGS_LISTED_MAX).collect();
                match listed.as_slice() {
                    [] => "there is nothing in it".to_owned(),
                    _ => format!("there are {}", listed.join(", ")),
                }
            },
            |near| format!("did you mean `{near}`?"),
        );
        self.wrong(at, format!("there is no field `{key}` here; {hint}"))
    }

    /// `has(labels.x)`, `has(config.x)`.
    pub(super) fn has(&mut self, at: SourcePosition, args: &[Expr]) -> Typed<V> {
        let [
            Expr {
                kind: ExprKind::Select { of, field, .. },
                ..
            },
        ] = args
        else {
            return self.wrong(at, "has() takes a field, such as has(labels.team)");
        };
        let key = RuleNode::Literal(Literal::Text(field.as_str().into()));
        if let Some(set) = self.label_set(of) {
            return Typed::new(RuleNode::HasLabel(set, Box::new(key)), RuleType::Bool);
        }
        // What lies under a setting that is not there is not there either.
        let known = self.faults.len();
        let map = self.node(of);
        if self.faults.len() > known && self.is_setting(of) {
            self.faults.truncate(known);
            return Typed::literal(Literal::Bool(false));
        }
        match (&map.node, map.of) {
            (RuleNode::Literal(Literal::Map(map)), _) => {
                Typed::literal(Literal::Bool(map.entries.contains_key(field)))
            }
            (_, RuleType::Map(_) | RuleType::Record | RuleType::Unknown) => {
                Typed::new(RuleNode::In(Box::new([key, map.node])), RuleType::Bool)
            }
            (_, other) => self.wrong(at, format!("{other} has no fields")),
        }
    }

    /// `config.a.b`, whether it is there or not.
    fn is_setting(&self, expression: &Expr) -> bool {
        match &expression.kind {
            ExprKind::Select { of, .. } => self.is_setting(of),
            ExprKind::Name(_) => self.is_word(expression, "config"),
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Double(_)
            | ExprKind::Text(_)
            | ExprKind::List(_)
            | ExprKind::Index { .. }
            | ExprKind::Call { .. }
            | ExprKind::Method { .. }
            | ExprKind::Not(_)
            | ExprKind::Negate(_)
            | ExprKind::Binary(..)
            | ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::If(_) => false,
        }
    }

    /// `value in list`, `key in map`, `key in labels`.
    pub(super) fn member(&mut self, at: SourcePosition, value: &Expr, list: &Expr) -> Typed<V> {
        if let Some(set) = self.label_set(list) {
            let key = self.operand(value, Takes::Text).node;
            return Typed::new(RuleNode::HasLabel(set, Box::new(key)), RuleType::Bool);
        }
        let (value, list) = (self.node(value), self.node(list));
        let fits = match &list.of {
            RuleType::List(item) => item.joined(&value.of).is_some(),
            RuleType::Map(_) | RuleType::Record => value.of.fits(&RuleType::Text),
            RuleType::Unknown => true,
            RuleType::Bool
            | RuleType::Int
            | RuleType::Double
            | RuleType::Text
            | RuleType::Moment
            | RuleType::Optional(_) => false,
        };
        if !fits {
            let (value, list) = (value.of, list.of);
            return self.wrong(at, format!("{value} cannot be in {list}"));
        }
        let parts = Box::new([value.node, list.node]);
        Typed::new(RuleNode::In(parts), RuleType::Bool)
    }
}

fn label<V>(set: LabelSet, key: RuleNode<V>, is_optional: bool) -> Typed<V> {
    let node = RuleNode::Label(set, Box::new(key));
    Typed::new(node, optionally(RuleType::Text, is_optional))
}

fn optionally(of: RuleType, is_optional: bool) -> RuleType {
    if is_optional {
        RuleType::optional(of)
    } else {
        of
    }
}
