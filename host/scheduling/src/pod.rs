//! A pod as the solver sees it: parsed once at the edge, with everything equal pods share kept once.
//!
//! Must not be changed after parsing; relaxing a preference makes a view instead. Answers to the pod half of
//! Karpenter's `pkg/utils/pod`.

mod invalid;
mod key;
mod life;
mod parse;
mod protection;
mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use indexmap::IndexSet;
use jiff::Timestamp;

use crate::requirements::Requirement;

pub use apis::selector::{LabelSelector, SelectorOperator, SelectorRequirement};
pub use invalid::InvalidPod;
pub use key::PodKey;
pub use protection::DoNotDisrupt;
pub use requests::effective_requests;

/// The label by which a ReplicaSet's pods carry what its name adds to the Deployment's.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PodPhase {
    /// It waits for a node, or for its containers to start.
    #[default]
    Pending,
    Running,
    /// All its containers ended, and none failed.
    Succeeded,
    /// All its containers ended, and one of them failed.
    Failed,
    /// The node is silent.
    Unknown,
}

/// One pod: what is its own, and the shape it shares.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// Namespace and name of the pod.
    pub key: PodKey,
    /// `metadata.uid`; empty in a pod that is no object yet.
    pub uid: String,
    /// None in a pod that is no object yet.
    pub created_at: Option<Timestamp>,
    /// `metadata.resourceVersion` when it was seen first, 0 before it is there: the scheduler queues pods in about this
    /// order.
    pub first_version: u64,
    /// Everything that equal pods share.
    pub shape: Arc<PodShape>,
    /// Limits of its containers, summed up. No decision looks at it, so it is no part of the shape.
    pub limits: Arc<Resources>,
    /// Names of its PersistentVolumeClaims, those of ephemeral volumes included.
    pub volume_claims: Vec<String>,
    /// ResourceClaims that it uses.
    pub resource_claims: Vec<ClaimRef>,
    /// Node it is bound to.
    pub node_name: Option<String>,
    /// Node it waits for, not bound to it yet.
    pub nomination: Option<Nomination>,
    /// `status.phase`; pending while nothing is said.
    pub phase: PodPhase,
    /// When it was or will be deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// When the kubelet took it on.
    pub started_at: Option<Timestamp>,
    /// Whether the condition Ready is True.
    pub is_ready: bool,
    /// Whether it waits for a node to come: the scheduler said `PodScheduled=False`, reason `Unschedulable`, or the
    /// model plans for pods that the scheduler has not tried yet.
    pub awaits_node: bool,
    /// Whether the scheduler has said nothing of it yet, though it may: it is held back by no gate.
    pub is_untried: bool,
    /// Whether it asks for another scheduler than the default one.
    pub has_own_scheduler: bool,
}

/// Node from `status.nominatedNodeName`, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nomination {
    /// Its name; never empty.
    pub node: String,
    /// Whether the plan put it there, and not the scheduler, which preempts others for it.
    pub is_of_plan: bool,
}

/// A ResourceClaim that a pod uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimRef {
    /// The claim of this name.
    Named(String),
    /// The claim for this entry of the pod, which is still to be made of its template.
    Awaited(String),
}

