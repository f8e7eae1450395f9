//! The command line: subcommands and their arguments. What they do is in the file named after each.

use std::path::PathBuf;
use std::time::Duration;

use apis::duration::GoDuration;
pub(crate) use authoring::Output;
use authoring::{ControllerAddress, PolicyArguments};
use clap::{Args, Parser, ValueEnum};
use controllers::{FeatureGates, MinValuesPolicy, Packing, PreferencePolicy};
use scheduling::ranking::PremiumMax;

use crate::options::{
    ControllerOptions, NominatePlannedPods, SchedulerDefaults, parse_gates, parse_scheduler_config,
    parse_span,
};
use crate::shadow::arguments::ShadowArguments;

/// A node autoscaler for Kubernetes on EC2: a drop-in replacement for Karpenter whose ranking,
/// consolidation and budgets are sandboxed WebAssembly policies.
#[derive(Debug, Parser)]
#[command(name = "mortise", version, about, propagate_version = true)]
#[command(
    after_help = "Start with `mortise demo`: it needs no cluster, no cloud and no configuration."
)]
pub(crate) struct MortiseCli {
    #[command(subcommand)]
    pub(crate) subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Run the whole of Mortise on a simulated cluster and cloud
    ///
    /// Pending pods become EC2 instances, nodes and running pods, and the nodes go away again when
    /// they are not needed. The controller is the production one; the Kubernetes API server, the
    /// kubelets and EC2 are simulated, with the real catalogue of instance types and prices.
    Demo(DemoArguments),

    /// Run the controller against a Kubernetes API server
    ///
    /// Flags and environment variables are Karpenter's; a flag wins over its variable.
    Controller(Box<ControllerArguments>),

    /// Say why a node, pod, claim or NodePool is as it is: what was decided about it, and what stopped it
    ///
    /// Reads the ledger of a running controller (or of a demo): directly with --server, or through the
    /// Kubernetes API with --kubeconfig.
    Why(WhyArguments),

    /// Print the CustomResourceDefinitions as YAML, for `kubectl apply --server-side -f -`
    Crds(CrdsArguments),

    /// Solve a provisioning problem offline: which nodes would be bought for these pods, and why not others
    ///
    /// The problem is a file (--problem) or ordinary manifests (-f), whose workloads are expanded to
    /// pods. Nothing is launched and no cluster is needed.
    #[command(after_help = SIMULATE_EXIT_CODES)]
    Simulate(Box<SimulateArguments>),

    /// Convert objects of older Karpenters, or groups of Cluster Autoscaler, to objects of v1
    ///
    /// Takes Provisioners (v1alpha3 to v1alpha5), AWSNodeTemplates, Machines, what is of v1beta1, the ConfigMap
    /// karpenter-global-settings, and the answers of `aws autoscaling describe-auto-scaling-groups` and
    /// `aws eks describe-nodegroup`. Objects go to standard output, a line for everything that changed or was left out
    /// to standard error.
    #[command(after_help = CONVERT_EXIT_CODES)]
    Convert(ConvertArguments),

    /// List what a switch from Karpenter would meet, in a dump or in a cluster, each with its fix
    ///
    /// Reads only: definitions, pools, claims and classes of every generation, webhooks, leases, Deployments.
    #[command(after_help = DOCTOR_EXIT_CODES)]
    Doctor(DoctorArguments),

    /// Run Mortise beside a Karpenter, reading only: what it would launch, move and save
    ///
    /// A simulated world starts as the cluster is, follows its workloads, and has Mortise for an autoscaler. Nothing is
    /// written to the cluster. What both have and did is told every so often, and as a report at the end.
    #[command(after_help = SHADOW_EXIT_CODES)]
    Shadow(Box<ShadowArguments>),

    /// Write policies, try them, put them in charge and watch them
    Policy(Box<PolicyArguments>),

    /// Print what makes a shell complete the verbs and flags of mortise
    Completions(CompletionsArguments),

    /// Print the man page of mortise, or write those of all verbs
    Man(ManArguments),
}

const SIMULATE_EXIT_CODES: &str = "\
Exit code: 0 when every pod has a place, 1 when one has none or an object is faulty, 2 when the input cannot be used.";

const CONVERT_EXIT_CODES: &str = "\
Exit code: 0 when everything was converted, 1 when something was left out or lost, 2 when the input cannot be used.";

const DOCTOR_EXIT_CODES: &str = "\
Exit code: 0 when nothing breaks or differs, 1 when something does, 2 when nothing could be read.";

