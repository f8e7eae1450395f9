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
fn families_with_hyphens_are_told_from_zones() {
    let row = |instance_type, zone| OfferingRow {
        instance_type,
        zone,
        ..OfferingRow::default()
    };
    let other = row("a.large", "somewhere");
    for (word, row) in [
        ("u-6tb1", row("u-6tb1.metal", "us-east-1a")),
        ("u7i-12tb", row("u7i-12tb.224xlarge", "us-east-1a")),
        ("mac2-m2", row("mac2-m2.metal", "us-east-1a")),
        ("u-6tb1.metal", row("u-6tb1.metal", "us-east-1a")),
        ("us-east-1a", row("m7i.large", "us-east-1a")),
        ("us-gov-west-1a", row("m7i.large", "us-gov-west-1a")),
        ("us-west-2-lax-1a", row("m7i.large", "us-west-2-lax-1a")),
        (
            "us-east-1-wl1-bos-wlz-1",
            row("m7i.large", "us-east-1-wl1-bos-wlz-1"),
        ),
    ] {
        // Both kinds of words at once, of which the row has both.
        let second = if row.zone == word {
            "m7i"
        } else {
            "us-east-1a"
        };
        let config = format!(r#"{{"tiers": [["{word}", "{second}"]]}}"#);
        let policy = Harness::<Ordered>::new(&config).unwrap();
        let scores = policy.scores(&[other, row]);
        assert!(scores[0] > scores[1], "{config}: {scores:?}");
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
