//! From the text of an expression to nodes with settled types.
//!
//! CEL's grammar, read by the `cel` crate; the part of the language that a rule about one row needs. What
//! is unknown or of the wrong type is refused here, with its position, so that a live rule can only fail
//! on values. Where CEL wants `double(count)`, a whole number is widened instead.

use std::collections::BTreeMap;

use cel::Program;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo, operators,
};
use regex::Regex;

use super::evaluate::{Arithmetic, Comparison, Function, Literal, Node, Position, TextTest};
use super::words::{arithmetic, comparison, distance, numeric};

/// Longest expression; a page of text, for a person to read.
const TEXT_BYTES_MAX: usize = 4096;
/// Nodes after lists were written out.
const NODES_MAX: usize = 4096;

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int,
    Double,
    Text,
}

impl Type {
    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int => "a whole number",
            Self::Double => "a number",
            Self::Text => "a text",
        }
    }
}

/// A variable that rules of a kind may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<V> {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    pub(crate) variable: V,
    pub(crate) about: &'static str,
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Condition,
    Number,
}

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub(crate) struct CompileError {
    position: Position,
    message: String,
}

/// Words of the language: variables, and the settings under `config`.
pub(crate) struct Vocabulary<'a, V: 'static> {
    pub(crate) variables: &'static [Known<V>],
    pub(crate) config: &'a serde_json::Value,
}

/// Compiles an expression.
pub(crate) fn compile<V: Copy>(
    text: &str,
    wanted: Wanted,
    vocabulary: &Vocabulary<'_, V>,
) -> Result<Node<V>, CompileError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(CompileError {
            position: Position { line: 1, column: 1 },
            message: format!(
                "the expression has {} bytes and may have {TEXT_BYTES_MAX}; write a module",
                text.len()
            ),
        });
    }
    let program = Program::compile(text).map_err(|errors| syntax(&errors))?;
    let mut compiler = Compiler {
        vocabulary,
        text,
        source: program.source_info(),
        bindings: BTreeMap::new(),
        nodes: 0,
    };
    let expression = program.expression();
    let (node, of) = compiler.node(expression)?;
    match (wanted, of) {
        (Wanted::Condition, Type::Bool) | (Wanted::Number, Type::Int | Type::Double) => Ok(node),
        (Wanted::Condition, _) => Err(compiler.error(
            expression,
            format!(
                "the expression gives {}, and true or false is wanted",
                of.as_str()
            ),
        )),
        (Wanted::Number, _) => Err(compiler.error(
            expression,
            format!(
                "the expression gives {}, and a number is wanted",
                of.as_str()
            ),
        )),
    }
}

fn syntax(errors: &cel::ParseErrors) -> CompileError {
    let Some(first) = errors.errors.first() else {
        return CompileError {
            position: Position::default(),
            message: "it is no expression".to_owned(),
        };
    };
    let number = |value: isize| usize::try_from(value).unwrap_or(0);
    CompileError {
        position: Position {
            line: number(first.pos.0).max(1),
            column: number(first.pos.1).max(1),
        },
        message: first.msg.clone(),
    }
}

type Typed<V> = (Node<V>, Type);
type Compiled<V> = Result<Typed<V>, CompileError>;

struct Compiler<'a, V: 'static> {
    vocabulary: &'a Vocabulary<'a, V>,
    text: &'a str,
    source: &'a SourceInfo,
    /// What the variable of `exists` or `all` stands for at the moment.
    bindings: BTreeMap<String, Typed<V>>,
    nodes: usize,
}

