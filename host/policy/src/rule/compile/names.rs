//! Names, fields and keys: variables of the tables and of the binding, labels, and settings.

use super::super::evaluate::Variable;
use super::super::facts::LabelSet;
use super::super::node::Node;
use super::super::parse::{Expr, ExprKind};
use super::super::place::Place;
use super::super::types::Type;
use super::super::value::{Entries, Literal};
use super::super::words::nearest;
use super::{Compiler, Takes, Typed};
use crate::needs::Need;

/// Settings that are named when one of them is wanted that is not there.
const SETTINGS_TOLD_MAX: usize = 20;

impl<V: Variable> Compiler<'_, V> {
    pub(super) fn named(&mut self, at: Place, name: &str) -> Typed<V> {
        if let Some(scoped) = self.scope.iter().rev().find(|it| it.name == name) {
            return Typed::new(Node::Slot(scoped.slot), scoped.of.clone());
        }
        if let Some(variable) = self.binding_variable(name) {
            return variable;
        }
        if let Some(known) = self.words.variables.iter().find(|it| it.name == name) {
            self.is_of_claim |= known.variable.is_of_claim();
            self.needs.extend(known.variable.need());
            return Typed::new(Node::Variable(known.variable), known.of.of());
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

    /// One of `data.variables`.
    fn binding_variable(&mut self, name: &str) -> Option<Typed<V>> {
        let index = self.variables.iter().position(|it| it.name == name)?;
        let variable = self.variables.get(index)?;
        self.depth = self.depth.max(variable.depth);
        self.is_of_claim |= variable.is_of_claim;
        Some(Typed::new(Node::Named(index), variable.of.clone()))
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
        at: Place,
        of: &Expr,
        (field, is_optional): (&str, bool),
    ) -> Typed<V> {
        let key = || Literal::Text(field.into());
        if let Some(set) = self.label_set(of) {
            return label(set, Node::Literal(key()), is_optional);
        }
        if self.is_word(of, "variables") {
            let variable = self.binding_variable(field);
            return variable.unwrap_or_else(|| {
                self.wrong(at, format!("data.variables has no variable `{field}`"))
            });
        }
        let key = Typed::literal(key());
        self.at_key(at, of, (key, is_optional))
    }

    pub(super) fn index(
        &mut self,
        at: Place,
        of: &Expr,
        (key, is_optional): (&Expr, bool),
    ) -> Typed<V> {
        if let Some(set) = self.label_set(of) {
            let key = self.operand(key, Takes::Text).node;
            return label(set, key, is_optional);
        }
        let key = self.node(key);
        self.at_key(at, of, (key, is_optional))
    }

    /// What a map or a list holds at a key.
    fn at_key(&mut self, at: Place, of: &Expr, (key, is_optional): (Typed<V>, bool)) -> Typed<V> {
        let of = self.node(of);
        if let (Node::Literal(Literal::Map(map)), Node::Literal(Literal::Text(key))) =
            (&of.node, &key.node)
        {
            return self.setting(at, map, (key, is_optional));
        }
        // What may be absent is asked on: absent of absent.
        let is_optional = is_optional || matches!(of.of, Type::Optional(_));
        let item = match (of.of.present(), &key.of) {
            (Type::Unknown, _) => Type::Unknown,
            (Type::Map(item), Type::Text | Type::Unknown)
            | (Type::List(item), Type::Int | Type::Unknown) => *item,
            (Type::Record, _) => {
                return self.wrong(
                    at,
                    "the values of this map are of several types, so that its keys must be written out; keep one map \
                     for each type",
                );
            }
            (Type::Map(_), other) => {
                return self.wrong(at, format!("the keys of a map are string, and not {other}"));
            }
            (Type::List(_), other) => {
                return self.wrong(at, format!("the places of a list are int, and not {other}"));
            }
            (other, _) => {
                let hint = match &key.node {
                    Node::Literal(Literal::Text(key)) => format!("no field `{key}`"),
                    _ => "no keys".to_owned(),
                };
                return self.wrong(at, format!("{other} has {hint}"));
            }
        };
        let node = Node::At(Box::new([of.node, key.node]));
        Typed::new(node, optionally(item, is_optional))
    }

    /// A setting by its name.
    fn setting(&mut self, at: Place, map: &Entries, (key, is_optional): (&str, bool)) -> Typed<V> {
        if let Some(literal) = map.entries.get(key) {
            let Typed { node, of } = Typed::literal(literal.clone());
            return Typed::new(node, optionally(of, is_optional));
        }
        if is_optional {
            return Typed::new(
                Node::Literal(Literal::Absent),
                Type::optional(map.of.clone().unwrap_or(Type::Unknown)),
            );
        }
        let names = || map.entries.keys().map(String::as_str);
        let hint = nearest(key, names()).map_or_else(
            || {
                let told: Vec<&str> = names().take(SETTINGS_TOLD_MAX).collect();
                match told.as_slice() {
                    [] => "there is nothing in it".to_owned(),
                    _ => format!("there are {}", told.join(", ")),
                }
            },
            |near| format!("did you mean `{near}`?"),
        );
        self.wrong(at, format!("there is no field `{key}` here; {hint}"))
    }

    /// `has(labels.x)`, `has(config.x)`.
    pub(super) fn has(&mut self, at: Place, args: &[Expr]) -> Typed<V> {
        let [
            Expr {
                kind: ExprKind::Select { of, field, .. },
                ..
            },
        ] = args
        else {
            return self.wrong(at, "has() takes a field, such as has(labels.team)");
        };
        let key = Node::Literal(Literal::Text(field.as_str().into()));
        if let Some(set) = self.label_set(of) {
            return Typed::new(Node::HasLabel(set, Box::new(key)), Type::Bool);
        }
        // What lies under a setting that is not there is not there either.
        let known = self.faults.len();
        let map = self.node(of);
        if self.faults.len() > known && self.is_setting(of) {
            self.faults.truncate(known);
            return Typed::literal(Literal::Bool(false));
        }
        match (&map.node, map.of) {
            (Node::Literal(Literal::Map(map)), _) => {
                Typed::literal(Literal::Bool(map.entries.contains_key(field)))
            }
            (_, Type::Map(_) | Type::Record | Type::Unknown) => {
                Typed::new(Node::In(Box::new([key, map.node])), Type::Bool)
            }
            (_, other) => self.wrong(at, format!("{other} has no fields")),
        }
    }

    /// `config.a.b`, whether it is there or not.
    fn is_setting(&self, expression: &Expr) -> bool {
        match &expression.kind {
            ExprKind::Select { of, .. } => self.is_setting(of),
            ExprKind::Name(_) => self.is_word(expression, "config"),
            _ => false,
        }
    }

    /// `value in list`, `key in map`, `key in labels`.
    pub(super) fn member(&mut self, at: Place, value: &Expr, list: &Expr) -> Typed<V> {
        if let Some(set) = self.label_set(list) {
            let key = self.operand(value, Takes::Text).node;
            return Typed::new(Node::HasLabel(set, Box::new(key)), Type::Bool);
        }
        let (value, list) = (self.node(value), self.node(list));
        let fits = match &list.of {
            Type::List(item) => item.joined(&value.of).is_some(),
            Type::Map(_) | Type::Record => value.of.fits(&Type::Text),
            Type::Unknown => true,
            Type::Bool
            | Type::Int
            | Type::Double
            | Type::Text
            | Type::Moment
            | Type::Optional(_) => false,
        };
        if !fits {
            let (value, list) = (value.of, list.of);
            return self.wrong(at, format!("{value} cannot be in {list}"));
        }
        let parts = Box::new([value.node, list.node]);
        Typed::new(Node::In(parts), Type::Bool)
    }
}

fn label<V>(set: LabelSet, key: Node<V>, is_optional: bool) -> Typed<V> {
    let node = Node::Label(set, Box::new(key));
    Typed::new(node, optionally(Type::Text, is_optional))
}

fn optionally(of: Type, is_optional: bool) -> Type {
    if is_optional { Type::optional(of) } else { of }
}
