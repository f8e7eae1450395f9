//! Volumes of the simulated cluster: when a claim is bound and to what, which pods wait for one, and what becomes of
//! a volume whose claim is gone.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use std::sync::Arc;

use api_server::{DeleteOptions, Resource, Selection};
use serde_json::{Value, json};
use sim::{SimulatedWorld, WorldConfig};
use tokio::time::{Duration, sleep};

const ZONE: &str = "topology.kubernetes.io/zone";

/// A world with one node in each of two zones, and the classes `now` and `only-b` beside the default one.
async fn world() -> Arc<SimulatedWorld> {
    let world = SimulatedWorld::new(WorldConfig::default());
    tokio::spawn(Arc::clone(&world).run());
    for zone in ["a", "b"] {
        let amounts = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n-{zone}"), "labels": {ZONE: zone}},
            "status": {
                "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        world.api().create(&Resource::NODES, "", node).unwrap();
    }
    let only_b = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]);
    let now = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "now"},
        "provisioner": "ebs.csi.aws.com", "reclaimPolicy": "Retain", "volumeBindingMode": "Immediate",
    });
    let zonal = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "only-b"},
        "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": only_b,
    });
    for class in [now, zonal] {
        let classes = Resource::STORAGE_CLASSES;
        world.api().create(&classes, "", class).unwrap();
    }
    pause().await;
    world
}

async fn pause() {
    sleep(Duration::from_secs(5)).await;
}

fn claim(world: &SimulatedWorld, name: &str, class: Option<&str>) {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
    });
    if let Some(class) = class {
        claim["spec"]["storageClassName"] = class.into();
    }
    let claims = Resource::PERSISTENT_VOLUME_CLAIMS;
    world.api().create(&claims, "default", claim).unwrap();
}

/// A volume that somebody made by hand.
fn volume(world: &SimulatedWorld, name: &str, class: &str, size: &str) {
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": format!("vol-{name}")},
        },
    });
    let volumes = Resource::PERSISTENT_VOLUMES;
    world.api().create(&volumes, "", volume).unwrap();
}

fn pod(world: &SimulatedWorld, name: &str, claim: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    });
    world.api().create(&Resource::PODS, "default", pod).unwrap();
}

fn spec_of(world: &SimulatedWorld, claim: &str) -> Value {
    let claims = Resource::PERSISTENT_VOLUME_CLAIMS;
    let claim = world.api().get(&claims, "default", claim).unwrap();
    claim["spec"].clone()
}

/// The name, phase, and zones of each volume.
fn volumes(world: &SimulatedWorld) -> Vec<(String, String, Value)> {
    let volumes = world
        .api()
        .list(&Resource::PERSISTENT_VOLUMES, &Selection::default());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    volumes
        .iter()
        .map(|volume| {
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            let zones = terms[0]["matchExpressions"][0]["values"].clone();
            let phase = text(&volume["status"]["phase"]);
            (text(&volume["metadata"]["name"]), phase, zones)
        })
        .collect()
}

fn node_of(world: &SimulatedWorld, pod: &str) -> Option<String> {
    let pod = world.api().get(&Resource::PODS, "default", pod).unwrap();
    pod["spec"]["nodeName"].as_str().map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_default_class_waits_for_a_pod_and_others_do_not() {
    let world = world().await;
    claim(&world, "waits", None);
    claim(&world, "at-once", Some("now"));
    pause().await;
    assert_eq!(spec_of(&world, "waits")["storageClassName"], "gp3");
    assert!(spec_of(&world, "waits")["volumeName"].is_null());
    let made = volumes(&world);
    assert_eq!(made.len(), 1, "{made:?}");
    let (name, phase, zones) = &made[0];
    assert_eq!(spec_of(&world, "at-once")["volumeName"], name.as_str());
    assert_eq!(phase, "Bound");
    let zone = zones[0].as_str().unwrap();
    assert!(["a", "b"].contains(&zone), "where there are nodes: {zone}");
    pod(&world, "first", "waits");
    pod(&world, "second", "at-once");
    pause().await;
    assert_eq!(node_of(&world, "second"), Some(format!("n-{zone}")));
    let node = node_of(&world, "first").unwrap();
    let name = spec_of(&world, "waits")["volumeName"].clone();
    let made = volumes(&world);
    let bound = made.iter().find(|(it, ..)| name == it.as_str()).unwrap();
    assert_eq!(bound.2, json!([node.trim_start_matches("n-")]));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_there_is_taken_if_it_suits() {
    let world = world().await;
    volume(&world, "pv-small", "now", "9Gi");
    volume(&world, "pv-other", "only-b", "20Gi");
    volume(&world, "pv-right", "now", "20Gi");
    pause().await;
    claim(&world, "first", Some("now"));
    pause().await;
    assert_eq!(spec_of(&world, "first")["volumeName"], "pv-right");
    claim(&world, "second", Some("now"));
    pause().await;
    let made = spec_of(&world, "second")["volumeName"].clone();
    assert!(made.as_str().unwrap().starts_with("pvc-"), "{made}");
    assert_eq!(volumes(&world).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_volume_goes_with_its_claim_unless_it_is_to_be_kept() {
    let world = world().await;
    claim(&world, "kept", Some("now"));
    claim(&world, "gone", None);
    pod(&world, "user", "gone");
    pause().await;
    let phases = || -> Vec<String> {
        let phases = volumes(&world).into_iter().map(|(_, phase, _)| phase);
        phases.collect()
    };
    assert_eq!(phases(), ["Bound", "Bound"]);
    let (api, now) = (world.api(), DeleteOptions::now());
    api.delete(&Resource::PODS, "default", "user", &now)
        .unwrap();
    for name in ["kept", "gone"] {
        let claims = Resource::PERSISTENT_VOLUME_CLAIMS;
        api.delete(&claims, "default", name, &now).unwrap();
    }
    pause().await;
    assert_eq!(phases(), ["Released"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_claim_and_goes_where_the_class_allows_it() {
    let world = world().await;
    claim(&world, "zonal", Some("only-b"));
    claim(&world, "classless", Some("no-such-class"));
    pod(&world, "bound", "zonal");
    pod(&world, "lost", "nowhere");
    pod(&world, "stuck", "classless");
    pause().await;
    assert_eq!(node_of(&world, "bound").as_deref(), Some("n-b"));
    for (name, reason) in [
        ("lost", "persistentvolumeclaim \"nowhere\" not found"),
        ("stuck", "pod has unbound immediate PersistentVolumeClaims"),
    ] {
        assert_eq!(node_of(&world, name), None);
        let pod = world.api().get(&Resource::PODS, "default", name).unwrap();
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let told = conditions.iter().find(|it| it["type"] == "PodScheduled");
        assert_eq!(told.unwrap()["message"], reason);
    }
    claim(&world, "nowhere", None);
    pause().await;
    assert!(node_of(&world, "lost").is_some(), "its claim is there");
}
