//! From a case to a problem, the way the controllers go: events, cluster, snapshot, pools with their types.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use apis::labels;
use apis::resources::Resources;
use apis::{CapacityBuffer, NodeClaim, NodeOverlay, NodePool};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use planning::provisioning::{self, PoolTypes};
use planning::{capacity_buffer, scheduler_config};
use scheduling::instance_type::InstanceType;
use scheduling::node_overlay::{self, Overlaid, OverlayVerdict};
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{
    MinValuesPolicy, Options, Packing, PreferencePolicy, Problem, ReservedMode, SolverTuning,
};
use serde_json::{Map, Value, json};
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::Workload;
use state::{Cluster, Event, Snapshot};

use crate::case::{Case, Given, NodeGiven, NodeStage, PodGiven, PoolGiven, When};
use crate::objects::{self, CREATED, read};
use crate::types::{self, Types};
use crate::words;

/// The device class of cases that define none.
const GPU: &str = "device.driver == 'gpu.example.com'";

/// A cluster made of a case.
pub struct World {
    /// For the solver.
    pub problem: Problem,
    /// Pods left out of the problem, with the reason in words.
    pub ignored: BTreeMap<PodKey, String>,
    /// Overlays that conflict.
    pub conflicts: BTreeSet<String>,
    /// Overlays that break a rule.
    pub invalid: BTreeSet<String>,
    /// What the others make of the types.
    pub overlaid: Overlaid,
    /// The cluster as it was given.
    pub snapshot: Snapshot,
    /// Pods of each group: pending ones of the group's name, and bound ones by their node.
    pub groups: BTreeMap<String, Group>,
}

/// The pods of one name.
#[derive(Debug, Default)]
pub struct Group {
    /// To be placed.
    pub pending: Vec<PodKey>,
    /// Bound, with the node.
    pub bound: Vec<(PodKey, String)>,
}

/// Builds the problem of a case for one packing.
pub fn build(case: &Case, packing: Packing) -> Result<World> {
    let given = &case.given;
    let all = types::build(&given.types)?;
    let now: Timestamp = CREATED.parse()?;
    let mut maker = Maker {
        cluster: Cluster::new(),
        now,
        groups: BTreeMap::new(),
    };
    let mut pool_types = BTreeMap::new();
    for (name, pool) in pools_of(given) {
        maker.apply(Event::applied::<NodePool>(Arc::new(objects::node_pool(
            &name, &pool,
        )?)))?;
        pool_types.insert(name, types_of(&pool, &all)?);
    }
    maker.supporting(given)?;
    for (name, node) in &given.nodes {
        maker.node(name, node, &all)?;
    }
    for (group, pods) in &given.pods {
        maker.pods(group, pods, None)?;
    }
    maker.namespaces(given)?;
    let snapshot = maker.cluster.snapshot();
    let mut pools: Vec<PoolTypes> = provisioning::provisionable_pools(&snapshot)
        .node_pools
        .into_iter()
        .map(|node_pool| {
            let name = node_pool.metadata.name.clone().unwrap_or_default();
            let instance_types = pool_types.remove(&name).unwrap_or_default();
            PoolTypes {
                node_pool,
                instance_types: instance_types.into(),
                free_addresses: BTreeMap::new(),
            }
        })
        .collect();
    let (overlaid, verdicts) = overlay(&snapshot, &mut pools);
    let named = |wanted: fn(&OverlayVerdict) -> bool| -> BTreeSet<String> {
        let verdicts = verdicts.iter().filter(|(_, verdict)| wanted(verdict));
        verdicts.map(|(name, _)| name.clone()).collect()
    };
    for pod in capacity_buffer::virtual_pods(&snapshot) {
        let buffer = buffer_of(&pod).context("the buffer of a virtual pod")?;
        let group = maker.groups.entry(buffer.name).or_default();
        group.pending.push(pod.key.clone());
    }
    let options = options(&case.when, packing, now)?;
    let usage = provisioning::usage(&snapshot, &provisioning::types_by_pool(&pools));
    let input = provisioning::problem_for_provisioning(&snapshot, &pools, usage, options);
    Ok(World {
        problem: input.problem,
        ignored: input
            .ignored
            .into_iter()
            .map(|(key, reason)| (key, reason.to_string()))
            .collect(),
        conflicts: named(|it| *it == OverlayVerdict::Conflict),
        invalid: named(|it| matches!(it, OverlayVerdict::Invalid(_))),
        overlaid,
        snapshot,
        groups: maker.groups,
    })
}

