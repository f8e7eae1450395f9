//! The table of rights: the chart's roles are written from it, and what the controllers ask for is in it and no more.
//!
//! Every request of every test here is held against it (`Door`); whether each right is of use, one long day shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use api_server::{RequestInfo, Resource};
use controllers::Settings;
use controllers::rbac::{RULES, ResourceAttributes, Role};
use scheduling::pod::TopologySpread;
use scheduling::problem::PreferencePolicy;
use serde_json::{Value, json};

use crate::overlays_and_buffers::{buffer, overlay, template};
use crate::policies::Registry;
use crate::world::World;

/// Not asked for by the controllers but by the process around them; shown by tests in `host/operator`.
const OF_THE_PROCESS: [(Role, &str); 7] = [
    (Role::Aws, "servicecidrs"),
    (Role::Aws, "services"),
    (Role::Practice, "nodes"),
    (Role::Practice, "nodes/status"),
    (Role::Metrics, "tokenreviews"),
    (Role::Metrics, "subjectaccessreviews"),
    (Role::LeaderElection, "leases"),
];

/// Says what of a request the controllers may not do.
pub(crate) fn unlawful(info: &RequestInfo, settings: &Settings) -> Option<String> {
    let request = ResourceAttributes {
        verb: info.verb,
        group: &info.group,
        resource: &info.resource,
        name: &info.name,
    };
    let is_granted = RULES.iter().any(|rule| {
        let is_here = match rule.role {
            Role::Core | Role::Aws => true,
            Role::Policies => info.namespace == settings.policy_namespace,
            Role::Practice | Role::Metrics | Role::LeaderElection => false,
        };
        is_here && rule.when.holds(settings) && rule.allows(request)
    });
    (!is_granted).then(|| format!("no rule of host/controllers/src/rbac.rs allows {info:?}"))
}

#[test]
fn the_chart_holds_the_rules_of_the_table() {
    let file = Path::new("../../charts/mortise/templates/_rules.tpl");
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == controllers::rbac::template(),
        "{} is stale: run `cargo run -p controllers --example rbac -- charts/mortise/templates/_rules.tpl`",
        file.display()
    );
}

/// Everything that can be switched on, and what it looks at served by the API server.
fn world_with_everything() -> World {
    let spread = TopologySpread {
        max_skew: 5,
        topology_key: "topology.kubernetes.io/zone".to_owned(),
        is_required: false,
        selector: None,
        min_domains: None,
        honors_node_affinity: true,
        honors_node_taints: false,
    };
    let mut settings = Settings {
        policy_namespace: "kube-system".to_owned(),
        plan_coming_pods: true,
        ..Settings::default()
    };
    settings.solving.preference_policy = PreferencePolicy::Ignore;
    settings.solving.ignore_dra_requests = false;
    settings.solving.scheduler.default_spread = Arc::new([spread]);
    settings.feature_gates.node_overlay = true;
    settings.feature_gates.capacity_buffer = true;
    settings.feature_gates.pod_deletion_cost_management = true;
    let world = World::with(Arc::new(Registry::default()), settings);
    for kind in [
        "ResourceSlice",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "DeviceClass",
    ] {
        world.api.install_crd(&device_kind(kind)).unwrap();
    }
    world
}

/// A kind of dynamic resource allocation, as far as it is listed and watched here.
fn device_kind(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = singular
        .strip_suffix('s')
        .map_or_else(|| format!("{singular}s"), |it| format!("{it}ses"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.resource.k8s.io")},
        "spec": {
            "group": "resource.k8s.io", "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// A policy that takes its settings from another ConfigMap.
fn bind_a_policy(world: &World) {
    for (name, labels, data) in [
        ("settings", json!({}), json!({"config": "{}"})),
        (
            "arm",
            json!({"mortise.dev/policy": "rank"}),
            json!({"builtin": "prefer-arm64", "config-from": "settings"}),
        ),
    ] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
            "data": data,
        });
        world
            .api
            .create(&Resource::CONFIG_MAPS, "kube-system", map)
            .unwrap();
    }
}

/// Pods come, are ranked and told of their node, move, and are in the end left no time; a buffer and an overlay count.
async fn a_day_with_everything(world: &mut World) {
    world.change_pool(json!({"spec": {
        "disruption": {"budgets": [{"nodes": "100%"}]},
        "template": {"spec": {"terminationGracePeriod": "5m"}},
    }}));
    overlay(world, "cheap", "t.large", json!({"price": "0.001"}));
    template(world, "t", "1500m");
    buffer(world, "t");
    bind_a_policy(world);
    world.pass(5).await;
    world.keep(4, "3");
    world.settle(180).await;
    world.delete(&Resource::NODES, &world.names(&Resource::NODES)[0]);
    world.settle(120).await;
    // Drift exchanges the nodes; what is protected holds up the drain until there is no grace left.
    for pod in world.names(&Resource::PODS) {
        world.protect(&pod);
    }
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    world.settle(600).await;
    world.keep(0, "");
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(400).await;
    world.delete(&Resource::EC2_NODE_CLASSES, "default");
    world.settle(30).await;
}

/// Pods of two sizes, of which it matters who goes where, so that the scheduler is told.
async fn pods_with_a_plan() -> BTreeSet<RequestInfo> {
    let world = World::new();
    world.pass(5).await;
    for (name, cpu) in [("a", "6500m"), ("b", "6500m"), ("c", "900m"), ("d", "900m")] {
        world.create_pod(name, cpu, &json!({}));
    }
    world.pass(120).await;
    world.process.asked()
}

#[tokio::test(start_paused = true)]
async fn every_right_is_of_use() {
    let mut world = world_with_everything();
    a_day_with_everything(&mut world).await;
    let mut asked = world.process.asked();
    asked.extend(pods_with_a_plan().await);
    let mut unused = BTreeSet::new();
    for rule in RULES.iter() {
        for (resource, verb) in rule
            .resources
            .iter()
            .flat_map(|resource| rule.verbs.iter().map(move |verb| (*resource, *verb)))
        {
            if OF_THE_PROCESS.contains(&(rule.role, resource)) {
                continue;
            }
            let is_used = asked.iter().any(|it| {
                (it.verb, it.group.as_str(), it.resource.as_str()) == (verb, rule.group, resource)
            });
            if !is_used {
                unused.insert(format!("{:?}: {verb} {}/{resource}", rule.role, rule.group));
            }
        }
    }
    assert!(unused.is_empty(), "rights that nobody uses: {unused:#?}");
}
