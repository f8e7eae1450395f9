//! The format of a case. Field by field, with nothing that is not in `cases/README.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::tables::{
    EvictionCostRow, PortRow, RequestRow, RequirementRow, SchedulerConfigRow, TolerationRow,
};
use crate::types::TypesGiven;

/// A file of cases about one theme.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CaseFile {
    /// What the file is about.
    pub about: String,
    /// Parts that cases refer to by anchor.
    #[serde(default)]
    pub shared: Value,
    /// Cases for the solver; typed one by one, so that a slip names its case.
    #[serde(default)]
    pub cases: Vec<Value>,
    /// The algebra of requirements.
    #[serde(default)]
    pub requirements: Vec<RequirementRow>,
    /// Taints and tolerations.
    #[serde(default)]
    pub tolerations: Vec<TolerationRow>,
    /// Host ports.
    #[serde(default)]
    pub ports: Vec<PortRow>,
    /// Effective requests of pods.
    #[serde(default)]
    pub requests: Vec<RequestRow>,
    /// Configurations of the scheduler.
    #[serde(default)]
    pub scheduler_configs: Vec<SchedulerConfigRow>,
    /// What it costs to evict pods.
    #[serde(default)]
    pub eviction_costs: Vec<EvictionCostRow>,
}

/// One problem and what must come out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    /// The behaviour, as a sentence.
    pub name: String,
    /// The cluster.
    #[serde(default)]
    pub given: Given,
    /// Options.
    #[serde(default)]
    pub when: When,
    /// The answer.
    pub expect: Expect,
}

/// Named things of a cluster.
pub type Named<T> = BTreeMap<String, T>;

/// The cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Given {
    /// NodePools; one named `default` when absent.
    #[serde(default)]
    pub pools: Option<Named<PoolGiven>>,
    /// Instance types; the standard ones when absent.
    #[serde(default)]
    pub types: TypesGiven,
    /// Pending pods.
    #[serde(default)]
    pub pods: Named<PodGiven>,
    /// Nodes, and claims on their way.
    #[serde(default)]
    pub nodes: Named<NodeGiven>,
    /// DaemonSets.
    #[serde(default)]
    pub daemon_sets: Named<PodGiven>,
    /// PersistentVolumeClaims.
    #[serde(default)]
    pub volume_claims: Named<VolumeClaimGiven>,
    /// PersistentVolumes.
    #[serde(default)]
    pub volumes: Named<VolumeGiven>,
    /// StorageClasses.
    #[serde(default)]
    pub storage_classes: Named<StorageClassGiven>,
    /// Namespaces with their labels.
    #[serde(default)]
    pub namespaces: Named<BTreeMap<String, String>>,
    /// NodeOverlays.
    #[serde(default)]
    pub overlays: Named<OverlayGiven>,
    /// Services: the labels that they select.
    #[serde(default)]
    pub services: Named<BTreeMap<String, String>>,
    /// Workloads by kind and name, such as `ReplicaSet/web`.
    #[serde(default)]
    pub workloads: Named<WorkloadGiven>,
    /// CapacityBuffers.
    #[serde(default)]
    pub buffers: Named<BufferGiven>,
    /// ResourceSlices, as their spec; the pool is that of the node.
    #[serde(default)]
    pub slices: Named<Value>,
    /// DeviceClasses: their CEL expressions.
    #[serde(default)]
    pub device_classes: Named<Vec<String>>,
    /// ResourceClaims: `devices` of their spec, and `status`.
    #[serde(default)]
    pub claims: Named<Value>,
    /// PodDisruptionBudgets, as their spec.
    #[serde(default)]
    pub disruption_budgets: Named<Value>,
}

