//! Selectors, taints, ports, volumes, daemons, existing nodes, preferences.

use std::collections::{BTreeMap, BTreeSet};

use apis::CapacityType;
use apis::labels::{ARCH, CAPACITY_TYPE, TOPOLOGY_ZONE};
use scheduling::pod::PodKey;
use scheduling::problem::{PodVolumes, PreferencePolicy};
use scheduling::requirements::{Operator, Requirement};
use serde_json::json;

use crate::cluster::{Cluster, zones_of};

const SMALL: (&str, &str) = ("200m", "100Mi");

#[test]
fn an_on_demand_pod_does_not_make_the_others_on_demand() {
    let mut cluster = Cluster::new();
    cluster.pods("web", 60, ("1", "1Gi"), json!({}));
    cluster.pods(
        "db",
        1,
        ("1", "1Gi"),
        json!({"nodeSelector": {CAPACITY_TYPE: "on-demand"}}),
    );
    let solution = cluster.solve();
    let on_demand: f64 = solution
        .claims
        .iter()
        .filter(|c| c.best.capacity_type == Some(CapacityType::OnDemand))
        .map(|c| c.best.price_per_hour)
        .sum();
    assert!(
        on_demand < 0.09,
        "only one small node is on-demand, not {on_demand}"
    );
}

#[test]
fn the_bill_of_plain_pods_is_near_its_bound() {
    let mut cluster = Cluster::new();
    cluster.pods("a", 300, ("500m", "1000Mi"), json!({}));
    // The cheapest CPU: arm64 on spot at 0.0128 an hour and CPU, less 100m a node.
    let bound = 150.0 * 0.0128;
    let price = cluster.solve().price_per_hour();
    assert!(price < bound * 1.06, "{price} against {bound}");
}

#[test]
fn arch_selectors_hold() {
    let mut cluster = Cluster::new();
    cluster.pods("arm", 4, SMALL, json!({"nodeSelector": {ARCH: "arm64"}}));
    cluster.pods("amd", 4, SMALL, json!({"nodeSelector": {ARCH: "amd64"}}));
    let solution = cluster.solve();
    assert!(solution.pod_errors.is_empty());
    assert_eq!(solution.claims.len(), 2);
}

#[test]
fn taints_need_toleration_and_startup_taints_do_not() {
    let mut cluster = Cluster::without_pools(crate::cluster::types());
    cluster.pool(
        "tainted",
        json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}],
               "startupTaints": [{"key": "init", "effect": "NoSchedule"}]}),
    );
    cluster.pods("stranger", 1, SMALL, json!({}));
    let toleration =
        json!([{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]);
    cluster.pods("member", 1, SMALL, json!({"tolerations": toleration}));
    let solution = cluster.solve();
    assert_eq!(solution.placed(), 1);
    let error = &solution.pod_errors[&PodKey::new("default", "stranger-0")];
    assert_eq!(error.reason(), "Taints");
    assert!(
        error
            .to_string()
            .contains("did not tolerate taint (taint=team=x:NoSchedule)"),
        "{error}"
    );
}

#[test]
fn prefer_no_schedule_is_hard_until_relaxed() {
    let mut cluster = Cluster::without_pools(crate::cluster::types());
    cluster.pool(
        "shy",
        json!({"weight": 50, "taints": [{"key": "shy", "effect": "PreferNoSchedule"}]}),
    );
    cluster.pods("a", 1, SMALL, json!({}));
    assert_eq!(cluster.solve().claims[0].pool, "shy");
    cluster.pool("open", json!({}));
    assert_eq!(
        cluster.solve().claims[0].pool,
        "open",
        "the lighter pool has no taint"
    );
}

#[test]
fn or_terms_are_tried_in_order() {
    let mut cluster = Cluster::new();
    let zone = |zone: &str| json!({"matchExpressions": [{"key": TOPOLOGY_ZONE, "operator": "In", "values": [zone]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [zone("nowhere"), zone("zone-b"), zone("zone-c")]}}});
    cluster.pods("a", 2, SMALL, json!({"affinity": affinity}));
    assert_eq!(
        zones_of(&cluster.solve()).into_iter().collect::<Vec<_>>(),
        [("zone-b".to_owned(), 2)]
    );
}

#[test]
fn preferences_bind_until_they_cannot_be_met() {
    let preferred = |zone: &str| {
        json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [
                {"key": TOPOLOGY_ZONE, "operator": "In", "values": [zone]}]}}]}}})
    };
    let mut cluster = Cluster::new();
    cluster.pods("a", 1, SMALL, preferred("zone-c"));
    cluster.pods("b", 1, SMALL, preferred("nowhere"));
    let solution = cluster.solve();
    assert!(solution.pod_errors.is_empty());
    assert!(zones_of(&solution).contains_key("zone-c"));
    cluster.problem.options.preference_policy = PreferencePolicy::Ignore;
    assert_eq!(cluster.solve().claims.len(), 1);
}

#[test]
fn host_ports_keep_pods_apart() {
    let mut cluster = Cluster::new();
    cluster.pods(
        "a",
        3,
        SMALL,
        json!({"ports": [{"containerPort": 80, "hostPort": 80}]}),
    );
    assert_eq!(cluster.solve().claims.len(), 3);
}

