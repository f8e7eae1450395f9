//! Manifests to a cluster: the simulated API server admits and defaults the objects, the simulated workload
//! controllers make the pods.
//!
//! What a cluster was dumped with (Nodes, NodeClaims, pods that have a status or a node) is taken as it is. A workload
//! whose pods are among the files is not expanded again.

mod objects;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Resource, Selection};
use jiff::Timestamp;
use problem_file::{FileWorld, List, Loader, ObjectFault};
use scheduling::pod::PodKey;
use serde_json::json;
use sim::ec2::Ec2Config;
use sim::{Time, WorldConfig};
use state::devices::DeviceKind;

use super::CLUSTER_NAME;
use crate::apply::{Unknown, apply};
use authoring::manifests::{Document, Manifests, variables};
use objects::{is_about_devices, is_of_a_cluster, key_of, one_run, owners_of, strip, workload_of};

/// What the workload controllers get in simulated time.
const SETTLING_MAX: Duration = Duration::from_mins(30);
const LOOK_EVERY: Duration = Duration::from_millis(500);

const CAPACITY_BUFFERS: Resource = Resource::fixed("autoscaling.x-k8s.io", "capacitybuffers");
const NODE_OVERLAYS: Resource = Resource::fixed("karpenter.sh", "nodeoverlays");

/// Kinds that are read back from the simulated API server.
const READ_BACK: [(&Resource, List); 18] = [
    (&Resource::NAMESPACES, List::Namespaces),
    (&Resource::NODE_POOLS, List::NodePools),
    (&Resource::EC2_NODE_CLASSES, List::NodeClasses),
    (&NODE_OVERLAYS, List::NodeOverlays),
    (&Resource::STORAGE_CLASSES, List::StorageClasses),
    (&Resource::PERSISTENT_VOLUMES, List::PersistentVolumes),
    (
        &Resource::PERSISTENT_VOLUME_CLAIMS,
        List::PersistentVolumeClaims,
    ),
    (&Resource::CSI_NODES, List::CsiNodes),
    (&Resource::DAEMON_SETS, List::DaemonSets),
    (
        &Resource::POD_DISRUPTION_BUDGETS,
        List::PodDisruptionBudgets,
    ),
    (&Resource::SERVICES, List::Services),
    (&Resource::DEPLOYMENTS, List::Deployments),
    (&Resource::REPLICA_SETS, List::ReplicaSets),
    (&Resource::STATEFUL_SETS, List::StatefulSets),
    (
        &Resource::REPLICATION_CONTROLLERS,
        List::ReplicationControllers,
    ),
    (&Resource::POD_TEMPLATES, List::PodTemplates),
    (&CAPACITY_BUFFERS, List::CapacityBuffers),
    (&Resource::PODS, List::Pods),
];

/// A cluster, whichever form it came in.
pub(super) struct Expanded {
    pub(super) world: FileWorld,
    pub(super) now: Option<Timestamp>,
    /// Pods that stand for workloads of no replicas.
    pub(super) scaled_to_zero: BTreeMap<PodKey, String>,
    pub(super) config_maps: Vec<Document>,
}

impl Expanded {
    /// A cluster that needed no expansion.
    pub(super) fn of(world: FileWorld) -> Self {
        Self {
            world,
            now: None,
            scaled_to_zero: BTreeMap::new(),
            config_maps: Vec::new(),
        }
    }
}

/// Documents by what is done with them.
#[derive(Default)]
struct Sorted {
    /// For the API server.
    applied: Vec<Document>,
    /// Workloads of no replicas, with one.
    scaled_up: Vec<Document>,
    /// Taken as they are.
    kept: Vec<(List, Document)>,
    config_maps: Vec<Document>,
    warnings: Vec<String>,
}

pub(super) async fn expand(files: &[PathBuf]) -> anyhow::Result<Expanded> {
    let variables = variables(CLUSTER_NAME);
    let mut manifests = Manifests::read(files, &variables);
    let mut loader = Loader::new();
    for fault in &manifests.faults {
        loader.note_fault(fault_of(&fault.place.to_string(), &fault.message));
    }
    let has_pool = |it: &Document| it.object["kind"] == "NodePool";
    if !manifests.documents.iter().any(has_pool) {
        let has_class = |it: &Document| it.object["kind"] == "EC2NodeClass";
        let is_needed = !manifests.documents.iter().any(has_class);
        let mut capacity = Manifests::default();
        capacity.read_text("the default capacity", crate::demo::CAPACITY, &variables);
        capacity.documents.retain(|it| is_needed || !has_class(it));
        manifests.documents.append(&mut capacity.documents);
        loader.warn("no NodePool was given: those of `mortise demo`, default and gpu, stand in");
    }
    let mut sorted = sort(manifests.documents);
    sorted.warnings.drain(..).for_each(|it| loader.warn(&it));

    let world = sim::SimulatedWorld::new(WorldConfig {
        seed: 1,
        time: Time::Virtual,
        ec2: Ec2Config {
            cluster_name: CLUSTER_NAME.to_owned(),
            ..Ec2Config::default()
        },
        ..WorldConfig::default()
    });
    world.install_crds().map_err(|it| anyhow::anyhow!("{it}"))?;
    let running = tokio::spawn(Arc::clone(&world).run());
    let client = kube::Client::new(world.api().clone(), "default");
    let applied = apply(&client, sorted.applied, "default", Unknown::Warn).await?;
    applied.warnings.iter().for_each(|it| loader.warn(it));
    for refusal in &applied.faults {
        loader.note_fault(fault_of("", refusal));
    }
    settle(&world, &mut loader).await;
    let before = pod_keys(&world);
    // A refusal of these was told when they were applied as they are.
    apply(&client, sorted.scaled_up, "default", Unknown::Warn).await?;
    settle(&world, &mut loader).await;

    let mut scaled_to_zero = BTreeMap::new();
    for (resource, list) in READ_BACK {
        for object in world.api().list(resource, &Selection::everything()) {
            let place = || {
                format!(
                    "{} {}",
                    object["kind"].as_str().unwrap_or_default(),
                    key_of(&object)
                )
            };
            if list == List::Pods && !before.contains(&key_of(&object)) {
                scaled_to_zero.insert(key_of(&object), workload_of(&object));
            }
            loader.add_admitted(list, &place, &object);
        }
    }
    for (list, document) in sorted.kept {
        loader.add_value(list, &|| document.place.to_string(), &document.object);
    }
    running.abort();
    Ok(Expanded {
        world: loader.finish(),
        now: Some(world.clock().now()),
        scaled_to_zero,
        config_maps: sorted.config_maps,
    })
}

