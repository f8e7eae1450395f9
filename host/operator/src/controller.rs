//! `mortise controller`: the controllers on a Kubernetes API server, with EC2 or a simulated one.
//!
//! Wires and starts; what is decided is decided elsewhere, and each part ends the process by its error alone. Answers
//! to `pkg/operator/operator.go` of Karpenter and of the AWS provider.

mod cloud;
mod leading;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use aws::sdk::SdkClients;
use cloudprovider::Clock;
use controllers::{Settings, SolvePlacement};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::config::{KubeConfigOptions, Kubeconfig};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::api_client::{Asker, ClientMetrics, Guard, MissingRights, RateLimiter};
use crate::build_info::{COMMIT, VERSION};
use crate::cli::ControllerArguments;
use crate::clock::SystemClock;
use crate::exposition;
use crate::fence::Fence;
use crate::http::{self, Probes, SecurePort};
use crate::logging::LogLevel;
use crate::options::{ControllerOptions, PolicyOptions, ProcessOptions};
use crate::policies::recorder::FileRecorder;
use crate::process_metrics::ProcessMetrics;
use crate::stack::{Stack, StackConfig};
use cloud::{aws_cloud, aws_options, is_simulated, simulated_cloud};
pub(crate) use leading::stop_signal;
use leading::{election, live};

/// Where a pod finds the namespace of its service account, which is its own.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Computations at one time; many launches ask for a ranking at once, and each thread keeps memory for itself.
const BLOCKING_THREADS_MAX: usize = 4;

pub(crate) fn run(mut arguments: ControllerArguments) -> anyhow::Result<ExitCode> {
    let process = &mut arguments.options.process;
    process.settle_namespace(Path::new(OWN_NAMESPACE));
    let log_level = crate::logging::start(&process.log_level, &process.log_output_paths)?;
    // Controllers wait for the API server and the cloud, and what computes for long does so elsewhere. Each further
    // thread would have a heap of its own, and one that is half empty cannot lend its pages to another.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    runtime.block_on(Box::pin(control(&arguments, log_level)))?;
    Ok(ExitCode::SUCCESS)
}

async fn control(arguments: &ControllerArguments, log_level: LogLevel) -> anyhow::Result<()> {
    let ControllerOptions {
        // Taken over once the cloud and the cluster are known.
        cloud: _,
        settings: _,
        process,
        policies,
        accepted: _,
    } = &arguments.options;
    let PolicyOptions {
        allow_policy_authority_replace,
        policy_records,
        policy_records_size,
    } = policies;
    let fence = fence(process);
    let guard = guard(process, &fence);
    let kubeconfig = arguments.kubeconfig.as_deref();
    let client = client(kubeconfig, &guard, Asker::Controller).await?;
    let version = client.apiserver_version().await;
    let version = version.context("the Kubernetes API server does not answer")?;
    let is_simulated = is_simulated(arguments.cloud, &version);
    let cluster_name = cluster_name(arguments, is_simulated)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let settings = Settings {
        policy_namespace: process.policy_namespace().to_owned(),
        cluster_name: cluster_name.clone(),
        ..settings(&arguments.options.settings, minor(&version))
    };
    log_configuration(arguments, &settings);
    let cloud = if is_simulated {
        simulated_cloud(&cluster_name, arguments, &guard, &version, &clock).await?
    } else {
        aws_cloud(arguments, &client, &version, &clock, &fence).await?
    };
    let stack = Stack::new(StackConfig {
        client: client.clone(),
        provider: cloud.provider,
        clock: Arc::clone(&clock),
        settings,
        interruptions: cloud.interruptions,
        policy_limits: policy::Limits {
            may_replace_budgets: *allow_policy_authority_replace,
            ..policy::Limits::default()
        },
        stands_by: !process.disable_leader_election,
    })?;
    let recorder = record_policies(&stack, policy_records.as_deref(), *policy_records_size)?;
    let slow_renewals = Counter::default();
    let process_metrics = ProcessMetrics {
        fence: fence.clone(),
        lease_name: process.leader_election_name.clone(),
        slow_renewals: slow_renewals.clone(),
    };
    let clients = cloud.clients.as_ref();
    let registry = registry(&stack, clients, process_metrics, &guard.metrics);
    let probes = Probes {
        log_level: Some(log_level),
        is_profiled: process.enable_profiling,
        ..probes(&stack, recorder, registry)
    };
    let serving = serve(process, kubeconfig, &guard, probes);
    let election = election(arguments, &fence, clock, slow_renewals).await?;
    tokio::select! {
        biased;
        served = async { serving.await?; std::future::pending().await } => served,
        ended = live(election.as_ref(), &stack, &cloud.background) => ended,
    }
}

/// Serves both ports until the process ends.
async fn serve(
    process: &ProcessOptions,
    kubeconfig: Option<&Path>,
    guard: &Guard,
    probes: Probes,
) -> anyhow::Result<()> {
    let secure = secure_port(process, kubeconfig, guard).await?;
    let (metrics_port, health_port) = (process.metrics_port, process.health_probe_port);
    http::serve(probes, metrics_port, secure, health_port).await
}

/// Asks with a client that is not fenced: who waits for the lease is scraped too.
async fn secure_port(
    process: &ProcessOptions,
    kubeconfig: Option<&Path>,
    guard: &Guard,
) -> anyhow::Result<Option<SecurePort>> {
    if !process.metrics_secure {
        return Ok(None);
    }
    let guard = Guard {
        fence: Fence::open(),
        ..guard.clone()
    };
    let client = client(kubeconfig, &guard, Asker::Metrics).await?;
    SecurePort::new(process.metrics_cert_dir.as_deref(), client).map(Some)
}

