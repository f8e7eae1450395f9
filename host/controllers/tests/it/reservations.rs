//! Nodes whose capacity reservation ends.

use api_server::Resource;
use serde_json::json;

use crate::world::World;

const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const RESERVATION: &str = "karpenter.k8s.aws/capacity-reservation-id";

/// A world with one node in a reservation, as a launch into one leaves it.
async fn in_a_reservation() -> (World, String) {
    let (world, claims) = nodes_in_a_reservation(1, "900m").await;
    (world, claims[0].clone())
}

/// A world with nodes in a reservation, one for each pod.
async fn nodes_in_a_reservation(pods: usize, cpu: &str) -> (World, Vec<String>) {
    let mut world = World::new();
    // Or the claim would drift from what its pool allows.
    let allowed =
        json!([{"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand", "reserved"]}]);
    world.change_pool(json!({"spec": {"template": {"spec": {"requirements": allowed}}}}));
    world.pass(5).await;
    world.keep(pods, cpu);
    world.settle(90).await;
    assert_eq!(world.bound_pods(), pods);
    let labels = json!({CAPACITY_TYPE: "reserved", RESERVATION: "cr-1",
        "karpenter.k8s.aws/capacity-reservation-type": "capacity-block"});
    let change = json!({"metadata": {"labels": labels}});
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert_eq!(claims.len(), pods);
    for resource in [Resource::NODE_CLAIMS, Resource::NODES] {
        for name in world.names(&resource) {
            let change = change.clone();
            world.api.patch_merge(&resource, "", &name, change).unwrap();
        }
    }
    world.cloud.with(|state| {
        for instance in state.instances.values_mut() {
            instance
                .labels
                .insert(CAPACITY_TYPE.to_owned(), "reserved".to_owned());
        }
    });
    world.settle(70).await;
    (world, claims)
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_block_ends_soon_is_replaced_in_time() {
    let (mut world, claim) = in_a_reservation().await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), [claim.as_str()]);
    world
        .cloud
        .with(|state| state.expiring.insert("cr-1".to_owned()));
    world.settle(180).await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert!(claims.len() == 1 && claims[0] != claim, "{claims:?}");
    assert_eq!(world.bound_pods(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_reservation_ended_says_that_it_is_on_demand() {
    let (mut world, claim) = in_a_reservation().await;
    world.cloud.with(|state| {
        for instance in state.instances.values_mut() {
            instance
                .labels
                .insert(CAPACITY_TYPE.to_owned(), "on-demand".to_owned());
        }
    });
    world.settle(70).await;
    for resource in [Resource::NODE_CLAIMS, Resource::NODES] {
        let object = world.list(&resource)[0].clone();
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels[CAPACITY_TYPE], "on-demand", "{labels}");
        assert!(labels[RESERVATION].is_null(), "{labels}");
    }
    assert_eq!(world.names(&Resource::NODE_CLAIMS), [claim]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_written_keeps_no_other_waiting() {
    let (world, claims) = nodes_in_a_reservation(2, "7").await;
    let [first, second] = &claims[..] else {
        panic!("{claims:?}")
    };
    world.process.may_not_write(&format!("/nodeclaims/{first}"));
    world.cloud.with(|state| {
        for instance in state.instances.values_mut() {
            let on_demand = "on-demand".to_owned();
            instance.labels.insert(CAPACITY_TYPE.to_owned(), on_demand);
        }
    });
    world.pass(70).await;
    let capacity_type = |name: &str| {
        let claims = world.list(&Resource::NODE_CLAIMS);
        let claim = claims.iter().find(|it| it["metadata"]["name"] == name);
        claim.unwrap()["metadata"]["labels"][CAPACITY_TYPE].clone()
    };
    assert_eq!(capacity_type(first), "reserved");
    assert_eq!(capacity_type(second), "on-demand");
    let failed = "controller_runtime_reconcile_errors_total{controller=\"capacityreservation\"}";
    assert_eq!(world.series(failed), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn profiles_of_classes_and_claims_are_told_to_be_in_use() {
    let (mut world, claim) = in_a_reservation().await;
    let bears = json!({"metadata": {"annotations": {"karpenter.k8s.aws/instance-profile-name": "of-claim"}}});
    world
        .api
        .patch_merge(&Resource::NODE_CLAIMS, "", &claim, bears)
        .unwrap();
    world
        .cloud
        .with(|state| state.profile = Some("of-class".to_owned()));
    world.settle(1_900).await;
    let in_use = world.cloud.with(|state| state.profiles_in_use.clone());
    assert_eq!(
        in_use.unwrap().into_iter().collect::<Vec<_>>(),
        ["of-claim", "of-class"]
    );
}
