//! From a snapshot to the problem of one provisioning round: which pods, which pools, which nodes.
//!
//! Decides nothing about placement. Answers to the input half of Karpenter's
//! `pkg/controllers/provisioning/provisioner.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodePool;
use apis::conditions;
use apis::labels;
use jiff::Timestamp;
use scheduling::instance_type::InstanceType;
use scheduling::pod::{Pod, PodKey, PodShape};
use scheduling::problem::{DaemonPod, ExistingNode, Options, Pool, Problem};
use scheduling::ranking::{Usage, UsageKey};
use scheduling::requirements::Operator;

use crate::capacity_buffer;
use crate::coming::{ComingPod, coming_pods};
use crate::default_spread;
use crate::ledger::{OutcomeId, PoolOutcome};
use crate::node_terms::cross;
use crate::pod::PodLife;
use crate::snapshot::Snapshot;
use crate::volumes::VolumeError;

/// A pool that takes part, with what it may buy now.
#[derive(Debug, Clone)]
pub struct PoolTypes {
    /// The pool.
    pub node_pool: Arc<NodePool>,
    /// Its instance types.
    pub instance_types: Arc<[Arc<InstanceType>]>,
    /// Free addresses of its class's subnets by zone, where they are known.
    pub free_addresses: BTreeMap<String, u32>,
}

impl PoolTypes {
    /// The same with one more slot in a capacity reservation.
    #[must_use]
    pub fn with_slot(&self, reservation_id: &str) -> Self {
        let is_of = |offering: &scheduling::instance_type::Offering| {
            offering.reservation_id() == reservation_id
        };
        let with_slot = |it: &Arc<InstanceType>| {
            if !it.offerings.iter().any(is_of) {
                return Arc::clone(it);
            }
            let mut changed = (**it).clone();
            for offering in changed.offerings.iter_mut().filter(|it| is_of(it)) {
                offering.reservation_capacity += 1;
            }
            Arc::new(changed)
        };
        Self {
            node_pool: Arc::clone(&self.node_pool),
            instance_types: self.instance_types.iter().map(with_slot).collect(),
            free_addresses: self.free_addresses.clone(),
        }
    }
}

/// The problem, and the pods left out of it.
#[derive(Debug, Clone)]
pub struct ProvisioningInput {
    /// For the solver.
    pub problem: Problem,
    /// Pods that wait for capacity but cannot be considered.
    pub ignored: Vec<(PodKey, IgnoredReason)>,
}

/// Why a pending pod is not considered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredReason {
    /// It asks for nodes outside every pool; no event.
    #[error("pod requires nodes without a nodepool")]
    OptsOut,
    /// Its node affinity matches fields.
    #[error("node selector term with matchFields is not supported")]
    MatchFields,
    /// A label of its selector or affinity is one that nobody may ask for.
    #[error("label {0} is restricted")]
    RestrictedLabel(String),
    /// A volume of its cannot be used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// Pools that may open nodes for pending pods, heaviest first, and why the others may not.
pub fn provisionable_pools(snapshot: &Snapshot) -> (Vec<Arc<NodePool>>, Vec<PoolOutcome>) {
    let mut pools = Vec::new();
    let mut outcomes = Vec::new();
    for pool in snapshot.node_pools() {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let ready = pool
            .status
            .as_ref()
            .and_then(|it| conditions::get(&it.conditions, "Ready"));
        let (outcome, reason) = if pool.is_static() {
            (OutcomeId::PoolStatic, String::new())
        } else if pool.metadata.deletion_timestamp.is_some() {
            (
                OutcomeId::PoolNotReady,
                "the NodePool is being deleted".to_owned(),
            )
        } else if ready.is_none_or(|it| it.status != "True") {
            (
                OutcomeId::PoolNotReady,
                ready.map(|it| it.message.clone()).unwrap_or_default(),
            )
        } else {
            pools.push(Arc::clone(pool));
            (OutcomeId::PoolUsed, String::new())
        };
        outcomes.push(PoolOutcome {
            pool: name,
            outcome,
            reason,
        });
    }
    // Equal weights: the name descending, as Karpenter does.
    pools.sort_by(|a, b| (b.weight(), &b.metadata.name).cmp(&(a.weight(), &a.metadata.name)));
    (pools, outcomes)
}

