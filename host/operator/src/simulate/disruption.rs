//! `mortise simulate --disruption`: what a disruption loop would do to a running cluster, and where it would end up.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use disruption::end_state::{DisruptionReport, EndStateInput, look, price_per_hour, until_stable};
use disruption::history::History;
use disruption::repair::RepairPolicies;
use disruption::{Gates, Memory, PolicyHooks};
use scheduling::Interrupt;
use scheduling::problem::{Options, ReservedMode};
use serde::Serialize;

use super::timed_policies::TimedPolicies;
use super::{Pools, SimulationEnd, SimulationStart};
use crate::cli::SimulateArguments;
use crate::process_facts::peak_rss_bytes;

/// A cluster that has not settled after so many loops goes round in circles.
const LOOPS_MAX: usize = 10_000;

/// Answer as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DisruptionAnswer {
    #[serde(flatten)]
    report: DisruptionReport,
    scan_seconds: f64,
    policy_seconds: f64,
    peak_rss_bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Runs one loop, or loops until one finds nothing.
pub(super) fn simulate(
    arguments: &SimulateArguments,
    input: &mut SimulationStart,
    policies: &TimedPolicies<'_>,
) -> anyhow::Result<SimulationEnd> {
    let SimulationStart {
        world, pools, now, ..
    } = input;
    let Pools { pools, types, .. } = pools;
    let options = Options {
        reserved: ReservedMode::Fallback,
        ..super::options(arguments, *now)
    };
    let repair = arguments
        .feature_gates
        .node_repair
        .then(|| RepairPolicies::new(aws::repair_policies()))
        .transpose()?
        .map(Arc::new);
    let stage = EndStateInput {
        types,
        pools,
        options: &options,
        scheduler: &arguments.solving.scheduler.profile,
        gates: Gates {
            spot_to_spot: arguments.feature_gates.spot_to_spot_consolidation,
            terminate_first_drift: arguments.feature_gates.terminate_first_drift,
            terminate_first_repair: arguments.feature_gates.terminate_first_repair,
            // Where the cluster ends up, however long it takes.
            puts_moves_off: false,
        },
        repair: repair.as_ref(),
        hooks: PolicyHooks {
            rank: policies,
            consolidation: policies,
            budgets: policies,
        },
    };
    let before = price_per_hour(&world.snapshot(), types);
    let started = Instant::now();
    let never = Interrupt::never();
    let loops = if arguments.until_stable {
        until_stable(&mut world.cluster, &stage, LOOPS_MAX, &never).loops
    } else {
        let (memory, history) = (Memory::default(), History::default());
        vec![look(&world.cluster, &stage, &memory, &history, &never)]
    };
    let scan_seconds = started.elapsed().as_secs_f64();
    let after = if arguments.until_stable {
        price_per_hour(&world.snapshot(), types)
    } else {
        let commands = loops.iter().flat_map(|it| &it.commands);
        let savings = commands.map(|it| it.before.price_per_hour - it.after.price_per_hour);
        before - savings.sum::<f64>()
    };
    let answer = DisruptionAnswer {
        report: DisruptionReport::of(&loops, before, after, arguments.until_stable),
        scan_seconds,
        policy_seconds: policies.spent().as_secs_f64(),
        peak_rss_bytes: peak_rss_bytes(),
        faults: world.faults.iter().map(ToString::to_string).collect(),
        warnings: world.warnings.clone(),
    };
    super::print(arguments.output, &answer, || text(&answer, arguments))?;
    Ok(SimulationEnd::of(answer.faults.is_empty()))
}

fn text(answer: &DisruptionAnswer, arguments: &SimulateArguments) -> String {
    let mut text = String::new();
    let report = &answer.report;
    let _ = writeln!(
        text,
        "{} nodes for {:.4} USD/h; {} commands lead to {:.4} USD/h",
        report.nodes,
        report.price_per_hour_before,
        report.commands.len(),
        report.price_per_hour_after
    );
    for command in &report.commands {
        let comes = command.replace.iter().map(|it| {
            let (kind, capacity) = (&it.instance_type, &it.capacity_type);
            format!("{kind} {capacity} in {}", it.zone)
        });
        let comes: Vec<String> = comes.collect();
        let _ = writeln!(
            text,
            "  {} {}: {} -> [{}], saves {:.4} USD/h, moves {} pods",
            command.decision,
            command.reason,
            command.remove.join(", "),
            comes.join(", "),
            command.savings_per_hour,
            command.pods_moved
        );
    }
    if arguments.explain {
        for (node, outcome) in &report.outcomes {
            let miss = outcome.nearest_miss.as_deref();
            let miss = miss.map(|it| format!(" ({it})")).unwrap_or_default();
            let _ = writeln!(text, "  {node}: {}{miss}", outcome.message);
        }
    }
    for fault in &answer.faults {
        let _ = writeln!(text, "fault: {fault}");
    }
    for warning in &answer.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    if arguments.timing {
        let _ = writeln!(
            text,
            "scan {:.4} s (policies {:.4} s), {} MiB at most",
            answer.scan_seconds,
            answer.policy_seconds,
            answer.peak_rss_bytes >> 20
        );
    }
    text
}
