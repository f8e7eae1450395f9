//! Tells the provider what nodes turned out to be, so that it need not guess for the next ones of their kind.
//!
//! A node is told of when it registers (`node_claim/lifecycle/registration.rs`), and all are when the process begins
//! and twice a day. Answers to `pkg/controllers/providers/instancetype/capacity` of the AWS provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apis::resources::Resources;
use apis::{NodeClaim, labels};
use cloudprovider::{CloudProvider, RegisteredNode};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use state::Snapshot;
use tracing::error;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::runtime::periodic::{PastRound, Periodic};

const PERIOD: Duration = Duration::from_hours(12);
const RETRY: Duration = Duration::from_mins(1);

/// Controller that tells the provider how large nodes turned out to be.
pub(crate) struct NodeCapacities {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
}

impl NodeCapacities {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self { shell, provider }
    }
}

impl Periodic for NodeCapacities {
    const NAME: &'static str = "providers.instancetype.capacity";
    const BEGINS_AT_ONCE: bool = true;
    type Error = ReconcileError;

    /// Tells the provider of all registered nodes.
    async fn round(&mut self) -> Result<(), ReconcileError> {
        let mut booted = BTreeMap::new();
        let model = &self.shell.model;
        model
            .for_each_claim("", |claim| {
                let image = claim.status.as_ref().and_then(|it| it.image_id.clone());
                booted.extend(image.map(|image| (claim.name_any(), image)));
            })
            .await?;
        for (kind, memory_bytes) in least(&model.snapshot(), &booted) {
            let Some(class) = model.node_class(&kind.node_class) else {
                continue;
            };
            let registered = RegisteredNode {
                instance_type: &kind.instance_type,
                image_id: &kind.image_id,
                memory_bytes,
            };
            self.provider.learn(registered, &class).await;
        }
        Ok(())
    }

    fn log(&mut self, error: &ReconcileError) {
        error!(%error, "reading what registered nodes turned out to be");
    }

    fn pause(&self, past: PastRound) -> Duration {
        match past {
            PastRound::Failed => RETRY,
            PastRound::Done | PastRound::NotDue => PERIOD,
        }
    }
}

/// Nodes that should have as much memory as each other.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NodeKind {
    node_class: String,
    instance_type: String,
    image_id: String,
}

/// The least memory of each kind of node; `booted` is the image of a claim by its name.
fn least(snapshot: &Snapshot, booted: &BTreeMap<String, String>) -> BTreeMap<NodeKind, i64> {
    let mut least = BTreeMap::new();
    for state_node in snapshot.nodes().filter(|it| it.is_registered()) {
        let Some((node, claim)) = state_node.node().zip(state_node.claim()) else {
            continue;
        };
        let Some(image_id) = booted.get(&claim.name) else {
            continue;
        };
        let kind = NodeKind {
            node_class: claim.node_class.clone(),
            instance_type: state_node.instance_type().unwrap_or_default().to_owned(),
            image_id: image_id.clone(),
        };
        let bytes = node.capacity.memory_bytes();
        let known: &mut i64 = least.entry(kind).or_insert(bytes);
        *known = bytes.min(*known);
    }
    least
}

/// Reports a node that has just registered to the provider.
pub(crate) async fn report(
    shell: &Shell,
    provider: &dyn CloudProvider,
    claim: &NodeClaim,
    node: &Node,
) {
    let class = shell.model.node_class(&claim.spec.node_class_ref.name);
    let image = claim.status.as_ref().and_then(|it| it.image_id.as_deref());
    let instance_type = claim.labels().get(labels::INSTANCE_TYPE);
    let capacity = node.status.as_ref().and_then(|it| it.capacity.as_ref());
    if let (Some(class), Some(image_id), Some(instance_type), Some(capacity)) =
        (class, image, instance_type, capacity)
    {
        let registered = RegisteredNode {
            instance_type,
            image_id,
            memory_bytes: Resources::from_list(capacity).memory_bytes(),
        };
        provider.learn(registered, &class).await;
    }
}
