//! Kubelet settings that follow from the machine: `maxPods` and reserved amounts as expressions in CEL.
//!
//! Pure. What an expression may speak of, the unit of what it comes to and how that is rounded are Karpenter's, of
//! `pkg/cel/environment.go`; types are found out by trying, as nothing here checks them beforehand.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Program, Value};

use super::KubeletExpression;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));
/// A formula, not a program.
const LENGTH_MAX: usize = 4096;
const MAX_PODS: &str = "maxPods";
/// An expression that comes to no number here is wrong everywhere.
const SAMPLE: MachineFacts<'_> = MachineFacts {
    instance_type: "m5.xlarge",
    vcpus: 4,
    memory_mib: 16_384,
    default_enis: 4,
    ips_per_eni: 15,
    max_pods: 58,
};

/// What an expression may speak of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MachineFacts<'a> {
    /// Such as `m7i.large`.
    pub(crate) instance_type: &'a str,
    pub(crate) vcpus: i64,
    pub(crate) memory_mib: i64,
    /// Interfaces of the default network card.
    pub(crate) default_enis: i64,
    /// IPv4 addresses of one interface, its own included.
    pub(crate) ips_per_eni: i64,
    /// Pods as the class would have it without the expression at hand.
    pub(crate) max_pods: i64,
}

/// Values of a class's expressions on one machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SettledKubelet {
    /// None where `maxPods` is no expression.
    pub(crate) max_pods: Option<i64>,
    /// Quantities by the path of their setting.
    pub(crate) amounts: BTreeMap<String, String>,
}

/// The expressions of a class, read once.
#[derive(Debug, Default)]
pub(crate) struct KubeletExpressions {
    max_pods: Option<ReadExpression>,
    amounts: Vec<ReadExpression>,
}

#[derive(Debug)]
struct ReadExpression {
    path: String,
    source: String,
    program: Program,
}

impl KubeletExpressions {
    /// Reads them all, or says what is wrong with the first that makes no sense on any machine.
    pub(crate) fn read(expressions: &[KubeletExpression]) -> Result<Self, String> {
        let mut all = Self::default();
        for expression in expressions {
            let read = ReadExpression::read(expression)?;
            if read.path == MAX_PODS {
                all.max_pods = Some(read);
            } else {
                all.amounts.push(read);
            }
        }
        Ok(all)
    }

    /// Whether the class has none.
    pub(crate) fn is_empty(&self) -> bool {
        self.max_pods.is_none() && self.amounts.is_empty()
    }

    /// Pods of a machine, where an expression says how many.
    pub(crate) fn max_pods(&self, facts: MachineFacts<'_>) -> Result<Option<i64>, String> {
        let Some(expression) = &self.max_pods else {
            return Ok(None);
        };
        let pods = expression.number(facts)?;
        if !(0..=i64::from(i32::MAX)).contains(&pods) {
            return Err(expression.fault(facts, &format!("{pods} is not a number of pods")));
        }
        Ok(Some(pods))
    }

    /// Amounts of a machine, by their path in `spec.kubelet`.
    pub(crate) fn amounts(
        &self,
        facts: MachineFacts<'_>,
    ) -> Result<BTreeMap<String, String>, String> {
        let amounts = self.amounts.iter().map(|expression| {
            let number = expression.number(facts)?;
            let (_, resource) = expression.path.split_once('.').unwrap_or_default();
            let amount = amount(resource, number);
            let amount =
                amount.ok_or_else(|| expression.fault(facts, &format!("{number} is no amount")))?;
            Ok((expression.path.clone(), amount))
        });
        amounts.collect()
    }
}

impl ReadExpression {
    fn read(expression: &KubeletExpression) -> Result<Self, String> {
        let KubeletExpression { path, source } = expression;
        let fault = |what: &str| format!("spec.kubelet.{path}: {source:?}: {what}");
        if source.len() > LENGTH_MAX {
            return Err(format!(
                "spec.kubelet.{path}: the expression is longer than {LENGTH_MAX} bytes"
            ));
        }
        let program = ENVIRONMENT.compile(source);
        let program = program.map_err(|error| fault(&error.to_string()))?;
        let read = Self {
            path: path.clone(),
            source: source.clone(),
            program,
        };
        match read.value(SAMPLE) {
            Ok(Value::Int(_) | Value::Float(_)) => Ok(read),
            Ok(_) => Err(fault("it must come to an int or a double")),
            Err(error) if is_of_the_machine(&error) => Ok(read),
            Err(error) => Err(fault(&error.to_string())),
        }
    }

    fn value(&self, facts: MachineFacts<'_>) -> Result<Value, ExecutionError> {
        let MachineFacts {
            instance_type,
            vcpus,
            memory_mib,
            default_enis,
            ips_per_eni,
            max_pods,
        } = facts;
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        let added = context.add_function("max", larger);
        let added = added.and_then(|()| context.add_function("min", smaller));
        added.map_err(|error| ExecutionError::InternalError(error.to_string()))?;
        let numbers = [
            ("vcpus", vcpus),
            ("memory_mib", memory_mib),
            ("default_enis", default_enis),
            ("ips_per_eni", ips_per_eni),
            ("max_pods", max_pods),
        ];
        for (name, number) in numbers {
            context.add_variable_from_value(name, number);
        }
        context.add_variable_from_value("instance_type", instance_type.to_owned());
        self.program.execute(&context)
    }

    /// The whole part of what it comes to.
    fn number(&self, facts: MachineFacts<'_>) -> Result<i64, String> {
        match self.value(facts) {
            Ok(Value::Int(number)) => Ok(number),
            Ok(Value::Float(number)) if number.is_finite() => Ok(whole(number)),
            Ok(value) => Err(self.fault(facts, &format!("{value:?} is not a number"))),
            Err(error) => Err(self.fault(facts, &error.to_string())),
        }
    }

