//! What a policy reads through the views of the SDK: every table by row, and what is worked out of several.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use guest_sdk::testing::{
    ClaimRow, ConsolidationQuestion, ConsolidationTables, Counts, NodeRow, OfferingRow, PoolRow,
    RankQuestion, RankTables, UsedRow, WorkloadRow, activity, civil, context, pool, proposed,
};
use guest_sdk::{CapacityType, MoveKind, NEVER, Pool, Reason, Reasons, Stage};

fn used(node_pool: &'static str, instance_type: &'static str, nodes: u32) -> UsedRow<'static> {
    UsedRow {
        node_pool,
        instance_type,
        nodes,
        ..UsedRow::default()
    }
}

#[test]
fn nodes_are_counted_by_pool_zone_family_and_offering() {
    let elsewhere = UsedRow {
        zone: "us-east-1b",
        capacity_type: 1,
        launching: 2,
        ..used("batch", "m7i.large", 5)
    };
    let question = RankQuestion {
        offerings: &[
            OfferingRow::default(),
            OfferingRow {
                zone: "us-east-1b",
                capacity_type: 1,
                ..OfferingRow::default()
            },
            OfferingRow {
                capacity_type: 1,
                ..OfferingRow::default()
            },
        ],
        usage: &[
            used("web", "m7i.large", 3),
            used("batch", "m7i.large", 4),
            used("web", "m7g.large", 7),
            elsewhere,
        ],
        ..RankQuestion::default()
    };
    let tables = RankTables::of(&question);
    let context = context();
    let call = tables.call(&context);
    let usage = call.usage;
    let sum = |rows: &mut dyn Iterator<Item = u32>| rows.sum::<u32>();
    assert_eq!(sum(&mut usage.of_pool("web").map(|it| it.nodes())), 10);
    assert_eq!(sum(&mut usage.of_family("m7i").map(|it| it.nodes())), 12);
    assert_eq!(sum(&mut usage.of_type("m7g.large").map(|it| it.nodes())), 7);
    assert_eq!(
        sum(&mut usage.in_zone("us-east-1b").map(|it| it.launching())),
        2
    );
    assert_eq!(usage.of_pool("gpu").count(), 0);
    assert_eq!(usage.iter().count(), 4);
    let in_use: Vec<u32> = (0..3).map(|row| call.offering(row).in_use()).collect();
    assert_eq!(in_use, [7, 5, 0]);
}

#[test]
fn a_capacity_type_that_the_sdk_does_not_know_is_none_of_the_others() {
    for (code, capacity_type, word) in [
        (0, CapacityType::OnDemand, "on-demand"),
        (1, CapacityType::Spot, "spot"),
        (2, CapacityType::Reserved, "reserved"),
        (3, CapacityType::Unknown, ""),
        (u8::MAX, CapacityType::Unknown, ""),
    ] {
        let question = RankQuestion {
            offerings: &[OfferingRow {
                capacity_type: code,
                ..OfferingRow::default()
            }],
            usage: &[UsedRow {
                capacity_type: code,
                ..UsedRow::default()
            }],
            ..RankQuestion::default()
        };
        let tables = RankTables::of(&question);
        let context = context();
        let call = tables.call(&context);
        assert_eq!(call.offering(0).capacity_type(), capacity_type, "{code}");
        let used = call.usage.iter().next().unwrap();
        assert_eq!(used.capacity_type(), capacity_type, "{code}");
        assert_eq!(capacity_type.as_str(), word);
    }
}

#[test]
fn a_claim_has_its_labels_addresses_and_pods() {
    let waiting = WorkloadRow {
        of: NEVER,
        owner_name: "waiting",
        labels: &[("app", "shop")],
        disruptions_allowed: 1,
        oldest_wait: 40,
        ..WorkloadRow::default()
    };
    let second = WorkloadRow {
        of: 1,
        owner_name: "second",
        ..WorkloadRow::default()
    };
    let claim = ClaimRow {
        stage: Stage::Launch,
        labels: &[("team", "a")],
        node_pool_labels: &[("tier", "b")],
        free_addresses: &[("us-east-1a", 11)],
        ..ClaimRow::default()
    };
    let question = RankQuestion {
        offerings: &[OfferingRow::default()],
        workloads: &[waiting, second],
        claims: &[claim, claim],
        ..RankQuestion::default()
    };
    let tables = RankTables::of(&question);
    let context = context();
    let call = tables.call(&context);
    let rounds: Vec<_> = call.rounds().collect();
    let names = |at: usize| -> Vec<&str> {
        let own = rounds[at].own_workloads();
        own.map(|it| it.owner_name()).collect()
    };
    assert_eq!(
        (names(0), names(1)),
        (vec!["waiting"], vec!["waiting", "second"])
    );
    let first = rounds[0].own_workloads().next().unwrap();
    assert_eq!(first.label("app"), Some("shop"));
    assert_eq!(first.disruptions_allowed(), Some(1));
    assert_eq!(first.oldest_wait_seconds(), 40);
    let round = rounds[0];
    assert_eq!(round.stage(), Stage::Launch);
    assert_eq!(round.label("team"), Some("a"));
    assert_eq!(round.node_pool_label("tier"), Some("b"));
    assert_eq!(round.free_addresses("us-east-1a"), Some(11));
    assert_eq!(round.free_addresses("us-east-1b"), None);
}