impl<V: Copy> Compiler<'_, V> {
    fn position(&self, expression: &IdedExpr) -> Position {
        let start = self
            .source
            .offset_for(expression.id)
            .and_then(|(start, _)| usize::try_from(start).ok())
            .unwrap_or(0);
        let before: String = self.text.chars().take(start).collect();
        let line = before.rsplit('\n').next().unwrap_or_default();
        Position {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }

    fn error(&self, expression: &IdedExpr, message: impl Into<String>) -> CompileError {
        CompileError {
            position: self.position(expression),
            message: message.into(),
        }
    }

    fn node(&mut self, expression: &IdedExpr) -> Compiled<V> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.error(expression, "the expression is too large; write a module"));
        }
        match &expression.expr {
            Expr::Literal(literal) => self.literal(expression, literal),
            Expr::Ident(name) => self.named(expression, name),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::Comprehension(comprehension) => self.quantified(expression, comprehension),
            Expr::List(_) => Err(self.error(
                expression,
                "a list may only stand after `in` or before exists() and all()",
            )),
            Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
                Err(self.error(expression, "rules have no maps and messages of their own"))
            }
        }
    }

    fn literal(&self, expression: &IdedExpr, literal: &LiteralValue) -> Compiled<V> {
        let (literal, of) = match literal {
            LiteralValue::Boolean(value) => (Literal::Bool(*value.inner()), Type::Bool),
            LiteralValue::Double(value) => (Literal::Double(*value.inner()), Type::Double),
            LiteralValue::Int(value) => (Literal::Int(*value.inner()), Type::Int),
            LiteralValue::String(text) => (Literal::Text(text.inner().to_owned()), Type::Text),
            LiteralValue::UInt(value) => match i64::try_from(*value.inner()) {
                Ok(value) => (Literal::Int(value), Type::Int),
                Err(_) => return Err(self.error(expression, "the whole number is too large")),
            },
            LiteralValue::Bytes(_) | LiteralValue::Null => {
                return Err(self.error(expression, "rules have no bytes and no null"));
            }
        };
        Ok((Node::Literal(literal), of))
    }

    fn named(&self, expression: &IdedExpr, name: &str) -> Compiled<V> {
        if let Some(bound) = self.bindings.get(name) {
            return Ok(bound.clone());
        }
        if let Some(known) = self.vocabulary.variables.iter().find(|it| it.name == name) {
            return Ok((Node::Variable(known.variable), known.of));
        }
        let hint = match name {
            "labels" => "; use labels[\"key\"], or \"key\" in labels".to_owned(),
            "config" => "; use config.key".to_owned(),
            _ => self.hint(name),
        };
        Err(self.error(expression, format!("unknown variable `{name}`{hint}")))
    }

    fn hint(&self, name: &str) -> String {
        let names = || self.vocabulary.variables.iter().map(|known| known.name);
        let near = names()
            .map(|known| (distance(name, known), known))
            .min()
            .filter(|(distance, _)| *distance <= 2);
        near.map_or_else(
            || {
                let all: Vec<&str> = names().collect();
                format!("; there are {}, labels and config", all.join(", "))
            },
            |(_, known)| format!("; did you mean `{known}`?"),
        )
    }

    fn select(&mut self, expression: &IdedExpr, select: &SelectExpr) -> Compiled<V> {
        let SelectExpr {
            operand,
            field,
            test,
        } = select;
        if is_named(operand, "labels") {
            let key = field.clone();
            return Ok(if *test {
                (Node::HasLabel(key), Type::Bool)
            } else {
                let position = self.position(expression);
                (Node::Label(key, position), Type::Text)
            });
        }
        if *test && path(operand).is_some() {
            let is_there = self.setting(expression).is_some();
            return Ok((Node::Literal(Literal::Bool(is_there)), Type::Bool));
        }
        match self.setting(expression).cloned() {
            Some(value) => self.config_value(expression, &value),
            None => Err(self.error(expression, format!("there is no field `{field}` here"))),
        }
    }

    /// The setting that `config.a.b` names.
    fn setting(&self, expression: &IdedExpr) -> Option<&serde_json::Value> {
        let path = path(expression)?;
        let (root, keys) = path.split_first()?;
        if *root != "config" {
            return None;
        }
        keys.iter()
            .try_fold(self.vocabulary.config, |value, key| value.get(*key))
    }

    fn config_value(&self, expression: &IdedExpr, value: &serde_json::Value) -> Compiled<V> {
        let (literal, of) = match value {
            serde_json::Value::Bool(value) => (Literal::Bool(*value), Type::Bool),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => (Literal::Int(value), Type::Int),
                (None, value) => (Literal::Double(value.unwrap_or(0.0)), Type::Double),
            },
            serde_json::Value::String(text) => (Literal::Text(text.clone()), Type::Text),
            serde_json::Value::Null
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_) => {
                return Err(self.error(
                    expression,
                    "this setting is no single value; lists may stand after `in`",
                ));
            }
        };
        Ok((Node::Literal(literal), of))
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Compiled<V> {
        let CallExpr {
            func_name,
            target,
            args,
        } = call;
        if let Some(target) = target {
            // `math.least(a, b)` is how CEL's own extension writes it.
            return if is_named(target, "math") {
                self.function(expression, func_name, args)
            } else {
                self.method(expression, func_name, (target, args))
            };
        }
        match (func_name.as_str(), args.as_slice()) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.conditional(expression, [condition, yes, no])
            }
            (operators::LOGICAL_AND, [left, right]) => {
                Ok((Node::And(self.conditions([left, right])?), Type::Bool))
            }
            (operators::LOGICAL_OR, [left, right]) => {
                Ok((Node::Or(self.conditions([left, right])?), Type::Bool))
            }
            (operators::LOGICAL_NOT, [operand]) => {
                let condition = self.of_type(operand, Type::Bool)?;
                Ok(self.apply(Function::Not, condition, (expression, Type::Bool)))
            }
            (operators::NEGATE, [operand]) => {
                let (node, of) = self.number(operand)?;
                Ok(self.apply(Function::Negate, node, (expression, of)))
            }
            (operators::IN, [value, list]) => self.member(expression, value, list),
            (operators::INDEX, [operand, key]) => self.indexed(expression, operand, key),
            (name, [left, right]) => match (arithmetic(name), comparison(name)) {
                (Some(operator), _) => self.arithmetic(expression, operator, [left, right]),
                (None, Some(comparison)) => self.compared(expression, comparison, [left, right]),
                (None, None) => self.function(expression, name, args),
            },
            (name, _) => self.function(expression, name, args),
        }
    }

    fn conditional(&mut self, expression: &IdedExpr, parts: [&IdedExpr; 3]) -> Compiled<V> {
        let [condition, yes, no] = parts;
        let condition = self.of_type(condition, Type::Bool)?;
        let ((yes, one), (no, other)) = (self.node(yes)?, self.node(no)?);
        let of = match (one, other) {
            (one, other) if one == other => one,
            (one, other) if one.is_number() && other.is_number() => Type::Double,
            (one, other) => {
                return Err(self.error(
                    expression,
                    format!(
                        "one branch gives {}, the other {}",
                        one.as_str(),
                        other.as_str()
                    ),
                ));
            }
        };
        Ok((Node::If(Box::new([condition, yes, no])), of))
    }

    fn conditions(
        &mut self,
        [left, right]: [&IdedExpr; 2],
    ) -> Result<Box<[Node<V>; 2]>, CompileError> {
        Ok(Box::new([
            self.of_type(left, Type::Bool)?,
            self.of_type(right, Type::Bool)?,
        ]))
    }

    fn of_type(&mut self, expression: &IdedExpr, wanted: Type) -> Result<Node<V>, CompileError> {
        let (node, of) = self.node(expression)?;
        if of == wanted {
            Ok(node)
        } else {
            Err(self.error(
                expression,
                format!("{} stands where {} is wanted", of.as_str(), wanted.as_str()),
            ))
        }
    }

    fn number(&mut self, expression: &IdedExpr) -> Compiled<V> {
        let (node, of) = self.node(expression)?;
        if of.is_number() {
            Ok((node, of))
        } else {
            Err(self.error(
                expression,
                format!("{} stands where a number is wanted", of.as_str()),
            ))
        }
    }

    fn apply(
        &self,
        function: Function,
        operand: Node<V>,
        (expression, of): (&IdedExpr, Type),
    ) -> Typed<V> {
        let position = self.position(expression);
        (Node::Call(function, Box::new(operand), position), of)
    }

    fn arithmetic(
        &mut self,
        expression: &IdedExpr,
        operator: Arithmetic,
        operands: [&IdedExpr; 2],
    ) -> Compiled<V> {
        let [left, right] = operands;
        let ((left, one), (right, other)) = (self.node(left)?, self.node(right)?);
        let operands = Box::new([left, right]);
        match (one, other) {
            (Type::Int, Type::Int) => {
                let position = self.position(expression);
                Ok((Node::Whole(operator, operands, position), Type::Int))
            }
            (one, other) if one.is_number() && other.is_number() => {
                Ok((Node::Real(operator, operands), Type::Double))
            }
            (Type::Text, Type::Text) if operator == Arithmetic::Add => {
                Ok((Node::Join(operands), Type::Text))
            }
            (one, other) => Err(self.error(
                expression,
                format!(
                    "{} and {} cannot be computed with",
                    one.as_str(),
                    other.as_str()
                ),
            )),
        }
    }

    fn compared(
        &mut self,
        expression: &IdedExpr,
        comparison: Comparison,
        [left, right]: [&IdedExpr; 2],
    ) -> Compiled<V> {
        let ((left, one), (right, other)) = (self.node(left)?, self.node(right)?);
        if one == other || (one.is_number() && other.is_number()) {
            return Ok((
                Node::Compare(comparison, Box::new([left, right])),
                Type::Bool,
            ));
        }
        Err(self.error(
            expression,
            format!(
                "{} cannot be compared with {}",
                one.as_str(),
                other.as_str()
            ),
        ))
    }

    fn member(&mut self, expression: &IdedExpr, value: &IdedExpr, list: &IdedExpr) -> Compiled<V> {
        if is_named(list, "labels") {
            return match &value.expr {
                Expr::Literal(LiteralValue::String(key)) => {
                    Ok((Node::HasLabel(key.inner().to_owned()), Type::Bool))
                }
                _ => Err(self.error(value, "the key of a label must be written out")),
            };
        }
        let (value, of) = self.node(value)?;
        let mut items = Vec::new();
        for (item, item_of) in self.list(list)? {
            if of != item_of && !(of.is_number() && item_of.is_number()) {
                return Err(self.error(
                    expression,
                    format!(
                        "{} cannot be in a list of {}",
                        of.as_str(),
                        item_of.as_str()
                    ),
                ));
            }
            items.push(item);
        }
        Ok((Node::In(Box::new(value), items), Type::Bool))
    }

    /// The items of a list that is written out, here or in the configuration.
    fn list(&mut self, expression: &IdedExpr) -> Result<Vec<Typed<V>>, CompileError> {
        if let Expr::List(list) = &expression.expr {
            return list.elements.iter().map(|item| self.node(item)).collect();
        }
        if let Some(serde_json::Value::Array(items)) = self.setting(expression) {
            return items
                .iter()
                .map(|item| self.config_value(expression, item))
                .collect();
        }
        Err(self.error(expression, "a list is wanted, written out or from config"))
    }

    fn indexed(
        &mut self,
        expression: &IdedExpr,
        operand: &IdedExpr,
        key: &IdedExpr,
    ) -> Compiled<V> {
        let Expr::Literal(LiteralValue::String(key)) = &key.expr else {
            return Err(self.error(key, "the key must be written out as a text"));
        };
        let select = SelectExpr {
            operand: Box::new(operand.clone()),
            field: key.inner().to_owned(),
            test: false,
        };
        let expression = IdedExpr {
            id: expression.id,
            expr: Expr::Select(select),
        };
        self.node(&expression)
    }

    fn method(
        &mut self,
        expression: &IdedExpr,
        name: &str,
        (target, args): (&IdedExpr, &[IdedExpr]),
    ) -> Compiled<V> {
        let test = match (name, args) {
            ("startsWith", [_]) => TextTest::StartsWith,
            ("endsWith", [_]) => TextTest::EndsWith,
            ("contains", [_]) => TextTest::Contains,
            ("matches", [pattern]) => return self.matches(target, pattern),
            ("size", []) => {
                let text = self.of_type(target, Type::Text)?;
                return Ok(self.apply(Function::Size, text, (expression, Type::Int)));
            }
            _ => return Err(self.error(expression, format!("unknown function `{name}`; texts have startsWith, endsWith, contains, matches and size"))),
        };
        let text = self.of_type(target, Type::Text)?;
        let [part] = args else {
            return Err(self.error(expression, format!("`{name}` takes one argument")));
        };
        let part = self.of_type(part, Type::Text)?;
        Ok((Node::Test(test, Box::new([text, part])), Type::Bool))
    }

    fn matches(&mut self, target: &IdedExpr, pattern: &IdedExpr) -> Compiled<V> {
        let Expr::Literal(LiteralValue::String(text)) = &pattern.expr else {
            return Err(self.error(pattern, "the pattern must be written out"));
        };
        let regex = Regex::new(text.inner())
            .map_err(|error| self.error(pattern, format!("not a pattern: {error}")))?;
        let target = self.of_type(target, Type::Text)?;
        Ok((Node::Matches(Box::new(target), regex), Type::Bool))
    }

    fn function(&mut self, expression: &IdedExpr, name: &str, args: &[IdedExpr]) -> Compiled<V> {
        match (name, args) {
            ("min" | "least", [first, rest @ ..]) => {
                self.extreme(expression, Arithmetic::Least, (first, rest))
            }
            ("max" | "greatest", [first, rest @ ..]) => {
                self.extreme(expression, Arithmetic::Greatest, (first, rest))
            }
            ("size", [operand]) => {
                let text = self.of_type(operand, Type::Text)?;
                Ok(self.apply(Function::Size, text, (expression, Type::Int)))
            }
            ("string", [operand]) => {
                let (node, _) = self.node(operand)?;
                Ok(self.apply(Function::ToText, node, (expression, Type::Text)))
            }
            (_, [operand]) if numeric(name).is_some() => {
                let (node, of) = self.number(operand)?;
                let (function, gives) = numeric(name).unwrap_or((Function::Abs, None));
                Ok(self.apply(function, node, (expression, gives.unwrap_or(of))))
            }
            _ => Err(self.error(
                expression,
                format!(
                    "unknown function `{name}`; there are min, max, abs, floor, ceil, round, double, int, \
                     string, size and, on texts, startsWith, endsWith, contains, matches"
                ),
            )),
        }
    }

    fn extreme(
        &mut self,
        expression: &IdedExpr,
        operator: Arithmetic,
        (first, rest): (&IdedExpr, &[IdedExpr]),
    ) -> Compiled<V> {
        let position = self.position(expression);
        let mut so_far = self.number(first)?;
        for next in rest {
            let ((left, one), (right, other)) = (so_far, self.number(next)?);
            let operands = Box::new([left, right]);
            so_far = if (one, other) == (Type::Int, Type::Int) {
                (Node::Whole(operator, operands, position), Type::Int)
            } else {
                (Node::Real(operator, operands), Type::Double)
            };
        }
        Ok(so_far)
    }

    /// `list.exists(x, p)` and `list.all(x, p)`, written out item by item.
    fn quantified(&mut self, expression: &IdedExpr, it: &ComprehensionExpr) -> Compiled<V> {
        let predicate = match &it.loop_step.expr {
            Expr::Call(CallExpr {
                func_name, args, ..
            }) if func_name == operators::LOGICAL_OR || func_name == operators::LOGICAL_AND => {
                match args.as_slice() {
                    [accumulated, predicate] if is_named(accumulated, &it.accu_var) => {
                        Some((func_name == operators::LOGICAL_OR, predicate))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let (Some((is_any, predicate)), None) = (predicate, &it.iter_var2) else {
            return Err(self.error(
                expression,
                "rules have exists() and all(), and no other loops",
            ));
        };
        let mut so_far: Option<Node<V>> = None;
        for item in self.list(&it.iter_range)? {
            let shadowed = self.bindings.insert(it.iter_var.clone(), item);
            let condition = self.of_type(predicate, Type::Bool);
            match shadowed {
                Some(outer) => self.bindings.insert(it.iter_var.clone(), outer),
                None => self.bindings.remove(&it.iter_var),
            };
            let condition = condition?;
            so_far = Some(match so_far {
                None => condition,
                Some(before) if is_any => Node::Or(Box::new([before, condition])),
                Some(before) => Node::And(Box::new([before, condition])),
            });
        }
        let node = so_far.unwrap_or(Node::Literal(Literal::Bool(!is_any)));
        Ok((node, Type::Bool))
    }
}

fn is_named(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(found) if found == name)
}

/// `a.b.c` as its parts.
fn path(expression: &IdedExpr) -> Option<Vec<&str>> {
    match &expression.expr {
        Expr::Ident(name) => Some(vec![name]),
        Expr::Select(SelectExpr { operand, field, .. }) => {
            let mut parts = path(operand)?;
            parts.push(field);
            Some(parts)
        }
        _ => None,
    }
}
