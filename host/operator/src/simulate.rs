//! `mortise simulate`: one provisioning solve, offline, on a problem file or on manifests.
//!
//! The model, the pools and the problem come about as in a pass of the controller; only their source differs. Nothing
//! here places a pod.

mod catalogue;
mod disruption;
mod expand;
mod policies;
mod scaled_to_zero;
mod text;
mod timed_policies;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use apis::conditions::reason;
use controllers::{SolverPlace, SolverRun};
use jiff::Timestamp;
use planning::capacity_buffer;
use planning::provisioning::PoolTypes;
use policy::{PolicyHost, PolicyKind};
use problem_file::{
    AnswerReport, Explanation, FileWorld, InstanceTypes, Timing, TypeList, explain,
};
use scheduling::pod::PodKey;
use scheduling::problem::{Options, ReservedMode};
use scheduling::{
    Interrupt, Prepared, Solution, TableCache, lower_bound_per_hour, solve_within_premium,
};
use serde::Serialize;
use state::Snapshot;

use crate::cli::SimulateArguments;
use crate::clock::wall_now;
use crate::output::print;
use crate::process_facts::peak_rss_bytes;
use authoring::manifests::Document;

use expand::Expanded;
use scaled_to_zero::ScaledToZero;
use timed_policies::TimedPolicies;

/// Name of the simulated cluster; `${CLUSTER_NAME}` in manifests stands for it.
const CLUSTER_NAME: &str = "simulated";

pub(crate) fn run(arguments: &SimulateArguments) -> anyhow::Result<ExitCode> {
    Ok(match simulate(arguments)? {
        SimulationEnd::Clean => ExitCode::SUCCESS,
        SimulationEnd::Flawed => ExitCode::FAILURE,
    })
}

/// End of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimulationEnd {
    /// Every pod has a place, where pods were placed, and the input was faultless.
    Clean,
    Flawed,
}

impl SimulationEnd {
    fn of(is_clean: bool) -> Self {
        if is_clean { Self::Clean } else { Self::Flawed }
    }
}

/// A cluster with its pools and what they may buy: what every kind of simulation starts from.
pub(crate) struct SimulationStart {
    pub(crate) world: FileWorld,
    pub(crate) pools: Pools,
    pub(crate) now: Timestamp,
    /// Workload of each pod that stands for a workload of no replicas.
    scaled_to_zero: BTreeMap<scheduling::pod::PodKey, String>,
    /// ConfigMaps of the manifests.
    config_maps: Vec<Document>,
}

/// Pools and types that can be bought.
pub(crate) struct Pools {
    /// Pools that may open nodes.
    pub(crate) pools: Vec<PoolTypes>,
    /// Why the others may not.
    pub(crate) errors: BTreeMap<String, String>,
    /// Instance types of every pool, static and unready ones included.
    pub(crate) types: BTreeMap<String, TypeList>,
}

/// Answer as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulationAnswer<'a> {
    #[serde(flatten)]
    report: &'a AnswerReport,
    /// What no plan for these pods undercuts; where nodes exist nobody can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound_per_hour: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scaled_to_zero: Vec<ScaledToZero>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buffers: Vec<BufferAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanations: Option<Vec<Explanation>>,
}

/// A CapacityBuffer, as its status would say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BufferAnswer {
    buffer: String,
    replicas: i32,
    /// Reason of the condition ReadyForProvisioning.
    ready_for_provisioning: &'static str,
    /// Reason of the condition Provisioning.
    provisioning: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

fn buffers(snapshot: &Snapshot, solution: &Solution) -> Vec<BufferAnswer> {
    let headrooms = capacity_buffer::headrooms(snapshot, solution);
    let answers = snapshot.capacity_buffers().filter_map(|buffer| {
        let metadata = &buffer.metadata;
        let names = (metadata.namespace.as_deref(), metadata.name.as_deref());
        let key = PodKey::new(names.0.unwrap_or_default(), names.1.unwrap_or_default());
        let headroom = headrooms.get(&key)?;
        let (replicas, ready, message) = match capacity_buffer::resolve(snapshot, buffer) {
            Ok(resolved) => (resolved.replicas, reason::RESOLVED, String::new()),
            Err(error) => (0, error.reason(), error.to_string()),
        };
        Some(BufferAnswer {
            buffer: key.to_string(),
            replicas,
            ready_for_provisioning: ready,
            provisioning: headroom.status_and_reason().1,
            message,
        })
    });
    answers.collect()
}

fn simulate(arguments: &SimulateArguments) -> anyhow::Result<SimulationEnd> {
    let mut input = read(arguments)?;
    let host = PolicyHost::on_demand(policy::Limits {
        may_replace_budgets: true,
        ..policy::Limits::default()
    })?;
    policies::bind(&host, &arguments.policies, &input.config_maps)?;
    // A pass asks for nothing else.
    host.warm_up_kind(PolicyKind::Rank);
    let policies = TimedPolicies::new(&host);
    if arguments.disruption || arguments.until_stable {
        host.warm_up();
        return disruption::simulate(arguments, &mut input, &policies);
    }
    provision(arguments, &input, &policies)
}