/// Everything that waits for a place: pending pods, pods of nodes that are going, and the room of buffers.
pub fn problem_for_provisioning(
    snapshot: &Snapshot,
    pools: &[PoolTypes],
    options: Options,
    now: Timestamp,
) -> ProvisioningInput {
    let (mut pods, ignored) = pending_pods(snapshot);
    let moving = moving_pods(snapshot, now);
    let moving_keys: BTreeSet<&PodKey> = moving.iter().map(|pod| &pod.key).collect();
    let plans_coming_pods = options.plans_coming_pods;
    let mut problem = base_problem(snapshot, pools, options, now);
    for node in &mut problem.nodes {
        if !node.is_schedulable && node.pods.iter().any(|pod| moving_keys.contains(&pod.key)) {
            Arc::make_mut(node)
                .pods
                .retain(|pod| !moving_keys.contains(&pod.key));
        }
    }
    pods.extend(moving.iter().cloned());
    let room = capacity_buffer::virtual_pods(snapshot).into_iter();
    pods.extend(room.filter(|pod| validate(snapshot, pod).is_ok()));
    let coming = if plans_coming_pods {
        coming_pods(snapshot, now)
    } else {
        Vec::new()
    };
    let mut pods = keep_places(&mut problem, snapshot, &pods, now);
    pods.extend(place_coming(&mut problem, snapshot, coming));
    problem.owners = snapshot.owners(pods.iter());
    add_pods(&mut problem, snapshot, pods);
    ProvisioningInput { problem, ignored }
}

/// Pods that wait for a node in the making keep their place on it: placing them again on nodes that were
/// chosen for an exact fit could only end in more nodes. So do those whose node has just opened, since the scheduler
/// looks at pods that wait only every few seconds, and those whose node has come and that wait for others of
/// their kind, as spread over zones makes them wait for nodes in the other zones. Returns the others.
fn keep_places(
    problem: &mut Problem,
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let in_the_making = |pod: &Arc<Pod>| snapshot.place_in_the_making(&pod.key);
    let unfinished: BTreeSet<&PodShape> = pods
        .iter()
        .filter(|pod| pod.shape.looks_at_other_pods() && in_the_making(pod).is_some())
        .map(|pod| &*pod.shape)
        .collect();
    let is_behind = snapshot.is_scheduler_behind(pods, now);
    let just_opened = |pod: &Arc<Pod>| snapshot.place_just_opened(&pod.key, is_behind, now);
    let kept = |pod: &Arc<Pod>| {
        let at_hand = in_the_making(pod).or_else(|| just_opened(pod));
        at_hand.or_else(|| {
            let place = snapshot.place(&pod.key)?;
            let awaits_others = !place.is_marked_for_deletion() && unfinished.contains(&*pod.shape);
            awaits_others.then_some(place)
        })
    };
    let mut waiting = BTreeMap::<&str, Vec<Arc<Pod>>>::new();
    let mut others = Vec::new();
    for pod in pods {
        match kept(pod) {
            Some(node) => waiting
                .entry(node.name())
                .or_default()
                .push(Arc::clone(pod)),
            None => others.push(Arc::clone(pod)),
        }
    }
    put_on_nodes(problem, waiting);
    others
}

/// Puts pods that are about to be created where they are planned to go. Returns those without a place.
fn place_coming(
    problem: &mut Problem,
    snapshot: &Snapshot,
    coming: Vec<ComingPod>,
) -> Vec<Arc<Pod>> {
    let mut waiting = BTreeMap::<&str, Vec<Arc<Pod>>>::new();
    let mut others = Vec::new();
    let valid = |it: &ComingPod| validate(snapshot, &it.pod).is_ok();
    for ComingPod { pod, place } in coming.into_iter().filter(valid) {
        match place.and_then(|place| snapshot.node(&place)) {
            Some(node) => waiting.entry(node.name()).or_default().push(pod),
            None => others.push(pod),
        }
    }
    put_on_nodes(problem, waiting);
    others
}

