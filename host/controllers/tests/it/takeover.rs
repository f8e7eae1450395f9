//! A cluster whose classes another version stamped: nothing drifts for it, and what drifted stays so.

use api_server::Resource;
use serde_json::{Value, json};

use crate::world::World;

const HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
const VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";

/// From now on the provider reckons so.
fn reckon(world: &World, version: &str, hash: &str) {
    world.cloud.with(|state| {
        let stamps = [(VERSION, version), (HASH, hash)];
        state.class_stamps = stamps
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    });
    // A class is looked at when it changes.
    let poke = json!({"metadata": {"annotations": {"poked": hash}}});
    let classes = Resource::EC2_NODE_CLASSES;
    world
        .api
        .patch_merge(&classes, "", "default", poke)
        .unwrap();
}

fn stamp(object: &Value) -> (String, String) {
    let text = |key: &str| {
        object["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text(VERSION), text(HASH))
}

fn claim_stamp(world: &World) -> (String, String) {
    stamp(&world.list(&Resource::NODE_CLAIMS)[0])
}

fn drifted(world: &World) -> Option<String> {
    let name = &world.names(&Resource::NODE_CLAIMS)[0];
    world.condition(&Resource::NODE_CLAIMS, name, "Drifted")
}

/// A node that may not be disturbed, of a class with this stamp.
async fn stamped(version: &str, hash: &str) -> World {
    let world = World::new();
    reckon(&world, version, hash);
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world
        .until("bound", 120, |world| world.bound_pods() == 1)
        .await;
    world.protect("a");
    let stamps = (version.to_owned(), hash.to_owned());
    world
        .until("stamped", 60, |world| claim_stamp(world) == stamps)
        .await;
    world
}

async fn until_stamped(world: &World, version: &str, hash: &str) {
    let stamps = (version.to_owned(), hash.to_owned());
    world
        .until("the claim is carried over", 60, |world| {
            claim_stamp(world) == stamps
        })
        .await;
    world.pass(600).await;
}

#[tokio::test(start_paused = true)]
async fn another_hash_version_drifts_nothing_whichever_way_and_changes_still_do() {
    for (from, to) in [("v5", "v6"), ("v6", "v5"), ("v4", "v6")] {
        let world = stamped(from, "1").await;
        reckon(&world, to, "2");
        until_stamped(&world, to, "2").await;
        assert_eq!(drifted(&world), None, "{from} to {to}");
        reckon(&world, to, "3");
        world
            .until("the change is seen", 600, |world| {
                drifted(world).as_deref() == Some("True")
            })
            .await;
        assert_eq!(claim_stamp(&world), (to.to_owned(), "2".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_drifted_before_another_hash_version_stays_so() {
    let world = stamped("v5", "1").await;
    reckon(&world, "v5", "2");
    world
        .until("the change is seen", 600, |world| {
            drifted(world).as_deref() == Some("True")
        })
        .await;
    reckon(&world, "v6", "3");
    until_stamped(&world, "v6", "1").await;
    assert_eq!(drifted(&world).as_deref(), Some("True"));
}