#[test]
fn a_node_knows_its_pool_its_labels_and_its_pods() {
    let node = NodeRow {
        price: 2.0,
        effective_price: Some(1.5),
        labels: &[("rack", "7")],
        drift_reason: "NodePoolDrifted",
        last_pod_event: 30,
        gpus: 2,
        gpus_requested: 1,
        ..NodeRow::default()
    };
    let question = ConsolidationQuestion {
        nodes: &[node, NodeRow::default()],
        pools: &[PoolRow {
            labels: &[("team", "a")],
            recent_day: 3,
            ..PoolRow::default()
        }],
        workloads: &[WorkloadRow {
            of: 1,
            namespace: "shop",
            ..WorkloadRow::default()
        }],
        moves: &[guest_sdk::testing::MoveRow {
            replacement_type: "m7g.large",
            replacement_zone: "us-east-1b",
            replacement_capacity_type: Some(1),
            effective_after: Some(0.25),
            labels: &[("team", "a")],
            ..proposed(MoveKind::Replace, &[0], 2.0, 1.0)
        }],
    };
    let tables = ConsolidationTables::of(&question);
    let context = context();
    let call = tables.call(&context);
    let node = call.node(0);
    assert_eq!((node.price(), node.effective_price()), (2.0, 1.5));
    assert_eq!(node.label("rack"), Some("7"));
    assert_eq!(node.drift_reason(), "NodePoolDrifted");
    assert_eq!(node.last_pod_event_seconds(), Some(30));
    assert_eq!((node.gpus(), node.gpus_requested()), (2, 1));
    let pool = node.pool().unwrap();
    assert_eq!((pool.name(), pool.label("team")), ("default", Some("a")));
    assert_eq!(pool.as_record().recent_day, 3);
    assert_eq!(call.node(0).workloads().count(), 0);
    assert_eq!(call.node(1).workloads().next().unwrap().namespace(), "shop");
    let it = call.proposed(&tables.moves[0]);
    assert_eq!((it.savings(), it.savings_on_the_bill()), (1.75, 1.0));
    assert_eq!(it.replacement_type(), Some("m7g.large"));
    assert_eq!(it.replacement_zone(), Some("us-east-1b"));
    assert_eq!(it.replacement_capacity_type(), Some(CapacityType::Spot));
    assert_eq!(it.label("team"), Some("a"));
}

#[test]
fn civil_time_is_that_of_a_zone_and_calendars_are_those_of_its_day() {
    let mut context = context();
    let mut tokyo = civil("Asia/Tokyo", 21);
    tokyo.calendars = vec!["freeze".to_owned()];
    context.civil.push(tokyo);
    assert_eq!(context.civil_in("UTC").unwrap().hour, 12);
    assert_eq!(
        context.civil_in("Asia/Tokyo").unwrap().minute_of_day(),
        1260
    );
    assert!(context.civil_in("Europe/Berlin").is_none());
    assert!(context.is_in_calendar("freeze") && !context.is_in_calendar("holidays"));
    assert!(!context.civil_in("UTC").unwrap().is_in_calendar("freeze"));
}

#[test]
fn a_pool_tells_what_was_done_for_each_reason() {
    let counts = |disrupting, recent_hour, recent_day| Counts {
        disrupting,
        recent_hour,
        recent_day,
        ..Counts::default()
    };
    let mut web = Pool {
        activity: activity(&[
            (Reason::Drifted, counts(1, 2, 3)),
            (Reason::Unhealthy, counts(4, 5, 6)),
        ]),
        target_age: 60,
        ..pool("web", 20, &[5, 2])
    };
    web.declared[1].reasons = Reasons::DRIFTED;
    assert_eq!(
        (web.disrupting(Reason::Drifted), web.disrupting_total()),
        (1, 5)
    );
    assert_eq!((web.recent_hour(), web.recent_day()), (7, 9));
    assert_eq!(web.activity_of(Reason::Unhealthy).unwrap().recent_day, 6);
    assert_eq!(web.target_age_seconds(), Some(60));
    assert_eq!(pool("web", 20, &[]).target_age_seconds(), None);
    assert_eq!(web.declared_allowed(Reason::Drifted), 2);
    assert_eq!(web.declared_allowed(Reason::Empty), 5);
}
