//! Reasons and nearest misses.

use scheduling::error::PodError;
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