/// Everything that two pods must share to be equal for scheduling and disruption.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PodShape {
    /// Namespace, in which its selectors apply.
    pub namespace: String,
    /// Effective requests, `pods: 1` included.
    pub requests: Resources,
    /// Labels, by which others select it.
    pub labels: BTreeMap<String, String>,
    /// Annotations that matter: those of [`apis::labels::is_ours`], and the deletion cost.
    pub annotations: BTreeMap<String, String>,
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: alternatives, each a conjunction.
    pub required_node_affinity: Vec<Vec<Requirement>>,
    pub preferred_node_affinity: Vec<Weighted<Vec<Requirement>>>,
    /// Terms of required pod affinity, all of which must hold.
    pub pod_affinity: Vec<AffinityTerm>,
    pub preferred_pod_affinity: Vec<Weighted<AffinityTerm>>,
    /// Terms of required pod anti-affinity, all of which must hold.
    pub pod_anti_affinity: Vec<AffinityTerm>,
    pub preferred_pod_anti_affinity: Vec<Weighted<AffinityTerm>>,
    /// Topology spread constraints, required and preferred ones.
    pub topology_spread: Vec<TopologySpread>,
    pub tolerations: Vec<Toleration>,
    /// Host ports of its containers.
    pub host_ports: Vec<HostPort>,
    /// `spec.priority`; 0 where the API server set none.
    pub priority: i32,
    pub priority_class_name: Option<String>,
    /// Controller that owns the pod; none for a pod of its own.
    pub owner: Option<Owner>,
    /// Grace period in seconds, if set.
    pub termination_grace_period_seconds: Option<i64>,
    /// Whether it asks for dynamic resources.
    pub uses_resource_claims: bool,
    /// Whether a required term matches on fields, which is not supported.
    pub has_match_fields: bool,
    /// Meaning of its do-not-disrupt annotation.
    pub do_not_disrupt: DoNotDisrupt,
    /// What its annotations add to the cost of evicting it, in parts of 2^27.
    pub annotated_cost: i32,
}

/// A value with a weight between 1 and 100.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weighted<T> {
    pub weight: i32,
    /// Term that is preferred.
    pub value: T,
}

/// A pod affinity or anti-affinity term.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AffinityTerm {
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// Pods it looks at, `matchLabelKeys` merged in; without one it matches none.
    pub selector: Option<LabelSelector>,
    /// Namespaces that the term names.
    pub namespaces: Vec<String>,
    /// Selector on the labels of further namespaces.
    pub namespace_selector: Option<LabelSelector>,
}

/// A topology spread constraint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologySpread {
    /// Greatest difference between a domain and the emptiest one.
    pub max_skew: i32,
    /// Node label whose values are the domains.
    pub topology_key: String,
    /// Whether the constraint binds (`DoNotSchedule`) or is a preference.
    pub is_required: bool,
    /// Pods it counts, `matchLabelKeys` merged in.
    pub selector: Option<LabelSelector>,
    /// Fewer domains than this count as an empty one.
    pub min_domains: Option<i32>,
    /// Whether node selector and affinity limit the domains (`Honor`, the default).
    pub honors_node_affinity: bool,
    /// Whether untolerated taints limit the domains (`Ignore` is the default).
    pub honors_node_taints: bool,
}

/// What becomes of a pod that would break a spread constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// Whether a spread constraint counts nodes only where the pod may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeInclusionPolicy {
    Honor,
    Ignore,
}

impl WhenUnsatisfiable {
    /// As the API names it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "DoNotSchedule" => Some(Self::DoNotSchedule),
            "ScheduleAnyway" => Some(Self::ScheduleAnyway),
            _ => None,
        }
    }
}

impl NodeInclusionPolicy {
    /// As the API names it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Honor" => Some(Self::Honor),
            "Ignore" => Some(Self::Ignore),
            _ => None,
        }
    }
}

/// A toleration of a pod for taints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Toleration {
    /// Key; empty tolerates every key with `Exists`.
    pub key: String,
    /// `Exists`, `Equal` (default), `Lt` or `Gt`.
    pub operator: String,
    /// Value that `Equal`, `Lt` and `Gt` compare with.
    pub value: String,
    /// Effect; empty tolerates every effect.
    pub effect: String,
}

/// A port of the host that a pod occupies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Address; unspecified is `0.0.0.0`.
    pub ip: String,
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
}

impl HostPort {
    /// Whether two pods with these ports cannot share a node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let unspecified = |ip: &str| ip == "0.0.0.0" || ip == "::";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || unspecified(&self.ip) || unspecified(&other.ip))
    }
}

/// The controller that owns a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// API group and version, such as `apps/v1`.
    pub api_version: String,
    /// Kind of the controller, such as `ReplicaSet`.
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// Keeps each distinct shape once, so that a hundred thousand pods cost little.
#[derive(Debug, Clone, Default)]
pub struct ShapeTable {
    shapes: IndexSet<Arc<PodShape>>,
    limits: IndexSet<Arc<Resources>>,
}

