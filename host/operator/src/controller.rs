//! `mortise controller`: the controllers on a Kubernetes API server, with EC2 or a simulated one.

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use aws::sdk::SdkClients;
use aws::{AwsOptions, AwsProvider, MissingPermission, SqsInterruptionQueue};
use cloudprovider::{Clock, InterruptionQueue};
use controllers::{MinValuesPolicy, Settings, SolvePlacement};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};

use prometheus_client::registry::Registry;

use crate::api_client::{ClientMetrics, Guard, RateLimiter};
use crate::cli::{Cloud, ControllerArguments};
use crate::clock::SystemClock;
use crate::cluster::{self, ClusterWatch};
use crate::exposition;
use crate::fence::Fence;
use crate::http::{self, Probes};
use crate::leader_election::{Election, LeaderElector};
use crate::logging::LogLevel;
use crate::options::{CloudOptions, ControllerOptions, PolicyOptions, ProcessOptions};
use crate::policy_recorder::FileRecorder;
use crate::process_metrics::ProcessMetrics;
use crate::simulated_nodes::{Practice, SimulatedNodes};
use crate::stack::{self, Stack, StackConfig};

/// The demo's API server carries this in its version.
const SIMULATED_MARK: &str = "+mortise";

/// Computations at one time; many launches ask for a ranking at once, and each thread keeps memory for itself.
const BLOCKING_THREADS_MAX: usize = 4;

/// How long work that was begun may take after the process was asked to stop; Kubernetes ends it after 30 s, and events
/// and the lease come after it.
const STOP_GRACE: Duration = Duration::from_secs(20);

pub(crate) fn run(arguments: &ControllerArguments) -> anyhow::Result<ExitCode> {
    let process = &arguments.options.process;
    let log_level = crate::logging::start(&process.log_level, &process.log_output_paths)?;
    // Controllers wait for the API server and the cloud, and what computes for long does so elsewhere. Each further
    // thread would have a heap of its own, and one that is half empty cannot lend its pages to another.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    runtime.block_on(Box::pin(control(arguments, log_level)))?;
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
    let client = client(arguments.kubeconfig.as_deref(), &guard).await?;
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
        simulated_cloud(&cluster_name, arguments, &client, &clock)
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
    })?;
    let recorder = record_policies(&stack, policy_records.as_deref(), *policy_records_size)?;
    let process_metrics = ProcessMetrics {
        fence: fence.clone(),
        lease_name: process.leader_election_name.clone(),
    };
    let mut registry = registry(&stack, process_metrics, &guard.metrics);
    if let Some(clients) = &cloud.clients {
        clients.register_metrics(&mut registry);
    }
    let serving = http::serve(
        Probes {
            log_level: Some(log_level),
            ..probes(&stack, recorder, registry)
        },
        process.metrics_port,
        process.health_probe_port,
    );
    let election = election(arguments, &fence, clock).await?;
    tokio::select! {
        biased;
        served = async { serving.await?; std::future::pending().await } => served,
        ended = live(election.as_ref(), &stack, &cloud.beside) => ended,
    }
}

/// Without an election nobody closes it.
fn fence(process: &ProcessOptions) -> Fence {
    if process.disable_leader_election {
        Fence::open()
    } else {
        Fence::closed()
    }
}

