//! `mortise policy bench`: what calls cost on this machine, beside what is aimed at.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use policy::binding_keys::POLICY_LABEL;
use policy::{BUILTINS, BindingState, CallFailure, Limits, Measured, PolicyHost, PolicyKind};

use super::arguments::BenchArguments;
use super::{say, target};

/// Rows of a small pool, of a usual one, and of every type in every zone.
const ROWS: [u32; 3] = [60, 400, 6000];
/// Pools of a cluster: a budget is asked for those, not for offerings.
const POOLS: [u32; 3] = [6, 40, 400];

/// Microseconds aimed at for a ranking of so many rows: warm, and with a fresh instance.
const GOALS: [(u32, f64, f64); 3] = [(60, 4.7, 30.0), (400, 9.6, 50.0), (6000, 88.0, 400.0)];

pub(super) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let host = PolicyHost::new(Limits::default())?;
    let up = started.elapsed();
    host.warm_up();
    let ready = started.elapsed();
    say(&format!(
        "engine up in {}, defaults ready in {}",
        micros(up),
        micros(ready)
    ));
    match &arguments.policy {
        Some(argument) => bound(&host, argument, arguments)?,
        None => defaults(&host)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn defaults(host: &PolicyHost) -> anyhow::Result<()> {
    let sizes: Vec<usize> = BUILTINS.iter().map(|it| it.component().len()).collect();
    let (least, most) = (sizes.iter().min(), sizes.iter().max());
    say(&format!(
        "components of the shelf: {} to {} bytes (goal: at most 60000)",
        least.copied().unwrap_or_default(),
        most.copied().unwrap_or_default()
    ));
    say(HEAD);
    for kind in PolicyKind::ALL {
        let measure = |rows| host.measure_default(kind, rows);
        print("built-in default", kind, measure)?;
    }
    Ok(())
}

fn bound(host: &PolicyHost, argument: &str, arguments: &BenchArguments) -> anyhow::Result<()> {
    let source = target::source(host, argument, arguments.kind.map(Into::into))?;
    let component = target::unpacked(&source);
    let started = Instant::now();
    let status = host.apply(&source);
    let loaded = started.elapsed();
    if status.state != BindingState::Ready {
        bail!(
            "{} is refused: {}: {}",
            source.name,
            status.reason,
            status.message
        );
    }
    let size = component.map_or_else(
        || "a rule".to_owned(),
        |bytes| format!("{} bytes", bytes.len()),
    );
    say(&format!(
        "{}: {size}, let in after {} (compiled and tried, off the decision path)",
        source.name,
        micros(loaded)
    ));
    say(HEAD);
    let label = source.labels.get(POLICY_LABEL).map(String::as_str);
    for kind in PolicyKind::ALL {
        if label == Some(kind.as_str()) || label == Some("full") {
            let key = source.key();
            print(&source.name, kind, |rows| host.measure(&key, kind, rows))?;
        }
    }
    Ok(())
}

const HEAD: &str = "\
policy                   kind           rows       warm   (goal)      fresh   (goal)       fuel   memory";

fn print(
    name: &str,
    kind: PolicyKind,
    measure: impl Fn(u32) -> Option<Result<Measured, CallFailure>>,
) -> anyhow::Result<()> {
    let sizes = if kind == PolicyKind::Budgets {
        POOLS
    } else {
        ROWS
    };
    for rows in sizes {
        match measure(rows) {
            Some(Ok(measured)) => say(&line(name, &measured)),
            Some(Err(failure)) => bail!("{name}, {} of {rows} rows: {failure}", kind.as_str()),
            None => bail!("{name} is not in charge"),
        }
    }
    Ok(())
}

fn line(name: &str, measured: &Measured) -> String {
    let Measured {
        kind,
        rows,
        warm,
        fresh,
        fuel,
        memory_bytes,
    } = measured;
    let goal = GOALS
        .iter()
        .find(|(of, _, _)| *kind == PolicyKind::Rank && of == rows);
    let aimed = |pick: fn(&(u32, f64, f64)) -> f64| {
        goal.map_or_else(String::new, |goal| format!("({})", pick(goal)))
    };
    format!(
        "{name:<24} {:<13} {rows:>5} {:>10} {:>8} {:>10} {:>8} {fuel:>10} {:>7}K",
        kind.as_str(),
        micros(*warm),
        aimed(|goal| goal.1),
        micros(*fresh),
        aimed(|goal| goal.2),
        memory_bytes / 1024
    )
}

fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
