//! `spec.kubelet` of an EC2NodeClass, read strictly.
//!
//! The schema lets any map through, so this module says what is wrong with it. It renders nothing. Answers to
//! Karpenter's `pkg/providers/amifamily/bootstrap` inputs and `pkg/apis/v1/kubeletconfiguration.go`.

pub(crate) mod expressions;
mod fields;
mod reader;

use self::fields::MANAGED;
use self::reader::KubeletReader;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::ami_family::features::Features;

/// The managed fields, typed, and the rest as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kubelet {
    /// Addresses of the name servers that pods ask.
    pub(crate) cluster_dns: Vec<String>,
    pub(crate) max_pods: Option<i64>,
    pub(crate) pods_per_core: Option<i64>,
    /// Quantities by resource, kept for the system.
    pub(crate) system_reserved: BTreeMap<String, String>,
    /// Quantities by resource, kept for the kubelet and the container runtime.
    pub(crate) kube_reserved: BTreeMap<String, String>,
    /// Quantities or percentages by eviction signal.
    pub(crate) eviction_hard: BTreeMap<String, String>,
    /// The same, with a grace period each.
    pub(crate) eviction_soft: BTreeMap<String, String>,
    /// Durations as Go writes them, by eviction signal.
    pub(crate) eviction_soft_grace_period: BTreeMap<String, String>,
    /// In seconds.
    pub(crate) eviction_max_pod_grace_period: Option<i64>,
    pub(crate) image_gc_high_threshold_percent: Option<i64>,
    pub(crate) image_gc_low_threshold_percent: Option<i64>,
    pub(crate) cpu_cfs_quota: Option<bool>,
    /// Values that are expressions; they count as absent above.
    pub(crate) expressions: Vec<KubeletExpression>,
    /// As the user wrote it, expressions left out.
    pub(crate) raw: BTreeMap<String, Value>,
}

/// A value that follows from the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubeletExpression {
    /// Such as `maxPods` or `kubeReserved.cpu`.
    pub(crate) path: String,
    /// In CEL.
    pub(crate) source: String,
}

impl Kubelet {
    /// Reads what can be read and tells what is wrong, each with its path.
    pub(crate) fn parse(map: &BTreeMap<String, Value>) -> (Self, Vec<String>) {
        let mut reader = KubeletReader {
            map,
            errors: Vec::new(),
            expressions: Vec::new(),
        };
        let mut kubelet = Self {
            cluster_dns: reader.strings("clusterDNS"),
            max_pods: reader.max_pods(),
            pods_per_core: reader.integer("podsPerCore", 0, i64::from(i32::MAX)),
            system_reserved: reader.reserved("systemReserved"),
            kube_reserved: reader.reserved("kubeReserved"),
            eviction_hard: reader.eviction("evictionHard"),
            eviction_soft: reader.eviction("evictionSoft"),
            eviction_soft_grace_period: reader.grace_periods(),
            eviction_max_pod_grace_period: reader.integer(
                "evictionMaxPodGracePeriod",
                0,
                i64::from(i32::MAX),
            ),
            image_gc_high_threshold_percent: reader.integer("imageGCHighThresholdPercent", 0, 100),
            image_gc_low_threshold_percent: reader.integer("imageGCLowThresholdPercent", 0, 100),
            cpu_cfs_quota: reader.boolean("cpuCFSQuota"),
            expressions: Vec::new(),
            raw: map.clone(),
        };
        reader.eviction("evictionMinimumReclaim");
        reader.unknown_fields();
        reader.relations(&kubelet);
        for expression in &reader.expressions {
            kubelet.forget(&expression.path);
        }
        kubelet.expressions = reader.expressions;
        (kubelet, reader.errors)
    }

    /// With amounts in the place of expressions, by their path.
    pub(crate) fn with_amounts(mut self, amounts: &BTreeMap<String, String>) -> Self {
        for (path, amount) in amounts {
            let Some((field, resource)) = path.split_once('.') else {
                continue;
            };
            let reserved = match field {
                "kubeReserved" => &mut self.kube_reserved,
                _ => &mut self.system_reserved,
            };
            reserved.insert(resource.to_owned(), amount.clone());
            if let Some(Value::Object(entries)) = self.raw.get_mut(field) {
                entries.insert(resource.to_owned(), Value::from(amount.as_str()));
            }
        }
        self
    }

