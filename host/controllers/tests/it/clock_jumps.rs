//! A clock that is wrong for a while, by an hour or a day: what was begun ends as it would have, and nothing is left.

use api_server::Resource;
use jiff::SignedDuration;
use serde_json::json;

use crate::world::World;

/// When the clock is set.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Launching,
    AtRest,
    Replacing,
}

const PODS: usize = 3;
/// Seconds until somebody notices.
const WRONG_FOR: u64 = 120;

/// The clock goes wrong, and right again.
async fn jump(world: &mut World, off_by: SignedDuration) {
    world.process.sets_clock(off_by);
    world.settle(WRONG_FOR).await;
    world.process.sets_clock(SignedDuration::ZERO);
}

async fn play(moment: Moment, off_by: SignedDuration) {
    let told = format!("{moment:?}, {off_by}");
    let mut world = World::new();
    world.pass(5).await;
    world.keep(PODS, "900m");
    if matches!(moment, Moment::Launching) {
        let claims = |world: &World| !world.names(&Resource::NODE_CLAIMS).is_empty();
        world.until("a claim", 60, claims).await;
        jump(&mut world, off_by).await;
    }
    world.settle(500).await;
    let state = (world.cloud.running(), world.bound_pods());
    assert_eq!(state, (1, PODS), "{told}: launched");
    if matches!(moment, Moment::AtRest) {
        let nodes = world.names(&Resource::NODES);
        jump(&mut world, off_by).await;
        world.settle(500).await;
        assert_eq!(world.names(&Resource::NODES), nodes, "{told}");
    }
    let first = world.names(&Resource::NODES);
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    if matches!(moment, Moment::Replacing) {
        let coming = |world: &World| world.names(&Resource::NODE_CLAIMS).len() > 1;
        world.until("a replacement", 400, coming).await;
        jump(&mut world, off_by).await;
    }
    world.settle(900).await;
    let state = (world.cloud.running(), world.bound_pods());
    assert_eq!(state, (1, PODS), "{told}: replaced");
    assert_ne!(world.names(&Resource::NODES), first, "{told}: it drifted");
    world.keep(0, "900m");
    for pod in world.names(&Resource::PODS) {
        world.delete_pod(&pod);
    }
    world.settle(300).await;
    assert_eq!(world.cloud.running(), 0, "{told}");
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty(), "{told}");
}

async fn play_all(moment: Moment) {
    for hours in [1, -1, 24, -24] {
        play(moment, SignedDuration::from_hours(hours)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_while_a_node_is_launched_leaves_one_node() {
    play_all(Moment::Launching).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_at_rest_changes_nothing() {
    play_all(Moment::AtRest).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_while_a_node_is_replaced_leaves_one_node() {
    play_all(Moment::Replacing).await;
}
