//! The arguments of `mortise demo`.

use crate::options::parse_span;
use apis::duration::GoDuration;
use authoring::Output;
use clap::{Args, ValueEnum};
use controllers::NominatePlannedPods;
use std::path::PathBuf;
use std::time::Duration;

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

    /// What to print: as text a live view in a terminal, plain lines elsewhere, and a summary at the end; as JSON that
    /// alone
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
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", value_parser = crate::policies::recorder::parse_bytes)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speed {
    /// One simulated second a second
    Real,
    /// As fast as the machine can
    Max,
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

pub(super) fn parse_minor(text: &str) -> Result<u32, String> {
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