async fn settle(world: &Arc<sim::SimulatedWorld>, loader: &mut Loader) {
    let started = world.clock().elapsed();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if world.is_settled() {
            return;
        }
        if world.clock().elapsed().saturating_sub(started) > SETTLING_MAX {
            loader.warn("the workload controllers did not come to rest; some pods may be missing");
            return;
        }
    }
}

fn sort(documents: Vec<Document>) -> Sorted {
    let owners = owners_of_given_pods(&documents);
    let given: BTreeSet<(String, PodKey)> = documents
        .iter()
        .map(|it| {
            let kind = it.object["kind"].as_str().unwrap_or_default();
            (kind.to_owned(), key_of(&it.object))
        })
        .collect();
    let mut sorted = Sorted::default();
    for mut document in documents {
        let object = &document.object;
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = key_of(object);
        let has_spec = object["spec"].is_object();
        // A ReplicaSet of a Deployment, or a Job of a CronJob, is made anew by its owner.
        let is_made = owners_of(object).iter().any(|it| given.contains(it));
        if owners.contains(&(kind.clone(), name.clone())) || (is_made && kind != "Pod") {
            continue;
        }
        if kind == "StatefulSet" && has_spec {
            // Nothing gets ready here, and all of its pods are to be placed.
            document.object["spec"]["podManagementPolicy"] = json!("Parallel");
        }
        let object = &document.object;
        match kind.as_str() {
            "Node" => sorted.kept.push((List::Nodes, document)),
            "NodeClaim" => sorted.kept.push((List::NodeClaims, document)),
            "Pod" if is_of_a_cluster(object) => {
                let is_bound = object["spec"]["nodeName"].is_string();
                let list = if is_bound {
                    List::BoundPods
                } else {
                    List::Pods
                };
                sorted.kept.push((list, document));
            }
            _ if is_about_devices(object) => {
                let kind = DeviceKind::of(&kind);
                sorted
                    .kept
                    .extend(kind.map(|it| (List::of_devices(it), document)));
            }
            "ConfigMap" => sorted.config_maps.push(document),
            "CronJob" => {
                document.object = one_run(object);
                let warning = format!("CronJob {name}: one run of it is simulated");
                sorted.warnings.push(warning);
                sorted.applied.push(document);
            }
            "Deployment" | "ReplicaSet" | "StatefulSet" if object["spec"]["replicas"] == 0 => {
                strip(&mut document.object);
                let mut up = document.clone();
                up.object["spec"]["replicas"] = json!(1);
                sorted.scaled_up.push(up);
                sorted.applied.push(document);
            }
            _ => {
                strip(&mut document.object);
                sorted.applied.push(document);
            }
        }
    }
    sorted
}

/// Kinds and names of what owns pods that are among the files, Deployments behind ReplicaSets included.
fn owners_of_given_pods(documents: &[Document]) -> BTreeSet<(String, PodKey)> {
    let of_kind = |kind: &'static str| {
        let documents = documents.iter().map(|it| &it.object);
        documents.filter(move |it| it["kind"] == kind)
    };
    let mut all: BTreeSet<_> = of_kind("Pod").flat_map(owners_of).collect();
    // DaemonSets take part as such; their pods are told apart by the owner.
    all.retain(|(kind, _)| kind != "DaemonSet");
    for set in of_kind("ReplicaSet").chain(of_kind("Job")) {
        let kind = set["kind"].as_str().unwrap_or_default().to_owned();
        if all.contains(&(kind, key_of(set))) {
            all.extend(owners_of(set));
        }
    }
    all
}

fn pod_keys(world: &sim::SimulatedWorld) -> BTreeSet<PodKey> {
    let pods = world.api().list(&Resource::PODS, &Selection::everything());
    pods.iter().map(|pod| key_of(pod)).collect()
}

/// A fault whose message names place and object.
fn fault_of(place: &str, message: &str) -> ObjectFault {
    ObjectFault {
        place: place.to_owned(),
        object: String::new(),
        field: String::new(),
        message: message.to_owned(),
    }
}