/// A NodePool.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PoolGiven {
    /// Weight.
    #[serde(default)]
    pub weight: Option<i32>,
    /// Limits.
    #[serde(default)]
    pub limits: Named<Text>,
    /// Requirements, in words.
    #[serde(default)]
    pub require: Vec<String>,
    /// Labels of the template.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints, in words.
    #[serde(default)]
    pub taints: Vec<String>,
    /// Startup taints, in words.
    #[serde(default)]
    pub startup_taints: Vec<String>,
    /// Names of the types it may buy; all when absent.
    #[serde(default)]
    pub types: Option<Vec<String>>,
    /// Whether the pool is Ready; true when absent.
    #[serde(default)]
    pub ready: Option<bool>,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// Replicas of a static pool.
    #[serde(default)]
    pub replicas: Option<i64>,
    /// Merged over the template's spec.
    #[serde(default)]
    pub spec: Value,
    /// Annotations of the template.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Pods that are alike.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PodGiven {
    /// With it the pods are `name-0` and so on, without it there is one of the plain name.
    #[serde(default)]
    pub replicas: Option<usize>,
    /// Requested CPU.
    #[serde(default)]
    pub cpu: Option<Text>,
    /// Requested memory.
    #[serde(default)]
    pub memory: Option<Text>,
    /// Further requests.
    #[serde(default)]
    pub requests: Option<Named<Text>>,
    /// Limits.
    #[serde(default)]
    pub limits: Named<Text>,
    /// Namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Labels; `app` with the group's name when absent.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Node selector.
    #[serde(default)]
    pub select: BTreeMap<String, String>,
    /// Required node affinity: one term, or a list of alternatives.
    #[serde(default)]
    pub require: Value,
    /// Preferred node affinity: each a weight followed by requirements.
    #[serde(default)]
    pub prefer: Vec<Vec<Value>>,
    /// Tolerations, in words.
    #[serde(default)]
    pub tolerate: Vec<String>,
    /// Topology spread constraints, in words.
    #[serde(default)]
    pub spread: Vec<String>,
    /// Required pod affinity, in words.
    #[serde(default)]
    pub near: Vec<String>,
    /// Required pod anti-affinity, in words.
    #[serde(default)]
    pub away: Vec<String>,
    /// Preferred pod affinity: words after a weight.
    #[serde(default)]
    pub prefer_near: Vec<String>,
    /// Preferred pod anti-affinity: words after a weight.
    #[serde(default)]
    pub prefer_away: Vec<String>,
    /// Host ports, in words.
    #[serde(default)]
    pub ports: Vec<Text>,
    /// Names of its resource claims.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Names of its volume claims.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// Kind and name of the controlling owner, as `ReplicaSet/web`.
    #[serde(default)]
    pub owner: Option<String>,
    /// Further container fields, for the only container.
    #[serde(default)]
    pub container: Value,
    /// Merged over the spec.
    #[serde(default)]
    pub spec: Value,
    /// Merged over the metadata.
    #[serde(default)]
    pub metadata: Value,
    /// Merged over the status.
    #[serde(default)]
    pub status: Value,
    /// Of a DaemonSet: merged over the template to give its newest live pod, which runs on no node of the case.
    #[serde(default)]
    pub live: Option<Box<PodGiven>>,
}

/// How far a node has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeStage {
    /// Registered and initialized.
    #[default]
    Ready,
    /// Launched, no Node yet.
    InFlight,
    /// The Node is there, not initialized.
    Starting,
    /// No NodeClaim.
    Foreign,
    /// Ready and being deleted.
    Deleting,
}

/// A node.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeGiven {
    /// Its instance type, from which capacity and labels come.
    #[serde(default)]
    pub r#type: Option<String>,
    /// Zone; `a` when absent.
    #[serde(default)]
    pub zone: Option<String>,
    /// Capacity type; `on-demand` when absent.
    #[serde(default)]
    pub capacity: Option<String>,
    /// Pool; `default` when absent.
    #[serde(default)]
    pub pool: Option<String>,
    /// Stage.
    #[serde(default)]
    pub stage: NodeStage,
    /// Further labels; an empty value takes the label away.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints, in words.
    #[serde(default)]
    pub taints: Vec<String>,
    /// Startup taints of the claim, in words.
    #[serde(default)]
    pub startup_taints: Vec<String>,
    /// What the Node reports instead of what the type says.
    #[serde(default)]
    pub allocatable: Named<Text>,
    /// Pods bound to it.
    #[serde(default)]
    pub pods: Named<PodGiven>,
    /// Volume limits of its CSINode, by driver.
    #[serde(default)]
    pub csi: BTreeMap<String, Option<u32>>,
}