/// Puts overlays on what pools may buy.
fn overlay(
    snapshot: &Snapshot,
    pools: &mut [PoolTypes],
) -> (Overlaid, BTreeMap<String, OverlayVerdict>) {
    let overlays: Vec<NodeOverlay> = snapshot.node_overlays().map(|it| (**it).clone()).collect();
    let catalogue: Vec<_> = pools
        .iter()
        .map(|it| (Arc::clone(&it.node_pool), Arc::clone(&it.instance_types)))
        .collect();
    let verdicts = node_overlay::judge(&overlays, &catalogue);
    let accepted = node_overlay::accepted(&overlays, &verdicts);
    if accepted.is_empty() {
        return (Overlaid::default(), verdicts);
    }
    let overlaid = node_overlay::apply(&accepted, &catalogue);
    for pool in pools {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
        if let Some(types) = overlaid.instance_types.get(name) {
            pool.instance_types = Arc::clone(types);
        }
    }
    (overlaid, verdicts)
}

fn pools_of(given: &Given) -> BTreeMap<String, PoolGiven> {
    given
        .pools
        .clone()
        .unwrap_or_else(|| BTreeMap::from([("default".to_owned(), PoolGiven::default())]))
}

fn types_of(pool: &PoolGiven, all: &Types) -> Result<Vec<Arc<InstanceType>>> {
    let Some(names) = &pool.types else {
        return Ok(all.values().cloned().collect());
    };
    names
        .iter()
        .map(|name| {
            all.get(name)
                .cloned()
                .with_context(|| format!("no type {name:?}"))
        })
        .collect()
}

fn options(when: &When, packing: Packing, now: Timestamp) -> Result<Options> {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let tuning = SolverTuning::default();
    let types_max = when.types_max.unwrap_or(tuning.instance_types_max);
    Ok(Options {
        preference_policy: match word(&when.preferences).as_str() {
            "" | "Respect" => PreferencePolicy::Respect,
            "Ignore" => PreferencePolicy::Ignore,
            other => anyhow::bail!("preferences: {other:?}"),
        },
        min_values_policy: match word(&when.min_values).as_str() {
            "" | "Strict" => MinValuesPolicy::Strict,
            "BestEffort" => MinValuesPolicy::BestEffort,
            other => anyhow::bail!("minValues: {other:?}"),
        },
        reserved: match word(&when.reserved).as_str() {
            "" | "Strict" => ReservedMode::Strict,
            "Fallback" => ReservedMode::Fallback,
            "Off" => ReservedMode::Off,
            other => anyhow::bail!("reserved: {other:?}"),
        },
        packing,
        now,
        ignores_devices: !when.devices,
        default_spread: scheduler_config::default_constraints(when.scheduler_config.clone())?
            .into(),
        tuning: SolverTuning {
            instance_types_max: types_max,
            ..tuning
        },
        ..Options::default()
    })
}

/// Puts objects into a cluster.
struct Maker {
    cluster: Cluster,
    now: Timestamp,
    groups: BTreeMap<String, Group>,
}

impl Maker {
    fn apply(&mut self, event: Event) -> Result<()> {
        self.cluster.apply(self.now, event)?;
        Ok(())
    }

    fn pods(&mut self, group: &str, given: &PodGiven, node: Option<&str>) -> Result<()> {
        for name in objects::names(group, given) {
            let pod = objects::pod(group, &name, given, node)?;
            let key = PodKey::new(
                pod.metadata.namespace.as_deref().unwrap_or("default"),
                &name,
            );
            let known = self.groups.entry(group.to_owned()).or_default();
            match node {
                Some(node) => known.bound.push((key, node.to_owned())),
                None => known.pending.push(key),
            }
            self.apply(Event::applied::<v1::Pod>(Arc::new(pod)))?;
        }
        Ok(())
    }