#[test]
fn host_ports_of_sidecars_count() {
    for (restart_policy, expected) in [(json!("Always"), 1), (json!(null), 0)] {
        let port = json!({"containerPort": 80, "hostPort": 80});
        let init = json!({"name": "i", "restartPolicy": restart_policy, "ports": [port]});
        let spec = json!({"initContainers": [init]});
        let pod = Cluster::new().parse("a", "a", SMALL, &spec);
        assert_eq!(pod.shape.host_ports.len(), expected, "{restart_policy}");
    }
}

#[test]
fn a_limit_of_the_whole_pod_is_its_request_where_nothing_else_is() {
    let without = json!([{"name": "c"}]);
    let asking =
        json!([{"name": "c", "resources": {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}}}]);
    let sidecar =
        json!([{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "2"}}}]);
    for (containers, init_containers, requests, cpu, huge) in [
        (&without, json!([]), json!({}), 4000, 4),
        (&without, json!([]), json!({"cpu": "3"}), 3000, 4),
        (&without, sidecar, json!({}), 2000, 4),
        (&asking, json!([]), json!({}), 1000, 4),
        (
            &asking,
            json!([]),
            json!({"cpu": "3", "hugepages-2Mi": "2Mi"}),
            3000,
            2,
        ),
    ] {
        let limits = json!({"cpu": "4", "hugepages-2Mi": "4Mi"});
        let spec = json!({"containers": containers, "initContainers": init_containers,
            "resources": {"requests": requests, "limits": limits}});
        let pod = Cluster::new().parse("a", "a", SMALL, &spec);
        let found = pod.shape.requests.count("hugepages-2Mi") >> 20;
        assert_eq!(
            (pod.shape.requests.cpu_millis(), found),
            (cpu, huge),
            "{spec}"
        );
    }
}

#[test]
fn a_daemons_host_port_rules_its_nodes_out() {
    let mut cluster = Cluster::new();
    cluster.daemon(
        "agent",
        "100m",
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}],
        "resources": {"requests": {"cpu": "100m"}}}], "nodeSelector": {ARCH: "arm64"}}),
    );
    cluster.pods(
        "a",
        1,
        SMALL,
        json!({"ports": [{"containerPort": 80, "hostPort": 80}]}),
    );
    assert!(
        cluster.solve().claims[0]
            .best
            .instance_type
            .starts_with("c5")
    );
}

#[test]
fn daemons_take_their_share_of_each_node() {
    let mut cluster = Cluster::new();
    cluster.daemon("agent", "500m", json!({}));
    cluster.pods("a", 1, ("800m", "100Mi"), json!({}));
    let solution = cluster.solve();
    assert_eq!(solution.claims[0].requests.cpu_millis(), 1300);
    assert!(
        !solution.claims[0]
            .instance_types
            .iter()
            .any(|t| t.ends_with("medium"))
    );
}

#[test]
fn existing_nodes_come_first_initialized_before_others() {
    let mut cluster = Cluster::new();
    cluster.node("a-new", "zone-a", Vec::new());
    cluster.edit_node(0, |node| node.is_initialized = false);
    cluster.node("b-ready", "zone-b", Vec::new());
    cluster.pods("a", 5, ("1", "1Gi"), json!({}));
    let solution = cluster.solve();
    assert!(solution.claims.is_empty());
    let counts: Vec<(&str, usize)> = solution
        .existing
        .iter()
        .map(|it| (it.node.name(), it.pods.len()))
        .collect();
    assert_eq!(counts, [("b-ready", 4), ("a-new", 1)]);
}

#[test]
fn candidates_do_not_go_to_settling_nodes() {
    let mut cluster = Cluster::new();
    cluster.node("young", "zone-a", Vec::new());
    cluster.edit_node(0, |node| node.is_within_consolidate_after = true);
    cluster.pods("a", 1, SMALL, json!({}));
    assert_eq!(cluster.solve().existing.len(), 1);
    cluster.problem.candidates = BTreeSet::from([PodKey::new("default", "a-0")]);
    assert!(cluster.solve().existing.is_empty());
}

#[test]
fn volumes_bind_the_node_to_their_zone() {
    let mut cluster = Cluster::new();
    cluster.pods("a", 1, SMALL, json!({}));
    let zone = |zone: &str| {
        std::iter::once(Requirement::new(TOPOLOGY_ZONE, Operator::In, [zone])).collect()
    };
    let volumes = PodVolumes {
        alternatives: vec![zone("nowhere"), zone("zone-c")],
        ..PodVolumes::default()
    };
    cluster
        .problem
        .volumes
        .insert(PodKey::new("default", "a-0"), volumes);
    assert_eq!(
        zones_of(&cluster.solve()).keys().collect::<Vec<_>>(),
        ["zone-c"]
    );
}

#[test]
fn volume_limits_of_a_node_hold() {
    let mut cluster = Cluster::new();
    cluster.node("node-1", "zone-a", Vec::new());
    cluster.edit_node(0, |node| {
        node.volume_limits = BTreeMap::from([("ebs".to_owned(), 2)]);
    });
    cluster.pods("a", 4, SMALL, json!({}));
    for index in 0..4 {
        let attachments =
            BTreeMap::from([("ebs".to_owned(), BTreeSet::from([format!("vol-{index}")]))]);
        let volumes = PodVolumes {
            attachments,
            ..PodVolumes::default()
        };
        cluster
            .problem
            .volumes
            .insert(PodKey::new("default", &format!("a-{index}")), volumes);
    }
    assert_eq!(cluster.solve().existing[0].pods.len(), 2);
}