    fn fault(&self, facts: MachineFacts<'_>, what: &str) -> String {
        let Self { path, source, .. } = self;
        let on = facts.instance_type;
        format!("spec.kubelet.{path}: {source:?} on {on}: {what}")
    }
}

/// Whether an expression that failed so may do well on another machine.
fn is_of_the_machine(error: &ExecutionError) -> bool {
    matches!(
        error,
        ExecutionError::DivisionByZero(_)
            | ExecutionError::RemainderByZero(_)
            | ExecutionError::Overflow(..)
            | ExecutionError::IndexOutOfBounds(_)
            | ExecutionError::NoSuchKey(_)
            | ExecutionError::FunctionError { .. }
    )
}

fn larger(a: Value, b: Value) -> Result<Value, ExecutionError> {
    pick("max", &[a, b], i64::max, f64::max)
}

fn smaller(a: Value, b: Value) -> Result<Value, ExecutionError> {
    pick("min", &[a, b], i64::min, f64::min)
}

/// Of two ints an int, of anything else a double.
fn pick(
    name: &str,
    of: &[Value; 2],
    ints: fn(i64, i64) -> i64,
    doubles: fn(f64, f64) -> f64,
) -> Result<Value, ExecutionError> {
    let double = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    match of {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Int(ints(*a, *b))),
        [a, b] => match (double(a), double(b)) {
            (Some(a), Some(b)) => Ok(Value::Float(doubles(a, b))),
            _ => Err(ExecutionError::no_such_overload(
                name,
                of.iter().map(|it| it.type_of().to_string()).collect(),
            )),
        },
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is to go, and what is out of range is no amount of anything"
)]
fn whole(number: f64) -> i64 {
    number.trunc() as i64
}

/// A number as the quantity that its resource is written in: millicores, MiB, GiB, or the number itself. CPU and memory
/// are rounded up, so that types that hardly differ share a launch template.
fn amount(resource: &str, number: i64) -> Option<String> {
    let number = u64::try_from(number).ok()?;
    let rounded = |to: u64| {
        number
            .checked_next_multiple_of(to)
            .filter(|it| i64::try_from(*it).is_ok())
    };
    match resource {
        "cpu" => rounded(10).map(|millis| format!("{millis}m")),
        "memory" => rounded(16).map(|mib| format!("{mib}Mi")),
        "ephemeral-storage" => rounded(1).map(|gib| format!("{gib}Gi")),
        _ => rounded(1).map(|count| count.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(path: &str, source: &str) -> [KubeletExpression; 1] {
        [KubeletExpression {
            path: path.to_owned(),
            source: source.to_owned(),
        }]
    }

    /// What an expression comes to on the sample, or the reason why nothing.
    fn amount_of(path: &str, source: &str) -> Result<String, String> {
        let read = KubeletExpressions::read(&expression(path, source))?;
        if let Some(pods) = read.max_pods(SAMPLE)? {
            return Ok(pods.to_string());
        }
        Ok(read.amounts(SAMPLE)?.remove(path).unwrap())
    }

    #[test]
    fn expressions_come_to_amounts_in_the_unit_of_their_resource() {
        let cases = [
            ("maxPods", "min(110, max_pods)", "58"),
            ("maxPods", "default_enis * (ips_per_eni - 1) + 2", "58"),
            ("maxPods", "instance_type.startsWith('m5.') ? 20 : 10", "20"),
            ("maxPods", "double(vcpus) * 7.9", "31"),
            ("kubeReserved.cpu", "max(60, vcpus * 30)", "120m"),
            ("kubeReserved.cpu", "70 + vcpus", "80m"),
            ("kubeReserved.memory", "memory_mib / 100", "176Mi"),
            ("kubeReserved.memory", "255 + 11 * max_pods", "896Mi"),
            ("systemReserved.ephemeral-storage", "1.0 + 2.7", "3Gi"),
            ("systemReserved.pid", "max(100.5, vcpus)", "100"),
            ("systemReserved.pid", "min(vcpus, 2.5)", "2"),
            ("systemReserved.cpu", "0", "0m"),
        ];
        for (path, source, want) in cases {
            assert_eq!(amount_of(path, source).as_deref(), Ok(want), "{source}");
        }
    }

    #[test]
    fn what_makes_no_sense_on_any_machine_is_not_read() {
        let long = "1 + ".repeat(LENGTH_MAX / 4) + "1";
        let sources = [
            "vcpus *",
            "memory * 2",
            "instance_type",
            "vcpus > 2",
            "vcpus * 1.5",
            "max(vcpus, instance_type)",
            "abs(vcpus)",
            "[vcpus]",
            "1u",
            &long,
        ];
        for source in sources {
            let read = KubeletExpressions::read(&expression("kubeReserved.cpu", source));
            let error = read.map(|_| source).unwrap_err();
            assert!(
                error.starts_with("spec.kubelet.kubeReserved.cpu: "),
                "{error}"
            );
        }
    }

    #[test]
    fn what_fails_on_a_machine_says_on_which() {
        let cases = [
            ("maxPods", "0 - vcpus"),
            ("maxPods", "vcpus * 1000000000"),
            ("kubeReserved.cpu", "vcpus - 5"),
            ("kubeReserved.cpu", "100 / (vcpus - 4)"),
            ("kubeReserved.memory", "1.0 / double(vcpus - 4)"),
            ("kubeReserved.memory", "9223372036854775807"),
        ];
        for (path, source) in cases {
            let error = amount_of(path, source).unwrap_err();
            let start = format!("spec.kubelet.{path}: {source:?} on m5.xlarge: ");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
