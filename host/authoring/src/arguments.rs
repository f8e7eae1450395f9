//! The arguments of the verbs.

use std::path::PathBuf;

use clap::Args;

use super::cases::CasesArguments;
use super::run::RunArguments;
use crate::Output;
use crate::cluster::StatusArguments;
use crate::kind_name::KindName;
use crate::language::Language;

const TARGETS: &str = "\
A POLICY is a folder made by the verb `new`, a manifest with a ConfigMap, a component (.wasm, .wasm.gz,
.wasm.zst), or builtin:NAME for one of the shelf.";

#[derive(Debug, Args)]
pub struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum PolicyVerb {
    /// Start a policy: a folder with something that works, its cases and its manifest
    New(NewArguments),

    /// Build the component of a folder
    Build(BuildArguments),

    /// Replace the SDK in a folder by that of this program; the author's own files stay as they are
    Upgrade(UpgradeArguments),

    /// Say whether a cluster would let a policy in, and whether it answers whatever it is asked
    #[command(after_help = TARGETS)]
    Check(CheckArguments),

    /// Run the cases of a policy
    #[command(after_help = TARGETS)]
    Test(TestArguments),

    /// Measure calls of a policy, of the defaults without one
    #[command(after_help = TARGETS)]
    Bench(BenchArguments),

    /// Print the ConfigMap that puts a policy in charge; several, where its component is larger than one holds
    #[command(after_help = TARGETS)]
    Pack(PackArguments),

    /// Show the policies of a cluster and where they stand
    Status(StatusArguments),

    /// Ask the calls of a recording again: equal questions must get equal bytes
    ///
    /// A recording is written by `mortise demo --policy-records FILE` and by the controller with the same
    /// flag; the latter serves it under /debug/policy-records of its metrics port.
    #[command(after_help = TARGETS)]
    Replay(ReplayArguments),

    /// Show what a policy decides differently from another
    #[command(after_help = TARGETS)]
    Diff(DiffArguments),

    /// Write cases for `mortise policy test` from what a policy answered in a recording
    Cases(CasesArguments),

    /// Ask a policy about the decisions of a recording, or of a running controller, and print its answers as tables
    #[command(after_help = TARGETS)]
    Run(RunArguments),
}

#[derive(Debug, Args)]
pub(super) struct NewArguments {
    /// Folder to make; its last part names the policy
    #[arg(value_name = "FOLDER")]
    pub(super) folder: PathBuf,

    /// What it is written in: an expression in the ConfigMap needs no tools
    #[arg(long, value_enum, default_value_t = Language::Expr)]
    pub(super) lang: Language,

    /// What it judges
    #[arg(long, value_enum, default_value_t = KindName::Rank)]
    pub(super) kind: KindName,

    /// Namespace of its ConfigMap: the controller's for policies
    #[arg(short, long, default_value = crate::SYSTEM_NAMESPACE)]
    pub(super) namespace: String,
}

#[derive(Debug, Args)]
pub(super) struct BuildArguments {
    /// Folder of the policy
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(super) folder: PathBuf,

    /// Where the component goes. Default: policy.wasm in the folder
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct UpgradeArguments {
    /// Folder of the policy
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(super) folder: PathBuf,

    /// Replace files of the SDK that were changed by hand, too
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// What to check
    #[arg(value_name = "POLICY", default_value = ".")]
    pub(super) policies: Vec<String>,

    /// Kind of a component that could be of several
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,

    /// Rounds made up for each kind
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(super) rounds: u32,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
pub(super) struct TestArguments {
    /// What to test
    #[arg(value_name = "POLICY", default_value = ".")]
    pub(super) policy: String,

    /// Cases in YAML (repeatable). Default: cases.yaml beside the policy
    #[arg(long, value_name = "FILE")]
    pub(super) cases: Vec<PathBuf>,

    /// Kind of a component that could be of several
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,
}

#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    /// What to measure. Default: the built-in defaults
    #[arg(value_name = "POLICY")]
    pub(super) policy: Option<String>,

    /// Kind of a component that could be of several
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,
}

#[derive(Debug, Args)]
pub(super) struct PackArguments {
    /// What to pack
    #[arg(value_name = "POLICY", default_value = ".")]
    pub(super) policy: String,

    /// Kind of a component that could be of several
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,

    /// Name of the ConfigMap
    #[arg(long)]
    pub(super) name: Option<String>,

    /// Namespace of the ConfigMap: the controller's for policies
    #[arg(short, long)]
    pub(super) namespace: Option<String>,

    /// enforce, shadow, canary:10% of the NodePools, or off
    #[arg(long)]
    pub(super) mode: Option<String>,

    /// NodePools it is for, separated by commas: names, globs such as web-*, exclusions such as !gpu; all when left out
    #[arg(long, value_name = "NAMES")]
    pub(super) nodepools: Option<String>,

    /// Labels of the NodePools it is for, as `kubectl get -l` takes them
    #[arg(long, value_name = "SELECTOR")]
    pub(super) nodepool_selector: Option<String>,

    /// Place in the chain
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) order: Option<i32>,

    /// Who decides when it fails: default, or hold, which disrupts nothing
    #[arg(long, value_name = "WHO")]
    pub(super) on_failure: Option<String>,

    /// Of budgets: lower, or replace where the controller allows it
    #[arg(long)]
    pub(super) authority: Option<String>,

    /// Settings in JSON or YAML
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// ConfigMap beside this one that holds the settings
    #[arg(long, value_name = "NAME[/KEY]", conflicts_with = "config")]
    pub(super) config_from: Option<String>,

    /// Where the manifest goes. Default: standard output
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    pub(super) recording: PathBuf,

    /// A policy whose component is in the recording by digest only (repeatable)
    #[arg(long = "policy", value_name = "POLICY")]
    pub(super) policies: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// What decides today
    #[arg(value_name = "OLD")]
    pub(super) old: String,

    /// What would decide
    #[arg(value_name = "NEW")]
    pub(super) new: String,

    /// Kind of components that could be of several
    #[arg(long, value_enum)]
    pub(super) kind: Option<KindName>,

    /// Rounds made up
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(super) rounds: u32,

    /// Compare on the rounds of this recording instead
    #[arg(long, value_name = "FILE")]
    pub(super) records: Option<PathBuf>,
}
