//! The answer of `mortise why` as text.
//!
//! It words the steps that it is given, and looks nothing up.

use std::fmt::{Display, Formatter};

use scheduling::ranking::PolicyUse;

use super::{GateResult, PolicyPart, Why};

pub(super) fn join(first: &str, second: &str) -> String {
    match (first, second) {
        ("", it) | (it, "") => it.to_owned(),
        (first, second) => format!("{first}: {second}"),
    }
}

impl Display for GateResult {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Stopped => "stopped",
            Self::NotReached => "not reached",
        })
    }
}

impl Display for PolicyPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            name,
            digest,
            config_digest,
            mode,
            order,
            outcome,
            changed,
            log,
        } = self;
        writeln!(f, "  policy {kind} {name} {digest}: {outcome}")?;
        let changed = match changed.as_str() {
            "" => "changed nothing",
            changed => changed,
        };
        writeln!(
            f,
            "    {mode}, order {order}, settings {config_digest}; {changed}"
        )?;
        for line in log {
            writeln!(f, "    log {line}")?;
        }
        Ok(())
    }
}

impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            name,
            steps,
            funnel,
        } = self;
        let Some(last) = steps.first() else {
            return writeln!(f, "{kind} {name}: the ledger holds nothing about it");
        };
        writeln!(f, "{kind} {name}: {} {}", last.code, last.meaning)?;
        if !last.reason.is_empty() {
            writeln!(f, "  {}", last.reason)?;
        }
        for gate in funnel {
            writeln!(f, "  {:<12} {}", gate.result, gate.gate)?;
        }
        let decided = |it: &&PolicyUse| {
            let mut parts = last.parts.iter();
            !parts.any(|part| (&part.kind, &part.name) == (&it.kind, &it.name))
        };
        for policy in last.policies.iter().filter(decided) {
            let PolicyUse {
                kind,
                name,
                digest,
                outcome,
            } = policy;
            writeln!(f, "  policy {kind} {name} {digest}: {outcome}")?;
        }
        for part in &last.parts {
            write!(f, "{part}")?;
        }
        for step in steps {
            let times = if step.times > 1 {
                format!(" ({} times, last {})", step.times, step.last_at)
            } else {
                String::new()
            };
            let text = join(step.outcome.name(), &step.reason);
            writeln!(f, "  {} {} {}{times}", step.at, step.code, text)?;
        }
        Ok(())
    }
}
