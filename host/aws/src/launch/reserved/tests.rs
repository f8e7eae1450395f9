//! Which reservations a launch gets: of one kind, the cheapest, and of those in one place the emptiest.

use std::sync::Arc;

use scheduling::instance_type::{InstanceType, Overhead};
use scheduling::ranking::RankedOffering;
use scheduling::requirements::{Operator, Requirement};

use super::*;

/// One reservation, written as a row.
#[derive(Clone, Copy)]
struct ReservedRow {
    instance_type: &'static str,
    id: &'static str,
    zone: &'static str,
    kind: &'static str,
    interruptible: &'static str,
    free: u32,
    price: f64,
    effective_cost: f64,
}

const fn row(id: &'static str, free: u32, price: f64) -> ReservedRow {
    ReservedRow {
        instance_type: "m5.large",
        id,
        zone: "a",
        kind: "default",
        interruptible: "false",
        free,
        price,
        effective_cost: price,
    }
}

fn offering(row: &ReservedRow) -> Offering {
    let told = [
        (labels::TOPOLOGY_ZONE, row.zone),
        (labels::CAPACITY_TYPE, "reserved"),
        (labels::CAPACITY_RESERVATION_ID, row.id),
        (labels::CAPACITY_RESERVATION_TYPE, row.kind),
        (
            labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
            row.interruptible,
        ),
    ];
    let requirement = |(key, value)| Requirement::new(key, Operator::In, [value]);
    Offering {
        reservation_capacity: row.free,
        ..Offering::new(told.into_iter().map(requirement).collect(), row.price)
    }
}

/// The types of the rows, each ranked in the zones of its rows, on demand too.
fn candidates(rows: &[ReservedRow]) -> Vec<LaunchableType> {
    let mut candidates: Vec<LaunchableType> = Vec::new();
    for row in rows {
        let known = candidates
            .iter()
            .position(|it| it.instance_type.name == row.instance_type);
        let at = known.unwrap_or_else(|| {
            let instance_type = InstanceType {
                name: row.instance_type.to_owned(),
                requirements: Requirements::new(),
                offerings: Vec::new(),
                capacity: apis::resources::Resources::new(),
                overhead: Overhead::default(),
                volume_attachment_limits: BTreeMap::new(),
            };
            candidates.push(LaunchableType {
                instance_type: Arc::new(instance_type),
                offerings: Vec::new(),
            });
            candidates.len() - 1
        });
        let candidate = &mut candidates[at];
        let instance_type = Arc::make_mut(&mut candidate.instance_type);
        instance_type.offerings.push(offering(row));
        for capacity_type in [CapacityType::Reserved, CapacityType::OnDemand] {
            candidate.offerings.push(RankedOffering {
                instance_type: row.instance_type.into(),
                zone: row.zone.into(),
                capacity_type,
                price_per_hour: row.price,
                effective_cost_per_hour: row.effective_cost,
            });
        }
    }
    candidates
}

/// Ids of the reservations that a claim of these requirements gets.
fn reserved(rows: &[ReservedRow], requirements: &serde_json::Value) -> Vec<String> {
    let mut claim = NodeClaim::default();
    claim.spec.requirements = serde_json::from_value(requirements.clone()).unwrap();
    let (kept, reservations) = reserve(candidates(rows), &claim);
    for offering in kept.iter().flat_map(|it| &it.offerings) {
        assert_eq!(offering.capacity_type, CapacityType::Reserved);
        assert!(reservations.contains_key(&type_and_zone(offering)));
    }
    assert_eq!(kept.is_empty(), reservations.is_empty());
    reservations.into_values().map(|it| it.id).collect()
}

const fn block(id: &'static str, price: f64) -> ReservedRow {
    ReservedRow {
        kind: "capacity-block",
        ..row(id, 3, price)
    }
}

const fn lent(id: &'static str, price: f64) -> ReservedRow {
    ReservedRow {
        interruptible: "true",
        ..row(id, 3, price)
    }
}

const fn in_zone(zone: &'static str, it: ReservedRow) -> ReservedRow {
    ReservedRow { zone, ..it }
}

