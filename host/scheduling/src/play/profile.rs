//! How a scheduler is configured, as far as it decides where pods go.
//!
//! Values only; who reads a configuration makes one. Answers to the default profile of kube-scheduler
//! (`pkg/scheduler/apis/config/v1/default_plugins.go`).

use apis::labels;

use super::scores::FitStrategy;

/// Weights of the plugins that score; 0 for one that is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreWeights {
    /// Weight of `NodeResourcesFit`.
    pub fit: i64,
    /// Weight of `NodeResourcesBalancedAllocation`.
    pub balance: i64,
    /// Weight of `PodTopologySpread`.
    pub spread: i64,
    /// Weight of `InterPodAffinity`.
    pub pod_affinity: i64,
    /// Weight of `NodeAffinity`.
    pub node_affinity: i64,
    /// Weight of `TaintToleration`.
    pub taints: i64,
}

/// How a scheduler chooses among the nodes that a pod fits on. Images are not known here, so `ImageLocality` says the
/// same of every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerProfile {
    pub weights: ScoreWeights,
    pub fit: FitStrategy,
    /// Resources that `NodeResourcesFit` looks at, with their weights.
    pub fit_resources: Vec<(String, i64)>,
    /// Resources that `NodeResourcesBalancedAllocation` looks at.
    pub balanced_resources: Vec<String>,
    /// Whether pods that declare no spread are spread over hosts and zones, as the scheduler does unless it is given
    /// constraints of its own.
    pub spreads_by_default: bool,
}

impl Default for ScoreWeights {
    fn default() -> Self {
        Self {
            fit: 1,
            balance: 1,
            spread: 2,
            pod_affinity: 2,
            node_affinity: 2,
            taints: 3,
        }
    }
}

impl Default for SchedulerProfile {
    fn default() -> Self {
        let both = [labels::RESOURCE_CPU, labels::RESOURCE_MEMORY];
        Self {
            weights: ScoreWeights::default(),
            fit: FitStrategy::default(),
            fit_resources: both.map(|name| (name.to_owned(), 1)).into(),
            balanced_resources: both.map(str::to_owned).into(),
            spreads_by_default: true,
        }
    }
}
