//! Cases of the model: few nodes, few pods, and where kube-scheduler puts them by its own formulas.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use scheduling::Solution;
use scheduling::play::scores::FitStrategy;
use scheduling::play::{SchedulerProfile, play};
use scheduling::pod::{Pod, PodKey, ShapeTable};
use scheduling::problem::{ExistingNode, Options, Problem};
use scheduling::solution::PodsOnNode;
use serde_json::{Value, json};

const GIB_MILLIS: i64 = 1024 * 1024 * 1024 * 1000;

/// Nodes by name with CPUs, GiB and zone, and pods by name in the order in which they were queued.
pub(super) struct World {
    pub(super) problem: Problem,
    shapes: ShapeTable,
}

impl World {
    pub(super) fn new(nodes: &[(&str, i64, i64, &str)]) -> Self {
        let mut problem = Problem::new(Options::default());
        problem.nodes = nodes.iter().map(|it| Arc::new(node(*it))).collect();
        Self {
            problem,
            shapes: ShapeTable::new(),
        }
    }

    /// `more` has fields of the spec, and `labels` where they are others than those of all.
    pub(super) fn pod(mut self, name: &str, cpu: &str, memory: &str, more: Value) -> Self {
        let requests = json!({"cpu": cpu, "memory": memory});
        let mut spec = json!({"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]});
        let mut labels = json!({"app": "web"});
        for (key, value) in more.as_object().unwrap() {
            let place = if key == "labels" {
                &mut labels
            } else {
                &mut spec[key]
            };
            *place = value.clone();
        }
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": spec,
        });
        let pod = Pod::parse(&serde_json::from_value(object).unwrap(), &mut self.shapes).unwrap();
        self.problem.pods.push(Arc::new(Pod {
            first_version: 1 + self.problem.pods.len() as u64,
            ..pod
        }));
        self
    }

    /// Where the pods go, by name of the node; `-` for one that strands.
    fn played(&self, profile: &SchedulerProfile) -> Vec<String> {
        let keys = self.problem.pods.iter().map(|it| it.key.clone());
        let everybody: Vec<PodKey> = keys.collect();
        let solution = Solution {
            existing: vec![PodsOnNode {
                node: self.problem.nodes[0].node_ref.clone(),
                pods: everybody,
            }],
            ..Solution::default()
        };
        let outcome = play(&self.problem, &solution, profile, 1);
        let place = |pod| {
            let node = outcome.on_nodes.get(&pod);
            node.map_or_else(
                || "-".to_owned(),
                |it| self.problem.nodes[*it].node_ref.to_string(),
            )
        };
        (0..self.problem.pods.len()).map(place).collect()
    }

    fn by_default(&self) -> Vec<String> {
        self.played(&SchedulerProfile::default())
    }
}

fn node((name, cpus, gib, zone): (&str, i64, i64, &str)) -> ExistingNode {
    let allocatable = Resources::new()
        .with("cpu", cpus * 1000)
        .with("memory", gib * GIB_MILLIS)
        .with("pods", 110_000);
    ExistingNode {
        labels: BTreeMap::from([(labels::TOPOLOGY_ZONE.to_owned(), zone.to_owned())]),
        ..ExistingNode::empty(name, allocatable)
    }
}

fn two_sizes() -> World {
    // The first pod leaves 75 % of `a` and 87 % of `b`, and so on: three go to the larger node.
    let nodes = [("a", 4, 16, "z1"), ("b", 8, 32, "z1")];
    let world = World::new(&nodes).pod("p1", "1", "4Gi", json!({}));
    world
        .pod("p2", "1", "4Gi", json!({}))
        .pod("p3", "1", "4Gi", json!({}))
}

#[test]
fn least_allocated_goes_where_the_greater_part_is_left() {
    // b: 87, 75; then 62 of b is less than 75 of a.
    assert_eq!(two_sizes().by_default(), ["b", "a", "b"]);
}

#[test]
fn most_allocated_fills_a_node() {
    let profile = SchedulerProfile {
        fit: FitStrategy::MostAllocated,
        ..SchedulerProfile::default()
    };
    assert_eq!(two_sizes().played(&profile), ["a", "a", "a"]);
}

#[test]
fn a_higher_priority_is_tried_first_and_what_fits_nowhere_strands() {
    let world = World::new(&[("a", 2, 8, "z1")])
        .pod("early", "2", "1Gi", json!({}))
        .pod("late", "2", "1Gi", json!({"priority": 10}));
    assert_eq!(world.by_default(), ["-", "a"]);
}

#[test]
fn pods_must_spread_over_zones_one_at_a_time() {
    let spread = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": labels::TOPOLOGY_ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]});
    let nodes = [("a", 32, 128, "z1"), ("b", 2, 8, "z2")];
    let world = (0..4).fold(World::new(&nodes), |world, number| {
        world.pod(&format!("p{number}"), "1500m", "1Gi", spread.clone())
    });
    // `b` has room for one: with two in z1 nobody may go there any more.
    assert_eq!(world.by_default(), ["a", "b", "a", "-"]);
}

#[test]
fn pods_that_keep_apart_and_ports_take_a_node_each() {
    let apart = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": labels::HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}},
    ]}}});
    let port = json!({"containers": [{"name": "c", "image": "x", "ports": [
        {"containerPort": 80, "hostPort": 80},
    ]}]});
    for more in [apart, port] {
        let world = World::new(&[("a", 8, 32, "z1"), ("b", 8, 32, "z1")])
            .pod("p1", "1", "1Gi", more.clone())
            .pod("p2", "1", "1Gi", more.clone())
            .pod("p3", "1", "1Gi", more);
        assert_eq!(world.by_default(), ["a", "b", "-"]);
    }
}

#[test]
fn preferences_weigh_twice_as_much_as_room() {
    let prefers = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [
            {"key": labels::TOPOLOGY_ZONE, "operator": "In", "values": ["z1"]},
        ]}},
    ]}}});
    let nodes = [("a", 2, 8, "z1"), ("b", 64, 256, "z2")];
    let world = World::new(&nodes).pod("p1", "1", "1Gi", prefers);
    assert_eq!(world.by_default(), ["a"]);
}