const SHADOW_EXIT_CODES: &str = "\
Exit code: 0 when everything was read, 1 when something could not be, 2 when nothing could.";

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Manifests to apply: a YAML or JSON file, a folder of them, or `-` for standard input
    /// (repeatable). Without one, sample workloads are applied: a web shop, a queue worker, a GPU
    /// job and a DaemonSet
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// Apply a generated mix of this many pods instead of the sample workloads
    #[arg(long, value_name = "N")]
    pub(crate) pods: Option<u32>,

    /// Seed of everything the simulated world leaves to chance; one seed, one run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How fast the simulated clock runs. Default: `real` with --listen or --until forever, else `max`
    #[arg(long, value_enum)]
    pub(crate) speed: Option<Speed>,

    /// When to stop: `settled` (nothing more to do), `forever`, or a span of simulated time such as `10m`
    #[arg(long, value_name = "settled|forever|DURATION", default_value = "settled", value_parser = parse_until)]
    pub(crate) until: Until,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,

    /// Serve the simulated Kubernetes API on this loopback address, for kubectl and other controllers
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<std::net::SocketAddr>,

    /// Write a kubeconfig for the served API to this file (implies --listen 127.0.0.1:0)
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,

    /// Version of the simulated Kubernetes; what its scheduler does with nominated pods depends on it
    #[arg(long, value_name = "1.MINOR", default_value = "1.35", value_parser = parse_minor)]
    pub(crate) kubernetes_version: u32,

    /// Whether the scheduler is told where pods are planned to go
    #[arg(long, value_enum, default_value_t = NominatePlannedPods::Auto)]
    pub(crate) nominate_planned_pods: NominatePlannedPods,

    /// Whether pods that are about to be created are planned with those that are there
    #[arg(long, default_value_t = false, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) plan_coming_pods: bool,

    /// How many pods a second ReplicaSets come to, as on a real control plane (about 20); without it all at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pods_per_second: Option<u32>,

    /// Write every call of a policy to this file, for `mortise policy run`, `cases`, `replay` and `diff --records`
    #[arg(long, value_name = "FILE")]
    pub(crate) policy_records: Option<PathBuf>,

    /// Room for that: what was written first goes, half of it at a time, to FILE.old and away
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", value_parser = crate::policy_recorder::parse_bytes)]
    pub(crate) policy_records_size: u64,

    /// Apply these manifests once the world has settled, and go on until it has again (repeatable): what a change
    /// leads to, how long it takes and what it saves
    #[arg(long, value_name = "FILE")]
    pub(crate) then: Vec<PathBuf>,

    /// Apply these manifests one after the other, and again from the first, for as long as the demo
    /// runs (repeatable): a way to swap policies under load
    #[arg(long, value_name = "FILE")]
    pub(crate) rotate: Vec<PathBuf>,

    /// Simulated time between two of them
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_span)]
    pub(crate) rotate_every: Duration,

    /// Run the world alone; `mortise controller --kubeconfig FILE` in another process drives it
    #[arg(long)]
    pub(crate) no_controller: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerArguments {
    /// Kubeconfig to use. Default: $KUBECONFIG, ~/.kube/config, else the pod's service account
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Where instances come from
    #[arg(long, value_enum, default_value_t = Cloud::Auto)]
    pub(crate) cloud: Cloud,

    /// Seed of the simulated cloud
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Time that a simulated instance takes from its launch until its Node is Ready. Default: 22 to 54 s
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    pub(crate) boot: Option<Duration>,

    /// Time that a simulated instance takes to end. Default: 15 to 35 s
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    pub(crate) termination: Option<Duration>,

    #[command(flatten)]
    pub(crate) options: ControllerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// What it is: node, pod, claim or nodepool
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,

    /// Its name; a pod's may be given as NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) controller: ControllerAddress,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write mortise.1 and a page for each verb into this folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CrdsArguments {
    /// Print only the CRD whose name or kind contains this word
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// What to convert: a YAML or JSON file, a folder of them, or `-` for standard input (repeatable)
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE|DIR",
        required = true
    )]
    pub(crate) files: Vec<PathBuf>,

    /// How to print the objects
    #[arg(short = 'o', long, value_enum, default_value_t = ObjectsOutput::Yaml)]
    pub(crate) output: ObjectsOutput,

    /// Write the report to this file instead of standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write what stood in karpenter-global-settings to this file, as values of the chart
    #[arg(long, value_name = "FILE")]
    pub(crate) values: Option<PathBuf>,

    /// Name of the cluster: where nothing else selects subnets and security groups, those tagged with it are
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,

    /// IAM role of nodes, where the objects say neither a role nor an instance profile
    #[arg(long, value_name = "NAME")]
    pub(crate) role: Option<String>,

    /// Instance profile of nodes, in place of --role
    #[arg(long, value_name = "NAME", conflicts_with = "role")]
    pub(crate) instance_profile: Option<String>,

    /// Images of groups that do not tell theirs, such as al2023@latest
    #[arg(long, value_name = "ALIAS")]
    pub(crate) ami_alias: Option<String>,

    /// Convert Machines and NodeClaims, too: each that is applied to a cluster launches an instance
    #[arg(long)]
    pub(crate) node_claims: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// A dump: a YAML or JSON file of `kubectl get`, a folder of them, or `-` for standard input (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// Kubeconfig of a cluster to look at; what may not be listed is said to be unknown
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectsOutput {
    /// Documents of YAML
    Yaml,
    /// One List
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// A problem file: JSON lists of pods, nodePools, nodes, daemonSets and more; may be gzipped
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(crate) problem: Option<PathBuf>,

    /// Manifests: a YAML or JSON file, a folder of them, or `-` for standard input (repeatable).
    /// Without a NodePool among them, those of `mortise demo` stand in
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// Instance types in the format of Karpenter's kwok provider. Default: the built-in EC2 catalogue
    #[arg(long, value_name = "FILE")]
    pub(crate) instance_types: Option<PathBuf>,

    /// Seed of the spot prices in that catalogue: those of `mortise demo --seed N`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// A policy to ask: a module (.wasm, .wasm.gz, .wasm.zst), a manifest of a ConfigMap, a folder of
    /// `mortise policy new`, builtin:NAME, or the name of a ConfigMap in the manifests (repeatable)
    #[arg(long = "policy", value_name = "POLICY|CONFIGMAP")]
    pub(crate) policies: Vec<String>,

    /// Whether preferences of pods count
    #[arg(long, env = "PREFERENCE_POLICY", value_enum, ignore_case = true, default_value_t = PreferencePolicy::default())]
    pub(crate) preference_policy: PreferencePolicy,

    /// Whether minValues of a requirement must be met
    #[arg(long, env = "MIN_VALUES_POLICY", value_enum, ignore_case = true, default_value_t = MinValuesPolicy::default())]
    pub(crate) min_values_policy: MinValuesPolicy,

    /// How pods are packed: by cost, or in Karpenter's order
    #[arg(long, env = "MORTISE_PACKING", value_enum, default_value_t = Packing::default())]
    pub(crate) packing: Packing,

    /// How much dearer than it need be a ranking policy may make a plan or a move: a share such as 50%, or off
    #[arg(long, env = "MORTISE_POLICY_MAX_PREMIUM", default_value_t = PremiumMax::default())]
    pub(crate) policy_max_premium: PremiumMax,

    /// Simulate disruption instead: one loop over a running cluster, all methods in their order
    #[arg(long)]
    pub(crate) disruption: bool,

    /// Simulate disruption, apply what is decided and repeat until a loop finds nothing
    #[arg(long)]
    pub(crate) until_stable: bool,

    /// Comma list of Name=bool; of Karpenter's gates, SpotToSpotConsolidation, NodeOverlay and
    /// CapacityBuffer matter here
    #[arg(long, env = "FEATURE_GATES", default_value = "", hide_default_value = true, value_parser = parse_gates)]
    pub(crate) feature_gates: FeatureGates,

    /// Whether pods that claim devices are left out
    #[arg(long, env = "IGNORE_DRA_REQUESTS", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) ignore_dra_requests: bool,

    /// Configuration of the cluster's scheduler, in YAML or JSON: podTopologySpread.defaultConstraints
    #[arg(long, env = "SCHEDULER_CONFIG", default_value = "", hide_default_value = true, value_parser = parse_scheduler_config)]
    pub(crate) scheduler_config: SchedulerDefaults,

    /// Say for each pod without a place and each pool what excluded what, and the nearest miss
    #[arg(long)]
    pub(crate) explain: bool,

    /// Say where the time went (JSON always does)
    #[arg(long)]
    pub(crate) timing: bool,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speed {
    /// One simulated second a second
    Real,
    /// As fast as the machine can
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cloud {
    /// The demo's own world when the kubeconfig points at one, else AWS
    Auto,
    /// EC2 in the region of the AWS configuration
    Aws,
    /// A simulated EC2 whose instances register as Nodes that kwok keeps alive
    Simulated,
}

/// When a demo ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    Settled,
    Forever,
    After(Duration),
}

/// The oldest and the newest minor version of Kubernetes that the simulated world may be of.
const MINORS: std::ops::RangeInclusive<u32> = 28..=40;

fn parse_minor(text: &str) -> Result<u32, String> {
    let minor = text.strip_prefix("1.").and_then(|it| it.parse().ok());
    minor.filter(|it| MINORS.contains(it)).ok_or_else(|| {
        let (first, last) = (MINORS.start(), MINORS.end());
        format!("`{text}` is no version between 1.{first} and 1.{last}")
    })
}

fn parse_until(text: &str) -> Result<Until, String> {
    match text {
        "settled" => Ok(Until::Settled),
        "forever" => Ok(Until::Forever),
        span => span
            .parse::<GoDuration>()
            .map(|duration| Until::After(duration.to_std()))
            .map_err(|_| format!("`{span}` is none of `settled`, `forever` or a duration such as `90s`, `10m`, `2h`")),
    }
}
