//! NodeOverlays and CapacityBuffers through the controllers: what they change about launches, and what their status
//! says.

use std::time::Duration;

use api_server::Resource;
use serde_json::{Value, json};

use crate::invariants::BUFFERS;
use crate::world::World;

const OVERLAYS: Resource = Resource::fixed("karpenter.sh", "nodeoverlays");

fn with_gates() -> World {
    World::with_settings(|settings| {
        settings.feature_gates.node_overlay = true;
        settings.feature_gates.capacity_buffer = true;
    })
}

/// Applies an overlay of an instance type.
pub(crate) fn overlay(world: &World, name: &str, instance_type: &str, mut spec: Value) {
    spec["requirements"] = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]}]);
    let overlay = json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}, "spec": spec,
    });
    world.api.create(&OVERLAYS, "", overlay).unwrap();
}

/// Types of the running nodes.
fn types(world: &World) -> Vec<String> {
    let nodes = world.list(&Resource::NODES);
    let of_node = |node: &std::sync::Arc<Value>| {
        let labels = &node["metadata"]["labels"];
        labels["node.kubernetes.io/instance-type"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    nodes.iter().map(of_node).collect()
}

/// Which object a test looks at.
struct ObjectName<'a> {
    resource: Resource,
    namespace: &'a str,
    name: &'a str,
}

fn named_overlay(name: &str) -> ObjectName<'_> {
    ObjectName {
        resource: OVERLAYS,
        namespace: "",
        name,
    }
}

/// Status and reason of a condition.
fn told(world: &World, of: &ObjectName<'_>, kind: &str) -> Option<(String, String)> {
    let object = world.api.get(&of.resource, of.namespace, of.name).ok()?;
    let conditions = object["status"]["conditions"].as_array()?.clone();
    let found = conditions.iter().find(|it| it["type"] == kind)?;
    let word = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((word("status"), word("reason")))
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_price_of_an_overlay_decides_what_is_launched() {
    let plain = World::new();
    plain.create_pod("a", "500m", &json!({}));
    plain.until("a node", 90, |it| it.bound_pods() == 1).await;
    assert_eq!(types(&plain), ["t.small"]);

    let world = with_gates();
    overlay(&world, "cheap", "t.large", json!({"price": "0.001"}));
    world.pass(3).await;
    let verdict = told(&world, &named_overlay("cheap"), "ValidationSucceeded");
    assert_eq!(verdict, Some(is("True", "ValidationSucceeded")));
    world.create_pod("a", "500m", &json!({}));
    world.until("a node", 90, |it| it.bound_pods() == 1).await;
    assert_eq!(types(&world), ["t.large"]);
}

/// Amazon publishes no price of some types, which can be bought all the same.
#[tokio::test(start_paused = true)]
async fn a_type_without_a_price_is_bought_once_an_overlay_gives_it_one() {
    let world = with_gates();
    let unpriced = &mut ["t.small", "t.medium", "t.large"].map(str::to_owned).into();
    world.cloud.with(|it| it.unpriced.append(unpriced));
    // Ten per cent off a price that nobody knows is none.
    overlay(&world, "off", "t.small", json!({"priceAdjustment": "-10%"}));
    world.create_pod("a", "500m", &json!({}));
    world.pass(60).await;
    assert!(types(&world).is_empty());
    overlay(&world, "told", "t.large", json!({"price": "2.5"}));
    world.until("a node", 90, |it| it.bound_pods() == 1).await;
    assert_eq!(types(&world), ["t.large"]);
}

#[tokio::test(start_paused = true)]
async fn an_overlay_that_is_deleted_counts_no_more() {
    let world = with_gates();
    overlay(&world, "cheap", "t.large", json!({"price": "0.001"}));
    world.pass(3).await;
    world.delete(&OVERLAYS, "cheap");
    world.pass(3).await;
    world.create_pod("a", "500m", &json!({}));
    world.until("a node", 90, |it| it.bound_pods() == 1).await;
    assert_eq!(types(&world), ["t.small"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_an_overlay_is_left_alone() {
    let world = World::new();
    overlay(&world, "cheap", "t.large", json!({"price": "0.001"}));
    world.pass(3).await;
    let verdict = told(&world, &named_overlay("cheap"), "ValidationSucceeded");
    assert_eq!(verdict, None);
    world.create_pod("a", "500m", &json!({}));
    world.until("a node", 90, |it| it.bound_pods() == 1).await;
    assert_eq!(types(&world), ["t.small"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_no_pool_made_is_launched_under_overlays_too() {
    let world = with_gates();
    overlay(&world, "cheap", "t.large", json!({"price": "0.001"}));
    world.pass(3).await;
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "alone"},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "expireAfter": "Never",
        },
    });
    world.api.create(&Resource::NODE_CLAIMS, "", claim).unwrap();
    let node = |world: &World| !world.names(&Resource::NODES).is_empty();
    world.until("a node", 90, node).await;
    assert_eq!(types(&world), ["t.large"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_overlays_that_change_the_same_neither_counts_and_the_status_says_so() {
    let world = with_gates();
    overlay(&world, "one", "t.large", json!({"price": "0.001"}));
    overlay(&world, "two", "t.large", json!({"price": "0.002"}));
    world.pass(3).await;
    let verdict = |name: &str| told(&world, &named_overlay(name), "ValidationSucceeded");
    let of_both = [verdict("one"), verdict("two")];
    assert!(
        of_both.contains(&Some(is("False", "Conflict"))),
        "{of_both:?}"
    );
    world.delete(&OVERLAYS, "two");
    world.pass(3).await;
    assert_eq!(verdict("one"), Some(is("True", "ValidationSucceeded")));
}

#[tokio::test(start_paused = true)]
async fn a_capacity_of_an_overlay_brings_nodes_for_pods_that_ask_for_it() {
    let world = with_gates();
    let asks = json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {
        "requests": {"cpu": "500m", "example.com/fuse": "1"}, "limits": {"example.com/fuse": "1"}}}]}});
    world.create_pod("a", "500m", &asks);
    world.pass(30).await;
    assert_eq!(world.cloud.with(|it| it.launches), 0, "nothing has any");
    let capacity = json!({"capacity": {"example.com/fuse": "4"}});
    overlay(&world, "fuse", "t.medium", capacity);
    world
        .until("a launch", 60, |it| it.cloud.with(|it| it.launches) == 1)
        .await;
    let claims = world.list(&Resource::NODE_CLAIMS);
    let requirements = claims[0]["spec"]["requirements"].as_array().unwrap();
    let mut of_type = requirements.iter();
    let of_type = of_type.find(|it| it["key"] == "node.kubernetes.io/instance-type");
    assert_eq!(of_type.unwrap()["values"], json!(["t.medium"]));
}

pub(crate) fn template(world: &World, name: &str, cpu: &str) {
    let template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        },
    });
    let templates = Resource::POD_TEMPLATES;
    world.api.create(&templates, "default", template).unwrap();
}

