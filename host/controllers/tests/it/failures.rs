//! What goes wrong, and what the controllers make of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_server::{ObjectPart, Resource};
use apis::ProviderId;
use scheduling::ranking::{PriceRank, RankAnswer, RankHook, RankRound, RankStage};
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_claim_without_capacity_is_deleted_and_the_pods_are_told() {
    let world = World::new();
    world.cloud.with(|state| {
        state
            .dry
            .extend(["t.small", "t.medium", "t.large"].map(str::to_owned));
    });
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.pass(20).await;
    assert!(
        world
            .event_reasons("NodeClaim")
            .contains(&"InsufficientCapacityError".to_owned())
    );
    assert!(
        world
            .event_reasons("Pod")
            .contains(&"InsufficientCapacityError".to_owned())
    );
    assert_eq!(world.cloud.running(), 0);
    world.cloud.with(|state| state.dry.clear());
    world
        .until("capacity is back", 120, |world| world.bound_pods() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_whose_creation_the_answer_was_lost_is_not_created_twice() {
    let world = World::new();
    world.pass(5).await;
    let claims = "/apis/karpenter.sh/v1/nodeclaims";
    world.process.loses_answers(claims, 1);
    world.create_pod("a", "900m", &json!({}));
    world
        .until("the pod runs", 60, |world| world.bound_pods() == 1)
        .await;
    world.pass(60).await;
    let told = world.event_reasons("Pod");
    assert!(told.contains(&"Nominated".to_owned()), "{told:?}");
    assert_eq!(world.cloud.instance_ids().len(), 1);
}

pub(crate) fn dry(world: &World) {
    world.cloud.with(|state| {
        state
            .dry
            .extend(["t.small", "t.medium", "t.large"].map(str::to_owned));
    });
}

/// Pods that were told that there is no capacity.
fn told_pods(world: &World) -> BTreeSet<String> {
    let events = world.list(&Resource::EVENTS);
    let about_pods = events.iter().filter(|event| {
        event["involvedObject"]["kind"] == "Pod" && event["reason"] == "InsufficientCapacityError"
    });
    about_pods
        .map(|event| event["involvedObject"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn only_pods_that_still_wait_are_told_of_missing_capacity() {
    let world = World::new();
    dry(&world);
    world.pass(5).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    world.create_pod("waits", "900m", &json!({}));
    world.create_pod("goes", "900m", &held);
    world
        .until("a claim", 10, |world| {
            !world.names(&Resource::NODE_CLAIMS).is_empty()
        })
        .await;
    world.delete_pod("goes");
    world.pass(10).await;
    assert_eq!(told_pods(&world), BTreeSet::from(["waits".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn many_pods_are_told_of_missing_capacity_a_few_at_a_time() {
    let world = World::new();
    dry(&world);
    world.pass(5).await;
    for number in 0..40 {
        world.create_pod(&format!("p-{number}"), "100m", &json!({}));
    }
    world
        .until("the first are told", 20, |world| {
            !told_pods(world).is_empty()
        })
        .await;
    let told = told_pods(&world).len();
    assert!((1..=12).contains(&told), "a burst of ten: {told}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_joins_is_given_up_after_a_quarter_of_an_hour() {
    let world = World::new();
    *world.boots.lock().unwrap() = false;
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.pass(60).await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert_eq!(
        world
            .condition(&Resource::NODE_CLAIMS, &claims[0], "Registered")
            .as_deref(),
        Some("Unknown")
    );
    world.pass(13 * 60).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), claims);
    *world.boots.lock().unwrap() = true;
    world
        .until("given up", 150, |world| {
            !world.names(&Resource::NODE_CLAIMS).contains(&claims[0])
        })
        .await;
    world
        .until("a second try succeeds", 180, |world| {
            world.bound_pods() == 1
        })
        .await;
    world
        .until("the first instance is gone", 60, |world| {
            world.cloud.running() == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_hangs_is_given_up_after_five_minutes() {
    let world = World::new();
    world.cloud.with(|state| state.hangs = true);
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.pass(30).await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    world.cloud.with(|state| state.hangs = false);
    let took = world
        .until("given up", 400, |world| {
            !world.names(&Resource::NODE_CLAIMS).contains(&claims[0])
        })
        .await;
    assert!(took > 200, "{took}");
    world
        .until("a second try succeeds", 180, |world| {
            world.bound_pods() == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_vanishes_takes_its_claim_with_it() {
    let world = World::new();
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world
        .until("bound", 120, |world| world.bound_pods() == 1)
        .await;
    let (claims, nodes) = (
        world.names(&Resource::NODE_CLAIMS),
        world.names(&Resource::NODES),
    );
    world.cloud.with(|state| state.instances.clear());
    let key = api_server::NamespacedName::new("", nodes[0].as_str());
    world
        .api
        .modify_part(&Resource::NODES, &key, ObjectPart::Status, |node| {
            node["status"]["conditions"][0]["status"] = json!("Unknown");
        })
        .unwrap();
    world
        .until("collected", 300, |world| {
            !world.names(&Resource::NODE_CLAIMS).contains(&claims[0])
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_claim_is_terminated() {
    let world = World::new();
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world
        .until("bound", 120, |world| world.bound_pods() == 1)
        .await;
    world.cloud.with(|state| {
        let mut leaked = state.instances.values().next().unwrap().clone();
        leaked.provider_id = ProviderId::of_instance("a", "i-leaked");
        leaked.node_claim_name = Some("long-gone".to_owned());
        state.instances.insert(leaked.provider_id.clone(), leaked);
    });
    world
        .until("collected", 300, |world| world.cloud.running() == 1)
        .await;
    assert_eq!(world.bound_pods(), 1, "the owned one stays");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nothing_is_told_why_and_the_others_go_on() {
    let world = World::new();
    world.pass(5).await;
    world.create_pod("huge", "64", &json!({}));
    world.create_pod("a", "900m", &json!({}));
    world
        .until("the small one runs", 120, |world| world.bound_pods() == 1)
        .await;
    assert!(
        world
            .event_reasons("Pod")
            .contains(&"FailedScheduling".to_owned())
    );
    assert_eq!(world.cloud.with(|state| state.launches), 1);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_pool_is_not_ready_and_says_why() {
    let world = World::new();
    let invalid = json!({"spec": {"template": {"spec": {
        "taints": [{"key": "a", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "a", "effect": "NoSchedule"}],
    }}}});
    world
        .api
        .patch_merge(&Resource::NODE_POOLS, "", "default", invalid)
        .unwrap();
    world
        .until("refused", 30, |world| {
            let pool = Resource::NODE_POOLS;
            world
                .condition(&pool, "default", "ValidationSucceeded")
                .as_deref()
                == Some("False")
                && world.condition(&pool, "default", "Ready").as_deref() == Some("False")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_which_the_claim_could_not_be_told_is_not_launched_again() {
    let mut world = World::new();
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world
        .until("a launch is asked for", 30, |world| {
            world.cloud.with(|it| !it.asked.is_empty())
        })
        .await;
    world.process.writes_fail("/status");
    world.settle(20).await;
    assert_eq!(world.cloud.running(), 1);
    world.process.writes_succeed();
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 1);
    let asked = world.cloud.with(|it| it.asked.clone());
    assert!(asked.values().eq(&[1]), "{asked:?}");
}

/// Ranks by price, and panics at rounds of a stage for as long as it is told to.
struct Panics {
    stage: RankStage,
    is_on: AtomicBool,
}

impl RankHook for Panics {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let is_due = round.claims.iter().any(|claim| claim.stage == self.stage);
        let panics = is_due && self.is_on.load(Ordering::Relaxed);
        assert!(!panics, "as the story has it");
        PriceRank.rank(round)
    }
}

impl Panics {
    fn world(stage: RankStage) -> (World, Arc<Self>) {
        let is_on = AtomicBool::new(false);
        let hook = Arc::new(Self { stage, is_on });
        (World::with_rank_elsewhere(Arc::clone(&hook) as _), hook)
    }

    fn be(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_ranking_a_launch_costs_no_claim() {
    let (world, hook) = Panics::world(RankStage::Launch);
    world.pass(5).await;
    hook.be(true);
    world.create_pod("a", "900m", &json!({}));
    world
        .until("a claim", 30, |world| {
            !world.names(&Resource::NODE_CLAIMS).is_empty()
        })
        .await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    world.pass(20).await;
    hook.be(false);
    world
        .until("the pod runs", 120, |world| world.bound_pods() == 1)
        .await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), claims);
    let told = world.event_reasons("NodeClaim");
    let unavailable = "InsufficientCapacityError".to_owned();
    assert!(!told.contains(&unavailable), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_solver_is_not_an_answer() {
    let unschedulable = |world: &World| {
        let series = "karpenter_scheduler_unschedulable_pods_count{controller=\"provisioner\"}";
        world.series(series)
    };
    let (world, hook) = Panics::world(RankStage::Packing);
    world.pass(5).await;
    world.create_pod("huge", "64", &json!({}));
    world
        .until("it has no place", 30, |world| {
            unschedulable(world) == Some(1.0)
        })
        .await;
    hook.be(true);
    world.create_pod("a", "900m", &json!({}));
    for _ in 0..20 {
        world.pass(1).await;
        assert_eq!(unschedulable(&world), Some(1.0));
    }
    hook.be(false);
    world
        .until("the pod runs", 60, |world| world.bound_pods() == 1)
        .await;
}

/// A world whose one node is too large for the pod that is left on it, which consolidation looks at from now on.
async fn with_a_node_too_large() -> (World, Arc<Panics>) {
    let (world, hook) = Panics::world(RankStage::Packing);
    world.pass(5).await;
    for pod in ["a", "b"] {
        world.create_pod(pod, "1500m", &json!({}));
    }
    world
        .until("the pods run", 120, |world| world.bound_pods() == 2)
        .await;
    assert_eq!(world.names(&Resource::NODES).len(), 1);
    world.delete_pod("b");
    world.pass(30).await;
    (world, hook)
}

fn consolidate(world: &World) {
    let disruption = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]});
    world.change_pool(json!({"spec": {"disruption": disruption}}));
}

/// Rounds of disruption that did not come to their end.
fn failed_rounds(world: &World) -> f64 {
    let series = "controller_runtime_reconcile_errors_total{controller=\"disruption\"}";
    world.series(series).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_panics_is_no_round_without_a_fault() {
    let (world, hook) = with_a_node_too_large().await;
    assert!(failed_rounds(&world) < 1.0);
    hook.be(true);
    consolidate(&world);
    world.pass(30).await;
    assert!(failed_rounds(&world) >= 1.0);
    hook.be(false);
    world
        .until("a command", 60, |it| it.controllers.activity().commands > 0)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_second_look_panics_is_told_to_be_dropped() {
    let (world, hook) = with_a_node_too_large().await;
    consolidate(&world);
    world
        .until("a command", 60, |it| it.controllers.activity().commands > 0)
        .await;
    hook.be(true);
    let dropped = |it: &World| it.times_recorded("command-rejected") > 0;
    world.until("it is dropped", 30, dropped).await;
    hook.be(false);
    assert!(failed_rounds(&world) >= 1.0);
    let started = |it: &World| it.times_recorded("command-started") > 0;
    world.until("another begins", 120, started).await;
}
