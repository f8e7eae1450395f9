//! Earlier tiers win, later ones are packed as they are, and what is no tier is refused.

use super::Ordered;
use guest_sdk::testing::{Harness, OfferingRow};

#[test]
fn an_earlier_tier_wins_however_dear_it_is() {
    let row = |instance_type, capacity_type, price| OfferingRow {
        instance_type,
        capacity_type,
        price,
        ..OfferingRow::default()
    };
    let rows = [
        row("m7i.large", 0, 0.1),
        row("m7g.large", 1, 0.9),
        row("c7g.large", 0, 0.3),
        // Of a capacity type that is newer than the policy.
        row("r7g.large", 3, 0.2),
    ];
    for (config, winner) in [
        ("", "m7i.large"),
        (r#"{"tiers": [["m7g", "spot"], ["c7g"]]}"#, "m7g.large"),
        (
            r#"{"tiers": [["m7g", "on-demand"], ["c7g.large"]]}"#,
            "c7g.large",
        ),
        (r#"{"tiers": [["m7g", "m7i", "us-east-1a"]]}"#, "m7i.large"),
        (r#"{"tiers": [["r7g", "on-demand"], ["c7g"]]}"#, "c7g.large"),
        (r#"{"tiers": [["r7g"], ["c7g"]]}"#, "r7g.large"),
    ] {
        let policy = Harness::<Ordered>::new(config).unwrap();
        assert_eq!(policy.cheapest(&rows), winner, "{config}");
    }
}

#[test]
fn within_a_tier_prices_keep_their_proportions() {
    let rows = ["m7i.large", "m7i.xlarge", "m7g.large"].map(|instance_type| OfferingRow {
        instance_type,
        price: if instance_type == "m7i.xlarge" {
            0.2
        } else {
            0.1
        },
        ..OfferingRow::default()
    });
    let policy = Harness::<Ordered>::new(r#"{"tiers": [["m7g"]], "step": 50}"#).unwrap();
    assert_eq!(policy.scores(&rows), [5.0, 10.0, 0.1]);
    let many = vec![r#"["m7g"]"#; 200].join(",");
    let policy = Harness::<Ordered>::new(&format!(r#"{{"tiers": [{many}]}}"#)).unwrap();
    assert!(policy.scores(&rows).iter().all(|it| it.is_finite()));
}

#[test]
fn a_tier_without_words_is_refused() {
    for config in [
        r#"{"tiers": [[]]}"#,
        r#"{"tiers": "m7g"}"#,
        r#"{"tiers": [[1]]}"#,
    ] {
        let issues = Harness::<Ordered>::new(config).unwrap_err();
        assert_eq!(issues[0].path, "/tiers", "{config}");
    }
}
