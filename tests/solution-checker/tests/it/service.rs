//! Pods of one service, with the constraint that its numbers stand for.

use apis::labels;
use k8s_openapi::api::core::v1 as core;
use proptest::prelude::*;
use scheduling::problem::PodVolumes;
use serde_json::{Value, json};

use crate::world::{rare, volumes};

#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) replicas: u8,
    pub(crate) size: (u8, u8),
    pub(crate) app: u8,
    pub(crate) selector: u8,
    pub(crate) affinity: u8,
    pub(crate) preferred: u8,
    pub(crate) spread: u8,
    pub(crate) friends: u8,
    pub(crate) foes: u8,
    pub(crate) tolerates: u8,
    pub(crate) node_needs: u8,
    pub(crate) containers: u8,
}

pub(crate) fn services() -> impl Strategy<Value = Service> {
    let identity = (1_u8..7, (0_u8..12, 0_u8..8), 0_u8..6);
    let node = (rare(11, 2), rare(9, 3), rare(6, 4));
    let others = (rare(12, 2), rare(8, 4), rare(8, 4));
    let rest = (rare(5, 2), rare(12, 3), rare(8, 3));
    (identity, node, others, rest).prop_map(|(identity, node, others, rest)| Service {
        replicas: identity.0,
        size: identity.1,
        app: identity.2,
        selector: node.0,
        affinity: node.1,
        preferred: node.2,
        spread: others.0,
        friends: others.1,
        foes: others.2,
        tolerates: rest.0,
        node_needs: rest.1,
        containers: rest.2,
    })
}

fn matching(key: &str, app: u8) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": format!("app-{app}")}}})
}

fn spread(key: &str, max_skew: i32, app: u8, extra: &Value) -> Value {
    let mut constraint = json!({"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": format!("app-{app}")}}});
    for (field, value) in extra.as_object().into_iter().flatten() {
        constraint[field] = value.clone();
    }
    constraint
}