/// A PersistentVolumeClaim.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeClaimGiven {
    /// Storage class.
    #[serde(default)]
    pub class: Option<String>,
    /// Volume it is bound to.
    #[serde(default)]
    pub volume: Option<String>,
    /// Namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its volume is named, but binding is not complete.
    #[serde(default)]
    pub binding: bool,
    /// Its volume is lost.
    #[serde(default)]
    pub lost: bool,
    /// It is being deleted.
    #[serde(default)]
    pub deleting: bool,
}

/// A PersistentVolume.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeGiven {
    /// Node affinity: one term, or a list of alternatives.
    #[serde(default)]
    pub require: Value,
    /// CSI driver.
    #[serde(default)]
    pub driver: Option<String>,
    /// Whether it is a local volume.
    #[serde(default)]
    pub local: bool,
    /// Whether it is a host path.
    #[serde(default)]
    pub host_path: bool,
    /// It is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// Further fields of the spec.
    #[serde(default)]
    pub spec: Value,
}

/// A StorageClass.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StorageClassGiven {
    /// Provisioner; `ebs.csi.aws.com` when absent.
    #[serde(default)]
    pub provisioner: Option<String>,
    /// Allowed topologies, each a list of words such as `zone In a b`.
    #[serde(default)]
    pub topologies: Vec<Vec<String>>,
    /// Whether volumes are made at once instead of for their first pod.
    #[serde(default)]
    pub immediate: bool,
}

/// A workload, or a PodTemplate.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WorkloadGiven {
    /// The labels that it selects; those of its pods when absent.
    #[serde(default)]
    pub select: Option<BTreeMap<String, String>>,
    /// Its pods, `replicas` included.
    #[serde(default)]
    pub pods: PodGiven,
}

/// A CapacityBuffer.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BufferGiven {
    /// Name of a PodTemplate.
    #[serde(default)]
    pub template: Option<String>,
    /// A workload by kind and name, such as `Deployment/web`.
    #[serde(default)]
    pub scalable: Option<String>,
    /// Number of pods.
    #[serde(default)]
    pub replicas: Option<i32>,
    /// Number of pods as a share of the workload's.
    #[serde(default)]
    pub percentage: Option<i32>,
    /// Limits.
    #[serde(default)]
    pub limits: Named<Text>,
    /// Strategy.
    #[serde(default)]
    pub strategy: Option<String>,
}

/// A NodeOverlay.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OverlayGiven {
    /// Requirements, in words.
    #[serde(default)]
    pub require: Vec<String>,
    /// The price instead.
    #[serde(default)]
    pub price: Option<Text>,
    /// What is added to the price, such as `+0.1` or `-10%`.
    #[serde(default)]
    pub adjust: Option<String>,
    /// Resources to add.
    #[serde(default)]
    pub capacity: Named<Text>,
    /// Weight.
    #[serde(default)]
    pub weight: Option<i32>,
}

/// Options of the solve.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct When {
    /// The packing the case is about; both when absent.
    #[serde(default)]
    pub packing: Option<PackingWord>,
    /// `Respect` (default) or `Ignore`.
    #[serde(default)]
    pub preferences: Option<String>,
    /// `Strict` (default) or `BestEffort`.
    #[serde(default)]
    pub min_values: Option<String>,
    /// `Strict` (default), `Fallback` or `Off`.
    #[serde(default)]
    pub reserved: Option<String>,
    /// Whether claims of devices are looked at.
    #[serde(default)]
    pub devices: bool,
    /// Configuration of the scheduler, as SCHEDULER_CONFIG has it.
    #[serde(default)]
    pub scheduler_config: Value,
    /// Most types a claim keeps; 600 when absent.
    #[serde(default)]
    pub types_max: Option<usize>,
}