fn put_on_nodes(problem: &mut Problem, mut pods: BTreeMap<&str, Vec<Arc<Pod>>>) {
    for node in &mut problem.nodes {
        let Some(pods) = pods.remove(node.name.as_str()) else {
            continue;
        };
        let node = Arc::make_mut(node);
        for pod in pods {
            node.requests.add_assign(&pod.shape.requests);
            node.pods.push(pod);
        }
    }
}

/// The problem without pods: pools, nodes, daemons, namespaces. Simulations share it.
pub fn base_problem(
    snapshot: &Snapshot,
    pools: &[PoolTypes],
    options: Options,
    now: Timestamp,
) -> Problem {
    let pool = |it: &PoolTypes| Pool {
        node_pool: Arc::clone(&it.node_pool),
        instance_types: Arc::clone(&it.instance_types),
        free_addresses: it.free_addresses.clone(),
        in_use: snapshot.pool_resources(it.node_pool.metadata.name.as_deref().unwrap_or_default()),
    };
    let expected = expected_volumes(pools);
    Problem {
        pools: pools.iter().map(pool).collect(),
        nodes: snapshot
            .nodes()
            .map(|node| snapshot.existing_node(node, now))
            .map(|node| Arc::new(expecting_volumes(node, snapshot, &expected)))
            .collect(),
        daemons: daemon_pods(snapshot, options.ignores_devices),
        namespaces: snapshot.namespaces().clone(),
        usage: usage(snapshot, pools),
        ..Problem::new(options)
    }
}

/// Nodes by pool and offering, with their prices.
pub fn usage(snapshot: &Snapshot, pools: &[PoolTypes]) -> BTreeMap<UsageKey, Usage> {
    let mut usage = snapshot.usage();
    for (key, count) in &mut usage {
        let mut pools = pools.iter();
        let pool = pools.find(|it| it.node_pool.metadata.name.as_ref() == Some(&key.pool));
        let mut types = pool.into_iter().flat_map(|it| it.instance_types.iter());
        let sold = &key.offering;
        let offering = types
            .find(|it| it.name == sold.instance_type)
            .and_then(|it| it.offering(&sold.zone, &sold.capacity_type));
        count.price_per_hour = offering.map_or(0.0, |it| it.price_per_hour);
    }
    usage
}

/// One pod a DaemonSet. Those that claim devices count where devices are looked at; what they get is their own affair.
fn daemon_pods(snapshot: &Snapshot, ignores_devices: bool) -> Vec<DaemonPod> {
    let mut daemons = snapshot.daemon_pods();
    if !ignores_devices {
        for daemon in &mut daemons {
            if daemon.shape.uses_resource_claims {
                Arc::make_mut(&mut daemon.shape).uses_resource_claims = false;
            }
        }
    }
    daemons
}

/// Volume limits of types that have any, by pool and type.
type ExpectedVolumes<'a> = BTreeMap<(&'a str, &'a str), &'a BTreeMap<String, u32>>;

fn expected_volumes(pools: &[PoolTypes]) -> ExpectedVolumes<'_> {
    let mut expected = ExpectedVolumes::new();
    for pool in pools {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
        for it in pool.instance_types.iter() {
            if !it.volume_attachment_limits.is_empty() {
                expected.insert((name, it.name.as_str()), &it.volume_attachment_limits);
            }
        }
    }
    expected
}

/// The node with what its type says about drivers that are not published yet.
fn expecting_volumes(
    mut node: ExistingNode,
    snapshot: &Snapshot,
    expected: &ExpectedVolumes<'_>,
) -> ExistingNode {
    let pool = node.pool.as_deref().unwrap_or_default();
    let of_type = node.labels.get(labels::INSTANCE_TYPE);
    let Some(limits) = of_type.and_then(|it| expected.get(&(pool, it.as_str()))) else {
        return node;
    };
    let published = snapshot.volumes().limits.get(&node.name);
    for (driver, limit) in *limits {
        if published.is_none_or(|it| !it.contains_key(driver)) {
            node.volume_limits.insert(driver.clone(), *limit);
        }
    }
    node
}