/// Without an election nobody closes it.
fn fence(process: &ProcessOptions) -> Fence {
    if process.disable_leader_election {
        Fence::open()
    } else {
        Fence::closed()
    }
}

/// Writes calls of policies to the file, if one is named.
fn record_policies(
    stack: &Stack,
    file: Option<&Path>,
    bytes_max: u64,
) -> anyhow::Result<Option<Arc<FileRecorder>>> {
    let recorder = file.map(|file| FileRecorder::resume(file, bytes_max));
    let recorder = recorder.transpose()?.map(Arc::new);
    if let Some(recorder) = &recorder {
        stack.record_policies(recorder);
    }
    Ok(recorder)
}

/// What requests of the controllers keep to.
fn guard(options: &ProcessOptions, fence: &Fence) -> Guard {
    Guard {
        fence: fence.clone(),
        rate: RateLimiter::new(options.kube_client_qps, options.kube_client_burst).map(Arc::new),
        metrics: ClientMetrics::default(),
        reads_only: None,
        missing_rights: MissingRights::default(),
    }
}

/// One line with all that the process is told to go by. None of it is secret.
fn log_configuration(arguments: &ControllerArguments, settings: &Settings) {
    let ControllerOptions {
        cloud,
        // Logged as they are obeyed.
        settings: _,
        process,
        policies,
        accepted,
    } = &arguments.options;
    tracing::info!(
        version = VERSION,
        commit = COMMIT,
        cloud = ?arguments.cloud,
        seed = arguments.seed,
        zones = ?arguments.zones,
        boot = ?arguments.boot,
        termination = ?arguments.termination,
        aws = ?aws_options(&arguments.options, String::new()),
        interruption_queue = cloud.interruption_queue,
        decisions = ?settings,
        process = ?process,
        policies = ?policies,
        "configuration"
    );
    let without_effect = accepted.given();
    if !without_effect.is_empty() {
        let names = without_effect.join(", ");
        tracing::info!(
            names,
            "these settings of Karpenter are accepted and change nothing"
        );
    }
}

/// The cluster's name, which a simulated account has of itself.
fn cluster_name(arguments: &ControllerArguments, is_simulated: bool) -> anyhow::Result<String> {
    let given = &arguments.options.cloud.aws.cluster_name;
    match (given.is_empty(), is_simulated) {
        (false, _) => Ok(given.clone()),
        (true, true) => Ok(sim::ec2::DEMO_NAME.to_owned()),
        (true, false) => bail!(
            "--cluster-name (or CLUSTER_NAME) is not set; instances are told apart by it, so it is required on AWS"
        ),
    }
}

pub(crate) async fn client(
    kubeconfig: Option<&Path>,
    guard: &Guard,
    asker: Asker,
) -> anyhow::Result<kube::Client> {
    let config = match kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file)
                .with_context(|| format!("--kubeconfig {} cannot be used", file.display()))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::infer().await.context(
            "no cluster was found; give --kubeconfig FILE, set KUBECONFIG or run in a pod",
        )?,
    };
    Ok(crate::api_client::client(config, guard, asker)?)
}

/// 0 where the server says none; providers add a `+` to theirs.
pub(crate) fn minor(version: &Info) -> u32 {
    let digits = version
        .minor
        .trim_end_matches(|it: char| !it.is_ascii_digit());
    digits.parse().unwrap_or(0)
}

/// What the flags say of the controllers, at an API server of this minor version.
pub(crate) fn settings(flags: &Settings, kubernetes_minor: u32) -> Settings {
    Settings {
        kubernetes_minor,
        solve_placement: SolvePlacement::Blocking,
        ..flags.clone()
    }
}

/// Whoever waits for the lease is ready to take over; a deployment whose second replica never got ready could not be
/// rolled. Whoever leads is ready once everything was listed.
fn is_ready(leads: bool, is_started: bool) -> bool {
    !leads || is_started
}

/// What is asked for on both ports.
fn probes(stack: &Stack, recorder: Option<Arc<FileRecorder>>, registry: Registry) -> Probes {
    let controllers = stack.controllers.clone();
    Probes {
        ledger: stack.controllers.ledger(),
        policy_parts: stack.policy_parts(),
        recorder,
        log_level: None,
        is_profiled: false,
        is_ready: Arc::new(move || is_ready(controllers.leads(), controllers.is_started())),
        metrics: Arc::new(move |format| exposition::expose(&registry, format)),
    }
}

/// All that is measured.
fn registry(
    stack: &Stack,
    clients: Option<&SdkClients>,
    process: ProcessMetrics,
    requests: &ClientMetrics,
) -> Registry {
    let mut registry = Registry::default();
    stack.register_metrics(&mut registry);
    if let Some(clients) = clients {
        clients.register_metrics(&mut registry);
    }
    requests.register(&mut registry);
    registry.register_collector(Box::new(process));
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_the_lease_is_ready_and_who_leads_once_everything_was_listed() {
        let cases = [(false, false), (true, false), (true, true)];
        let ready = cases.map(|(leads, is_started)| is_ready(leads, is_started));
        assert_eq!(ready, [true, false, true]);
    }
}