/// The packings by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackingWord {
    /// Karpenter's order.
    Karpenter,
    /// The cheapest bill.
    Cost,
}

/// What must come out. Every pod must be placed unless `unplaced` names it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expect {
    /// Number of new claims: `2`, `at most 2`, `at least 2`.
    #[serde(default)]
    pub nodes: Option<Text>,
    /// Pods without a place, by pod or group: part of the reason, maybe after `2 x`.
    #[serde(default)]
    pub unplaced: Named<String>,
    /// Pods or groups that are not looked at: neither placed nor given a reason.
    #[serde(default)]
    pub overlooked: Vec<String>,
    /// Overlays that are not applied because another touches the same.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Overlays that break a rule that the CRD cannot check.
    #[serde(default)]
    pub invalid: Vec<String>,
    /// What became of buffers: the reason of a condition, with the number of pods before it where they count.
    #[serde(default)]
    pub buffers: Named<String>,
    /// The claims, in any order, each matched by one entry.
    #[serde(default)]
    pub claims: Option<Vec<ClaimExpect>>,
    /// Holds for every claim.
    #[serde(default)]
    pub each: Option<ClaimExpect>,
    /// Pods by existing node; other nodes must get none.
    #[serde(default)]
    pub existing: Option<Named<Who>>,
    /// Where pods land: by pod or group, `node` (a name, or `new`) or any label in short.
    #[serde(default)]
    pub r#where: Named<BTreeMap<String, Text>>,
    /// How the pods of a group, bound ones included, count by domain of a label.
    #[serde(default)]
    pub tally: Named<BTreeMap<String, Tally>>,
    /// Pods that share a node.
    #[serde(default)]
    pub together: Vec<Vec<String>>,
    /// Pods of which no two share a node.
    #[serde(default)]
    pub apart: Vec<Vec<String>>,
}

/// Pods: a number, names, or numbers by group.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Who {
    /// How many.
    Count(usize),
    /// Which pods or whole groups.
    Names(Vec<String>),
    /// How many of each group.
    Groups(BTreeMap<String, usize>),
}

/// Counts by domain.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Tally {
    /// Largest first, whatever the domains.
    Sorted(Vec<usize>),
    /// By domain.
    Domains(BTreeMap<String, usize>),
}

/// What a claim must be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClaimExpect {
    /// Pool.
    #[serde(default)]
    pub pool: Option<String>,
    /// Pods on it.
    #[serde(default)]
    pub pods: Option<Who>,
    /// Exactly these types may be launched.
    #[serde(default)]
    pub types: Option<Vec<String>>,
    /// Among others these.
    #[serde(default)]
    pub types_with: Vec<String>,
    /// None of these.
    #[serde(default)]
    pub types_without: Vec<String>,
    /// How many types.
    #[serde(default)]
    pub types_count: Option<usize>,
    /// The cheapest type.
    #[serde(default)]
    pub cheapest: Option<String>,
    /// The zone of the cheapest offering.
    #[serde(default)]
    pub zone: Option<String>,
    /// The capacity type of the cheapest offering.
    #[serde(default)]
    pub capacity: Option<String>,
    /// Its price an hour.
    #[serde(default)]
    pub price: Option<f64>,
    /// Requirements of the NodeClaim, in words; each must be there just so.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Keys that the NodeClaim must not require.
    #[serde(default)]
    pub requires_not: Vec<String>,
    /// Requests of the NodeClaim; those named.
    #[serde(default)]
    pub requests: Named<Text>,
    /// Whether minValues was lowered.
    #[serde(default)]
    pub min_values_relaxed: Option<bool>,
    /// Part of the NodeClaim object.
    #[serde(default)]
    pub object: Value,
    /// JSON pointers into the NodeClaim object at which there is nothing, or nothing but an empty list.
    #[serde(default)]
    pub object_without: Vec<String>,
}

/// A scalar that YAML may have read as a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(flag) => Ok(Self(flag.to_string())),
            other => Err(serde::de::Error::custom(format!(
                "a word or a number, not {other}"
            ))),
        }
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
