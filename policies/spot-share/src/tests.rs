//! NodePools with less than their share of spot, with as much, and with more.

use super::SpotShare;
use guest_sdk::testing::{ClaimRow, Harness, OfferingRow, RankQuestion, UsedRow};

fn offering(instance_type: &'static str, capacity_type: u8) -> OfferingRow<'static> {
    OfferingRow {
        instance_type,
        capacity_type,
        price: if capacity_type == 1 { 0.03 } else { 0.1 },
        ..OfferingRow::default()
    }
}

#[test]
fn spot_is_bought_until_the_pool_has_its_share() {
    let config = r#"{"share": 0.5, "pools": {"batch": 1, "web": 0}}"#;
    for (pool, on_demand, spot, expected) in [
        ("other", 0, 0, "m7i.large"),
        ("other", 1, 0, "m7i.large"),
        ("other", 2, 0, "m7a.large"),
        ("other", 1, 1, "m7i.large"),
        ("other", 6, 4, "m7a.large"),
        ("other", 5, 5, "m7i.large"),
        ("web", 9, 0, "m7i.large"),
        ("batch", 0, 0, "m7a.large"),
        ("batch", 0, 9, "m7a.large"),
    ] {
        let offerings = [offering("m7i.large", 0), offering("m7a.large", 1)];
        let used = |node_pool, capacity_type, nodes| UsedRow {
            node_pool,
            capacity_type,
            nodes,
            ..UsedRow::default()
        };
        let policy = Harness::<SpotShare>::new(config).unwrap();
        let row = policy.first_choice(&RankQuestion {
            offerings: &offerings,
            // Those of another NodePool do not count.
            usage: &[
                used(pool, 0, on_demand),
                used(pool, 1, spot),
                used("x", 1, 99),
            ],
            claims: &[ClaimRow {
                node_pool: pool,
                ..ClaimRow::default()
            }],
            ..RankQuestion::default()
        });
        let found = row.and_then(|row| offerings.get(row as usize));
        assert_eq!(
            found.unwrap().instance_type,
            expected,
            "{pool} {on_demand} {spot}"
        );
    }
}

#[test]
fn spot_is_better_than_nothing() {
    let policy = Harness::<SpotShare>::new(r#"{"share": 0}"#).unwrap();
    // The slots of a reservation may be few, and do not stand for what is bought on demand.
    for offerings in [
        vec![offering("m7a.large", 1)],
        vec![offering("m7i.large", 2), offering("m7a.large", 1)],
    ] {
        let ranking = policy.rank(&offerings);
        assert!(ranking.excluded.is_empty(), "{offerings:?}");
    }
}