    /// Fields that a family without `features` cannot apply.
    pub(crate) fn unsupported(&self, features: Features) -> Vec<String> {
        let mut fields: Vec<String> = Vec::new();
        if !features.arbitrary_kubelet {
            fields.extend(
                self.raw
                    .keys()
                    .filter(|key| !MANAGED.contains(&key.as_str()))
                    .cloned(),
            );
        }
        if !features.pods_per_core && self.pods_per_core.is_some() && !features.is_windows {
            fields.push("podsPerCore".to_owned());
        }
        if !features.many_cluster_dns && self.cluster_dns.len() > 1 {
            fields.push("clusterDNS (more than one entry)".to_owned());
        }
        fields
    }

    fn forget(&mut self, path: &str) {
        match path.split_once('.') {
            None => drop(self.raw.remove(path)),
            Some((field, key)) => {
                if let Some(Value::Object(entries)) = self.raw.get_mut(field) {
                    entries.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &Value) -> (Kubelet, Vec<String>) {
        let map = serde_json::from_value(json.clone()).unwrap();
        Kubelet::parse(&map)
    }

    #[test]
    fn mistakes_are_named_with_their_path() {
        let cases = [
            (serde_json::json!({"maxPods": -1}), "spec.kubelet.maxPods"),
            (
                serde_json::json!({"registerWithTaints": []}),
                "spec.kubelet.registerWithTaints",
            ),
            (serde_json::json!({"maxpods": 1}), "spec.kubelet.maxpods"),
            (
                serde_json::json!({"kubeReserved": {"cpu": "-1"}}),
                "spec.kubelet.kubeReserved[cpu]",
            ),
            (
                serde_json::json!({"kubeReserved": {"gpu": "1"}}),
                "spec.kubelet.kubeReserved[gpu]",
            ),
            (
                serde_json::json!({"evictionHard": {"memory.available": "101%"}}),
                "evictionHard[memory.available]",
            ),
            (
                serde_json::json!({"evictionHard": {"memory": "5%"}}),
                "evictionHard[memory]",
            ),
            (
                serde_json::json!({"evictionSoft": {"memory.available": "5%"}}),
                "spec.kubelet.evictionSoft",
            ),
            (
                serde_json::json!({"clusterDNS": "10.0.0.1"}),
                "spec.kubelet.clusterDNS",
            ),
            (
                serde_json::json!({"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}),
                "imageGCHighThresholdPercent",
            ),
        ];
        for (json, want) in cases {
            let (_, errors) = parse(&json);
            assert!(
                errors.len() == 1 && errors[0].contains(want),
                "{json}: {errors:?}"
            );
        }
    }

    #[test]
    fn expressions_are_set_aside() {
        let (kubelet, errors) = parse(&serde_json::json!({
            "maxPods": "min(110, max_pods)", "kubeReserved": {"cpu": "vcpus * 10", "memory": "1Gi"},
        }));
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(kubelet.max_pods, None);
        let paths = kubelet.expressions.iter().map(|it| it.path.as_str());
        assert_eq!(paths.collect::<Vec<_>>(), ["maxPods", "kubeReserved.cpu"]);
        assert_eq!(kubelet.kube_reserved.keys().collect::<Vec<_>>(), ["memory"]);
        assert_eq!(
            kubelet.raw["kubeReserved"],
            serde_json::json!({"memory": "1Gi"})
        );
        let amounts = [("kubeReserved.cpu".to_owned(), "20m".to_owned())].into();
        let settled = kubelet.with_amounts(&amounts);
        assert_eq!(settled.kube_reserved["cpu"], "20m");
        let raw = serde_json::json!({"cpu": "20m", "memory": "1Gi"});
        assert_eq!(settled.raw["kubeReserved"], raw);
    }
}
