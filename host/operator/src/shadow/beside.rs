//! The world beside the cluster: the simulated API server, EC2 and kubelets of `sim`, the production controllers on
//! them, and both counts.
//!
//! Nothing here has a client of the cluster: it is told what happened there, and writes to the simulated one.

mod world;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_server::{Resource, Selection, Watch};
use apis::{CapacityType, ProviderId};
use serde::de::DeserializeOwned;
use serde_json::Value;
use shadow::{
    BothSides, BoughtOffering, FleetTally, Gathered, Happening, Mirror, MirrorWrite, ObjectChange,
    ReadKind, Report, StandIn, ToldObject, claims_at_start,
};
use sim::SimulatedWorld;

use super::arguments::{CLUSTER_NAME, ShadowArguments};
use super::classes;
use super::prices::Prices;
use super::reading::Readings;
use crate::api_client::ReadsOnly;
use crate::apply;
use crate::clock::wall_now;
use crate::demo::{CAPACITY, SYSTEM_NAMESPACE};
use crate::simulated_nodes::known::KnownObjects;
use crate::stack::Stack;
use authoring::manifests::{Manifests, variables};
use world::{account, stack, world};
use written::written;

/// Kinds of the shadow that its count is made of.
const COUNTED: [(&Resource, ReadKind); 3] = [
    (&Resource::NODE_CLAIMS, ReadKind::NodeClaims),
    (&Resource::NODES, ReadKind::Nodes),
    (&Resource::PODS, ReadKind::Pods),
];

/// The shadow, and what is counted.
pub(super) struct Beside {
    world: Arc<SimulatedWorld>,
    mirror: Mirror,
    karpenter: FleetTally,
    mortise: FleetTally,
    told: Watch,
    prices: Prices,
    /// What the shadow's API server refused, by kind and reason, so that each is said once.
    refused: BTreeSet<String>,
    stack: Stack,
}

impl Beside {
    /// The world as the cluster is, with Mortise at work.
    pub(super) async fn begin(
        arguments: &ShadowArguments,
        kubernetes_minor: u32,
        mut gathered: Gathered,
    ) -> anyhow::Result<Self> {
        let account = account(&gathered);
        gathered.each(|object| account.relocate(object));
        let given = classes::given(arguments.node_class.as_deref())?;
        let world = world(arguments, kubernetes_minor, &account);
        world.api().stay_small();
        let installed = world.install_crds();
        installed.map_err(|status| anyhow::anyhow!("{status}"))?;
        let client = kube::Client::new(world.api().clone(), "default");
        let stack = stack(arguments, kubernetes_minor, &world, client.clone())?;
        let told = world.api().watch(&COUNTED.map(|(resource, _)| resource));
        let now = wall_now();
        let prices = Prices::read(arguments.instance_types.as_deref())?;
        let mut beside = Self {
            prices,
            mirror: Mirror::new(account, StandIn::new(CLUSTER_NAME)),
            karpenter: FleetTally::new(now),
            mortise: FleetTally::new(now),
            refused: BTreeSet::new(),
            told,
            world,
            stack,
        };
        if let Some(file) = &arguments.instance_types {
            let file = file.display();
            beside.mirror.note(format!(
                "nodes of Karpenter cost what {file} says, those of Mortise what EC2 asks: USD/h compares two price lists"
            ));
        }
        let extra = beside.extra(arguments, &gathered)?;
        let writes = beside.mirror.classes(&gathered, given);
        beside.write(writes);
        tokio::spawn(Arc::clone(&beside.world).run());
        tokio::spawn(beside.stack.run());
        let applied = apply::apply(
            &client,
            extra.documents,
            SYSTEM_NAMESPACE,
            apply::Unknown::Refuse,
        );
        for fault in applied.await?.faults {
            beside.mirror.note(fault);
        }
        let (resolved, faults) = classes::resolved(&beside.world).await;
        for fault in faults {
            beside.mirror.note(fault);
        }
        beside.start(gathered, &resolved);
        Ok(beside)
    }

    /// Puts in all that there is, at one moment.
    fn start(&mut self, gathered: Gathered, resolved: &[Value]) {
        let now = wall_now();
        for kind in [ReadKind::NodeClaims, ReadKind::Nodes, ReadKind::Pods] {
            for object in gathered.of(kind) {
                let is_gone = false;
                self.karpenter.apply(
                    ToldObject {
                        kind,
                        object,
                        is_gone,
                    },
                    now,
                );
            }
        }
        let claims = claims_at_start(&gathered, resolved);
        let claims = self.resume(&gathered, claims, resolved);
        let moves: Vec<String> = self
            .mirror
            .account()
            .moves()
            .map(|(from, to)| format!("{from} is {to}"))
            .collect();
        if !moves.is_empty() {
            let moves = moves.join(", ");
            self.mirror.note(format!(
                "the catalogue does not have the cluster's zones; in the shadow {moves}"
            ));
        }
        let writes = self.mirror.start(gathered, claims);
        self.write(writes);
        self.count();
        self.karpenter.begin(now);
        self.mortise.begin(now);
    }