/// One provisioning pass.
fn provision(
    arguments: &SimulateArguments,
    input: &SimulationStart,
    policies: &TimedPolicies<'_>,
) -> anyhow::Result<SimulationEnd> {
    let started = Instant::now();
    let Pools {
        pools,
        errors,
        types,
    } = &input.pools;
    let options = options(arguments, input.now);
    let world = &input.world;
    let mut question = world.question_of(pools, types, errors.clone(), options);
    let probes = scaled_to_zero::split(&mut question.problem, &input.scaled_to_zero);
    let tables = TableCache::default();
    let prepared = Prepared::new(&question.problem, policies, &tables);
    let setup_seconds = started.elapsed().as_secs_f64();
    let policy_seconds = policies.spent().as_secs_f64();
    let started = Instant::now();
    let solution = Solution {
        uses: prepared.uses().to_vec(),
        ..solve_within_premium(&question.problem, &prepared, &tables, &Interrupt::never())
    };
    let solve_seconds = started.elapsed().as_secs_f64();
    let report = AnswerReport::new(&input.world, &question, &solution).timed(Timing {
        setup_seconds,
        solve_seconds,
        policy_seconds,
        peak_rss_bytes: peak_rss_bytes(),
        ..Timing::default()
    });
    let (is_explained, snapshot) = (arguments.explain, input.world.snapshot());
    let answer = SimulationAnswer {
        report: &report,
        lower_bound_per_hour: lower_bound_per_hour(&question.problem, &prepared),
        scaled_to_zero: scaled_to_zero::try_each(
            &question,
            probes,
            policies,
            &tables,
            is_explained,
        ),
        buffers: buffers(&snapshot, &solution),
        explanations: is_explained.then(|| explain(&question, &solution)),
    };
    print(arguments.output, &answer, || {
        text::Text::new(&question.problem, arguments.timing).of(&answer)
    })?;
    Ok(SimulationEnd::of(report.is_clean()))
}

/// The input of either form, with the types of the file or of the built-in catalogue.
pub(crate) fn read(arguments: &SimulateArguments) -> anyhow::Result<SimulationStart> {
    let types = match &arguments.instance_types {
        Some(path) => Some(
            InstanceTypes::read(&read_text(path)?)
                .with_context(|| format!("--instance-types {}", path.display()))?,
        ),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let expanded = match &arguments.problem {
        Some(path) => Expanded::of(
            FileWorld::read(&read_text(path)?)
                .with_context(|| format!("--problem {}", path.display()))?,
        ),
        None if arguments.files.is_empty() => {
            bail!("nothing to simulate: give --problem FILE, or manifests with -f")
        }
        None => runtime.block_on(Box::pin(expand::expand(&arguments.files)))?,
    };
    let Expanded {
        mut world,
        now,
        scaled_to_zero,
        config_maps,
    } = expanded;
    let mut pools = match types {
        Some(types) => of_file(&mut world, types),
        None => runtime.block_on(Box::pin(catalogue::pools(&mut world, arguments)))?,
    };
    obey_gates(arguments, &mut world, &mut pools);
    Ok(SimulationStart {
        now: world.now.or(now).unwrap_or_else(wall_now),
        world,
        pools,
        scaled_to_zero,
        config_maps,
    })
}

/// Lays NodeOverlays on what pools may buy and takes CapacityBuffers out, as the gates say.
fn obey_gates(arguments: &SimulateArguments, world: &mut FileWorld, pools: &mut Pools) {
    let gates = &arguments.feature_gates;
    let snapshot = world.snapshot();
    let off = |kinds: &str, gate: &str| {
        format!(
            "{kinds} are not looked at: their gate is off, as it is by default; \
             --feature-gates {gate}=true turns it on"
        )
    };
    if gates.node_overlay {
        let refused = world.overlay(&mut pools.pools, &mut pools.types);
        world.warnings.extend(refused);
    } else if snapshot.node_overlays().len() > 0 {
        world.warnings.push(off("NodeOverlays", "NodeOverlay"));
    }
    if snapshot.capacity_buffers().len() > 0 && !gates.capacity_buffer {
        world
            .warnings
            .push(off("CapacityBuffers", "CapacityBuffer"));
        world.forget_buffers();
    }
}

/// Every pool may buy the types of the file.
fn of_file(world: &mut FileWorld, types: InstanceTypes) -> Pools {
    let (mut pools, errors) = world.pools(&mut |_| Ok(types.types.clone()));
    for pool in &mut pools {
        types.define_labels(&mut pool.node_pool);
    }
    let snapshot = world.snapshot();
    let names = snapshot
        .node_pools()
        .filter_map(|it| it.metadata.name.clone());
    let all = names.map(|name| (name, types.types.clone())).collect();
    world.faults.extend(types.faults);
    Pools {
        pools,
        errors,
        types: all,
    }
}

/// A file as text; `-` is standard input, and what gzip packed is unpacked.
fn read_text(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("{name} cannot be read"))?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = String::with_capacity(unpacked_len(&bytes));
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .with_context(|| format!("{name} cannot be unpacked"))?;
        return Ok(text);
    }
    String::from_utf8(bytes).with_context(|| format!("{name} is not text"))
}

/// The length that the end of a gzip file tells, as far as it can be believed.
fn unpacked_len(packed: &[u8]) -> usize {
    /// Text hardly ever packs better.
    const RATIO_MAX: usize = 64;
    let length = packed.last_chunk().map_or(0, |it| u32::from_le_bytes(*it));
    usize::try_from(length)
        .unwrap_or(usize::MAX)
        .min(packed.len().saturating_mul(RATIO_MAX))
}

fn options(arguments: &SimulateArguments, now: Timestamp) -> Options {
    let run = SolverRun {
        id: "simulate".to_owned(),
        now,
        seed: 0,
        reserved: ReservedMode::Strict,
    };
    let place = SolverPlace {
        cluster: CLUSTER_NAME.to_owned(),
        threads: std::thread::available_parallelism().map_or(1, Into::into),
        plans_coming_pods: false,
    };
    arguments.solving.options(run, place)
}
