//! Spread, affinity, anti-affinity.

use std::collections::BTreeMap;

use apis::labels::{HOSTNAME, TOPOLOGY_ZONE};
use serde_json::json;

use crate::cluster::{Cluster, ZONES, spread, term, zones_of};

const SMALL: (&str, &str) = ("200m", "100Mi");

#[test]
fn hostname_spread_gives_every_pod_its_node() {
    let mut cluster = Cluster::new();
    cluster.pods(
        "a",
        10,
        SMALL,
        json!({"topologySpreadConstraints": [spread(HOSTNAME, 1, "a")]}),
    );
    assert_eq!(cluster.solve().claims.len(), 10);
}

#[test]
fn zonal_spread_levels_zones() {
    let mut cluster = Cluster::new();
    cluster.pods(
        "a",
        4,
        SMALL,
        json!({"topologySpreadConstraints": [spread(TOPOLOGY_ZONE, 1, "a")]}),
    );
    let mut counts: Vec<usize> = zones_of(&cluster.solve()).into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2]);
}

#[test]
fn zonal_spread_counts_only_zones_the_pod_may_use() {
    let mut cluster = Cluster::new();
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": TOPOLOGY_ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}]}]}}});
    cluster.pods(
        "a",
        6,
        SMALL,
        json!({"affinity": affinity, "topologySpreadConstraints": [spread(TOPOLOGY_ZONE, 1, "a")]}),
    );
    let expected: BTreeMap<String, usize> =
        [("zone-a".to_owned(), 3), ("zone-b".to_owned(), 3)].into();
    assert_eq!(zones_of(&cluster.solve()), expected);
}

#[test]
fn zonal_spread_counts_running_pods() {
    let mut cluster = Cluster::new();
    let bound = vec![
        cluster.parse("old-0", "a", SMALL, &json!({})),
        cluster.parse("old-1", "a", SMALL, &json!({})),
    ];
    cluster.node("node-1", "zone-a", bound);
    cluster.pods(
        "a",
        4,
        ("3", "100Mi"),
        json!({"topologySpreadConstraints": [spread(TOPOLOGY_ZONE, 1, "a")]}),
    );
    let solution = cluster.solve();
    let zones = zones_of(&solution);
    assert_eq!(
        (zones.get("zone-b"), zones.get("zone-c")),
        (Some(&2), Some(&2))
    );
}

#[test]
fn too_few_domains_hold_max_skew_each() {
    let mut cluster = Cluster::new();
    let mut constraint = spread(TOPOLOGY_ZONE, 2, "a");
    constraint["minDomains"] = json!(4);
    cluster.pods(
        "a",
        10,
        SMALL,
        json!({"topologySpreadConstraints": [constraint]}),
    );
    let solution = cluster.solve();
    assert_eq!(
        zones_of(&solution).into_values().collect::<Vec<_>>(),
        [2, 2, 2]
    );
    assert_eq!(solution.pod_errors.len(), 4);
}

#[test]
fn schedule_anyway_is_kept_while_it_can_be() {
    let mut cluster = Cluster::new();
    let mut constraint = spread(HOSTNAME, 1, "a");
    constraint["whenUnsatisfiable"] = json!("ScheduleAnyway");
    cluster.pods(
        "a",
        5,
        SMALL,
        json!({"topologySpreadConstraints": [constraint]}),
    );
    assert_eq!(cluster.solve().claims.len(), 5);
    cluster.problem.options.preference_policy = scheduling::problem::PreferencePolicy::Ignore;
    assert_eq!(cluster.solve().claims.len(), 1);
}

#[test]
fn zonal_anti_affinity_takes_one_zone_each() {
    let mut cluster = Cluster::new();
    let anti = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(TOPOLOGY_ZONE, "a")]}});
    cluster.pods("a", 5, SMALL, json!({"affinity": anti}));
    let solution = cluster.solve();
    assert_eq!(zones_of(&solution).len(), ZONES.len());
    assert_eq!(solution.pod_errors.len(), 2);
}

#[test]
fn running_pods_keep_out_those_they_shun() {
    let mut cluster = Cluster::new();
    let anti = json!({"affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term(TOPOLOGY_ZONE, "b")]}}});
    let bound = vec![cluster.parse("a-0", "a", SMALL, &anti)];
    cluster.node("node-1", "zone-a", bound);
    cluster.pods(
        "b",
        3,
        SMALL,
        json!({"topologySpreadConstraints": [spread(TOPOLOGY_ZONE, 3, "b")]}),
    );
    let solution = cluster.solve();
    assert!(solution.existing.is_empty());
    assert_eq!(zones_of(&solution).get("zone-a"), None);
}

#[test]
fn zonal_affinity_gathers_pods_in_one_zone() {
    let mut cluster = Cluster::new();
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(TOPOLOGY_ZONE, "a")]}});
    cluster.pods("a", 40, ("1", "1Gi"), json!({"affinity": affinity}));
    assert_eq!(zones_of(&cluster.solve()).len(), 1);
}

#[test]
fn affinity_follows_pods_of_the_same_pass() {
    let mut cluster = Cluster::new();
    let follow = json!({"affinity": {"podAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term(HOSTNAME, "db")]}}});
    cluster.pods("web", 2, SMALL, follow);
    cluster.pods("db", 1, ("1", "1Gi"), json!({}));
    let solution = cluster.solve();
    assert!(solution.pod_errors.is_empty(), "{:?}", solution.pod_errors);
    assert_eq!(solution.claims.len(), 1);
}

#[test]
fn affinity_to_nobody_fails_with_its_reason() {
    let mut cluster = Cluster::new();
    let follow = json!({"affinity": {"podAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term(TOPOLOGY_ZONE, "ghost")]}}});
    cluster.pods("web", 1, SMALL, follow);
    let solution = cluster.solve();
    let error = solution.pod_errors.values().next().unwrap();
    assert_eq!(error.reason(), "Topology");
    assert!(
        error
            .to_string()
            .contains("unsatisfiable topology constraint for pod affinity"),
        "{error}"
    );
}

#[test]
fn match_label_keys_separate_revisions() {
    let mut cluster = Cluster::new();
    let mut constraint = spread(HOSTNAME, 1, "a");
    constraint["matchLabelKeys"] = json!(["app"]);
    cluster.pods(
        "a",
        3,
        SMALL,
        json!({"topologySpreadConstraints": [constraint]}),
    );
    assert_eq!(cluster.solve().claims.len(), 3);
}