fn is_simulated(cloud: Cloud, version: &Info) -> bool {
    match cloud {
        Cloud::Simulated => true,
        Cloud::Aws => false,
        Cloud::Auto => version.git_version.contains(SIMULATED_MARK),
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

/// Leads when it is its turn, until it is asked to stop: then what was begun is done and told, and the lease given back.
async fn live(election: Option<&Election>, stack: &Stack, beside: &SideTask) -> anyhow::Result<()> {
    if election.is_some() {
        stack.controllers.stand_by();
    }
    let mut led = pin!(lead(election, stack, beside));
    tokio::select! {
        biased;
        signal = stop_signal() => signal?,
        ended = &mut led => return ended,
    }
    if !stack.controllers.leads() {
        return Ok(());
    }
    stack.controllers.stop();
    let ended = tokio::time::timeout(STOP_GRACE, led).await;
    if ended.is_err() {
        tracing::warn!("what is under way takes too long; the next to lead finds it as it is");
    }
    if let Some(election) = election {
        election.release().await;
    }
    ended.unwrap_or(Ok(()))
}

/// What requests of the controllers keep to.
fn guard(options: &ProcessOptions, fence: &Fence) -> Guard {
    Guard {
        fence: fence.clone(),
        rate: RateLimiter::new(options.kube_client_qps, options.kube_client_burst).map(Arc::new),
        metrics: ClientMetrics::default(),
        reads_only: None,
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
        accepted: _,
    } = &arguments.options;
    tracing::info!(
        cloud = ?arguments.cloud,
        seed = arguments.seed,
        boot = ?arguments.boot,
        termination = ?arguments.termination,
        aws = ?aws_options(&arguments.options, String::new()),
        interruption_queue = cloud.interruption_queue,
        decisions = ?settings,
        process = ?process,
        policies = ?policies,
        "configuration"
    );
}

/// The cluster's name, which a simulated account has of itself.
fn cluster_name(arguments: &ControllerArguments, is_simulated: bool) -> anyhow::Result<String> {
    let given = &arguments.options.cloud.aws.cluster_name;
    match (given.is_empty(), is_simulated) {
        (false, _) => Ok(given.clone()),
        (true, true) => Ok("mortise-demo".to_owned()),
        (true, false) => bail!(
            "--cluster-name (or CLUSTER_NAME) is not set; instances are told apart by it, so it is required on AWS"
        ),
    }
}

/// Fills the model, waits for the lease, and leads for as long as it holds. Ends well once all is done after a stop.
async fn lead(election: Option<&Election>, stack: &Stack, beside: &SideTask) -> anyhow::Result<()> {
    if election.is_none() {
        beside.resume().await?;
    }
    let leading = async {
        let Some(election) = election else {
            return std::future::pending().await;
        };
        tracing::info!(lease = election.lease_name(), "waiting for the lease");
        let until = election.acquire().await;
        beside.resume().await?;
        stack.controllers.lead();
        tracing::info!("leading; the controllers start");
        election.keep(until).await
    };
    let beside = async {
        match beside {
            SideTask::Nodes(nodes) => {
                stack.controllers.until_leading().await;
                nodes.run().await
            }
            SideTask::Cluster(watch) => {
                watch.run().await;
                Ok(())
            }
        }
    };
    tokio::select! {
        biased;
        lost = leading => lost,
        () = stack.run() => {
            if stack.controllers.leads() {
                bail!("a controller ended by itself, which is a bug");
            }
            Ok(())
        }
        ended = beside => ended,
    }
}

/// What runs beside the controllers.
enum SideTask {
    /// Makes nodes of instances where no kubelet will.
    Nodes(Box<SimulatedNodes>),
    /// Tells the provider what becomes of its cluster.
    Cluster(Box<ClusterWatch>),
}

impl SideTask {
    /// Takes over from who led before, ahead of all decisions.
    async fn resume(&self) -> anyhow::Result<()> {
        match self {
            Self::Nodes(nodes) => nodes.resume().await.context(
                "NodeClaims and Nodes, of which the simulated account is made, cannot be listed",
            ),
            Self::Cluster(_) => Ok(()),
        }
    }
}

/// A provider, and what belongs to it.
struct CloudParts {
    provider: Arc<AwsProvider>,
    beside: SideTask,
    interruptions: Option<Arc<dyn InterruptionQueue>>,
    /// What talks to AWS, where something does.
    clients: Option<SdkClients>,
}

fn simulated_cloud(
    cluster_name: &str,
    arguments: &ControllerArguments,
    client: &kube::Client,
    clock: &Arc<dyn Clock>,
) -> CloudParts {
    let practice = Practice {
        seed: arguments.seed,
        boot: arguments.boot,
        termination: arguments.termination,
    };
    let nodes = SimulatedNodes::new(client.clone(), cluster_name, practice, clock.now());
    tracing::info!(
        cluster_name,
        "instances are simulated; Nodes carry kwok.x-k8s.io/node=fake"
    );
    let provider = stack::simulated_provider(nodes.ec2(), cluster_name, Arc::clone(clock));
    CloudParts {
        provider,
        beside: SideTask::Nodes(Box::new(nodes)),
        interruptions: None,
        clients: None,
    }
}

async fn aws_cloud(
    arguments: &ControllerArguments,
    client: &kube::Client,
    version: &Info,
    clock: &Arc<dyn Clock>,
    fence: &Fence,
) -> anyhow::Result<CloudParts> {
    let fence = fence.clone();
    let clients = SdkClients::connect()
        .await
        .while_so(move || fence.is_open());
    let Some(region) = clients.region().map(str::to_owned) else {
        bail!("no AWS region was found; set AWS_REGION");
    };
    let mut aws_options = aws_options(&arguments.options, region);
    check_permissions(&clients, aws_options.disable_dry_run).await?;
    aws_options.kubernetes_version = cluster::minor_precise(version);
    if aws_options.cluster_ca_bundle.is_none() {
        aws_options.cluster_ca_bundle = cluster::ca_bundle(arguments.kubeconfig.as_deref());
    }
    let sqs = Arc::new(clients.clone());
    let provider = stack::aws_provider(clients.clone(), aws_options, Arc::clone(clock));
    let watch = ClusterWatch::new(client.clone(), clients.clone(), Arc::clone(&provider));
    let failure = watch.refresh().await;
    if provider.options().cluster_endpoint.is_empty() {
        let failure = failure.unwrap_or_else(|| "EKS tells none".to_owned());
        bail!(
            "nodes cannot join without the endpoint of the API server: set --cluster-endpoint (or CLUSTER_ENDPOINT); {failure}"
        );
    }
    let queue_name = &arguments.options.cloud.interruption_queue;
    let interruptions = (!queue_name.is_empty()).then(|| {
        let queue = SqsInterruptionQueue::new(sqs, queue_name, Arc::clone(&provider));
        Arc::new(queue) as Arc<dyn InterruptionQueue>
    });
    Ok(CloudParts {
        provider,
        beside: SideTask::Cluster(Box::new(watch)),
        interruptions,
        clients: Some(clients),
    })
}

/// An account that does not let the controller in ends the start; what else is missing is said, and the rest works.
async fn check_permissions(clients: &SdkClients, is_trusted: bool) -> anyhow::Result<()> {
    aws::check_connectivity(clients).await?;
    if is_trusted {
        return Ok(());
    }
    for missing in aws::missing_permissions(clients).await {
        let MissingPermission {
            action,
            consequence,
            refusal,
        } = missing;
        tracing::error!(
            action,
            consequence,
            refusal,
            "add this action to the policy of the controller's role"
        );
    }
    Ok(())
}

/// What the flags say of AWS; the cluster itself knows the rest.
fn aws_options(options: &ControllerOptions, region: String) -> AwsOptions {
    let CloudOptions {
        aws,
        // Where notices come from is no matter of launches.
        interruption_queue: _,
    } = &options.cloud;
    AwsOptions {
        reserved_capacity: options.settings.feature_gates.reserved_capacity,
        min_values_best_effort: options.settings.min_values_policy == MinValuesPolicy::BestEffort,
        ..aws.clone().given(region)
    }
}

pub(crate) async fn client(
    kubeconfig: Option<&Path>,
    guard: &Guard,
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
    Ok(crate::api_client::client(config, guard)?)
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
        is_ready: Arc::new(move || is_ready(controllers.leads(), controllers.is_started())),
        metrics: Arc::new(move |format| exposition::expose(&registry, format)),
    }
}

/// All that is measured.
fn registry(stack: &Stack, process: ProcessMetrics, requests: &ClientMetrics) -> Registry {
    let mut registry = Registry::default();
    stack.register_metrics(&mut registry);
    requests.register(&mut registry);
    registry.register_collector(Box::new(process));
    registry
}

/// The election by a client of its own: what the controllers wait for must not keep the lease waiting.
async fn election(
    arguments: &ControllerArguments,
    fence: &Fence,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Option<Election>> {
    let ProcessOptions {
        // Served, logged and bound elsewhere.
        metrics_port: _,
        health_probe_port: _,
        log_level: _,
        log_output_paths: _,
        policy_namespace: _,
        disable_leader_election,
        leader_election_name,
        leader_election_namespace,
        system_namespace,
        kube_client_qps: _,
        kube_client_burst: _,
    } = &arguments.options.process;
    if *disable_leader_election {
        return Ok(None);
    }
    let namespace = if leader_election_namespace.is_empty() {
        system_namespace
    } else {
        leader_election_namespace
    };
    let client = client(arguments.kubeconfig.as_deref(), &Guard::none()).await?;
    Ok(Some(Election::new(LeaderElector {
        leases: Api::namespaced(client, namespace),
        lease_name: leader_election_name.clone(),
        identity: identity(),
        clock,
        fence: fence.clone(),
    })))
}

/// Host and a random part, as client-go's: processes in containers of one host are all number 1.
fn identity() -> String {
    let told = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let (host, random) = (
        told("/proc/sys/kernel/hostname"),
        told("/proc/sys/kernel/random/uuid"),
    );
    format!("{}_{}_{}", host.trim(), std::process::id(), random.trim())
}

/// Returns when the process is asked to stop.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    tracing::info!("stopping");
    Ok(())
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
