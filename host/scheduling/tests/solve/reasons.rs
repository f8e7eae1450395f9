//! Reasons and nearest misses.

use apis::{CapacityType, labels};
use scheduling::error::PodError;
use scheduling::instance_type::{Availability, Offering};
use scheduling::ranking::{PriceRank, RankAnswer, RankHook, RankRound};
use scheduling::{Interrupt, Prepared, TableCache, solve_prepared};
use serde_json::{Value, json};

use crate::cluster::{Cluster, types};

/// Solves one pod that must fail.
fn failure(cpu: &str, spec: Value) -> PodError {
    let mut cluster = Cluster::new();
    cluster.pods("a", 1, (cpu, "1Gi"), spec);
    let solution = cluster.solve();
    solution
        .pod_errors
        .into_values()
        .next()
        .expect("the pod fails")
}

#[test]
fn reasons_name_the_rule_and_the_nearest_miss() {
    let cases = [
        (
            "64",
            json!({}),
            "Resources",
            "c6g.8xlarge is the closest, short of cpu by 32100m",
        ),
        (
            "1",
            json!({"nodeSelector": {"team": "x"}}),
            "Requirements",
            "without the requirement team",
        ),
    ];
    for (cpu, spec, reason, miss) in cases {
        let error = failure(cpu, spec);
        assert_eq!(error.reason(), reason, "{error}");
        let nearest = error
            .nearest_miss()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(nearest.contains(miss), "{nearest}");
    }
}

#[test]
fn dynamic_resources_are_refused() {
    let error = failure("1", json!({"resourceClaims": [{"name": "gpu"}]}));
    assert_eq!(error, PodError::ResourceClaims);
}

#[test]
fn no_pool_is_a_reason() {
    let mut cluster = Cluster::without_pools(types());
    cluster.pods("a", 1, ("1", "1Gi"), json!({}));
    assert_eq!(
        cluster.solve().pod_errors.into_values().next(),
        Some(PodError::NoPools)
    );
}

#[test]
fn a_raised_limit_is_the_nearest_miss() {
    let mut cluster = Cluster::without_pools(types());
    cluster.pool("default", json!({"limits": {"cpu": "1"}}));
    cluster.pods("a", 1, ("1500m", "1Gi"), json!({}));
    let solution = cluster.solve();
    let error = solution.pod_errors.values().next().unwrap();
    assert_eq!(
        error.nearest_miss().unwrap().to_string(),
        "it would fit if the limit on cpu were 1 higher"
    );
}

#[test]
fn what_is_sold_out_is_the_nearest_miss_where_it_would_do() {
    let of_zone_a: fn(&Offering) -> bool = |it| it.zone() == Some("zone-a");
    let on_demand: fn(&Offering) -> bool = |it| it.capacity_type() == Some(CapacityType::OnDemand);
    let in_a = json!({(labels::TOPOLOGY_ZONE): "zone-a"});
    let asks_on_demand = json!({(labels::CAPACITY_TYPE): "on-demand"});
    // What is sold out, what the pod asks for, and what is told.
    let cases = [
        (
            of_zone_a,
            in_a,
            "1",
            "c6g.large in zone-a (spot) would fit but is unavailable",
        ),
        (
            on_demand,
            asks_on_demand,
            "3",
            "c6g.xlarge in zone-a (on-demand) would fit but is unavailable",
        ),
        // There is more that keeps it away.
        (
            of_zone_a,
            json!({}),
            "64",
            "c6g.8xlarge is the closest, short of cpu by 32100m",
        ),
    ];
    for (is_sold_out, node_selector, cpu, expected) in cases {
        let mut types = types();
        let offerings = types.iter_mut().flat_map(|it| &mut it.offerings);
        for offering in offerings.filter(|it| is_sold_out(it)) {
            offering.availability = Availability::Unavailable;
        }
        let mut cluster = Cluster::without_pools(types);
        cluster.pool("default", json!({}));
        let spec = json!({"nodeSelector": node_selector});
        cluster.pods("a", 1, (cpu, "1Gi"), spec);
        let solution = cluster.solve();
        let error = solution.pod_errors.values().next().unwrap();
        let nearest = error.nearest_miss().map(ToString::to_string);
        assert_eq!(nearest.as_deref(), Some(expected), "{node_selector} {cpu}");
    }
}

#[test]
fn a_toleration_is_the_nearest_miss_only_where_nothing_else_stands_in_the_way() {
    for (cpu, expected) in [
        ("1", Some("it would fit if it tolerated team=a:NoSchedule")),
        ("64", None),
    ] {
        let mut cluster = Cluster::without_pools(types());
        let taint = json!({"key": "team", "value": "a", "effect": "NoSchedule"});
        cluster.pool("default", json!({"taints": [taint]}));
        cluster.pods("a", 1, (cpu, "1Gi"), json!({}));
        let solution = cluster.solve();
        let error = solution.pod_errors.values().next().unwrap();
        assert_eq!(error.reason(), "Taints");
        let nearest = error.nearest_miss().map(ToString::to_string);
        assert_eq!(nearest.as_deref(), expected);
    }
}

/// Rules everything out for a reason.
struct Closed(&'static str);

impl RankHook for Closed {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let mut answer = PriceRank.rank(round);
        for (claim, ranking) in round.claims.iter().zip(&mut answer.rankings) {
            let positions = (0..).zip(&claim.candidates);
            ranking.excluded = positions.map(|(at, _)| (at, self.0.to_owned())).collect();
        }
        answer
    }
}

#[test]
fn what_the_policy_ruled_out_is_told_with_its_reason_of_this_round() {
    let mut cluster = Cluster::new();
    cluster.pods("a", 1, ("1", "1Gi"), json!({}));
    let cache = TableCache::default();
    // The rows of the second round are those of the first; its reason is its own.
    for reason in ["closed today", "closed for good"] {
        let prepared = Prepared::new(&cluster.problem, &Closed(reason), &cache);
        let solution = solve_prepared(&cluster.problem, &prepared, &Interrupt::never());
        let error = solution.pod_errors.values().next().unwrap();
        assert_eq!(error.reason(), "Policy");
        let offerings: usize = types().iter().map(|it| it.offerings.len()).sum();
        let expected = format!(
            "ranking policy excluded every offering left ({offerings}): {reason} ({offerings})"
        );
        let told = error.to_string();
        assert!(told.contains(&expected), "{told}");
    }
}
