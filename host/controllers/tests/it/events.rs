//! What the controllers tell about objects, as `kubectl describe` shows it: events found by the object's UID.

use api_server::Resource;
use serde_json::json;

use crate::failures::dry;
use crate::world::World;

/// An object as somebody knows it who describes it later: kind, name and UID.
struct Known {
    kind: &'static str,
    name: String,
    uid: String,
}

fn known(world: &World, kind: &'static str, resource: &Resource) -> Vec<Known> {
    let objects = world.list(resource);
    let known = objects.iter().map(|it| {
        let text = |field: &str| it["metadata"][field].as_str().unwrap().to_owned();
        Known {
            kind,
            name: text("name"),
            uid: text("uid"),
        }
    });
    known.collect()
}

/// Messages of the events about an object with a reason.
fn told(world: &World, about: &Known, reason: &str) -> Vec<String> {
    let events = world.list(&Resource::EVENTS);
    let is_about = |event: &serde_json::Value| {
        let object = &event["involvedObject"];
        let found = [&object["kind"], &object["name"], &object["uid"]];
        found == [about.kind, &about.name, &about.uid] && event["reason"] == reason
    };
    let found = events.iter().filter(|event| is_about(event));
    let messages = found.map(|event| event["message"].as_str().unwrap().to_owned());
    messages.collect()
}

/// Two nodes with a pod each.
pub(crate) async fn two_nodes(disruption: serde_json::Value) -> World {
    let mut world = World::new();
    world.change_pool(json!({"spec": {"disruption": disruption}}));
    world.pass(5).await;
    for pod in ["a", "b"] {
        world.create_pod(pod, "5", &json!({}));
    }
    world.settle(45).await;
    assert_eq!(world.names(&Resource::NODES).len(), 2);
    world
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_one_object_is_said_of_every_other_too() {
    let mut world = two_nodes(json!({"budgets": [{"nodes": "100%"}]})).await;
    let claims = known(&world, "NodeClaim", &Resource::NODE_CLAIMS);
    let nodes = known(&world, "Node", &Resource::NODES);
    for pod in ["a", "b"] {
        world.delete_pod(pod);
    }
    world.settle(120).await;
    assert_eq!(world.cloud.running(), 0);
    for claim in &claims {
        let blocked = told(&world, claim, "DisruptionBlocked");
        let young = [
            "NodeClaim does not have an associated node",
            "Node isn't initialized",
        ];
        assert!(
            young.iter().all(|it| blocked.iter().any(|told| told == it)),
            "{blocked:?}"
        );
        let going = told(&world, claim, "DisruptionTerminating");
        assert_eq!(going, ["Disrupting NodeClaim: Empty"], "{}", claim.name);
    }
    for node in &nodes {
        let going = told(&world, node, "DisruptionTerminating");
        assert_eq!(going, ["Disrupting Node: Empty"], "{}", node.name);
    }
}

#[tokio::test(start_paused = true)]
async fn each_pool_hears_of_its_own_budget() {
    let mut world = World::new();
    let other = json!({"metadata": {"name": "other"}, "spec": {
        "template": {"spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]}}}});
    let other = crate::world::node_pool(&other);
    world.api.create(&Resource::NODE_POOLS, "", other).unwrap();
    let closed = json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}});
    for pool in ["default", "other"] {
        let pools = Resource::NODE_POOLS;
        world
            .api
            .patch_merge(&pools, "", pool, closed.clone())
            .unwrap();
    }
    world.pass(5).await;
    world.create_pod("a", "1", &json!({}));
    let to_other = json!({"spec": {"nodeSelector": {"karpenter.sh/nodepool": "other"},
        "tolerations": [{"operator": "Exists"}]}});
    world.create_pod("b", "1", &to_other);
    world.settle(60).await;
    assert_eq!(world.names(&Resource::NODES).len(), 2);
    for pool in known(&world, "NodePool", &Resource::NODE_POOLS) {
        let mut blocked = told(&world, &pool, "DisruptionBlocked");
        blocked.sort();
        let about = |reason| {
            format!("No allowed disruptions for disruption reason {reason} due to blocking budget")
        };
        let expected = ["Drifted", "Empty", "Underutilized"].map(about);
        assert_eq!(blocked, expected, "{}", pool.name);
    }
}

#[tokio::test(start_paused = true)]
async fn another_cause_is_told_although_the_last_one_was_just_told() {
    let everything = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized"});
    let mut world = two_nodes(everything).await;
    let node = &known(&world, "Node", &Resource::NODES)[0];
    let pods = world.list(&Resource::PODS);
    let here = pods
        .iter()
        .find(|it| it["spec"]["nodeName"] == node.name.as_str());
    let pod = here.unwrap()["metadata"]["name"].as_str().unwrap();
    world.protect(pod);
    world.settle(60).await;
    let protected =
        format!("Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/{pod})");
    let blocked = told(&world, node, "DisruptionBlocked");
    assert_eq!(blocked.last(), Some(&protected), "{blocked:?}");
    let free = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null}}});
    world
        .api
        .patch_merge(&Resource::PODS, "default", pod, free)
        .unwrap();
    for name in ["first", "second"] {
        let pdb = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}});
        let pdbs = Resource::POD_DISRUPTION_BUDGETS;
        world.api.create(&pdbs, "default", pdb).unwrap();
        world.settle(25).await;
        let held = format!("PDB prevents pod evictions (PodDisruptionBudget=[default/{name}])");
        let blocked = told(&world, node, "DisruptionBlocked");
        assert_eq!(blocked.last(), Some(&held), "{blocked:?}");
        world
            .api
            .delete(
                &pdbs,
                "default",
                name,
                &api_server::DeleteOptions::default(),
            )
            .unwrap();
        world.settle(5).await;
    }
}