    /// Namespaces of the case, and without labels those that only pods name.
    fn namespaces(&mut self, given: &Given) -> Result<()> {
        let mut all = given.namespaces.clone();
        for pods in given.pods.values() {
            all.entry(
                pods.namespace
                    .clone()
                    .unwrap_or_else(|| "default".to_owned()),
            )
            .or_default();
        }
        for (name, labels) in all {
            let namespace = json!({"metadata": {"name": name, "labels": labels}});
            self.apply(Event::applied::<v1::Namespace>(Arc::new(read(namespace)?)))?;
        }
        Ok(())
    }

    /// DaemonSets, volumes, budgets.
    fn supporting(&mut self, given: &Given) -> Result<()> {
        for (name, daemon) in &given.daemon_sets {
            self.daemon_set(name, daemon)?;
        }
        for (name, budget) in &given.disruption_budgets {
            let object =
                json!({"metadata": {"name": name, "namespace": "default"}, "spec": budget});
            self.apply(Event::applied::<PodDisruptionBudget>(Arc::new(read(
                object,
            )?)))?;
        }
        for (name, overlay) in &given.overlays {
            let object = objects::node_overlay(name, overlay)?;
            self.apply(Event::applied::<NodeOverlay>(Arc::new(object)))?;
        }
        for (name, select) in &given.services {
            let metadata = json!({"name": name, "namespace": "default"});
            let object = json!({"metadata": metadata, "spec": {"selector": select}});
            self.apply(Event::applied::<v1::Service>(Arc::new(read(object)?)))?;
        }
        for (name, workload) in &given.workloads {
            let (kind, name) = name.split_once('/').context("kind/name of a workload")?;
            let workload = objects::workload(kind, name, workload)?;
            self.apply(Event::applied::<Workload>(Arc::new(workload)))?;
        }
        self.devices(given)?;
        for (name, buffer) in &given.buffers {
            let buffer = objects::buffer(name, buffer)?;
            self.apply(Event::applied::<CapacityBuffer>(Arc::new(buffer)))?;
        }
        for (name, class) in &given.storage_classes {
            let topologies: Vec<Value> = class
                .topologies
                .iter()
                .map(|words| topology(words))
                .collect::<Result<_>>()?;
            let mode = if class.immediate {
                "Immediate"
            } else {
                "WaitForFirstConsumer"
            };
            let object = json!({
                "metadata": {"name": name},
                "provisioner": class.provisioner.as_deref().unwrap_or("ebs.csi.aws.com"),
                "volumeBindingMode": mode,
                "allowedTopologies": topologies,
            });
            self.apply(Event::applied::<StorageClass>(Arc::new(read(object)?)))?;
        }
        for (name, volume) in &given.volumes {
            self.volume(name, volume)?;
        }
        for (name, claim) in &given.volume_claims {
            self.volume_claim(name, claim)?;
        }
        Ok(())
    }

    fn devices(&mut self, given: &Given) -> Result<()> {
        for (name, slice) in &given.slices {
            let node = slice["nodeName"].as_str().unwrap_or(name);
            let mut spec = json!({"driver": "gpu.example.com", "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}});
            objects::merge(&mut spec, slice);
            let object = json!({"metadata": {"name": name}, "spec": spec});
            self.device(DeviceKind::Slice, &object)?;
        }
        let mut classes = given.device_classes.clone();
        if classes.is_empty() {
            classes.insert("gpu".to_owned(), vec![GPU.to_owned()]);
        }
        for (name, expressions) in &classes {
            let selectors = expressions.iter();
            let selectors = selectors.map(|it| json!({"cel": {"expression": it}}));
            let selectors: Vec<Value> = selectors.collect();
            let spec = json!({"selectors": selectors});
            self.device(
                DeviceKind::Class,
                &json!({"metadata": {"name": name}, "spec": spec}),
            )?;
        }
        for (name, claim) in &given.claims {
            let object = json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": claim["devices"]},
                "status": if claim["status"].is_null() { json!({}) } else { claim["status"].clone() },
            });
            self.device(DeviceKind::Claim, &object)?;
        }
        Ok(())
    }

    fn device(&mut self, kind: DeviceKind, object: &Value) -> Result<()> {
        let object = DeviceObject::read(kind, object)?;
        self.apply(Event::applied::<DeviceObject>(Arc::new(object)))
    }

