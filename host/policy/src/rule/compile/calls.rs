//! Functions and methods: which there are, and what their operands must be.
//!
//! Nothing is computed here but constants.

mod loops;

use super::super::apply::unreadable;
use super::super::civil::{CivilField, FIELDS, zone};
use super::super::evaluate::Variable;
use super::super::functions::{FUNCTIONS, FoldsTo, Function, Signature};
use super::super::node::{Arithmetic, RuleNode};
use super::super::parse::{Expr, ExprKind};
use super::super::pattern::{PATTERNS_MAX, Pattern};
use super::super::place::SourcePosition;
use super::super::types::RuleType;
use super::super::value::Literal;
use super::super::words::nearest;
use super::{Compiler, Takes, Typed};

/// Functions that are not in the table.
const OTHER_GLOBALS: [&str; 5] = ["has", "min", "max", "math.least", "math.greatest"];
/// Methods that are not in the table, save for those of timestamps.
const OTHER_METHODS: [&str; 10] = [
    "matches",
    "format",
    "exists",
    "all",
    "exists_one",
    "map",
    "filter",
    "orValue",
    "optMap",
    "value",
];

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    /// `f(x)`.
    Global,
    /// `x.f()`.
    Method,
}

impl<V: Variable> Compiler<'_, V> {
    pub(super) fn call(&mut self, at: SourcePosition, name: &str, args: &[Expr]) -> Typed<V> {
        match name {
            "has" => self.has(at, args),
            "min" | "least" => self.extreme(at, name, Arithmetic::Least, args),
            "max" | "greatest" => self.extreme(at, name, Arithmetic::Greatest, args),
            _ => {
                let args: Vec<&Expr> = args.iter().collect();
                self.function(at, name, CallForm::Global, &args)
            }
        }
    }

    pub(super) fn method(
        &mut self,
        at: SourcePosition,
        name: &str,
        of: &Expr,
        args: &[Expr],
    ) -> Typed<V> {
        // How CEL's own extension writes functions of numbers.
        if matches!(&of.kind, ExprKind::Name(name) if name == "math") {
            return self.call(at, name, args);
        }
        if let Some(kind) = Self::loop_kind(name, args.len()) {
            return self.looped(at, kind, of, args);
        }
        if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
            return self.civil(at, *field, of, args);
        }
        match (name, args) {
            ("bind", [variable, value, body]) if matches!(&of.kind, ExprKind::Name(name) if name == "cel") =>
            {
                let value = self.node(value);
                self.bound(variable, value, body, false)
            }
            ("optMap", [variable, body]) => {
                let Typed { node, of } = self.node(of);
                let value = Typed::new(node, of.present());
                self.bound(variable, value, body, true)
            }
            ("matches", [pattern]) => self.matches(of, pattern),
            ("format", [list]) => self.format(at, of, list),
            ("orValue" | "or", [other]) => self.or_value(at, of, other),
            ("value", []) => {
                let Typed { node, of } = self.node(of);
                Typed::new(node, of.present())
            }
            _ => {
                let operands: Vec<&Expr> = std::iter::once(of).chain(args).collect();
                self.function(at, name, CallForm::Method, &operands)
            }
        }
    }

    /// A function of the table.
    fn function(
        &mut self,
        at: SourcePosition,
        name: &str,
        form: CallForm,
        operands: &[&Expr],
    ) -> Typed<V> {
        let is_method = form == CallForm::Method;
        let signature = FUNCTIONS
            .iter()
            .find(|it| it.name == name && it.is_method == is_method);
        let Some(signature) = signature else {
            return self.unknown(at, name, form, operands);
        };
        let most = signature.takes.len();
        if operands.len() > most || operands.len() < most - signature.optional {
            return self.wrong(at, takes_text(signature));
        }
        let known = self.faults.len();
        let mut first = None;
        let mut nodes = Vec::with_capacity(operands.len());
        for (operand, takes) in operands.iter().zip(signature.takes) {
            let Typed { node, of } = self.operand(operand, *takes);
            first = first.or(Some(of));
            nodes.push(node);
        }
        if self.faults.len() > known {
            return Typed::new(
                RuleNode::Literal(Literal::Absent),
                signature.gives.of(first.as_ref()),
            );
        }
        if let Function::Read(kind) = signature.function
            && let [RuleNode::Literal(Literal::Text(text))] = nodes.as_slice()
            && let Some(message) = unreadable(kind, text)
        {
            return self.wrong(at, message);
        }
        let of = signature.gives.of(first.as_ref());
        Self::constant(Typed::new(
            RuleNode::Call(signature.function, nodes, at),
            of,
        ))
    }

    fn unknown(
        &mut self,
        at: SourcePosition,
        name: &str,
        form: CallForm,
        operands: &[&Expr],
    ) -> Typed<V> {
        let is_method = form == CallForm::Method;
        // Faults of the operands are told too.
        let of = operands.first().map(|it| self.node(it).of);
        for operand in operands.iter().skip(1) {
            self.node(operand);
        }
        let table = FUNCTIONS.iter().filter(|it| it.is_method == is_method);
        let fitting: Vec<&str> = if is_method {
            let of = of.unwrap_or(RuleType::Unknown);
            let fits = |it: &&Signature| it.takes.first().is_some_and(|takes| takes.admits(&of));
            let moments = FIELDS.iter().map(|(name, _)| *name);
            let moments = moments.filter(|_| of == RuleType::Moment);
            let methods = table.filter(fits).map(|it| it.name);
            methods.chain(moments).chain(OTHER_METHODS).collect()
        } else {
            table.map(|it| it.name).chain(OTHER_GLOBALS).collect()
        };
        let hint = nearest(name, fitting.iter().copied()).map_or_else(
            || format!("there are {}", fitting.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let what = if is_method {
            "unknown function"
        } else {
            "unknown global function"
        };
        self.wrong(at, format!("{what} `{name}`; {hint}"))
    }

    /// `min` and `max`: of several numbers, or of a list.
    fn extreme(
        &mut self,
        at: SourcePosition,
        name: &str,
        operator: Arithmetic,
        args: &[Expr],
    ) -> Typed<V> {
        let Some((first, rest)) = args.split_first() else {
            return self.wrong(at, format!("{name}() takes numbers, or a list of them"));
        };
        let first = if rest.is_empty() {
            let Typed { node, of } = self.node(first);
            if let RuleType::List(item) = of {
                let to = match operator {
                    Arithmetic::Least => FoldsTo::Least,
                    Arithmetic::Greatest
                    | Arithmetic::Add
                    | Arithmetic::Subtract
                    | Arithmetic::Multiply
                    | Arithmetic::Divide
                    | Arithmetic::Remainder => FoldsTo::Greatest,
                };
                let call = RuleNode::Call(Function::Fold(to), vec![node], at);
                return Typed::new(call, *item);
            }
            self.checked(Typed::new(node, of), first)
        } else {
            self.operand(first, Takes::Number)
        };
        rest.iter().fold(first, |so_far, next| {
            let next = self.operand(next, Takes::Number);
            self.computed(at, operator, [so_far, next])
        })
    }

    fn checked(&mut self, typed: Typed<V>, expression: &Expr) -> Typed<V> {
        if typed.of.is_number() {
            return typed;
        }
        let message = format!("{} stands where double is wanted", typed.of);
        self.wrong(expression.at, message)
    }

    /// The name of a variable that a macro brings.
    fn variable_name(&mut self, expression: &Expr) -> String {
        if let ExprKind::Name(name) = &expression.kind {
            return name.clone();
        }
        self.fault(expression.at, "the name of a variable is expected here");
        String::new()
    }
}

impl<V: Variable> Compiler<'_, V> {
    /// `.orValue(other)`, and `.or(other)` of what may be absent as well.
    fn or_value(&mut self, at: SourcePosition, of: &Expr, other: &Expr) -> Typed<V> {
        let (first, other) = (self.node(of), self.node(other));
        let is_optional = matches!(other.of, RuleType::Optional(_));
        let joined = first.of.present().joined(&other.of.clone().present());
        let Some(joined) = joined else {
            return self.wrong(
                at,
                format!("{} stands in for a value of another type", other.of),
            );
        };
        let of = if is_optional {
            RuleType::optional(joined)
        } else {
            joined
        };
        Typed::new(RuleNode::OrElse(Box::new([first.node, other.node])), of)
    }

    fn matches(&mut self, text: &Expr, pattern: &Expr) -> Typed<V> {
        let text = self.operand(text, Takes::Text).node;
        let at = pattern.at;
        let pattern = self.operand(pattern, Takes::Text).node;
        let RuleNode::Literal(Literal::Text(written)) = &pattern else {
            let node = RuleNode::MatchesComputed(Box::new([text, pattern]), at);
            return Typed::new(node, RuleType::Bool);
        };
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return self.wrong(
                at,
                format!("there may be {PATTERNS_MAX} patterns; compare strings, or write a module"),
            );
        }
        match Pattern::new(written) {
            Ok(pattern) => Typed::new(RuleNode::Matches(Box::new(text), pattern), RuleType::Bool),
            Err(message) => self.wrong(at, message),
        }
    }

    fn format(&mut self, at: SourcePosition, text: &Expr, list: &Expr) -> Typed<V> {
        let text = self.operand(text, Takes::Text).node;
        let ExprKind::List(items) = &list.kind else {
            return self.wrong(list.at, "format() takes a list that is written out");
        };
        let items = items.iter().map(|it| self.operand(it, Takes::Plain).node);
        let operands: Vec<RuleNode<V>> = std::iter::once(text).chain(items).collect();
        Typed::new(
            RuleNode::Call(Function::Format, operands, at),
            RuleType::Text,
        )
    }

    /// `now.getHours("Europe/Berlin")`; without a zone, UTC.
    fn civil(
        &mut self,
        at: SourcePosition,
        field: CivilField,
        of: &Expr,
        args: &[Expr],
    ) -> Typed<V> {
        let moment = self.node(of);
        if !moment.of.fits(&RuleType::Moment) {
            let message = format!("{} stands where timestamp is wanted", moment.of);
            return self.wrong(of.at, message);
        }
        let name = match args {
            [] => "UTC".into(),
            [zone] => {
                let RuleNode::Literal(Literal::Text(name)) = self.operand(zone, Takes::Text).node
                else {
                    return self.wrong(zone.at, "the zone must be written out, or from config");
                };
                name
            }
            _ => return self.wrong(at, "it takes a zone, such as \"Europe/Berlin\", or nothing"),
        };
        match zone(&name) {
            Some(zone) => {
                let node = RuleNode::Civil(field, Box::new(moment.node), zone);
                Typed::new(node, RuleType::Int)
            }
            None => self.wrong(
                at,
                format!(
                    "there is no zone {name:?}; use one such as \"Europe/Berlin\" or \"+02:00\""
                ),
            ),
        }
    }
}

/// How a function is written.
fn takes_text(signature: &Signature) -> String {
    let takes: Vec<&str> = signature.takes.iter().map(|it| it.as_str()).collect();
    let (of, takes) = match takes.split_first() {
        Some((first, rest)) if signature.is_method => (format!("{first}."), rest),
        _ => (String::new(), takes.as_slice()),
    };
    let takes = takes.join(", ");
    let optional = if signature.optional > 0 {
        "; the last one may be left out"
    } else {
        ""
    };
    format!("it is written {of}{}({takes}){optional}", signature.name)
}
