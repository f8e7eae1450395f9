//! That the invariants are noticed when somebody breaks them: here the tests do, through the controllers' own door.

use api_server::{NamespacedName, ObjectPart, Resource};
use apis::ProviderId;
use http::Request;
use kube::client::Body;
use serde_json::json;
use tower::Service as _;

use crate::world::World;

async fn with_a_node() -> (World, String, String) {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(60).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let node = world.names(&Resource::NODES)[0].clone();
    assert!(world.violations().is_empty());
    (world, claim, node)
}

/// What a controller gone wrong would ask for.
async fn delete(world: &World, path: &str) {
    let request = Request::delete(path).body(Body::empty()).unwrap();
    world.door().call(request).await.unwrap();
}

fn is_noticed(world: &World, invariant: &str) {
    let found = world.violations();
    assert!(
        found.iter().any(|it| it.starts_with(invariant)),
        "{invariant}: {found:?}"
    );
}

/// Says that a command is about the claim, as a controller would.
fn condemn(world: &World, claim: &str, reason: &str) {
    let key = NamespacedName::new("", claim);
    let now = world.clock.now().to_string();
    world
        .api
        .modify_part(&Resource::NODE_CLAIMS, &key, ObjectPart::Status, |claim| {
            claim["status"]["conditions"].as_array_mut().unwrap().push(json!({
                "type": "DisruptionReason", "status": "True", "reason": reason, "message": "", "lastTransitionTime": now,
            }));
        })
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_second_instance_of_a_claim_is_noticed() {
    let (world, ..) = with_a_node().await;
    world.cloud.with(|state| {
        let mut second = state.instances.values().next().unwrap().clone();
        second.provider_id = ProviderId::of_instance("a", "i-second");
        state.instances.insert(second.provider_id.clone(), second);
    });
    is_noticed(&world, "I02");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_goes_before_its_instance_is_noticed() {
    let (world, claim, _) = with_a_node().await;
    let key = NamespacedName::new("", claim.as_str());
    world
        .api
        .modify(&Resource::NODE_CLAIMS, &key, |claim| {
            claim["metadata"]["finalizers"] = json!([]);
        })
        .unwrap();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    is_noticed(&world, "I15");
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_nobody_is_noticed_when_it_stays() {
    let (mut world, ..) = with_a_node().await;
    world.process.dies_at(Some(1));
    world.keep(2, "7");
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    assert!(world.process.is_dead(), "nobody cleans up");
    world.cloud.with(|state| {
        let mut leaked = state.instances.values().next().unwrap().clone();
        leaked.provider_id = ProviderId::of_instance("a", "i-leaked");
        leaked.node_claim_name = Some("nobody".to_owned());
        state.instances.insert(leaked.provider_id.clone(), leaked);
    });
    assert!(world.violations().is_empty(), "it may take a while");
    tokio::time::sleep(std::time::Duration::from_secs(151)).await;
    is_noticed(&world, "I01");
    world.restart();
}

#[tokio::test(start_paused = true)]
async fn a_claim_beyond_the_limit_is_noticed() {
    let (world, ..) = with_a_node().await;
    world.change_pool(json!({"spec": {"limits": {"cpu": "2"}}}));
    assert!(world.violations().is_empty(), "nothing came");
    let mut second = (*world.list(&Resource::NODE_CLAIMS)[0]).clone();
    second["metadata"] = json!({"name": "second", "labels": second["metadata"]["labels"]});
    second["status"] = json!({});
    second["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    world
        .api
        .create(&Resource::NODE_CLAIMS, "", second)
        .unwrap();
    is_noticed(&world, "I03");
}

#[tokio::test(start_paused = true)]
async fn a_command_beyond_the_budget_is_noticed() {
    let (world, claim, _) = with_a_node().await;
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    assert!(world.violations().is_empty());
    condemn(&world, &claim, "Drifted");
    is_noticed(&world, "I04");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_without_need_is_noticed() {
    let (world, ..) = with_a_node().await;
    let pod = world.names(&Resource::PODS)[0].clone();
    delete(&world, &format!("/api/v1/namespaces/default/pods/{pod}")).await;
    is_noticed(&world, "I05");
}

#[tokio::test(start_paused = true)]
async fn a_protected_node_that_goes_is_noticed() {
    for protects_node in [true, false] {
        let (world, claim, node) = with_a_node().await;
        let pod = world.names(&Resource::PODS)[0].clone();
        let protected =
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        let changed = if protects_node {
            world
                .api
                .patch_merge(&Resource::NODES, "", &node, protected)
        } else {
            world
                .api
                .patch_merge(&Resource::PODS, "default", &pod, protected)
        };
        changed.unwrap();
        condemn(&world, &claim, "Underutilized");
        delete(&world, &format!("/apis/karpenter.sh/v1/nodeclaims/{claim}")).await;
        is_noticed(&world, "I06");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_before_its_replacement_is_noticed() {
    use state::ledger::{CommandRecord, CommandStep, OutcomeId, Record};
    let (world, claim, node) = with_a_node().await;
    condemn(&world, &claim, "Drifted");
    let record = CommandRecord {
        at: world.clock.now(),
        command_id: "c".to_owned(),
        step: CommandStep::Started,
        outcome: OutcomeId::CommandStarted,
        reason: "Drifted".to_owned(),
        decision: "replace".to_owned(),
        consolidation_type: String::new(),
        candidates: vec![node],
        candidate_claims: vec![claim.clone()],
        replacements: vec!["not-there".to_owned()],
        cost_before_per_hour: 1.0,
        cost_after_per_hour: 1.0,
        effective_before_per_hour: 0.0,
        effective_after_per_hour: 0.0,
        detail: String::new(),
    };
    world.ledger.lock().unwrap().push(Record::Command(record));
    delete(&world, &format!("/apis/karpenter.sh/v1/nodeclaims/{claim}")).await;
    is_noticed(&world, "I07");
}

#[tokio::test(start_paused = true)]
async fn launches_without_a_reason_are_noticed() {
    let (world, ..) = with_a_node().await;
    world.cloud.with(|state| state.launches += 3);
    is_noticed(&world, "I11");
}

#[tokio::test(start_paused = true)]
async fn a_quarrel_over_an_object_is_noticed() {
    let (world, _, node) = with_a_node().await;
    for _ in 0..70 {
        delete(
            &world,
            &format!("/apis/karpenter.sh/v1/nodepools/not-{node}"),
        )
        .await;
    }
    is_noticed(&world, "I22");
}
