//! NodeClaims whose time is up: they go whatever budgets say, and their drains wait as any other.

use api_server::Resource;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn nodes_born_together_expire_together_whatever_the_budget_and_no_pod_is_lost() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {
        "template": {"spec": {"expireAfter": "5m"}},
        "disruption": {"budgets": [{"nodes": "0"}]},
    }}));
    world.pass(5).await;
    world.keep(3, "7");
    world.settle(120).await;
    let first = world.names(&Resource::NODES);
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert_eq!((first.len(), claims.len()), (3, 3));
    world.settle(180).await;
    let later = world.names(&Resource::NODES);
    world.settle(90).await;
    let now = world.names(&Resource::NODES);
    assert!(
        first.iter().all(|it| !now.contains(it)),
        "{first:?} {later:?} {now:?}"
    );
    for claim in &claims {
        world.tells("claim", claim, &["claim-expired", "pod-evicted"]);
    }
    assert_eq!(world.bound_pods(), 3, "each was made up for");
    assert!(world.cloud.with(|it| it.launches) <= 6, "one for one");
}

#[tokio::test(start_paused = true)]
async fn expiry_ignores_do_not_disrupt_at_the_decision_and_the_drain_still_waits_for_it() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {"template": {"spec": {"expireAfter": "3m"}}}}));
    world.pass(5).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    world.create_pod("a", "900m", &protected);
    world.settle(60).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.settle(300).await;
    let object = world.api.get(&Resource::NODE_CLAIMS, "", &claim).unwrap();
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(world.cloud.running(), 1, "the pod is waited for");
    world.delete_pod("a");
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
}