fn term(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

impl Service {
    pub(crate) fn is_candidate(&self) -> bool {
        self.node_needs == 11
    }

    /// The pods, with the volumes of those that have some.
    pub(crate) fn build(&self, index: usize) -> Vec<(core::Pod, Option<PodVolumes>)> {
        let replicas = 0..self.replicas;
        replicas
            .map(|replica| {
                let name = format!("s{index}-{replica}");
                let object = serde_json::from_value(self.pod(index, &name)).unwrap();
                let kind = if (5..9).contains(&self.node_needs) {
                    self.node_needs - 4
                } else {
                    0
                };
                (object, volumes(kind, &name, index))
            })
            .collect()
    }

    fn pod(&self, index: usize, name: &str) -> Value {
        let namespace = if self.containers == 7 {
            "other"
        } else {
            "default"
        };
        let mut spec = json!({"containers": self.main_containers()});
        self.init_containers(&mut spec);
        self.node(&mut spec);
        self.pod_terms(&mut spec);
        self.spreads(&mut spec);
        spec["tolerations"] = match self.tolerates {
            1 => json!([{"operator": "Exists"}]),
            2 => json!([{"key": "dedicated", "operator": "Equal", "value": "red"}]),
            3 => json!([{"key": "level", "operator": "Gt", "value": "3", "effect": "NoExecute"}]),
            4 => json!([{"key": "scarce", "operator": "Exists", "effect": "NoSchedule"}]),
            _ => json!([]),
        };
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "creationTimestamp": format!("2026-01-01T00:{:02}:00Z", index % 60),
            "labels": {"app": format!("app-{}", self.app), "hash": format!("h{}", index % 2)},
        }, "spec": spec})
    }

    fn main_containers(&self) -> Value {
        let (cpu, memory) = self.size;
        let cpu = [
            10, 50, 100, 250, 500, 700, 900, 1000, 1900, 3500, 7000, 40_000,
        ][usize::from(cpu)];
        let memory = [16, 64, 200, 512, 1024, 3000, 7000, 20_000][usize::from(memory)];
        let mut main = json!({"name": "main", "resources": {
            "requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}}});
        main["ports"] = match self.node_needs {
            1 => json!([{"containerPort": 80, "hostPort": 8080}]),
            2 => json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]),
            3 => json!([{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}]),
            _ => json!([]),
        };
        if self.node_needs == 4 {
            main["resources"]["limits"] = json!({labels::RESOURCE_NVIDIA_GPU: "1"});
        }
        json!([main, {"name": "small", "resources": {"requests": {"cpu": "5m"}}}])
    }

    fn init_containers(&self, spec: &mut Value) {
        let one =
            |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = one("sidecar", "300m");
        sidecar["restartPolicy"] = json!("Always");
        match self.containers {
            1 => spec["initContainers"] = json!([one("big", "2")]),
            2 => spec["initContainers"] = json!([sidecar, one("after", "1500m")]),
            3 => spec["initContainers"] = json!([one("before", "1500m"), sidecar]),
            4 => spec["overhead"] = json!({"cpu": "250m", "memory": "120Mi"}),
            5 => spec["resources"] = json!({"requests": {"cpu": "1300m"}}),
            _ => {}
        }
    }

    fn node(&self, spec: &mut Value) {
        let selector = match self.selector {
            1 => Some((labels::ARCH, "amd64")),
            2 => Some((labels::ARCH, "arm64")),
            3 => Some((labels::CAPACITY_TYPE, "spot")),
            4 => Some((labels::CAPACITY_TYPE, "on-demand")),
            5 => Some((labels::TOPOLOGY_ZONE, "zone-a")),
            6 => Some(("team", "red")),
            7 => Some(("nobody/knows", "this")),
            8 => Some(("failure-domain.beta.kubernetes.io/zone", "zone-b")),
            9 => Some((labels::HOSTNAME, "node-0")),
            10 => Some((labels::NODEPOOL, "pool-1")),
            _ => None,
        };
        if let Some((key, value)) = selector {
            spec["nodeSelector"] = json!({key: value});
        }
        let zone = |operator: &str, values: &[&str]| term(labels::TOPOLOGY_ZONE, operator, values);
        let terms = match self.affinity {
            1 => json!([zone("In", &["zone-a"]), zone("In", &["zone-b", "zone-c"])]),
            2 => json!([term(labels::INSTANCE_CPU, "Gt", &["3"])]),
            3 => json!([zone("NotIn", &["zone-a"])]),
            4 => json!([
                term("nobody/knows", "Exists", &[]),
                term(labels::ARCH, "In", &["amd64"])
            ]),
            5 => json!([term(labels::INSTANCE_GENERATION, "Lt", &["3"])]),
            6 => json!([term("team", "Exists", &[])]),
            7 => json!([term("team", "NotIn", &["blue"])]),
            8 => json!([term(labels::INSTANCE_GPU_NAME, "DoesNotExist", &[])]),
            _ => return,
        };
        spec["affinity"]["nodeAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    }

    fn pod_terms(&self, spec: &mut Value) {
        let other = (self.app + 1) % 6;
        let (zone, host) = (labels::TOPOLOGY_ZONE, labels::HOSTNAME);
        let friends = match self.friends {
            1 => json!([matching(zone, self.app)]),
            2 => json!([matching(host, self.app)]),
            3 => json!([matching(zone, other)]),
            4 => json!([matching(host, other)]),
            5 => json!([
                matching(zone, self.app),
                matching(labels::CAPACITY_TYPE, self.app)
            ]),
            6 => {
                let mut term = matching(zone, other);
                term["namespaceSelector"] = json!({"matchLabels": {"tier": "1"}});
                json!([term])
            }
            7 => {
                let mut term = matching(host, self.app);
                term["namespaceSelector"] = json!({});
                json!([term])
            }
            _ => json!([]),
        };
        let foes = match self.foes {
            1 => json!([matching(host, self.app)]),
            2 => json!([matching(zone, self.app)]),
            3 => json!([matching(host, other)]),
            4 => json!([matching(zone, other)]),
            5 => json!([matching("team", self.app)]),
            6 => json!([{"topologyKey": host, "labelSelector": {}}]),
            7 => {
                let mut term = matching(host, other);
                term["namespaces"] = json!(["other"]);
                json!([term])
            }
            _ => json!([]),
        };
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        spec["affinity"]["podAffinity"] = json!({required: friends});
        spec["affinity"]["podAntiAffinity"] = json!({required: foes});
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let weigh = |term: Value| json!([{"weight": 10, "podAffinityTerm": term}]);
        match self.preferred {
            1 => {
                let preference = term(zone, "In", &["zone-c"]);
                spec["affinity"]["nodeAffinity"][preferred] =
                    json!([{"weight": 5, "preference": preference}]);
            }
            2 => {
                let preference = term("nobody/knows", "In", &["this"]);
                spec["affinity"]["nodeAffinity"][preferred] =
                    json!([{"weight": 5, "preference": preference}]);
            }
            3 => spec["affinity"]["podAntiAffinity"][preferred] = weigh(matching(host, self.app)),
            4 => spec["affinity"]["podAffinity"][preferred] = weigh(matching(zone, other)),
            5 => spec["affinity"]["podAntiAffinity"][preferred] = weigh(matching(zone, other)),
            _ => {}
        }
    }

    fn spreads(&self, spec: &mut Value) {
        let (zone, host) = (labels::TOPOLOGY_ZONE, labels::HOSTNAME);
        let plain = json!({});
        let of = |key: &str, max_skew: i32, extra: &Value| spread(key, max_skew, self.app, extra);
        let constraints = match self.spread {
            1 => json!([of(zone, 1, &plain)]),
            2 => json!([of(zone, 2, &plain)]),
            3 => json!([of(host, 1, &plain)]),
            4 => json!([of(host, 3, &plain)]),
            5 => json!([of(zone, 1, &plain), of(host, 2, &plain)]),
            6 => json!([of(zone, 1, &json!({"minDomains": 3}))]),
            7 => json!([of(zone, 1, &json!({"minDomains": 5}))]),
            8 => json!([of(
                zone,
                1,
                &json!({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"})
            )]),
            9 => json!([of(zone, 1, &json!({"whenUnsatisfiable": "ScheduleAnyway"}))]),
            10 => json!([of(labels::CAPACITY_TYPE, 1, &plain)]),
            11 => json!([of(zone, 1, &json!({"matchLabelKeys": ["hash"]}))]),
            _ => return,
        };
        spec["topologySpreadConstraints"] = constraints;
    }
}