impl ShapeTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one shared instance of an equal shape.
    pub fn intern(&mut self, shape: PodShape) -> Arc<PodShape> {
        if let Some(known) = self.shapes.get(&shape) {
            return Arc::clone(known);
        }
        let shape = Arc::new(shape);
        self.shapes.insert(Arc::clone(&shape));
        shape
    }

    /// The one shared instance of equal limits.
    pub(crate) fn intern_limits(&mut self, limits: Resources) -> Arc<Resources> {
        if let Some(known) = self.limits.get(&limits) {
            return Arc::clone(known);
        }
        let limits = Arc::new(limits);
        self.limits.insert(Arc::clone(&limits));
        limits
    }

    /// Drops the shapes that no pod uses any more.
    pub fn shrink(&mut self) {
        self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        self.limits.retain(|limits| Arc::strong_count(limits) > 1);
    }

    /// Number of distinct shapes.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }
}

impl PodShape {
    /// Whether pods elsewhere may open or close a node to it: what it waits for may be another pod's node.
    pub fn looks_at_other_pods(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.topology_spread.is_empty()
    }

    /// Kind and name of what people know as the owner: a ReplicaSet's Deployment, where its name tells.
    pub fn workload(&self) -> (&str, &str) {
        let Some(Owner { kind, name, .. }) = &self.owner else {
            return ("", "");
        };
        let hash = self.labels.get(POD_TEMPLATE_HASH);
        let deployment = hash.and_then(|hash| name.strip_suffix(hash.as_str())?.strip_suffix('-'));
        match deployment {
            Some(deployment) if kind == "ReplicaSet" => ("Deployment", deployment),
            Some(_) | None => (kind, name),
        }
    }
}

impl Pod {
    /// A pod that the API server does not know: it waits for a place, and asks for nothing but what its shape says.
    pub fn unknown(key: PodKey, uid: String, shape: Arc<PodShape>) -> Self {
        Self {
            key,
            uid,
            created_at: None,
            first_version: 0,
            shape,
            limits: Arc::default(),
            volume_claims: Vec::new(),
            resource_claims: Vec::new(),
            node_name: None,
            nomination: None,
            phase: PodPhase::Pending,
            deletion_timestamp: None,
            started_at: None,
            is_ready: false,
            awaits_node: true,
            is_untried: false,
            has_own_scheduler: false,
        }
    }

    /// About the order in which kube-scheduler tries pods of one priority; those that are not there yet come last.
    pub fn queue_key(&self) -> (bool, u64, &PodKey) {
        (self.first_version == 0, self.first_version, &self.key)
    }

    /// CPU and memory that it asks for, by which the larger of two pods is found.
    pub fn size(&self) -> (i64, i64) {
        let requests = &self.shape.requests;
        (requests.cpu_millis(), requests.memory_bytes())
    }

    /// Whether it has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether a DaemonSet owns it.
    pub fn is_owned_by_daemon_set(&self) -> bool {
        self.is_owned_by("apps/v1", "DaemonSet")
    }

    /// Whether a node owns it (a static pod's mirror).
    pub(crate) fn is_owned_by_node(&self) -> bool {
        self.is_owned_by("v1", "Node")
    }

    /// Whether its controlling owner is of this kind.
    pub(crate) fn is_owned_by(&self, api_version: &str, kind: &str) -> bool {
        self.shape
            .owner
            .as_ref()
            .is_some_and(|owner| owner.api_version == api_version && owner.kind == kind)
    }

    /// Whether the scheduler could not place it and a new node may help.
    pub fn is_provisionable(&self) -> bool {
        self.awaits_node
            && self.node_name.is_none()
            && self.nomination.as_ref().is_none_or(|it| it.is_of_plan)
            && self.is_active()
            && !self.is_daemon_or_mirror()
    }
}
