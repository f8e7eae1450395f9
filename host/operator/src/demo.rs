//! `mortise demo`: the production controller on a simulated cluster and cloud.
//!
//! Virtual time is tokio's paused clock on one thread, so a run is a function of its seed and its manifests.

mod frame;
mod generated;
mod live_view;
mod node_load;
mod problems;
mod progress;
mod quiet;
mod rotation;
mod stages;
pub(crate) mod summary;
mod waits;

use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use aws::SqsInterruptionQueue;
use controllers::Settings;
use sim::ec2::{DEMO_NAME, Ec2Config, SimulatedQueue};
use sim::{SimulatedWorld, Time, WorldConfig};

use crate::apply;
use crate::cli::{DemoArguments, Output, Speed, Until};
use crate::clock::wall_now;
use crate::policies::recorder::FileRecorder;
use crate::stack::{Stack, StackConfig};
use authoring::manifests::{Manifests, variables};

use progress::{DemoView, Ended, Watcher};
use rotation::Rotation;
use stages::{DemoRun, Stages};
use summary::Summary;

/// Where the demo's policies are bound.
pub(crate) use authoring::SYSTEM_NAMESPACE;

/// What a cluster offers when the manifests bring no capacity of their own.
pub(crate) const CAPACITY: &str = include_str!("samples/capacity.yaml");
const WORKLOADS: &str = include_str!("samples/workloads.yaml");

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<ExitCode> {
    let plan = DemoPlan::of(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(plan.speed == Speed::Max)
        .build()?;
    // One poll of the whole run would be a large future on a small stack.
    runtime.block_on(Box::pin(demonstrate(arguments, &plan)))
}

/// The arguments with their defaults resolved.
struct DemoPlan {
    speed: Speed,
    listen: Option<SocketAddr>,
    is_terminal: bool,
    output: Output,
}

impl DemoPlan {
    fn of(arguments: &DemoArguments) -> anyhow::Result<Self> {
        let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let implied =
            (arguments.kubeconfig_out.is_some() || arguments.no_controller).then_some(loopback);
        let listen = arguments.listen.or(implied);
        if let Some(address) = listen.filter(|address| !address.ip().is_loopback()) {
            bail!(
                "--listen {address}: the simulated API server listens on loopback addresses only, such as 127.0.0.1:0"
            );
        }
        let default = if listen.is_some() || arguments.until == Until::Forever {
            Speed::Real
        } else {
            Speed::Max
        };
        let speed = arguments.speed.unwrap_or(default);
        if speed == Speed::Max && listen.is_some() {
            bail!(
                "--speed max cannot be combined with --listen: clients of a served API live in real time; leave --speed away"
            );
        }
        let is_terminal = arguments.output == Output::Text && std::io::stderr().is_terminal();
        Ok(Self {
            speed,
            listen,
            is_terminal,
            output: arguments.output,
        })
    }
}

async fn demonstrate(arguments: &DemoArguments, plan: &DemoPlan) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let (rotation, stages) = (Rotation::of(arguments)?, Stages::of(arguments)?);
    let world = SimulatedWorld::new(WorldConfig {
        seed: arguments.seed,
        time: match plan.speed {
            Speed::Max => Time::Virtual,
            Speed::Real => Time::Real(wall_now()),
        },
        kubernetes_minor: arguments.kubernetes_version,
        pods_per_second: arguments.pods_per_second,
        ec2: Ec2Config {
            cluster_name: DEMO_NAME.to_owned(),
            ..Ec2Config::default()
        },
    });
    world
        .install_crds()
        .map_err(|status| anyhow::anyhow!("{status}"))?;
    let running_world = tokio::spawn(Arc::clone(&world).run());
    let served = serve(arguments, plan, &world).await?;
    let client = kube::Client::new(world.api().clone(), "default");
    let mut problems = prepare(arguments, &client).await?;
    let rotating = rotation.map(|rotation| tokio::spawn(rotation.run(client.clone())));
    let changing = client.clone();

    let stack = if arguments.no_controller {
        None
    } else {
        Some(start_controller(arguments, &world, client)?)
    };
    let ledger = match (&stack, plan.listen) {
        (Some(stack), Some(_)) => Some(serve_ledger(stack).await?),
        _ => None,
    };
    let watcher = Watcher::new(Arc::clone(&world), stack.as_ref());
    let mut view = DemoView::open(plan)?;
    let run = stages.run(&changing, &watcher, &mut view).await;
    drop(view);
    let DemoRun {
        watched,
        stages,
        faults,
    } = run?;
    problems.extend(faults);
    problems.extend(watcher.problems());
    if watched.ended == Ended::NeverSettled {
        problems.push(format!(
            "the world did not settle within half an hour of simulated time: {}",
            watcher.what_is_busy()
        ));
    }
    let summary = watcher.summary(watched, started.elapsed(), stages, problems);
    drop((served, ledger, running_world, rotating));
    print(arguments.output, &summary)?;
    Ok(if summary.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Manifests of an option; anything wrong with them is told before the world begins.
fn read(option: &str, file: &PathBuf) -> anyhow::Result<Manifests> {
    let manifests = Manifests::read(std::slice::from_ref(file), &variables(DEMO_NAME));
    match manifests.faults.first() {
        Some(fault) => bail!("{option}: {fault}"),
        None => Ok(manifests),
    }
}

/// Serves the ledger on a free loopback port, for `mortise why`.
async fn serve_ledger(
    stack: &Stack,
) -> anyhow::Result<tokio::task::JoinHandle<std::io::Result<()>>> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    eprintln!("the ledger answers on {address}; try: mortise why nodepool NAME --server {address}");
    let router = crate::http::ledger_router(stack.controllers.ledger(), stack.policy_parts());
    Ok(tokio::spawn(
        async move { axum::serve(listener, router).await },
    ))
}

/// Starts the listener and writes the kubeconfig, where they were asked for.
async fn serve(
    arguments: &DemoArguments,
    plan: &DemoPlan,
    world: &Arc<SimulatedWorld>,
) -> anyhow::Result<Option<tokio::task::JoinHandle<std::io::Result<()>>>> {
    let Some(address) = plan.listen else {
        return Ok(None);
    };
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("--listen {address} cannot be opened"))?;
    let address = listener.local_addr()?;
    let token = crate::token::random()?;
    let kubeconfig = api_server::kubeconfig(address, &token);
    if let Some(file) = &arguments.kubeconfig_out {
        crate::token::write_private(file, &kubeconfig)
            .with_context(|| format!("--kubeconfig-out {} cannot be written", file.display()))?;
        eprintln!(
            "serving the Kubernetes API on http://{address}; try: kubectl --kubeconfig {} get nodes",
            file.display()
        );
    } else {
        eprintln!("serving the Kubernetes API on http://{address}; bearer token {token}");
    }
    let server = world.api().clone();
    Ok(Some(tokio::spawn(api_server::serve(
        server, listener, token,
    ))))
}