#[test]
fn a_launch_gets_in_each_place_the_emptiest_reservation() {
    let of_type = |instance_type, it: ReservedRow| ReservedRow {
        instance_type,
        ..it
    };
    let cases = [
        ("none", vec![], vec![]),
        ("a full one", vec![row("cr-1", 0, 1.0)], vec![]),
        (
            "the emptiest",
            vec![
                row("cr-1", 1, 1.0),
                row("cr-2", 2, 1.0),
                row("cr-3", 2, 1.0),
            ],
            vec!["cr-2"],
        ),
        (
            "one a zone",
            vec![row("cr-1", 1, 1.0), in_zone("b", row("cr-2", 2, 1.0))],
            vec!["cr-1", "cr-2"],
        ),
        (
            "one a type, by name",
            vec![
                row("cr-1", 1, 1.0),
                of_type("c5.large", row("cr-2", 2, 2.0)),
            ],
            vec!["cr-2", "cr-1"],
        ),
        (
            "one block",
            vec![
                block("cr-1", 1.0),
                in_zone("b", block("cr-2", 1.0)),
                of_type("c5.large", block("cr-3", 2.0)),
            ],
            vec!["cr-1"],
        ),
    ];
    for (what, rows, want) in cases {
        assert_eq!(reserved(&rows, &serde_json::json!([])), want, "{what}");
    }
}

#[test]
fn a_launch_gets_reservations_of_the_cheapest_kind() {
    let judged = |effective_cost, it: ReservedRow| ReservedRow {
        effective_cost,
        ..it
    };
    let cases = [
        (
            "by price",
            vec![row("cr-1", 1, 2.0), lent("cr-2", 1.0)],
            vec!["cr-2"],
        ),
        (
            "as the policy judges",
            vec![
                judged(3.0, row("cr-1", 1, 1.0)),
                in_zone("b", judged(2.0, lent("cr-2", 2.0))),
            ],
            vec!["cr-2"],
        ),
        (
            "by price where it judges alike",
            vec![
                judged(2.0, row("cr-1", 1, 2.0)),
                in_zone("b", judged(2.0, lent("cr-2", 1.0))),
            ],
            vec!["cr-2"],
        ),
        (
            "of equally dear ones the first",
            vec![lent("cr-1", 1.0), block("cr-2", 1.0), row("cr-3", 1, 1.0)],
            vec!["cr-3"],
        ),
        (
            "a block before what is lent",
            vec![lent("cr-1", 1.0), block("cr-2", 1.0)],
            vec!["cr-2"],
        ),
    ];
    for (what, rows, want) in cases {
        assert_eq!(reserved(&rows, &serde_json::json!([])), want, "{what}");
    }
}

#[test]
fn only_what_the_claim_allows_is_taken() {
    let rows = [
        row("cr-1", 9, 1.0),
        ReservedRow {
            zone: "b",
            ..row("cr-2", 1, 1.0)
        },
    ];
    let wants = |key: &str, value: &str| serde_json::json!([{"key": key, "operator": "In", "values": [value]}]);
    let cases = [
        (wants(labels::TOPOLOGY_ZONE, "b"), vec!["cr-2"]),
        (wants(labels::CAPACITY_RESERVATION_ID, "cr-1"), vec!["cr-1"]),
        (
            wants(labels::CAPACITY_RESERVATION_TYPE, "capacity-block"),
            vec![],
        ),
        (
            wants(labels::CAPACITY_RESERVATION_INTERRUPTIBLE, "true"),
            vec![],
        ),
    ];
    for (requirements, want) in cases {
        assert_eq!(reserved(&rows, &requirements), want, "{requirements}");
    }
}

#[test]
fn a_zone_that_is_not_ranked_is_left_out() {
    let rows = [row("cr-1", 1, 1.0)];
    let mut candidates = candidates(&rows);
    candidates[0]
        .offerings
        .retain(|it| it.capacity_type == CapacityType::OnDemand);
    let (kept, reservations) = reserve(candidates, &NodeClaim::default());
    assert!(kept.is_empty() && reservations.is_empty());
}
