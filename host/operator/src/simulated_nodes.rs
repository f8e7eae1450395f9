//! Nodes of simulated instances on somebody's own API server, where no kubelet runs.
//!
//! It plays the registration that a kubelet does and the removal that a cloud-controller-manager does; kwok (or
//! the demo's world) plays the rest, because the Nodes carry its annotation. The account is nowhere but in this
//! process: one that starts anew takes it from what the cluster remembers.

pub(crate) mod known;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use apis::conditions::is_node_ready;
use apis::{Ec2NodeClass, NodeClaim, ProviderId};
use controllers::for_each_listed;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ClusterResourceScope;
use serde::de::DeserializeOwned;
use serde_json::json;
use sim::clock::SimulatedClock;
use sim::ec2::{Ec2Config, SimulatedEc2, SimulatedInstance};
use sim::node::node_object;

use known::{KnownObjects, boot_id};

/// kwok takes care of nodes with this annotation.
const KWOK_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
const STEP_EVERY: Duration = Duration::from_secs(1);
/// Kubelets that speak at one time.
const WRITES_AT_ONCE: usize = 16;
/// All Nodes are read this often even while no instance changes, for those that somebody else removed or changed.
const LOOK_AT_LEAST_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How an account to practise with behaves; times that are not given are left to chance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Practice {
    /// Source of all chance.
    pub(crate) seed: u64,
    /// Version of the cluster, such as `1.33`, whose images are published and whose kubelet nodes run.
    pub(crate) kubernetes_version: Option<String>,
    /// Zones with a subnet; those of the demo where none is named.
    pub(crate) zones: Vec<String>,
    /// From the launch until the Node is Ready.
    pub(crate) boot: Option<Duration>,
    /// From TerminateInstances until the instance is gone, in whole seconds.
    pub(crate) termination: Option<Duration>,
}

/// The simulated account and its nodes.
pub(crate) struct SimulatedNodes {
    client: kube::Client,
    nodes: Api<Node>,
    ec2: SimulatedEc2,
    clock: SimulatedClock,
    cluster_name: String,
}

/// Instances whose Nodes may be behind, and those Nodes.
struct Observed {
    instances: Vec<SimulatedInstance>,
    nodes: BTreeMap<ProviderId, Node>,
    region: String,
    now: Timestamp,
}

/// How far an instance has come, as far as its Node shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstancePhase {
    Booting,
    Registered,
    /// It was rebooted so often.
    Ready {
        reboots: u32,
    },
    Ending,
    Gone,
}

/// The phases that Nodes were seen or brought to show, by instance id, and when all Nodes were last looked at.
#[derive(Default)]
struct ShownPhases {
    phases: BTreeMap<String, InstancePhase>,
    all_seen_at: Option<Timestamp>,
}

/// Write by which a Node shows how far its instance has come.
struct Due {
    instance_id: String,
    /// Phase that the Node shows afterwards.
    phase: InstancePhase,
    step: Option<Step>,
}

/// Kind of write to a Node.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Register(Box<Node>),
    BecomeReady(Box<Node>),
    BootAnew { node: String, boot_id: String },
    Remove(String),
}

impl SimulatedNodes {
    /// An account without instances whose clock shows `now`.
    pub(crate) fn new(
        client: kube::Client,
        cluster_name: &str,
        practice: Practice,
        now: Timestamp,
    ) -> Self {
        let clock = SimulatedClock::starting_at(now);
        let mut config = Ec2Config {
            seed: practice.seed,
            cluster_name: cluster_name.to_owned(),
            ..Ec2Config::default()
        };
        if let Some(version) = practice.kubernetes_version {
            config.kubernetes_version = version;
        }
        if !practice.zones.is_empty() {
            config.zones = practice.zones;
        }
        if let Some(boot) = practice.boot {
            // A third of it lies between the Node and its readiness, as on real machines.
            let [registers, ready] = [boot * 2 / 3, boot / 3].map(milliseconds);
            config.boot_millis = (registers, registers);
            config.ready_millis = (ready, ready);
        }
        if let Some(span) = practice.termination {
            config.termination_seconds = (span.as_secs(), span.as_secs());
        }
        Self {
            nodes: Api::all(client.clone()),
            client,
            ec2: SimulatedEc2::new(config, clock),
            clock,
            cluster_name: cluster_name.to_owned(),
        }
    }

    /// Takes up the account that an earlier controller left.
    ///
    /// # Errors
    /// NodeClaims, Nodes or EC2NodeClasses cannot be listed; their CRDs need not be there.
    pub(crate) async fn resume(&self) -> kube::Result<()> {
        let remembered = KnownObjects {
            claims: self.listed::<NodeClaim>().await?,
            nodes: self.listed_nodes().await?,
            classes: self.listed::<Ec2NodeClass>().await?,
        };
        let known = remembered.instances(&self.cluster_name);
        let count = known.len();
        let refused = self.ec2.resume(known);
        if count > 0 {
            tracing::info!(
                instances = count - refused.len(),
                "the simulated account goes on with the instances that NodeClaims and Nodes tell of"
            );
        }
        for id in refused {
            tracing::warn!(
                id,
                "no such instance can be: its type or zone is not simulated"
            );
        }
        Ok(())
    }