/// Applies the demo's capacity and the workloads asked for; answers what could not be applied.
async fn prepare(arguments: &DemoArguments, client: &kube::Client) -> anyhow::Result<Vec<String>> {
    let variables = variables(DEMO_NAME);
    let mut given = Manifests::read(&arguments.files, &variables);
    if let Some(pods) = arguments.pods {
        given.push_objects("--pods", generated::deployments(pods, arguments.seed));
    } else if arguments.files.is_empty() {
        given.read_text("the samples", WORKLOADS, &variables);
    }
    let mut capacity = Manifests::default();
    capacity.read_text("the demo's capacity", CAPACITY, &variables);
    // A manifest that brings its own capacity describes the cluster it wants.
    for kind in ["EC2NodeClass", "NodePool"] {
        if given
            .documents
            .iter()
            .any(|document| document.object["kind"] == kind)
        {
            capacity
                .documents
                .retain(|document| document.object["kind"] != kind);
        }
    }
    let mut faults: Vec<String> = given.faults.iter().map(ToString::to_string).collect();
    capacity.documents.append(&mut given.documents);
    let documents = capacity.documents;
    let unknown = apply::Unknown::Refuse;
    faults.extend(
        apply::apply(client, documents, SYSTEM_NAMESPACE, unknown)
            .await?
            .faults,
    );
    for fault in &faults {
        eprintln!("{fault}");
    }
    Ok(faults)
}

fn start_controller(
    arguments: &DemoArguments,
    world: &Arc<SimulatedWorld>,
    client: kube::Client,
) -> anyhow::Result<Stack> {
    let (ec2, clock) = (world.ec2(), world.clock());
    let queue = SimulatedQueue::new(DEMO_NAME, ec2, clock);
    let provider = crate::stack::simulated_provider(ec2, DEMO_NAME, Arc::new(clock));
    let notices = SqsInterruptionQueue::new(Arc::new(queue), DEMO_NAME, Arc::clone(&provider));
    let stack = Stack::new(StackConfig {
        client,
        provider,
        clock: Arc::new(world.clock()),
        settings: settings(arguments),
        interruptions: Some(Arc::new(notices)),
        // Nothing that a policy could disrupt here is anybody's.
        policy_limits: policy::Limits {
            may_replace_budgets: true,
            ..policy::Limits::default()
        },
        stands_by: false,
    })?;
    if let Some(file) = &arguments.policy_records {
        let recorder = FileRecorder::create(file, arguments.policy_records_size)?;
        stack.record_policies(&Arc::new(recorder));
    }
    tokio::spawn(stack.run());
    Ok(stack)
}

/// The controller's own defaults, but for what the demo has a flag for.
fn settings(arguments: &DemoArguments) -> Settings {
    Settings {
        policy_namespace: SYSTEM_NAMESPACE.to_owned(),
        cluster_name: DEMO_NAME.to_owned(),
        seed: arguments.seed,
        kubernetes_minor: arguments.kubernetes_version,
        nominate_planned_pods: arguments.nominate_planned_pods,
        plan_coming_pods: arguments.plan_coming_pods,
        ..Settings::default()
    }
}

fn print(output: Output, summary: &Summary) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match output {
        Output::Json => {
            serde_json::to_writer_pretty(&mut out, summary)?;
            writeln!(out)?;
        }
        Output::Text => {
            write!(out, "{}", summary.text())?;
            for problem in &summary.problems {
                writeln!(out, "problem: {problem}")?;
            }
        }
    }
    Ok(())
}

/// How long between two looks at the world, in its own time.
const LOOK_EVERY: Duration = Duration::from_millis(500);
