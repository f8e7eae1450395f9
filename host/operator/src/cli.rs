//! The command line: subcommands and their arguments. What they do is in the file named after each.
//!
//! Parses and nothing else: no file is read here, and what flags of the controller mean stands with their rows.

mod demo;
mod iam;
mod simulate;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use authoring::Output;
use authoring::{ControllerAddress, PolicyArguments};
use clap::{Args, Parser, ValueEnum};

use crate::options::{ControllerOptions, parse_span};
use crate::shadow::arguments::ShadowArguments;
pub(crate) use demo::{DemoArguments, Speed, Until};
pub(crate) use iam::{IamArguments, IamFormat};
pub(crate) use simulate::SimulateArguments;

/// A node autoscaler for Kubernetes on EC2: a drop-in replacement for Karpenter whose ranking, consolidation and
/// budgets are policies, sandboxed in WebAssembly or written as an expression.
#[derive(Debug, Parser)]
#[command(name = "mortise", version, propagate_version = true)]
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

    /// Print what Mortise needs in an AWS account: roles and policies, and the queue of interruptions with its rules
    ///
    /// Made of the calls that the controller makes. Asks nobody and changes nothing: the documents are for
    /// CloudFormation, Terraform or people to apply.
    Iam(Box<IamArguments>),

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

    /// Comma list of the simulated account's zones. Default: us-east-1a to us-east-1c
    #[arg(long, value_name = "ZONES", value_delimiter = ',')]
    pub(crate) zones: Vec<String>,

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cloud {
    /// The demo's own world when the kubeconfig points at one, else AWS
    Auto,
    /// EC2 in the region of the AWS configuration
    Aws,
    /// A simulated EC2 whose instances register as Nodes that kwok keeps alive
    Simulated,
}
