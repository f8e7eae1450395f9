//! The final summary of a demo, as JSON for programs and as text for people.

pub(crate) mod of_ledger;
pub(crate) mod of_policies;

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::frame::{Frame, NodeLine};

/// Output of `-o json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) pods: PodTotals,
    /// What the first round of provisioning that opened any claims wanted of them.
    pub(crate) first_plan: Option<PlanLine>,
    /// Of the first stage.
    pub(crate) all_running: Option<AllRunning>,
    pub(crate) nodes: Vec<NodeLine>,
    pub(crate) price_per_hour: f64,
    pub(crate) virtual_seconds: f64,
    pub(crate) wall_seconds: f64,
    /// Of all threads, the simulated world's among them.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_rss_bytes: u64,
    pub(crate) launches: u64,
    pub(crate) terminations: u64,
    /// When the last node was launched or ended, in the world's time.
    pub(crate) last_turnover_seconds: f64,
    /// Pods that left a node because they were evicted.
    pub(crate) evictions: u64,
    /// Claims that were given up because no offering left to them could be bought.
    pub(crate) launches_without_capacity: usize,
    /// Pods that the scheduler bound elsewhere than planned, and claims opened for those whose place was taken.
    pub(crate) pods_off_plan: u64,
    pub(crate) claims_off_plan: u64,
    pub(crate) leaked_instances: usize,
    /// How each stage of `--then` settled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stages: Vec<StageLine>,
    pub(crate) policies: Vec<PolicyLine>,
    pub(crate) swaps: SwapLine,
    pub(crate) ledger_hash: String,
    /// Problems that remain: faults of manifests, pods that found no place.
    pub(crate) problems: Vec<String>,
}

/// Pods by what became of them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct PodTotals {
    pub(crate) running: usize,
    pub(crate) pending: usize,
}

/// Nodes of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanLine {
    pub(crate) nodes: usize,
    pub(crate) pods: u32,
    pub(crate) price_per_hour: f64,
}

/// Effort until no pod waited.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AllRunning {
    /// Simulated time from the start, seconds.
    pub(crate) seconds: f64,
    pub(crate) pods: usize,
    pub(crate) nodes: usize,
    pub(crate) launches: u64,
    pub(crate) price_per_hour: f64,
    /// Pods that were evicted by then.
    pub(crate) evictions: u64,
    /// The pod that waited longest from its creation until it ran.
    pub(crate) slowest_pod: SlowestPod,
    /// The longest that an instance took from its launch until its Node was ready.
    pub(crate) slowest_boot_seconds: f64,
}

/// A pod, and how long it waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct SlowestPod {
    pub(crate) pod: String,
    pub(crate) seconds: f64,
}

/// How the world settled after something was applied.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StageLine {
    /// The manifests that were applied.
    pub(crate) begun_by: String,
    /// From then on to the last change, in simulated time.
    pub(crate) settled_seconds: f64,
    pub(crate) pods: PodTotals,
    pub(crate) nodes: usize,
    pub(crate) price_per_hour: f64,
}

/// A policy that decided something.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyLine {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) microseconds_p50: u64,
    pub(crate) microseconds_most: u64,
}

/// Bindings that were put in charge and refused, and the longest that a round waited to be told who decides.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SwapLine {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) longest_wait_microseconds: f64,
}

impl fmt::Display for StageLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: settled after {:.1} s with {} pods on {} nodes for {:.4} USD/h",
            self.begun_by, self.settled_seconds, self.pods.running, self.nodes, self.price_per_hour
        )
    }
}

impl Summary {
    /// The summary for people: totals, then the nodes grouped by what they are.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for stage in &self.stages {
            let _ = writeln!(text, "{stage}");
        }
        let _ = writeln!(
            text,
            "{} pods run on {} nodes for {:.4} USD/h; {} pending",
            self.pods.running,
            self.nodes.len(),
            self.price_per_hour,
            self.pods.pending
        );
        for ((instance_type, capacity_type), group) in groups(&self.nodes) {
            let price: f64 = group.iter().map(|node| node.price_per_hour).sum();
            let pods: usize = group.iter().map(|node| node.pods).sum();
            let _ = writeln!(
                text,
                "  {:>3} x {instance_type:<18} {capacity_type:<10} {pods:>5} pods {price:>9.4} USD/h",
                group.len()
            );
        }
        for policy in &self.policies {
            let _ = writeln!(
                text,
                "  policy {:<14} {:<22} {:>4} calls, p50 {} us, at most {} us, {}",
                policy.kind,
                policy.name,
                policy.calls,
                policy.microseconds_p50,
                policy.microseconds_most,
                policy.digest.get(..19).unwrap_or(&policy.digest)
            );
        }
        let SwapLine {
            accepted,
            refused,
            longest_wait_microseconds,
        } = self.swaps;
        if accepted + refused > 0 {
            let _ = writeln!(
                text,
                "  {accepted} policies put in charge and {refused} refused; no round waited longer than \
                 {longest_wait_microseconds:.1} us to be told who decides"
            );
        }
        let _ = writeln!(
            text,
            "{} launches and {} terminations in {:.0} s of simulated time, {:.2} s of yours ({} MiB at most)",
            self.launches,
            self.terminations,
            self.virtual_seconds,
            self.wall_seconds,
            self.peak_rss_bytes >> 20
        );
        if self.pods_off_plan > 0 {
            let _ = writeln!(
                text,
                "{} pods went elsewhere than planned; {} nodes were opened because of it",
                self.pods_off_plan, self.claims_off_plan
            );
        }
        let _ = writeln!(text, "ledger {}", self.ledger_hash);
        text
    }
}

type NodesAlike<'a> = ((&'a str, &'a str), Vec<&'a NodeLine>);

fn groups(nodes: &[NodeLine]) -> Vec<NodesAlike<'_>> {
    let mut groups = std::collections::BTreeMap::<(&str, &str), Vec<&NodeLine>>::new();
    for node in nodes {
        groups
            .entry((&node.instance_type, &node.capacity_type))
            .or_default()
            .push(node);
    }
    groups.into_iter().collect()
}

impl PodTotals {
    pub(crate) fn of(frame: &Frame) -> Self {
        Self {
            running: frame.pods_running,
            pending: frame.pods_pending,
        }
    }
}
