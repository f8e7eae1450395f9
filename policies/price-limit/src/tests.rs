//! What each limit leaves out.

use super::PriceLimit;
use guest_sdk::testing::{Harness, OfferingRow, RankQuestion, UsedRow};

#[test]
fn each_limit_leaves_out_what_is_above_it() {
    let spot = OfferingRow {
        capacity_type: 1,
        price: 0.08,
        on_demand_price: 0.1,
        ..OfferingRow::default()
    };
    let large = OfferingRow {
        price: 0.4,
        cpu_milli: 8000,
        ..OfferingRow::default()
    };
    let used = |node_pool, nodes| UsedRow {
        node_pool,
        nodes,
        price: 1.0,
        ..UsedRow::default()
    };
    for (config, expected, reason) in [
        ("", &[][..], ""),
        (r#"{"perNode": 0.3}"#, &[1], "0.3 USD an hour"),
        (r#"{"perCpu": 0.045}"#, &[1], "for its CPUs"),
        (
            r#"{"spotOfOnDemand": 0.7}"#,
            &[0],
            "0.7 of the price on demand",
        ),
        (r#"{"spotOfOnDemand": 0.8}"#, &[], ""),
        // Five nodes of one USD run in the pool of the claim, and two in another.
        (
            r#"{"perPool": {"default": 5.2, "other": 0}}"#,
            &[1],
            "the NodePool",
        ),
        (r#"{"perCluster": 7.2}"#, &[1], "the cluster"),
        (r#"{"perCluster": 6}"#, &[0, 1], "the cluster"),
    ] {
        let policy = Harness::<PriceLimit>::new(config).unwrap();
        let ranking = policy.ranking(&RankQuestion {
            offerings: &[spot, large],
            usage: &[used("default", 5), used("other", 2)],
            ..RankQuestion::default()
        });
        assert_eq!(ranking.excluded, expected, "{config}");
        let reasons = ranking.reasons.concat();
        assert!(reasons.contains(reason), "{config}: {reasons}");
    }
}

#[test]
fn a_limit_below_nothing_is_refused() {
    let issues = Harness::<PriceLimit>::new(r#"{"perNode": -1}"#).unwrap_err();
    assert_eq!(issues[0].path, "/perNode");
}