/// Adds pods to a problem together with their volumes.
pub fn add_pods(problem: &mut Problem, snapshot: &Snapshot, pods: Vec<Arc<Pod>>) {
    let pods = default_spread::with_defaults(snapshot, &problem.options.default_spread, pods);
    for pod in &pods {
        if !pod.volume_claims.is_empty() {
            problem
                .volumes
                .insert(pod.key.clone(), snapshot.volumes().resolve(pod));
        }
    }
    problem.pods.extend(pods);
    resolve_devices(problem, snapshot);
}

/// Finds out what the pods' claims come to, unless they are ignored.
fn resolve_devices(problem: &mut Problem, snapshot: &Snapshot) {
    let uses_devices = |pod: &Arc<Pod>| pod.shape.uses_resource_claims;
    if problem.options.ignores_devices || !problem.pods.iter().any(uses_devices) {
        return;
    }
    let resolved = snapshot.devices().resolve(snapshot, &problem.pods);
    for (pod, terms) in resolved.alternatives {
        let volumes = problem.volumes.entry(pod).or_default();
        for terms in terms {
            volumes.alternatives = cross(std::mem::take(&mut volumes.alternatives), &terms);
        }
    }
    problem.devices = Some(Arc::new(resolved.devices));
}

/// Pending pods that pass validation, and those that do not.
pub fn pending_pods(snapshot: &Snapshot) -> (Vec<Arc<Pod>>, Vec<(PodKey, IgnoredReason)>) {
    let mut pods = Vec::new();
    let mut ignored = Vec::new();
    for pod in snapshot.pods().filter(|pod| pod.is_provisionable()) {
        match validate(snapshot, pod) {
            Ok(()) => pods.push(Arc::clone(pod)),
            Err(reason) => ignored.push((pod.key.clone(), reason)),
        }
    }
    (pods, ignored)
}

/// Pods of nodes that are going which could really move now.
fn moving_pods(snapshot: &Snapshot, now: Timestamp) -> Vec<Arc<Pod>> {
    snapshot
        .nodes()
        .filter(|node| node.is_marked_for_deletion())
        .flat_map(|node| currently_reschedulable(snapshot, node, now))
        .collect()
}

/// Whether a pod runs on a node that a command has marked and not deleted yet. What comes in the place of such a node is
/// the command's to bring: were it lost, the command would give up and the node would stay.
pub fn awaits_command(snapshot: &Snapshot, pod: &PodKey) -> bool {
    let node_name = snapshot.pod(pod).and_then(|it| it.node_name.as_deref());
    let node = node_name.and_then(|name| snapshot.node(name));
    node.is_some_and(|it| it.is_marked_for_deletion() && !it.is_deleted())
}

/// Pods of a node that would move if it went now: protected ones and those whose PodDisruptionBudget
/// can never allow it stay until they end by themselves.
pub fn currently_reschedulable(
    snapshot: &Snapshot,
    node: &crate::state_node::StateNode,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    snapshot
        .bound(node)
        .pods()
        .filter(|pod| pod.is_reschedulable() && !pod.is_protected(now))
        .filter(|pod| !(pod.is_evictable(now) && snapshot.pdbs().can_never_evict(pod)))
        .cloned()
        .collect()
}

fn validate(snapshot: &Snapshot, pod: &Pod) -> Result<(), IgnoredReason> {
    let required = || pod.shape.required_node_affinity.iter().flatten();
    let opts_out = required()
        .any(|it| it.key() == labels::NODEPOOL && it.operator() == Operator::DoesNotExist);
    if opts_out {
        return Err(IgnoredReason::OptsOut);
    }
    if pod.shape.has_match_fields {
        return Err(IgnoredReason::MatchFields);
    }
    let selected = pod.shape.node_selector.keys().map(String::as_str);
    for key in selected.chain(required().map(scheduling::requirements::Requirement::key)) {
        // The host name is a pod's right to ask for, a pool's not to define.
        if key != labels::HOSTNAME && is_beyond_request(key) {
            return Err(IgnoredReason::RestrictedLabel(key.to_owned()));
        }
    }
    snapshot.volumes().validate(pod)?;
    Ok(())
}

/// Labels that stand on nodes though no requirement may name them are still fine for a pod.
fn is_beyond_request(key: &str) -> bool {
    labels::is_restricted(key) && !matches!(key, labels::REGISTERED | labels::INITIALIZED)
}
