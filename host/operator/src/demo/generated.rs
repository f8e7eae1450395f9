//! The workloads of `--pods N`: Deployments of a company, drawn from the seed.
//!
//! Replicas follow a power law and sizes a wide spread; some services spread over zones, some keep one pod a
//! node, some need an architecture or stay on demand. Nothing in it cannot be scheduled.

use serde_json::{Value, json};
use sim::random::SplitMix64;

/// Namespace of the generated Deployments.
pub(crate) const NAMESPACE: &str = "generated";

/// Replicas of the largest service.
const REPLICAS_MAX: u64 = 250;
/// Pods that refuse to share a node make a node each, so such services are kept small.
const ANTI_AFFINITY_REPLICAS_MAX: u64 = 8;

/// Deployments with `pods` replicas in all.
pub(crate) fn deployments(pods: u32, seed: u64) -> Vec<Value> {
    let mut random = SplitMix64::new(seed, "demo-workloads");
    let mut left = u64::from(pods);
    let mut services = Vec::new();
    while left > 0 {
        let service = Service::draw(&mut random, left);
        left -= service.replicas;
        services.push(service.deployment(services.len()));
    }
    services
}

struct Service {
    replicas: u64,
    cpu_millis: u64,
    memory_mib: u64,
    wish: PodWish,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PodWish {
    Nothing,
    ZoneSpread,
    OnePerNode,
    Amd64,
    Arm64,
    OnDemand,
}

impl Service {
    fn draw(random: &mut SplitMix64, left: u64) -> Self {
        let wish = match random.between(0, 99) {
            0..=24 => PodWish::ZoneSpread,
            25..=29 => PodWish::OnePerNode,
            30..=49 => PodWish::Amd64,
            50..=59 => PodWish::Arm64,
            60..=64 => PodWish::OnDemand,
            _ => PodWish::Nothing,
        };
        // A unit number to a power gives few large services and many small ones.
        let share = random.next_unit().powi(3);
        let replicas = whole(share * REPLICAS_MAX as f64) + 1;
        let replicas = match wish {
            PodWish::OnePerNode => replicas.min(ANTI_AFFINITY_REPLICAS_MAX),
            PodWish::Nothing
            | PodWish::ZoneSpread
            | PodWish::Amd64
            | PodWish::Arm64
            | PodWish::OnDemand => replicas,
        };
        let cpu_millis = [50, 100, 100, 250, 250, 500, 500, 1000, 1500, 2000][index(random, 10)];
        let mib_per_cpu = [1024, 2048, 2048, 4096, 4096, 8192][index(random, 6)];
        Self {
            replicas: replicas.min(left),
            cpu_millis,
            memory_mib: (cpu_millis * mib_per_cpu / 1000).max(64),
            wish,
        }
    }

    fn deployment(&self, number: usize) -> Value {
        let name = format!("service-{number:03}");
        let mut spec = json!({
            "containers": [{
                "name": "main",
                "image": "registry.example/service:1",
                "resources": {"requests": {
                    "cpu": format!("{}m", self.cpu_millis),
                    "memory": format!("{}Mi", self.memory_mib),
                }},
            }],
        });
        let selector = json!({"matchLabels": {"app": name}});
        match self.wish {
            PodWish::Nothing => {}
            PodWish::ZoneSpread => {
                spec["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }]);
            }
            PodWish::OnePerNode => {
                spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector},
                ]}});
            }
            PodWish::Amd64 => spec["nodeSelector"] = json!({"kubernetes.io/arch": "amd64"}),
            PodWish::Arm64 => spec["nodeSelector"] = json!({"kubernetes.io/arch": "arm64"}),
            PodWish::OnDemand => {
                spec["nodeSelector"] = json!({"karpenter.sh/capacity-type": "on-demand"});
            }
        }
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
            "spec": {
                "replicas": self.replicas,
                "selector": selector,
                "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
            },
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the values drawn are small and not negative"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

fn index(random: &mut SplitMix64, len: u64) -> usize {
    usize::try_from(random.between(0, len - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(deployments: &[Value]) -> u64 {
        deployments
            .iter()
            .filter_map(|deployment| deployment["spec"]["replicas"].as_u64())
            .sum()
    }

    #[test]
    fn replicas_add_up_to_what_was_asked() {
        for pods in [1, 10, 5000] {
            assert_eq!(replicas(&deployments(pods, 7)), u64::from(pods));
        }
    }

    #[test]
    fn one_seed_gives_one_answer_and_another_seed_another() {
        assert_eq!(deployments(500, 7), deployments(500, 7));
        assert_ne!(deployments(500, 7), deployments(500, 8));
    }
}
