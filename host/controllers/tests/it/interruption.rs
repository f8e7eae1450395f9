//! Notices of the cloud, and what the controllers make of them.

use api_server::Resource;
use cloudprovider::{Impairment, ImpairmentKind, InstanceLife, InterruptionKind as Kind, Launched};
use serde_json::json;

use crate::cloud::notice;
use crate::world::World;

/// A node on demand.
async fn with_a_node() -> (World, String) {
    with_a_node_of("on-demand").await
}

async fn with_a_node_of(capacity_type: &str) -> (World, String) {
    let mut world = World::new();
    world.buy_only(capacity_type);
    world.pass(5).await;
    world.keep(2, "900m");
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 2);
    let instance = world.cloud.instance_ids()[0].clone();
    (world, instance)
}

#[tokio::test(start_paused = true)]
async fn a_spot_interruption_cordons_within_seconds_and_replaces_the_node() {
    let (mut world, instance) = with_a_node_of("spot").await;
    let node = world.names(&Resource::NODES)[0].clone();
    world
        .cloud
        .send(notice(Kind::SpotInterrupted, &instance, world.clock.now()));
    world.settle(5).await;
    assert!(
        world.is_tainted(&node, "karpenter.sh/disrupted"),
        "cordoned within five seconds"
    );
    world.settle(180).await;
    assert_eq!(world.bound_pods(), 2);
    assert_eq!(world.cloud.running(), 1);
    assert_eq!(world.cloud.with(|it| it.launches), 2);
    assert_eq!(world.cloud.queued(), 0);
    assert_eq!(
        world.cloud.with(|it| it.noted.clone()),
        [Kind::SpotInterrupted]
    );
    for kind in ["NodeClaim", "Node"] {
        let reasons = world.event_reasons(kind);
        for reason in ["SpotInterrupted", "TerminatingOnInterruption"] {
            assert!(reasons.contains(&reason.to_owned()), "{kind} {reason}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_that_ends_an_instance_ends_its_claim_and_no_other_does() {
    for (kind, ends) in [
        (Kind::ScheduledChange, true),
        (Kind::InstanceStopped, true),
        (Kind::RebalanceRecommendation, false),
        (Kind::NoOp, false),
    ] {
        let (mut world, instance) = with_a_node().await;
        let claims = world.names(&Resource::NODE_CLAIMS);
        world.cloud.with(|state| {
            if kind == Kind::InstanceStopped {
                for it in state.instances.values_mut() {
                    it.life = InstanceLife::Stopped;
                }
            }
            if kind == Kind::ScheduledChange {
                state.impairments = vec![planned(&instance, world.clock.now())];
            }
        });
        world.cloud.send(notice(kind, &instance, world.clock.now()));
        world.settle(150).await;
        let stays = world.names(&Resource::NODE_CLAIMS) == claims;
        assert_eq!(stays, !ends, "{kind:?}");
        assert_eq!(world.cloud.queued(), 0, "{kind:?}");
        assert_eq!(world.bound_pods(), 2, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_notice_many_times_does_no_more_than_once() {
    let (mut world, instance) = with_a_node_of("spot").await;
    for _ in 0..50 {
        world
            .cloud
            .send(notice(Kind::SpotInterrupted, &instance, world.clock.now()));
    }
    world.settle(240).await;
    assert_eq!(world.cloud.with(|it| it.launches), 2);
    assert_eq!(world.cloud.queued(), 0);
    assert_eq!(world.cloud.with(|it| it.deleted), 50);
}

#[tokio::test(start_paused = true)]
async fn notices_about_strangers_and_unreadable_ones_leave_the_queue_and_nothing_else() {
    let (mut world, _) = with_a_node().await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    for number in 0..200 {
        let mut foreign = notice(
            Kind::SpotInterrupted,
            &format!("i-9{number}"),
            world.clock.now(),
        );
        if number % 2 == 0 {
            (foreign.kind, foreign.fault) = (Kind::NoOp, Some("not JSON".to_owned()));
        }
        world.cloud.send(foreign);
    }
    world.settle(60).await;
    assert_eq!(world.cloud.queued(), 0);
    assert_eq!(world.names(&Resource::NODE_CLAIMS), claims);
    assert_eq!(world.cloud.with(|it| it.launches), 1);
}

/// Something that the cloud has planned for an instance.
fn planned(instance: &str, since: jiff::Timestamp) -> Impairment {
    Impairment {
        instance_id: instance.to_owned(),
        kind: ImpairmentKind::EventStatus,
        since,
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_a_time_to_come_that_is_not_so_is_dropped() {
    let (mut world, instance) = with_a_node().await;
    let in_a_year = world.clock.now() + jiff::SignedDuration::from_hours(24 * 365);
    let forged = notice(Kind::InstanceTerminated, &instance, in_a_year);
    world.cloud.send(forged);
    world.settle(60).await;
    assert_eq!(world.cloud.queued(), 0);
    assert_eq!(world.cloud.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_old_notice_whose_claim_could_not_be_deleted_stays_until_it_is() {
    let (mut world, instance) = with_a_node_of("spot").await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    let five_minutes_ago = world.clock.now() - jiff::SignedDuration::from_mins(5);
    world.process.writes_fail("/nodeclaims/");
    world
        .cloud
        .send(notice(Kind::SpotInterrupted, &instance, five_minutes_ago));
    world.settle(10).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), claims);
    assert_eq!(world.cloud.queued(), 1, "what it asks for is still to do");
    world.process.writes_succeed();
    world.settle(240).await;
    assert_eq!(world.cloud.queued(), 0);
    assert_ne!(world.names(&Resource::NODE_CLAIMS), claims);
    assert_eq!(world.bound_pods(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_forged_end_of_a_running_instance_is_not_believed() {
    for kind in [
        Kind::InstanceTerminated,
        Kind::InstanceStopped,
        Kind::ScheduledChange,
        // It is on demand, and not in a reservation.
        Kind::SpotInterrupted,
        Kind::CapacityReservationInterrupted,
    ] {
        let (mut world, instance) = with_a_node().await;
        let claims = world.names(&Resource::NODE_CLAIMS);
        world.cloud.send(notice(kind, &instance, world.clock.now()));
        world.settle(200).await;
        assert_eq!(world.names(&Resource::NODE_CLAIMS), claims, "{kind:?}");
        assert_eq!(world.cloud.queued(), 0, "it is dropped after a while");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_really_ended_is_replaced_at_once() {
    let (mut world, instance) = with_a_node().await;
    world.cloud.with(|state| state.instances.clear());
    world.cloud.send(notice(
        Kind::InstanceTerminated,
        &instance,
        world.clock.now(),
    ));
    let node = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&node, "Ready", "Unknown");
    world.settle(120).await;
    assert_eq!(world.cloud.with(|it| it.launches), 2);
    assert_eq!(world.cloud.running(), 1);
    assert_eq!(world.bound_pods(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_instance_is_said_to_have_ended_goes_without_waiting_for_the_next_poll() {
    for (is_told, stays) in [(false, true), (true, false)] {
        let (world, instance) = with_a_node().await;
        let node = world.names(&Resource::NODES)[0].clone();
        world.delete(&Resource::NODES, &node);
        let is_ending = |it: &Launched| it.life == InstanceLife::Ends;
        for _ in 0..30 {
            if world.cloud.with(|it| it.instances.values().any(is_ending)) {
                break;
            }
            world.pass(1).await;
        }
        if is_told {
            let ended = notice(Kind::InstanceTerminated, &instance, world.clock.now());
            world.cloud.send(ended);
        }
        world.pass(2).await;
        let is_there = world.names(&Resource::NODES).contains(&node);
        assert_eq!(is_there, stays, "told: {is_told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_comes_before_the_claim_knows_its_instance_waits_for_it() {
    let mut world = World::new();
    world.buy_only("spot");
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    // The first instance will have this id; its launch takes two seconds.
    world.pass(3).await;
    world
        .cloud
        .send(notice(Kind::SpotInterrupted, "i-0001", world.clock.now()));
    world.keep(1, "900m");
    world.settle(240).await;
    assert!(world.cloud.with(|it| it.launches) >= 2, "it was heard");
    assert_eq!(world.cloud.queued(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_the_cloud_finds_sick_goes_with_its_pods_and_one_with_an_event_drains() {
    for (kind, category, is_forced) in [
        (ImpairmentKind::InstanceStatus, "InstanceStatus", true),
        (ImpairmentKind::SystemStatus, "SystemStatus", true),
        (ImpairmentKind::EventStatus, "EventStatus", false),
    ] {
        let (mut world, instance) = with_a_node().await;
        let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
        // Nothing may be evicted, so that only force ends the node.
        let pdb = json!({
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {}},
        });
        let pdbs = &Resource::POD_DISRUPTION_BUDGETS;
        world.api.create(pdbs, "default", pdb).unwrap();
        let impaired = |id: &str, since| Impairment {
            instance_id: id.to_owned(),
            kind,
            since,
        };
        let now = world.clock.now();
        world.cloud.with(|it| {
            it.impairments = vec![impaired(&instance, now), impaired("i-of-another", now)];
        });
        world.settle(300).await;
        let is_gone = !world.names(&Resource::NODE_CLAIMS).contains(&claim);
        assert_eq!(is_gone, is_forced, "{kind:?}");
        let reasons = world.event_reasons("NodeClaim");
        for reason in ["InstanceUnhealthy", "TerminatingOnInterruption"] {
            assert!(reasons.contains(&reason.to_owned()), "{kind:?} {reason}");
        }
        let unhealthy = "karpenter_interruption_instance_status_unhealthy_total";
        let counted = world.series(&format!("{unhealthy}{{category=\"{category}\"}}"));
        assert_eq!(counted, Some(1.0), "{kind:?}: many sweeps, one episode");
    }
}
