//! Weights, limits, minValues, reservations, the claim object.

use apis::CapacityType;
use apis::labels::{
    ARCH, CAPACITY_RESERVATION_ID, CAPACITY_TYPE, INSTANCE_FAMILY, INSTANCE_TYPE, TOPOLOGY_ZONE,
};
use scheduling::problem::{MinValuesPolicy, Packing};
use scheduling::requirements::{Operator, Requirement};
use serde_json::json;

use crate::cluster::{Cluster, instance_type, offering, types};

const ONE_CPU: (&str, &str) = ("1", "1Gi");

#[test]
fn heavier_pools_go_first_and_equal_ones_by_name_descending() {
    let mut cluster = Cluster::new();
    cluster.pool("other", json!({}));
    cluster.pods("a", 1, ONE_CPU, json!({}));
    assert_eq!(cluster.solve().claims[0].pool, "other");
    cluster.pool("heavy", json!({"weight": 10}));
    assert_eq!(cluster.solve().claims[0].pool, "heavy");
}

#[test]
fn limits_spill_over_and_are_never_overrun() {
    let mut cluster = Cluster::without_pools(types());
    cluster.pool("small", json!({"weight": 10, "limits": {"cpu": "8"}}));
    cluster.pool("large", json!({}));
    cluster.pods("a", 40, ONE_CPU, json!({}));
    let solution = cluster.solve();
    assert_eq!(solution.placed(), 40);
    assert!(solution.claims.iter().any(|c| c.pool == "small"));
    assert!(solution.claims.iter().any(|c| c.pool == "large"));
}

#[test]
fn the_node_limit_holds_within_a_pass() {
    for packing in [Packing::Cost, Packing::Karpenter] {
        let mut cluster = Cluster::without_pools(types());
        cluster.problem.options.packing = packing;
        cluster.pool("default", json!({"limits": {"nodes": "2"}}));
        cluster.pods(
            "a",
            5,
            ONE_CPU,
            json!({"ports": [{"containerPort": 1, "hostPort": 1}]}),
        );
        let solution = cluster.solve();
        assert_eq!(
            (solution.claims.len(), solution.pod_errors.len()),
            (2, 3),
            "{packing:?}"
        );
        let error = solution.pod_errors.values().next().unwrap();
        assert_eq!(error.reason(), "Limits");
    }
}

#[test]
fn min_values_are_kept_or_relaxed() {
    let mut cluster = Cluster::without_pools(types());
    cluster.pool("default", json!({"requirements": [
        {"key": INSTANCE_FAMILY, "operator": "In", "values": ["c5", "r5", "c6g"], "minValues": 3}]}));
    cluster.pods("a", 20, ONE_CPU, json!({}));
    let solution = cluster.solve();
    assert_eq!(solution.placed(), 20);
    assert!(solution.claims.iter().all(|c| !c.are_min_values_relaxed));
    cluster.pods(
        "amd",
        1,
        ONE_CPU,
        json!({"nodeSelector": {"kubernetes.io/arch": "amd64"}}),
    );
    let solution = cluster.solve();
    assert_eq!(
        solution.pod_errors.values().next().unwrap().reason(),
        "MinValues"
    );
    cluster.problem.options.min_values_policy = MinValuesPolicy::BestEffort;
    let solution = cluster.solve();
    assert!(solution.pod_errors.is_empty());
    assert!(solution.claims.iter().any(|c| c.are_min_values_relaxed));
}

#[test]
fn reserved_slots_are_used_first_and_not_twice() {
    let mut all = types();
    let mut reserved = instance_type("c5.large", "amd64", (2, 2), 0.08);
    let mut slot = offering("zone-a", "reserved", 0.000_01);
    slot.requirements.add(Requirement::new(
        CAPACITY_RESERVATION_ID,
        Operator::In,
        ["cr-1"],
    ));
    slot.reservation_capacity = 2;
    reserved.offerings.push(slot);
    all.retain(|t| t.name != "c5.large");
    all.push(reserved);
    let mut cluster = Cluster::without_pools(all);
    cluster.pool("default", json!({"requirements": []}));
    cluster.pods(
        "a",
        8,
        ONE_CPU,
        json!({"ports": [{"containerPort": 1, "hostPort": 1}]}),
    );
    let solution = cluster.solve();
    let held: Vec<_> = solution
        .claims
        .iter()
        .filter(|c| c.best.capacity_type == Some(CapacityType::Reserved))
        .collect();
    assert_eq!(held.len(), 2);
    for claim in held {
        let requirements = &claim.requirements;
        assert!(requirements.get(CAPACITY_RESERVATION_ID).has("cr-1"));
        assert_eq!(
            requirements.get(CAPACITY_TYPE).values().collect::<Vec<_>>(),
            ["reserved"]
        );
        assert_eq!(claim.instance_types, ["c5.large"]);
    }
}