/// A buffer of one pod of a template.
pub(crate) fn buffer(world: &World, template: &str) {
    let buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "spare", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": template}, "replicas": 1},
    });
    world.api.create(&BUFFERS, "default", buffer).unwrap();
}

const SPARE: ObjectName<'_> = ObjectName {
    resource: BUFFERS,
    namespace: "default",
    name: "spare",
};

#[tokio::test(start_paused = true)]
async fn a_buffer_has_its_node_before_any_pod_and_a_pod_takes_the_room() {
    let world = with_gates();
    template(&world, "t", "1500m");
    buffer(&world, "t");
    world
        .until("a launch", 60, |it| it.cloud.with(|it| it.launches) == 1)
        .await;
    assert_eq!(
        told(&world, &SPARE, "ReadyForProvisioning"),
        Some(is("True", "Resolved"))
    );
    let fits = Some(is("True", "FitsExistingCapacity"));
    world
        .until("room", 120, |it| told(it, &SPARE, "Provisioning") == fits)
        .await;
    assert!(
        world.names(&Resource::PODS).is_empty(),
        "its pods are virtual"
    );
    world.pass(120).await;
    assert_eq!(world.cloud.running(), 1, "the node is not empty");

    world.create_pod("a", "1500m", &json!({}));
    let waited = world.until("the pod", 20, |it| it.bound_pods() == 1).await;
    assert!(waited < 5, "the room was there: {waited} s");
    world
        .until("a launch", 60, |it| it.cloud.with(|it| it.launches) == 2)
        .await;
}

#[tokio::test(start_paused = true)]
async fn no_node_waits_until_it_is_written_what_room_buffers_have() {
    let world = with_gates();
    let late = Duration::from_secs(40);
    world.process.reads_slowly("/capacitybuffers/", late);
    template(&world, "t", "1500m");
    buffer(&world, "t");
    let bought = |it: &World| !it.names(&Resource::NODE_CLAIMS).is_empty();
    let waited = world.until("a claim", 60, bought).await;
    assert!(waited < 30, "{waited} s");
    let told_of_room = |it: &World| told(it, &SPARE, "Provisioning").is_some();
    world.until("its room", 120, told_of_room).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_never_empty_while_a_buffer_counts_on_it() {
    let world = with_gates();
    // Looked at from its first moment on, and by no pass of the provisioner since.
    world.change_pool(json!({"spec": {"disruption": {"consolidateAfter": "0s"}}}));
    template(&world, "t", "1500m");
    buffer(&world, "t");
    world
        .until("a launch", 60, |it| it.cloud.with(|it| it.launches) > 0)
        .await;
    world.pass(120).await;
    assert_eq!(world.cloud.with(|it| it.launches), 1);
    assert_eq!(world.cloud.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_that_is_deleted_lets_its_node_go() {
    let world = with_gates();
    template(&world, "t", "1500m");
    buffer(&world, "t");
    let fits = Some(is("True", "FitsExistingCapacity"));
    world
        .until("room", 120, |it| told(it, &SPARE, "Provisioning") == fits)
        .await;
    let options = api_server::DeleteOptions::default();
    world
        .api
        .delete(&BUFFERS, "default", "spare", &options)
        .unwrap();
    world
        .until("no node", 300, |it| it.cloud.running() == 0)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_buffer_without_its_template_says_so_and_buys_nothing() {
    let world = with_gates();
    buffer(&world, "gone");
    world.pass(60).await;
    let ready = told(&world, &SPARE, "ReadyForProvisioning");
    assert_eq!(ready.unwrap().0, "False");
    let room = told(&world, &SPARE, "Provisioning");
    assert!(room.is_none_or(|it| it.0 == "False"));
    assert_eq!(world.cloud.with(|it| it.launches), 0);
    template(&world, "gone", "1500m");
    world
        .until("a launch", 90, |it| it.cloud.with(|it| it.launches) == 1)
        .await;
    assert_eq!(
        told(&world, &SPARE, "ReadyForProvisioning"),
        Some(is("True", "Resolved"))
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_a_buffer_is_left_alone() {
    let world = World::new();
    template(&world, "t", "1500m");
    buffer(&world, "t");
    world.pass(60).await;
    assert_eq!(world.cloud.with(|it| it.launches), 0);
    assert_eq!(told(&world, &SPARE, "ReadyForProvisioning"), None);
}
