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
use apis::{Ec2NodeClass, NodeClaim};
use controllers::for_each_listed;
use futures::stream::{self, TryStreamExt as _};
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

use known::KnownObjects;

/// kwok takes care of nodes with this annotation.
const KWOK_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
const STEP_EVERY: Duration = Duration::from_secs(1);
/// Kubelets that speak at one time.
const WRITES_AT_ONCE: usize = 16;
/// Nodes are read this often even while no instance changes, for those that somebody else removed or changed.
const LOOK_AT_LEAST_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How an account to practise with behaves; times that are not given are left to chance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Practice {
    /// Source of all chance.
    pub(crate) seed: u64,
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

/// What the cluster and the account look like.
struct Observed {
    instances: Vec<SimulatedInstance>,
    nodes: BTreeMap<String, Node>,
    region: String,
    now: Timestamp,
}

/// How far an instance has come, as far as its Node shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstancePhase {
    Booting,
    Registered,
    Ready,
    Ending,
    Gone,
}

/// What was in step when last looked at.
struct InStep {
    at: Timestamp,
    phases: Vec<(String, InstancePhase)>,
}

/// One write.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Register(Box<Node>),
    BecomeReady(Box<Node>),
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
    async fn listed_nodes(&self) -> kube::Result<BTreeMap<String, Node>> {
        let (key, value) = KWOK_ANNOTATION;
        let mut nodes = BTreeMap::new();
        for_each_listed(&self.nodes, "", |mut node: Node| {
            node.metadata.managed_fields = None;
            let is_ours = node.annotations().get(key).is_some_and(|it| it == value);
            let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
            nodes.extend(id.filter(|_| is_ours).map(|id| (id, node)));
        })
        .await?;
        Ok(nodes)
    }

    pub(crate) fn ec2(&self) -> &SimulatedEc2 {
        &self.ec2
    }

    /// Keeps the Nodes in step with the instances until it is dropped. A failed step is tried again.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let mut last: Option<InStep> = None;
        loop {
            tokio::time::sleep(STEP_EVERY).await;
            self.ec2.advance();
            let now = self.clock.now();
            let phases = self.ec2.each_instance(|it| (it.id.clone(), phase(it, now)));
            let is_in_step = last.as_ref().is_some_and(|last| {
                last.phases == phases && now.duration_since(last.at) < LOOK_AT_LEAST_EVERY
            });
            if is_in_step {
                continue;
            }
            let outcome = async {
                let steps = decide(&self.observe(now).await?);
                let is_in_step = steps.is_empty();
                self.apply(steps).await.map(|()| is_in_step)
            };
            last = match outcome.await {
                Ok(is_in_step) => is_in_step.then_some(InStep { at: now, phases }),
                Err(error) => {
                    tracing::warn!(%error, "simulated nodes were not written; trying again");
                    None
                }
            };
        }
    }

    async fn observe(&self, now: Timestamp) -> kube::Result<Observed> {
        Ok(Observed {
            nodes: self.listed_nodes().await?,
            instances: self.ec2.instances(),
            region: self.ec2.region(),
            now,
        })
    }

    /// Each Node is written for itself, as kubelets do.
    pub(crate) async fn apply(&self, steps: Vec<Step>) -> kube::Result<()> {
        stream::iter(steps.into_iter().map(Ok))
            .try_for_each_concurrent(WRITES_AT_ONCE, |step| self.take(step))
            .await
    }

    async fn take(&self, step: Step) -> kube::Result<()> {
        match step {
            Step::Register(node) => {
                let status = node.status.clone();
                let created = self.nodes.create(&PostParams::default(), &node).await;
                if !is_status(&created, 409) {
                    created?;
                }
                self.write_status(&node.name_any(), &json!({"status": status}))
                    .await
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
                    return Ok(());
                }
                written?;
                self.write_status(&name, &json!({"status": node.status}))
                    .await
            }
            Step::Remove(name) => {
                let deleted = self.nodes.delete(&name, &DeleteParams::default()).await;
                if !is_status(&deleted, 404) {
                    deleted?;
                }
                Ok(())
            }
        }
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
        InstancePhase::Ready
    } else if instance.registers_at <= now {
        InstancePhase::Registered
    } else {
        InstancePhase::Booting
    }
}

/// What is missing between the instances and the nodes.
fn decide(observed: &Observed) -> Vec<Step> {
    let Observed {
        instances,
        nodes,
        region,
        now,
    } = observed;
    instances
        .iter()
        .filter_map(|instance| {
            let node = nodes.get(&instance.provider_id());
            match (phase(instance, *now), node) {
                (InstancePhase::Gone, Some(node)) => Some(Step::Remove(node.name_any())),
                (InstancePhase::Registered | InstancePhase::Ready, None) => {
                    Some(Step::Register(Box::new(fake_node(instance, region, None))))
                }
                (InstancePhase::Ready, Some(node)) if !is_node_ready(node) => {
                    let mut ready = fake_node(instance, region, Some(*now));
                    keep_foreign_taints(node, &mut ready);
                    Some(Step::BecomeReady(Box::new(ready)))
                }
                (InstancePhase::Booting | InstancePhase::Ending, _)
                | (InstancePhase::Gone, None)
                | (InstancePhase::Registered | InstancePhase::Ready, Some(_)) => None,
            }
        })
        .collect()
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