#[test]
fn the_claim_object_is_complete() {
    let mut cluster = Cluster::without_pools(types());
    cluster.pool(
        "web",
        json!({
        "labels": {"team": "a"},
        "requirements": [
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["1"]},
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["33"]}],
        "startupTaints": [{"key": "init", "effect": "NoSchedule"}]}),
    );
    cluster.pods(
        "a",
        2,
        ONE_CPU,
        json!({"nodeSelector": {TOPOLOGY_ZONE: "zone-b"}}),
    );
    let solution = cluster.solve();
    let claim = solution.claims[0].to_node_claim(&cluster.problem.pools[0].node_pool, 1);
    let json = serde_json::to_value(&claim).unwrap();
    assert_eq!(json["metadata"]["generateName"], "web-");
    assert_eq!(json["metadata"]["labels"]["team"], "a");
    assert_eq!(json["metadata"]["labels"]["karpenter.sh/nodepool"], "web");
    assert_eq!(
        json["metadata"]["labels"]["karpenter.k8s.aws/ec2nodeclass"],
        "default"
    );
    assert_eq!(
        json["metadata"]["ownerReferences"][0]["blockOwnerDeletion"],
        true
    );
    assert_eq!(
        json["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"],
        "v3"
    );
    assert_eq!(json["spec"]["resources"]["requests"]["cpu"], "2");
    let requirements = json["spec"]["requirements"].as_array().unwrap();
    let of_key = |key: &str| {
        requirements
            .iter()
            .filter(|r| r["key"] == key)
            .collect::<Vec<_>>()
    };
    let cpu = of_key("karpenter.k8s.aws/instance-cpu");
    assert_eq!(
        (cpu[0]["operator"].as_str(), cpu[0]["values"][0].as_str()),
        (Some("Gte"), Some("2"))
    );
    assert_eq!(
        (cpu[1]["operator"].as_str(), cpu[1]["values"][0].as_str()),
        (Some("Lte"), Some("32"))
    );
    assert_eq!(of_key(TOPOLOGY_ZONE)[0]["values"], json!(["zone-b"]));
    assert_eq!(
        of_key(INSTANCE_TYPE)[0]["values"][0],
        solution.claims[0].best.instance_type
    );
    assert_eq!(
        of_key(CAPACITY_TYPE)[0]["values"],
        json!(["on-demand", "spot"])
    );
    assert!(of_key("karpenter.sh/registered").is_empty());
}

#[test]
fn karpenters_packing_makes_few_nodes() {
    let mut cluster = Cluster::new();
    cluster.problem.options.packing = Packing::Karpenter;
    cluster.pods("a", 60, ONE_CPU, json!({}));
    let solution = cluster.solve();
    assert_eq!(solution.placed(), 60);
    assert_eq!(solution.claims.len(), 2);
}

/// A second node of the lighter pool would be cheaper, if half of its pods were brought there to fill both.
#[test]
fn pods_of_a_heavier_pool_only_fill_what_is_left_on_nodes_of_a_lighter_one() {
    let amd = instance_type("m6a.xlarge", "amd64", (4, 4), 0.0524);
    let arm = instance_type("a1.xlarge", "arm64", (4, 2), 0.0362);
    let mut cluster = Cluster::without_pools(vec![amd, arm]);
    let of_arch = |arch: &str, weight: i32| {
        let requirements = json!([
            {"key": ARCH, "operator": "In", "values": [arch]},
            {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
        ]);
        json!({"weight": weight, "requirements": requirements})
    };
    cluster.pool("usual", of_arch("amd64", 50));
    cluster.pool("arm", of_arch("arm64", 1));
    let cpu = ("1", "0");
    cluster.pods("any", 3, cpu, json!({}));
    let on_arm = json!({"nodeSelector": {(ARCH): "arm64"}});
    cluster.pods("arm", 2, cpu, on_arm);
    let claims = cluster.solve().claims;
    let pools: Vec<&str> = claims.iter().map(|it| it.pool.as_str()).collect();
    assert_eq!(pools.iter().filter(|it| **it == "arm").count(), 1);
    assert_eq!(pools.iter().filter(|it| **it == "usual").count(), 1);
}

/// A tiny node and a huge one give more of one resource for the money than any other, and no pod can make use of that.
#[test]
fn offerings_that_pods_cannot_use_tell_nothing_about_what_pods_are_worth() {
    let types = [
        ("t3a.nano", (2, 0), 0.0047),
        ("t3a.medium", (2, 2), 0.0376),
        ("t3a.xlarge", (4, 4), 0.1504),
        ("r5a.xlarge", (4, 8), 0.226),
        ("r5a.2xlarge", (8, 8), 0.452),
        ("x2idn.32xlarge", (128, 16), 13.338),
    ];
    let types = types.map(|(name, shape, price)| instance_type(name, "amd64", shape, price));
    let mut cluster = Cluster::without_pools(types.to_vec());
    let on_demand = json!([{"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}]);
    cluster.pool("default", json!({ "requirements": on_demand }));
    cluster.pods("web", 40, ("500m", "1Gi"), json!({}));
    cluster.pods("api", 20, ("1", "3Gi"), json!({}));
    cluster.pods("cache", 10, ("250m", "6Gi"), json!({}));
    let bill = cluster.solve().price_per_hour();
    // Nodes bought in parts would cost 1.612; by the two at the ends it would be 2.19.
    assert!(bill < 1.66, "{bill}");
}