    fn volume(&mut self, name: &str, given: &crate::case::VolumeGiven) -> Result<()> {
        let mut spec = json!({"capacity": {"storage": "1Gi"}});
        let terms = words::terms(&given.require)?;
        if !terms.is_empty() {
            spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
        }
        if given.local {
            spec["local"] = json!({"path": "/data"});
        } else if given.host_path {
            spec["hostPath"] = json!({"path": "/data"});
        } else if let Some(driver) = &given.driver {
            spec["csi"] = json!({"driver": driver, "volumeHandle": name});
        }
        objects::merge(&mut spec, &given.spec);
        let mut metadata = json!({"name": name});
        if given.deleting {
            metadata["deletionTimestamp"] = json!(CREATED);
        }
        let object = json!({"metadata": metadata, "spec": spec});
        self.apply(Event::applied::<v1::PersistentVolume>(Arc::new(read(
            object,
        )?)))
    }

    fn volume_claim(&mut self, name: &str, given: &crate::case::VolumeClaimGiven) -> Result<()> {
        let mut metadata = json!({
            "name": name,
            "namespace": given.namespace.as_deref().unwrap_or("default"),
        });
        if given.volume.is_some() && !given.binding {
            metadata["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
        }
        if given.deleting {
            metadata["deletionTimestamp"] = json!(CREATED);
        }
        let phase = match (&given.volume, given.lost) {
            (_, true) => "Lost",
            (Some(_), false) if !given.binding => "Bound",
            (_, false) => "Pending",
        };
        let object = json!({
            "metadata": metadata,
            "spec": {"storageClassName": given.class, "volumeName": given.volume},
            "status": {"phase": phase},
        });
        self.apply(Event::applied::<v1::PersistentVolumeClaim>(Arc::new(read(
            object,
        )?)))
    }

    fn daemon_set(&mut self, name: &str, given: &PodGiven) -> Result<()> {
        let template = json!({
            "metadata": {"labels": objects::labels_of(name, given)},
            "spec": objects::pod_spec(name, given)?,
        });
        let object = json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("DaemonSet-{name}")},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
        });
        self.apply(Event::applied::<DaemonSet>(Arc::new(read(object)?)))?;
        if let Some(live) = &given.live {
            let live = PodGiven {
                owner: Some(format!("DaemonSet/{name}")),
                ..(**live).clone()
            };
            let pod = objects::pod(name, &format!("{name}-live"), &live, Some("elsewhere"))?;
            self.apply(Event::applied::<v1::Pod>(Arc::new(pod)))?;
        }
        Ok(())
    }

    fn node(&mut self, name: &str, given: &NodeGiven, all: &Types) -> Result<()> {
        let of_type = match &given.r#type {
            Some(of_type) => Some(
                all.get(of_type)
                    .with_context(|| format!("node {name:?}: no type {of_type:?}"))?,
            ),
            None => None,
        };
        let capacity = of_type.map(|it| it.capacity.clone()).unwrap_or_default();
        let expected = of_type.map(|it| it.allocatable()).unwrap_or_default();
        let mut allocatable = expected.clone();
        for (resource, amount) in types::amounts(&given.allocatable)?.iter() {
            allocatable.set(resource, amount);
        }
        let node_labels = node_labels(name, given, of_type.map(|it| &**it));
        let provider_id = format!("fake:///{name}");
        let told = Machine {
            labels: &node_labels,
            provider_id: &provider_id,
            capacity: &capacity,
            allocatable: &allocatable,
        };
        let is_managed = given.stage != NodeStage::Foreign;
        if is_managed {
            let bought = Machine {
                allocatable: &expected,
                ..told
            };
            let claim = claim(name, given, &bought)?;
            self.apply(Event::applied::<NodeClaim>(Arc::new(read(claim)?)))?;
        }
        if given.stage != NodeStage::InFlight {
            let node = node(name, given, &told)?;
            self.apply(Event::applied::<v1::Node>(Arc::new(read(node)?)))?;
        }
        if !given.csi.is_empty() {
            let drivers: Vec<Value> = given
                .csi
                .iter()
                .map(|(driver, count)| {
                    json!({"name": driver, "nodeID": name, "allocatable": count.map(|it| json!({"count": it}))})
                })
                .collect();
            let object = json!({"metadata": {"name": name}, "spec": {"drivers": drivers}});
            self.apply(Event::applied::<CSINode>(Arc::new(read(object)?)))?;
        }
        for (group, pods) in &given.pods {
            self.pods(group, pods, Some(name))?;
        }
        Ok(())
    }
}

