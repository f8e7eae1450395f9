//! `mortise policy`: for those who write policies, from an empty folder to a rule at work.
//!
//! Each verb is in the file named after it. They drive the host that runs in the controller, with its
//! limits, so that what passes here is let in there; decisions about policies are made in `policy`.

mod arguments;
mod bench;
mod build;
mod cases;
mod check;
mod diff;
mod new;
mod pack;
mod records;
mod replay;
mod run;
mod settings;
mod status;
mod target;
mod templates;
mod test;
mod toolchain;

use std::io::Write as _;
use std::process::ExitCode;

use policy::{CallLimits, Limits, PolicyHost};

pub(crate) use arguments::PolicyArguments;
use arguments::PolicyVerb;
pub(crate) use target::{of_config_map, policies_of, sources};

/// How much longer than in a round a call may take: other programs run on a developer's machine, and fuel
/// is what decides.
const PATIENCE: u32 = 20;

pub(crate) fn run(arguments: &PolicyArguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        PolicyVerb::New(arguments) => new::run(arguments),
        PolicyVerb::Build(arguments) => build::run(arguments),
        PolicyVerb::Check(arguments) => check::run(arguments),
        PolicyVerb::Test(arguments) => test::run(arguments),
        PolicyVerb::Bench(arguments) => bench::run(arguments),
        PolicyVerb::Pack(arguments) => pack::run(arguments),
        PolicyVerb::Status(arguments) => status::run(arguments),
        PolicyVerb::Replay(arguments) => replay::run(arguments),
        PolicyVerb::Diff(arguments) => diff::run(arguments),
        PolicyVerb::Cases(arguments) => cases::run(arguments),
        PolicyVerb::Run(arguments) => run::run(arguments),
    }
}

/// A host that waits longer than the controller's, and allows what a controller may be told to allow.
fn patient_host() -> anyhow::Result<PolicyHost> {
    let patient = |limits: CallLimits| CallLimits {
        deadline: limits.deadline * PATIENCE,
        ..limits
    };
    let limits = Limits::default();
    Ok(PolicyHost::on_demand(Limits {
        rank: patient(limits.rank),
        consolidation: patient(limits.consolidation),
        budgets: patient(limits.budgets),
        load: patient(limits.load),
        compile: limits.compile * PATIENCE,
        may_replace_budgets: true,
        ..limits
    })?)
}

/// Writes what a verb has to say. A reader that has gone away is none of its faults.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(writeln!(out, "{}", text.trim_end_matches('\n')));
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
