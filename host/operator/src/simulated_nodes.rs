//! Nodes of simulated instances on somebody's own API server, where no kubelet runs.
//!
//! It plays the registration that a kubelet does and the removal that a cloud-controller-manager does; kwok (or
//! the demo's world) plays the rest, because the Nodes carry its annotation.

use std::collections::BTreeMap;
use std::time::Duration;

use apis::conditions::is_node_ready;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use sim::clock::SimulatedClock;
use sim::ec2::{Ec2Config, Instance, SimulatedEc2};
use sim::node::node_object;

/// kwok takes care of nodes with this annotation.
const KWOK_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");
const STEP_EVERY: Duration = Duration::from_secs(1);

/// The simulated account and its nodes.
pub(crate) struct SimulatedNodes {
    nodes: Api<Node>,
    ec2: SimulatedEc2,
    clock: SimulatedClock,
}

/// What the cluster and the account look like.
struct Observed {
    instances: Vec<Instance>,
    nodes: BTreeMap<String, Node>,
    region: String,
    now: Timestamp,
}

/// One write.
#[derive(Debug, PartialEq)]
enum Step {
    Register(Box<Node>),
    BecomeReady(Box<Node>),
    Remove(String),
}

impl SimulatedNodes {
    /// An account without instances whose clock shows `now`.
    pub(crate) fn new(client: kube::Client, cluster_name: &str, seed: u64, now: Timestamp) -> Self {
        let clock = SimulatedClock::starting_at(now);
        let config = Ec2Config {
            seed,
            cluster_name: cluster_name.to_owned(),
            ..Ec2Config::default()
        };
        Self {
            nodes: Api::all(client),
            ec2: SimulatedEc2::new(config, clock),
            clock,
        }
    }

    pub(crate) fn ec2(&self) -> &SimulatedEc2 {
        &self.ec2
    }

    /// Keeps the Nodes in step with the instances until it is dropped. A failed step is tried again.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(STEP_EVERY).await;
            self.ec2.advance();
            let outcome = async {
                let observed = self.observe().await?;
                self.apply(decide(&observed)).await
            };
            if let Err(error) = outcome.await {
                tracing::warn!(%error, "simulated nodes were not written; trying again");
            }
        }
    }

    async fn observe(&self) -> kube::Result<Observed> {
        let nodes = self.nodes.list(&ListParams::default()).await?;
        let (key, value) = KWOK_ANNOTATION;
        let ours = nodes
            .into_iter()
            .filter(|node| {
                node.annotations()
                    .get(key)
                    .is_some_and(|given| given == value)
            })
            .filter_map(|node| Some((node.spec.as_ref()?.provider_id.clone()?, node)));
        Ok(Observed {
            instances: self.ec2.instances(),
            nodes: ours.collect(),
            region: self.ec2.region(),
            now: self.clock.now(),
        })
    }

    async fn apply(&self, steps: Vec<Step>) -> kube::Result<()> {
        for step in steps {
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
                    let patch = json!({"spec": {"taints": taints}});
                    self.nodes
                        .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                        .await?;
                    self.write_status(&name, &json!({"status": node.status}))
                        .await?;
                }
                Step::Remove(name) => {
                    let deleted = self.nodes.delete(&name, &DeleteParams::default()).await;
                    if !is_status(&deleted, 404) {
                        deleted?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn write_status(&self, name: &str, status: &serde_json::Value) -> kube::Result<()> {
        self.nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
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
            if instance.shutting_down_at.is_some() {
                let is_gone = instance.terminated_at.is_some_and(|at| at <= *now);
                return node
                    .filter(|_| is_gone)
                    .map(|node| Step::Remove(node.name_any()));
            }
            match node {
                None if instance.registers_at <= *now => {
                    Some(Step::Register(Box::new(fake_node(instance, region, None))))
                }
                Some(node) if instance.ready_at <= *now && !is_node_ready(node) => {
                    let mut ready = fake_node(instance, region, Some(*now));
                    keep_foreign_taints(node, &mut ready);
                    Some(Step::BecomeReady(Box::new(ready)))
                }
                None | Some(_) => None,
            }
        })
        .collect()
}

fn fake_node(instance: &Instance, region: &str, ready: Option<Timestamp>) -> Node {
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
}

fn is_status<T>(outcome: &kube::Result<T>, code: u16) -> bool {
    matches!(outcome, Err(kube::Error::Api(status)) if status.code == code)
}