    /// Gives the account the instances of these claims, and answers the claims of those that it can have.
    fn resume(
        &mut self,
        gathered: &Gathered,
        claims: Vec<Value>,
        resolved: &[Value],
    ) -> Vec<Value> {
        let nodes = gathered.of(ReadKind::Nodes).filter_map(|node| {
            let id = ProviderId::parse(node["spec"]["providerID"].as_str())?;
            Some((id, typed(node)?))
        });
        let mut nodes: BTreeMap<ProviderId, _> = nodes.collect();
        let id = |claim: &Value| ProviderId::parse(claim["status"]["providerID"].as_str());
        let ids: BTreeSet<ProviderId> = claims.iter().filter_map(id).collect();
        nodes.retain(|id, _| ids.contains(id));
        let remembered = KnownObjects {
            claims: claims.iter().filter_map(typed).collect(),
            nodes,
            classes: resolved.iter().filter_map(typed).collect(),
        };
        let known = remembered.instances(CLUSTER_NAME);
        let mut there: BTreeSet<String> = known.iter().map(|it| it.id.clone()).collect();
        for id in self.world.ec2().resume(known) {
            there.remove(&id);
        }
        let is_there = |claim: &Value| id(claim).is_some_and(|it| there.contains(it.instance_id()));
        let (claims, strange): (Vec<_>, Vec<_>) = claims.into_iter().partition(is_there);
        if !strange.is_empty() {
            let types = strange.iter().filter_map(|it| {
                it["metadata"]["labels"]["node.kubernetes.io/instance-type"].as_str()
            });
            let types: Vec<&str> = types.collect::<BTreeSet<_>>().into_iter().collect();
            self.mirror.note(format!(
                "{} nodes are none that EC2 could have ({}); the shadow starts without them, and their pods wait",
                strange.len(),
                types.join(", ")
            ));
        }
        claims
    }

    /// Manifests for the shadow alone, with NodePools where the cluster has none.
    fn extra(
        &mut self,
        arguments: &ShadowArguments,
        gathered: &Gathered,
    ) -> anyhow::Result<Manifests> {
        let variables = variables(CLUSTER_NAME);
        let mut extra = Manifests::read(&arguments.files, &variables);
        if let Some(fault) = extra.faults.first() {
            anyhow::bail!("-f: {fault}");
        }
        let is_pool = |object: &Value| object["kind"] == "NodePool";
        let has_pools = gathered.of(ReadKind::NodePools).next().is_some();
        if !has_pools && !extra.documents.iter().any(|it| is_pool(&it.object)) {
            extra.read_text("the demo's capacity", CAPACITY, &variables);
            self.mirror.note(
                "the cluster has no NodePool, so nothing of it is Karpenter's; those of `mortise demo` stand in \
                 (others: -f FILE)"
                    .to_owned(),
            );
        }
        Ok(extra)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let refused = self.refused.iter().cloned();
        self.mirror.notes().into_iter().chain(refused).collect()
    }

    /// Takes in what the cluster told, and answers what Karpenter did by it.
    pub(super) fn change(&mut self, mut change: ObjectChange) -> Option<Happening> {
        let now = wall_now();
        self.mirror.account().relocate(&mut change.object);
        let happening = self.karpenter.apply(change.told(), now);
        let writes = self.mirror.change(change, now);
        self.write(writes);
        happening
    }

    /// Lets time pass, and answers what Mortise did meanwhile.
    pub(super) fn tick(&mut self) -> Vec<Happening> {
        let now = wall_now();
        let mut pods = Vec::new();
        for namespace in self.mirror.awaited() {
            let listed = self
                .world
                .api()
                .list(&Resource::PODS, &Selection::namespace(namespace));
            pods.extend(listed.iter().map(|pod| (**pod).clone()));
        }
        let writes = self.mirror.tick(&pods, now);
        self.write(writes);
        let happenings = self.count();
        self.karpenter.advance(now);
        self.mortise.advance(now);
        happenings
    }

    /// Counts what the shadow's API server told since.
    fn count(&mut self) -> Vec<Happening> {
        let now = wall_now();
        let mut happenings = Vec::new();
        loop {
            let event = match self.told.try_next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(overrun) => {
                    let fault = format!("what the shadow does is counted no longer: {overrun}");
                    self.refused.insert(fault);
                    break;
                }
            };
            let kind = COUNTED
                .iter()
                .find(|(resource, _)| **resource == event.resource);
            let Some((_, kind)) = kind else {
                continue;
            };
            let told = ToldObject {
                kind: *kind,
                object: &event.object,
                is_gone: event.change == api_server::WatchEventType::Deleted,
            };
            happenings.extend(self.mortise.apply(told, now));
        }
        happenings
    }

    pub(super) fn report(&self, readings: &Readings, reads_only: &ReadsOnly) -> Report {
        let ec2 = self.world.ec2();
        let price = |bought: &BoughtOffering| {
            let BoughtOffering {
                instance_type,
                zone,
                capacity_type,
            } = bought;
            // Nobody knows what is paid for one that is bought in no way that is known.
            let how = CapacityType::parse(capacity_type);
            let known = how.and_then(|it| ec2.price_per_hour_of(instance_type, zone, it));
            known.or_else(|| self.prices.of(instance_type, capacity_type))
        };
        Report::of(BothSides {
            karpenter: &self.karpenter,
            mortise: &self.mortise,
            price: &price,
            requests: reads_only.requests(),
            notes: self.notes(),
            unread: readings.unread(),
        })
    }

    fn write(&mut self, writes: Vec<MirrorWrite>) {
        for write in writes {
            if let Err(fault) = written(&self.world, write) {
                self.refused.insert(fault);
            }
        }
    }
}

/// The object as its typed form; nothing where it is none.
fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}