    async fn listed<K>(&self) -> kube::Result<Vec<K>>
    where
        K: kube::Resource<Scope = ClusterResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let mut found = Vec::new();
        let api: Api<K> = Api::all(self.client.clone());
        let listed = for_each_listed(&api, "", |object: K| found.push(object)).await;
        if !is_status(&listed, 404) {
            listed?;
        }
        Ok(found)
    }

    /// Nodes that nobody but kwok keeps alive, by provider id.
    async fn listed_nodes(&self) -> kube::Result<BTreeMap<ProviderId, Node>> {
        let mut nodes = BTreeMap::new();
        for_each_listed(&self.nodes, "", |node: Node| {
            add_if_ours(&mut nodes, node);
        })
        .await?;
        Ok(nodes)
    }

    pub(crate) fn ec2(&self) -> &SimulatedEc2 {
        &self.ec2
    }

    /// Keeps the Nodes in step with the instances until it is dropped. A failed step is tried again.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let mut shown = ShownPhases::default();
        loop {
            tokio::time::sleep(STEP_EVERY).await;
            self.ec2.advance();
            if let Err(error) = self.step(&mut shown).await {
                tracing::warn!(%error, "simulated nodes were not written; trying again");
            }
        }
    }

    async fn step(&self, shown: &mut ShownPhases) -> kube::Result<()> {
        let now = self.clock.now();
        let is_late = |at| now.duration_since(at) >= LOOK_AT_LEAST_EVERY;
        let must_see_all = shown.all_seen_at.is_none_or(is_late);
        let behind = self.ec2.each_instance(|it| {
            let is_behind = shown.phases.get(&it.id) != Some(&phase(it, now));
            (must_see_all || is_behind).then(|| it.clone())
        });
        let behind: Vec<SimulatedInstance> = behind.into_iter().flatten().collect();
        if behind.is_empty() {
            return Ok(());
        }
        let observed = self.observe(behind, must_see_all, now).await?;
        if must_see_all {
            *shown = ShownPhases {
                all_seen_at: Some(now),
                ..ShownPhases::default()
            };
        }
        let mut first_error = None;
        for (due, written) in self.apply(decide(&observed)).await {
            match written {
                Ok(true) => drop(shown.phases.insert(due.instance_id, due.phase)),
                // Somebody else was faster: looked at again.
                Ok(false) => {}
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// The Nodes of these instances: each asked for by its name, but for what never had one.
    async fn observe(
        &self,
        instances: Vec<SimulatedInstance>,
        must_see_all: bool,
        now: Timestamp,
    ) -> kube::Result<Observed> {
        let region = self.ec2.region();
        let nodes = if must_see_all {
            self.listed_nodes().await?
        } else {
            self.nodes_of(&instances, &region, now).await?
        };
        Ok(Observed {
            instances,
            nodes,
            region,
            now,
        })
    }

    async fn nodes_of(
        &self,
        instances: &[SimulatedInstance],
        region: &str,
        now: Timestamp,
    ) -> kube::Result<BTreeMap<ProviderId, Node>> {
        let names = instances.iter().filter_map(|it| match phase(it, now) {
            InstancePhase::Ready { .. } | InstancePhase::Gone => {
                Some(node_object(it, region, None))
            }
            // One that is there already refuses to be created again.
            InstancePhase::Registered | InstancePhase::Booting | InstancePhase::Ending => None,
        });
        let asked = stream::iter(names.map(|it| it.name_any()))
            .map(|name| async move { self.nodes.get_opt(&name).await })
            .buffer_unordered(WRITES_AT_ONCE);
        let found: Vec<Option<Node>> = asked.try_collect().await?;
        let mut nodes = BTreeMap::new();
        for node in found.into_iter().flatten() {
            add_if_ours(&mut nodes, node);
        }
        Ok(nodes)
    }

    /// Each Node is written for itself, as kubelets do. Answers for each whether it shows the phase now.
    async fn apply(&self, due: Vec<Due>) -> Vec<(Due, kube::Result<bool>)> {
        stream::iter(due)
            .map(|mut due| async move {
                let written = match due.step.take() {
                    Some(step) => self.take(step).await,
                    None => Ok(true),
                };
                (due, written)
            })
            .buffer_unordered(WRITES_AT_ONCE)
            .collect()
            .await
    }

    /// Answers whether the Node is as it should be: somebody else may have been faster.
    pub(crate) async fn take(&self, step: Step) -> kube::Result<bool> {
        match step {
            Step::Register(node) => {
                let status = node.status.clone();
                let created = self.nodes.create(&PostParams::default(), &node).await;
                if !is_status(&created, 409) {
                    created?;
                }
                self.write_status(&node.name_any(), &json!({"status": status}))
                    .await?;
            }
            Step::BecomeReady(node) => {
                let name = node.name_any();
                let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
                // Taints are one list: written over a Node that changed since, it would bring back what others took
                // off.
                let seen = json!({"resourceVersion": node.metadata.resource_version});
                let patch = json!({"metadata": seen, "spec": {"taints": taints}});
                let written = self
                    .nodes
                    .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await;
                if is_status(&written, 409) {
                    return Ok(false);
                }
                written?;
                self.write_status(&name, &json!({"status": node.status}))
                    .await?;
            }
            Step::BootAnew { node, boot_id } => {
                let info = json!({"status": {"nodeInfo": {"bootID": boot_id}}});
                let written = self.write_status(&node, &info).await;
                if !is_status(&written, 404) {
                    written?;
                }
            }
            Step::Remove(name) => {
                let deleted = self.nodes.delete(&name, &DeleteParams::default()).await;
                if !is_status(&deleted, 404) {
                    deleted?;
                }
            }
        }
        Ok(true)
    }

    async fn write_status(&self, name: &str, status: &serde_json::Value) -> kube::Result<()> {
        self.nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
    }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn phase(instance: &SimulatedInstance, now: Timestamp) -> InstancePhase {
    if instance.shutting_down_at.is_some() {
        return match instance.terminated_at {
            Some(at) if at <= now => InstancePhase::Gone,
            Some(_) | None => InstancePhase::Ending,
        };
    }
    if instance.ready_at <= now {
        InstancePhase::Ready {
            reboots: instance.reboots,
        }
    } else if instance.registers_at <= now {
        InstancePhase::Registered
    } else {
        InstancePhase::Booting
    }
}

/// What is missing between the instances and their nodes.
fn decide(observed: &Observed) -> Vec<Due> {
    let Observed {
        instances,
        nodes,
        region,
        now,
    } = observed;
    let due = instances.iter().map(|instance| {
        let phase = phase(instance, *now);
        let (phase, step) = match (phase, nodes.get(&instance.provider_id())) {
            (InstancePhase::Gone, Some(node)) if node.metadata.deletion_timestamp.is_none() => {
                (phase, Some(Step::Remove(node.name_any())))
            }
            (InstancePhase::Registered | InstancePhase::Ready { .. }, None) => {
                let node = Box::new(fake_node(instance, region, None));
                (InstancePhase::Registered, Some(Step::Register(node)))
            }
            (InstancePhase::Ready { .. }, Some(node)) if !is_node_ready(node) => {
                let mut ready = fake_node(instance, region, Some(*now));
                keep_foreign_taints(node, &mut ready);
                (phase, Some(Step::BecomeReady(Box::new(ready))))
            }
            (InstancePhase::Ready { .. }, Some(node)) if boot_id(node) != instance.boot_id() => {
                let boot = Step::BootAnew {
                    node: node.name_any(),
                    boot_id: instance.boot_id(),
                };
                (phase, Some(boot))
            }
            (InstancePhase::Booting | InstancePhase::Ending | InstancePhase::Gone, _)
            | (InstancePhase::Registered | InstancePhase::Ready { .. }, Some(_)) => (phase, None),
        };
        Due {
            instance_id: instance.id.clone(),
            phase,
            step,
        }
    });
    due.collect()
}

/// Keeps a Node that nobody but kwok keeps alive, by its provider id.
fn add_if_ours(nodes: &mut BTreeMap<ProviderId, Node>, mut node: Node) {
    node.metadata.managed_fields = None;
    let (key, value) = KWOK_ANNOTATION;
    let is_ours = node.annotations().get(key).is_some_and(|it| it == value);
    let id = ProviderId::of_node(&node);
    nodes.extend(id.filter(|_| is_ours).map(|id| (id, node)));
}

fn fake_node(instance: &SimulatedInstance, region: &str, ready: Option<Timestamp>) -> Node {
    let mut node = node_object(instance, region, ready);
    let (key, value) = KWOK_ANNOTATION;
    node.annotations_mut()
        .insert(key.to_owned(), value.to_owned());
    node
}

/// Readiness takes away the kubelet's own taint; what others put on or took off meanwhile stays so.
fn keep_foreign_taints(present: &Node, ready: &mut Node) {
    let taints = present
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let kept = taints
        .into_iter()
        .filter(|taint| taint.key != "node.kubernetes.io/not-ready")
        .collect();
    if let Some(spec) = &mut ready.spec {
        spec.taints = Some(kept);
    }
    let seen = &present.metadata.resource_version;
    ready.metadata.resource_version.clone_from(seen);
}

fn is_status<T>(outcome: &kube::Result<T>, code: u16) -> bool {
    matches!(outcome, Err(kube::Error::Api(status)) if status.code == code)
}
