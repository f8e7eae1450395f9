//! `mortise policy`: for those who write policies, from an empty folder to a rule at work.
//!
//! Each verb is in the file named after it. They drive the host that runs in the controller, with its
//! limits, so that what passes here is let in there; decisions about policies are made in `policy`. Two programs
//! offer them: `mortise policy`, and `mortise-policy` for those who write policies and nothing else. There is no
//! client of a cluster here: who has one hands it in.

mod arguments;
mod bench;
mod build;
mod cases;
mod check;
mod cluster;
mod config_map;
mod diff;
pub mod kind_name;
mod language;
pub mod manifests;
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
mod upgrade;
mod vendored;

use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use policy::{CallLimits, Limits, PolicyHost};

pub use arguments::PolicyArguments;
use arguments::PolicyVerb;
pub use cluster::{ClusterAccess, ControllerAddress, StatusArguments};
pub use config_map::of_config_map;
pub use target::{policies_of, sources};

/// Namespace of policies where nobody names another: the controller's.
pub const SYSTEM_NAMESPACE: &str = "mortise";
/// The program that has these verbs alone.
const SMALL_PROGRAM: &str = "mortise-policy";

/// How much longer than in a round a call may take: other programs run on a developer's machine, and fuel
/// is what decides.
const PATIENCE: u32 = 20;

/// How a verb or a subcommand prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people
    Text,
    /// JSON for programs
    Json,
}

/// Does what the arguments ask.
pub fn run(
    arguments: &PolicyArguments,
    cluster: Option<ClusterAccess>,
) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        PolicyVerb::New(arguments) => new::run(arguments),
        PolicyVerb::Build(arguments) => build::run(arguments),
        PolicyVerb::Upgrade(arguments) => upgrade::run(arguments),
        PolicyVerb::Check(arguments) => check::run(arguments),
        PolicyVerb::Test(arguments) => test::run(arguments),
        PolicyVerb::Bench(arguments) => bench::run(arguments),
        PolicyVerb::Pack(arguments) => pack::run(arguments),
        PolicyVerb::Status(arguments) => status::run(arguments, cluster),
        PolicyVerb::Replay(arguments) => replay::run(arguments),
        PolicyVerb::Diff(arguments) => diff::run(arguments),
        PolicyVerb::Cases(arguments) => cases::run(arguments),
        PolicyVerb::Run(arguments) => run::run(arguments, cluster),
    }
}

/// A host that waits longer than the controller's, and allows what a controller may be told to allow.
fn unhurried_host() -> anyhow::Result<PolicyHost> {
    let unhurried = |limits: CallLimits| CallLimits {
        deadline: limits.deadline * PATIENCE,
        ..limits
    };
    let limits = Limits::default();
    Ok(PolicyHost::on_demand(Limits {
        rank: unhurried(limits.rank),
        consolidation: unhurried(limits.consolidation),
        budgets: unhurried(limits.budgets),
        load: unhurried(limits.load),
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

/// How the program that runs is called, for what is told of further verbs.
fn program() -> &'static str {
    let called = env::args_os().next().map(PathBuf::from);
    let name = called.as_deref().and_then(|it| it.file_stem());
    if name.is_some_and(|it| it == SMALL_PROGRAM) {
        SMALL_PROGRAM
    } else {
        "mortise policy"
    }
}
