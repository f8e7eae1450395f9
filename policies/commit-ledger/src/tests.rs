//! Commitments with room and without.

use super::CommitLedger;
use guest_sdk::testing::{Harness, OfferingRow, RankQuestion, UsedRow};

#[test]
fn the_discount_holds_until_it_is_used_up() {
    let config = r#"{"commitments": [{"family": "m7g", "nodes": 2, "discount": 0.4}]}"#;
    for (in_use, capacity_type, winner) in [
        (0, 0, "m7g.large"),
        (1, 0, "m7g.large"),
        (2, 0, "m7i.large"),
        (0, 1, "m7i.large"),
        // Of a capacity type that is newer than the policy.
        (0, 3, "m7i.large"),
    ] {
        let committed = OfferingRow {
            instance_type: "m7g.large",
            price: 0.15,
            capacity_type,
            ..OfferingRow::default()
        };
        let offerings = [OfferingRow::default(), committed];
        // Of another size and not to be bought, and spot, which no commitment is for.
        let used = |capacity_type, nodes| UsedRow {
            instance_type: "m7g.8xlarge",
            capacity_type,
            nodes,
            ..UsedRow::default()
        };
        let policy = Harness::<CommitLedger>::new(config).unwrap();
        let row = policy.first_choice(&RankQuestion {
            offerings: &offerings,
            usage: &[used(0, in_use), used(1, 9)],
            ..RankQuestion::default()
        });
        let found = row.and_then(|row| offerings.get(row as usize));
        assert_eq!(found.unwrap().instance_type, winner, "{in_use}");
    }
}

#[test]
fn usd_an_hour_are_committed_to_all_families() {
    let config = r#"{"commitments": [{"usdPerHour": 5, "discount": 0.5}]}"#;
    for (nodes, expected) in [(4, 0.05), (5, 0.1)] {
        let policy = Harness::<CommitLedger>::new(config).unwrap();
        let ranking = policy.ranking(&RankQuestion {
            offerings: &[OfferingRow::default()],
            usage: &[UsedRow {
                instance_type: "r7a.4xlarge",
                nodes,
                price: 1.0,
                ..UsedRow::default()
            }],
            ..RankQuestion::default()
        });
        assert_eq!(ranking.scores, [expected], "{nodes}");
    }
}

#[test]
fn a_commitment_says_how_much_of_what() {
    for entry in [
        "{}",
        r#"{"nodes": 1, "usdPerHour": 1, "discount": 0.1}"#,
        r#"{"nodes": 1, "discount": 1.1}"#,
        r#"{"nodes": 1, "discount": 0.1, "family": 7}"#,
    ] {
        let config = [r#"{"commitments": ["#, entry, "]}"].concat();
        assert!(Harness::<CommitLedger>::new(&config).is_err(), "{entry}");
    }
}
