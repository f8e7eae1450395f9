//! The configuration of a cluster's scheduler, as far as it decides where pods go.
//!
//! Two forms are read: what Karpenter takes, which is strict because it was written for us, and a
//! KubeSchedulerConfiguration as kube-scheduler itself reads it, of which all that does not matter here is passed over.
//! Answers to `pkg/scheduler/apis/config/v1` of Kubernetes.

use std::sync::Arc;

use apis::names::DEFAULT_SCHEDULER;
use scheduling::play::scores::FitStrategy;
use scheduling::play::{SchedulerProfile, ScoreWeights};
use scheduling::pod::TopologySpread;
use serde::Deserialize;
use serde_json::{Value, json};

mod constraints;

pub use constraints::{InvalidConfig, default_constraints};

/// The kind of kube-scheduler's own file.
const KIND: &str = "KubeSchedulerConfiguration";

/// The part of a scheduler's configuration that matters here.
#[derive(Debug, Clone, Default)]
pub struct SchedulerConfig {
    /// Spread constraints, without selectors, of pods that declare none.
    pub default_spread: Arc<[TopologySpread]>,
    /// How nodes are scored.
    pub profile: Arc<SchedulerProfile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProfileDocument {
    scheduler_name: Option<String>,
    plugins: PluginsDocument,
    plugin_config: Vec<PluginArgs>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PluginsDocument {
    multi_point: PluginSet,
    score: PluginSet,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PluginSet {
    enabled: Vec<PluginRef>,
    disabled: Vec<PluginRef>,
}

#[derive(Debug, Deserialize)]
struct PluginRef {
    name: String,
    #[serde(default)]
    weight: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PluginArgs {
    name: String,
    args: ArgsDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ArgsDocument {
    scoring_strategy: Option<StrategyDocument>,
    /// Resources that `NodeResourcesBalancedAllocation` looks at.
    resources: Option<Vec<WeightedResource>>,
    default_constraints: Option<Value>,
    defaulting_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StrategyDocument {
    r#type: String,
    resources: Vec<WeightedResource>,
    requested_to_capacity_ratio: RatioDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RatioDocument {
    shape: Vec<RatioPoint>,
}

#[derive(Debug, Deserialize)]
struct RatioPoint {
    utilization: i64,
    score: i64,
}

#[derive(Debug, Deserialize)]
struct WeightedResource {
    name: String,
    #[serde(default = "one")]
    weight: i64,
}

fn one() -> i64 {
    1
}

impl SchedulerConfig {
    /// Reads either form; nothing is the default.
    pub fn parse(config: Value) -> Result<Self, InvalidConfig> {
        if config["kind"] == KIND {
            return of_scheduler(config);
        }
        let default_spread = default_constraints(config)?;
        Ok(Self {
            profile: Arc::new(SchedulerProfile {
                spreads_by_default: default_spread.is_empty(),
                ..SchedulerProfile::default()
            }),
            default_spread: default_spread.into(),
        })
    }
}

/// Of a KubeSchedulerConfiguration: the profile of pods that ask for no scheduler, or the first one.
fn of_scheduler(mut config: Value) -> Result<SchedulerConfig, InvalidConfig> {
    let profiles = config["profiles"].take();
    let profiles: Option<Vec<ProfileDocument>> =
        serde_json::from_value(profiles).map_err(|it| InvalidConfig::Form(it.to_string()))?;
    let mut profiles = profiles.unwrap_or_default();
    let is_default = |it: &ProfileDocument| {
        let name = it.scheduler_name.as_deref();
        name.unwrap_or(DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
    };
    let at = profiles.iter().position(is_default).unwrap_or(0);
    let document = if profiles.is_empty() {
        ProfileDocument::default()
    } else {
        profiles.swap_remove(at)
    };
    let mut profile = SchedulerProfile {
        weights: weights(&document.plugins),
        ..SchedulerProfile::default()
    };
    let mut default_spread = Vec::new();
    for PluginArgs { name, args } in document.plugin_config {
        match name.as_str() {
            "NodeResourcesFit" => {
                if let Some(strategy) = args.scoring_strategy {
                    set_strategy(&mut profile, strategy)?;
                }
            }
            "NodeResourcesBalancedAllocation" => {
                if let Some(resources) = args.resources.filter(|it| !it.is_empty()) {
                    profile.balanced_resources = resources.into_iter().map(|it| it.name).collect();
                }
            }
            "PodTopologySpread" => {
                profile.spreads_by_default = args.defaulting_type.as_deref() != Some("List");
                let constraints = args
                    .default_constraints
                    .filter(|_| !profile.spreads_by_default);
                if let Some(constraints) = constraints {
                    let constraints =
                        json!({"podTopologySpread": {"defaultConstraints": constraints}});
                    default_spread = default_constraints(constraints)?;
                }
            }
            _ => {}
        }
    }
    Ok(SchedulerConfig {
        default_spread: default_spread.into(),
        profile: Arc::new(profile),
    })
}

fn set_strategy(
    profile: &mut SchedulerProfile,
    strategy: StrategyDocument,
) -> Result<(), InvalidConfig> {
    profile.fit = match strategy.r#type.as_str() {
        "" | "LeastAllocated" => FitStrategy::LeastAllocated,
        "MostAllocated" => FitStrategy::MostAllocated,
        "RequestedToCapacityRatio" => {
            let points = strategy.requested_to_capacity_ratio.shape.into_iter();
            let points: Vec<(i64, i64)> = points.map(|it| (it.utilization, it.score)).collect();
            if points.is_empty() || !points.is_sorted_by(|a, b| a.0 < b.0) {
                let message = "requestedToCapacityRatio.shape: takes points of rising utilization";
                return Err(InvalidConfig::Form(message.to_owned()));
            }
            FitStrategy::RequestedToCapacityRatio(points)
        }
        other => {
            let message = format!("scoringStrategy.type: {other:?} is no strategy");
            return Err(InvalidConfig::Form(message));
        }
    };
    if !strategy.resources.is_empty() {
        let resources = strategy.resources.into_iter();
        profile.fit_resources = resources.map(|it| (it.name, it.weight)).collect();
    }
    Ok(())
}

/// The weights of the plugins, those for scoring after those for everything.
fn weights(plugins: &PluginsDocument) -> ScoreWeights {
    let mut weights = ScoreWeights::default();
    for set in [&plugins.multi_point, &plugins.score] {
        for it in &set.disabled {
            set_weight(&mut weights, &it.name, 0);
        }
        for it in &set.enabled {
            set_weight(&mut weights, &it.name, it.weight.max(1));
        }
    }
    weights
}

fn set_weight(weights: &mut ScoreWeights, plugin: &str, weight: i64) {
    let ScoreWeights {
        fit,
        balance,
        spread,
        pod_affinity,
        node_affinity,
        taints,
    } = weights;
    for (name, own) in [
        ("NodeResourcesFit", fit),
        ("NodeResourcesBalancedAllocation", balance),
        ("PodTopologySpread", spread),
        ("InterPodAffinity", pod_affinity),
        ("NodeAffinity", node_affinity),
        ("TaintToleration", taints),
    ] {
        if plugin == name || (plugin == "*" && weight == 0) {
            *own = weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_kube_scheduler_is_read_as_far_as_it_matters() {
        let config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": KIND,
            "leaderElection": {"leaderElect": true},
            "profiles": [
                {"schedulerName": "other"},
                {
                    "schedulerName": DEFAULT_SCHEDULER,
                    "plugins": {"score": {
                        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                        "enabled": [{"name": "NodeResourcesFit", "weight": 5}, {"name": "Ours", "weight": 9}],
                    }},
                    "pluginConfig": [
                        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}],
                        }}},
                        {"name": "PodTopologySpread", "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [
                                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
                            ],
                        }},
                        {"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 10}},
                    ],
                },
            ],
        });
        let SchedulerConfig {
            default_spread,
            profile,
        } = SchedulerConfig::parse(config).unwrap();
        assert_eq!(default_spread.len(), 1);
        let expected = SchedulerProfile {
            weights: ScoreWeights {
                fit: 5,
                balance: 0,
                ..ScoreWeights::default()
            },
            fit: FitStrategy::MostAllocated,
            fit_resources: vec![("cpu".to_owned(), 3), ("memory".to_owned(), 1)],
            spreads_by_default: false,
            ..SchedulerProfile::default()
        };
        assert_eq!(*profile, expected);
    }

    #[test]
    fn a_strategy_that_nobody_knows_is_refused() {
        let of = |strategy: Value| {
            let args = json!({"scoringStrategy": strategy});
            let fit = json!({"name": "NodeResourcesFit", "args": args});
            SchedulerConfig::parse(json!({"kind": KIND, "profiles": [{"pluginConfig": [fit]}]}))
        };
        let ratio = |shape: Value| {
            of(json!({
                "type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape},
            }))
        };
        assert!(of(json!({"type": "Least"})).is_err());
        assert!(ratio(json!([])).is_err());
        let points = json!([{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]);
        let expected = FitStrategy::RequestedToCapacityRatio(vec![(0, 0), (100, 10)]);
        assert_eq!(ratio(points).unwrap().profile.fit, expected);
    }

    #[test]
    fn constraints_of_its_own_take_the_place_of_the_scheduler_s() {
        let none = SchedulerConfig::parse(Value::Null).unwrap();
        assert!(none.profile.spreads_by_default && none.default_spread.is_empty());
        let own = json!({"podTopologySpread": {"defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        ]}});
        let own = SchedulerConfig::parse(own).unwrap();
        assert!(!own.profile.spreads_by_default && own.default_spread.len() == 1);
    }
}