fn topology(list: &[String]) -> Result<Value> {
    let mut expressions = Vec::new();
    for it in list {
        let requirement = words::requirement(it)?;
        expressions.push(json!({"key": requirement["key"], "values": requirement["values"]}));
    }
    Ok(json!({"matchLabelExpressions": expressions}))
}

fn node_labels(
    name: &str,
    given: &NodeGiven,
    of_type: Option<&InstanceType>,
) -> Map<String, Value> {
    let mut all = BTreeMap::new();
    all.insert(labels::HOSTNAME.to_owned(), name.to_owned());
    if let Some(of_type) = of_type {
        all.extend(of_type.requirements.labels());
    }
    let zone = given.zone.as_deref().unwrap_or("a");
    all.insert(labels::TOPOLOGY_ZONE.to_owned(), zone.to_owned());
    if given.stage == NodeStage::Foreign {
        all.remove(labels::CAPACITY_TYPE);
    } else {
        let pool = given.pool.as_deref().unwrap_or("default");
        let capacity = given.capacity.as_deref().unwrap_or("on-demand");
        all.insert(labels::NODEPOOL.to_owned(), pool.to_owned());
        all.insert(labels::CAPACITY_TYPE.to_owned(), capacity.to_owned());
    }
    if matches!(given.stage, NodeStage::Ready | NodeStage::Deleting) {
        let done = objects::done_labels();
        all.extend(done.map(|(key, value)| (key.to_owned(), value.to_owned())));
    } else if given.stage == NodeStage::Starting {
        all.insert(labels::REGISTERED.to_owned(), "true".to_owned());
    }
    for (short, value) in &given.labels {
        if value.is_empty() {
            all.remove(words::key(short));
        } else {
            all.insert(words::key(short).to_owned(), value.clone());
        }
    }
    all.into_iter()
        .map(|(key, value)| (key, json!(value)))
        .collect()
}

/// What a case's node is, as its claim expects it or as its kubelet tells it.
#[derive(Clone, Copy)]
struct Machine<'a> {
    labels: &'a Map<String, Value>,
    provider_id: &'a str,
    capacity: &'a Resources,
    allocatable: &'a Resources,
}

fn claim(name: &str, given: &NodeGiven, machine: &Machine<'_>) -> Result<Value> {
    let mut own = machine.labels.clone();
    own.remove(labels::HOSTNAME);
    for (key, _) in objects::done_labels() {
        own.remove(key);
    }
    let mut metadata = json!({
        "name": name, "uid": format!("claim-{name}"), "labels": own,
        "creationTimestamp": CREATED,
    });
    if given.stage == NodeStage::Deleting {
        metadata["deletionTimestamp"] = json!(CREATED);
    }
    Ok(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": metadata,
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
            "resources": {"requests": {}},
            "taints": objects::taints(&given.taints)?,
            "startupTaints": objects::taints(&given.startup_taints)?,
        },
        "status": {
            "providerID": machine.provider_id,
            "capacity": machine.capacity.to_list(),
            "allocatable": machine.allocatable.to_list(),
        },
    }))
}

fn node(name: &str, given: &NodeGiven, machine: &Machine<'_>) -> Result<Value> {
    let mut taints = objects::taints(&given.taints)?;
    if given.stage == NodeStage::Starting {
        taints.extend(objects::taints(&given.startup_taints)?);
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("node-{name}"), "labels": machine.labels, "creationTimestamp": CREATED},
        "spec": {"providerID": machine.provider_id, "taints": taints},
        "status": {
            "capacity": machine.capacity.to_list(),
            "allocatable": machine.allocatable.to_list(),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
}

/// The buffer behind a virtual pod.
fn buffer_of(pod: &Pod) -> Option<PodKey> {
    let annotations = &pod.shape.annotations;
    annotations.get(labels::CAPACITY_BUFFER_FAKE_POD_ANNOTATION)?;
    let name = annotations.get(labels::CAPACITY_BUFFER_NAME_ANNOTATION)?;
    let namespace = annotations.get(labels::CAPACITY_BUFFER_NAMESPACE_ANNOTATION)?;
    Some(PodKey::new(namespace, name))
}