#[tokio::test(start_paused = true)]
async fn why_a_node_is_not_consolidated_is_told_anew_when_it_changes() {
    let mut world = two_nodes(json!({"consolidateAfter": "Never"})).await;
    let node = &known(&world, "Node", &Resource::NODES)[0];
    world.settle(30).await;
    let first = told(&world, node, "Unconsolidatable");
    assert_eq!(first.len(), 1, "{first:?}");
    world.change_pool(json!({"spec": {"disruption": {"consolidateAfter": "0s"}}}));
    world.settle(60).await;
    let both = told(&world, node, "Unconsolidatable");
    assert_eq!(both.len(), 2, "{both:?}");
    assert_ne!(both[0], both[1]);
    world.settle(60).await;
    assert_eq!(
        told(&world, node, "Unconsolidatable").len(),
        2,
        "said once in a while"
    );
}

#[tokio::test(start_paused = true)]
async fn a_drifted_node_whose_pods_have_nowhere_to_go_is_told_as_blocked() {
    let team = |name: &str| json!({"template": {"metadata": {"labels": {"team": name}}}});
    let mut world = World::new();
    world.change_pool(json!({"spec": team("a")}));
    world.change_pool(json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    world.pass(5).await;
    world.create_pod("a", "5", &json!({"spec": {"nodeSelector": {"team": "a"}}}));
    world.settle(60).await;
    let objects = [
        known(&world, "Node", &Resource::NODES),
        known(&world, "NodeClaim", &Resource::NODE_CLAIMS),
    ];
    let before = told(&world, &objects[0][0], "Unconsolidatable").len();
    world.change_pool(json!({"spec": team("b")}));
    world.settle(16 * 60).await;
    for about in objects.iter().flatten() {
        let blocked = told(&world, about, "DisruptionBlocked");
        let no_place = "Not every pod of the node would find a place: pod default/";
        assert!(
            blocked.iter().any(|it| it.starts_with(no_place)),
            "{} {blocked:?}",
            about.name
        );
        let unconsolidatable = told(&world, about, "Unconsolidatable");
        assert_eq!(unconsolidatable.len(), before, "{unconsolidatable:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_in_the_way_is_told_where_consolidation_would_not_look_at_the_node() {
    let mut world = two_nodes(json!({"consolidationPolicy": "WhenEmpty"})).await;
    let node = &known(&world, "Node", &Resource::NODES)[0];
    for pod in world.names(&Resource::PODS) {
        world.protect(&pod);
    }
    world.settle(30).await;
    let blocked = told(&world, node, "DisruptionBlocked");
    let last = blocked.last().unwrap();
    assert!(
        last.starts_with("Pod has \"karpenter.sh/do-not-disrupt\" annotation"),
        "{last}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_says_no_more_than_the_api_server_takes() {
    let mut world = World::new();
    dry(&world);
    world
        .cloud
        .with(|it| it.refusal = "no capacity, ".repeat(300));
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(30).await;
    for kind in ["NodeClaim", "Pod"] {
        let told = world.event_messages(kind, "InsufficientCapacityError");
        assert!(!told.is_empty(), "{kind}");
        for message in told {
            assert!(
                message.len() <= 1024 && message.ends_with("..."),
                "{message}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_class_is_not_there_says_so_before_it_goes() {
    let world = World::new();
    world.pass(5).await;
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "alone"},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "none"},
            "expireAfter": "Never",
        },
    });
    world.api.create(&Resource::NODE_CLAIMS, "", claim).unwrap();
    let about = &known(&world, "NodeClaim", &Resource::NODE_CLAIMS)[0];
    world.pass(20).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), Vec::<String>::new());
    let messages = told(&world, about, "NodeClassNotReady");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("none does not exist"), "{messages:?}");
}
