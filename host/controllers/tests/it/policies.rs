//! Policy bindings: what the registry is told, and what is told of it.

use std::sync::{Arc, Mutex};

use controllers::{BindingReport, BindingSource, BindingState, PolicyRegistry};
use serde_json::json;
use sim::api_server::{DeleteOptions, Resource};

use crate::world::World;

#[derive(Default)]
struct Registry {
    calls: Mutex<Vec<String>>,
    failures: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl PolicyRegistry for Registry {
    async fn apply(&self, source: BindingSource) -> BindingReport {
        let module = source.data.get("builtin").cloned().unwrap_or_default();
        self.calls
            .lock()
            .unwrap()
            .push(format!("apply {} {module}", source.name));
        let is_known = module == "prefer-arm64";
        BindingReport {
            state: if is_known {
                BindingState::Ready
            } else {
                BindingState::Degraded
            },
            digest: is_known.then(|| "sha256:1".to_owned()),
            reason: if is_known { "Active" } else { "NoSuchBuiltin" }.to_owned(),
            message: format!("builtin {module}"),
        }
    }

    async fn remove(&self, _namespace: &str, name: &str) {
        self.calls.lock().unwrap().push(format!("remove {name}"));
    }

    fn failures(&self, _namespace: &str, _name: &str) -> Vec<String> {
        std::mem::take(&mut *self.failures.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_binding_is_applied_once_for_each_change_and_its_state_is_shown() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    let maps = Resource::CONFIG_MAPS;
    let binding = |module: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "arm", "namespace": "kube-system", "labels": {"mortise.dev/policy": "rank"}},
            "data": {"builtin": module},
        })
    };
    let state = |world: &World| {
        let map = world.api.get(&maps, "kube-system", "arm").unwrap();
        let text = map["metadata"]["annotations"]["mortise.dev/status"]
            .as_str()?
            .to_owned();
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        Some(status["state"].as_str().unwrap().to_owned())
    };
    world
        .api
        .create(&maps, "kube-system", binding("prefer-arm64"))
        .unwrap();
    let took = world
        .until("ready", 2, |world| state(world).as_deref() == Some("Ready"))
        .await;
    assert!(took < 2);
    let broken = json!({"data": {"builtin": "nonsense"}});
    world
        .api
        .patch_merge(&maps, "kube-system", "arm", broken)
        .unwrap();
    world
        .until("degraded", 12, |world| {
            state(world).as_deref() == Some("Degraded")
        })
        .await;
    world.pass(60).await;
    world
        .api
        .delete(&maps, "kube-system", "arm", &DeleteOptions::default())
        .unwrap();
    let calls = || registry.calls.lock().unwrap().clone();
    let applied = ["apply arm prefer-arm64", "apply arm nonsense"];
    world.pass(55).await;
    assert_eq!(calls(), applied, "it decides for a minute more");
    world.pass(10).await;
    assert_eq!(calls(), [applied[0], applied[1], "remove arm"]);
    let reasons = world.event_reasons("ConfigMap");
    assert_eq!(reasons, ["PolicyActivated", "PolicyRejected"]);
}

fn arm(module: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "arm", "namespace": "kube-system", "labels": {"mortise.dev/policy": "rank"}},
        "data": {"builtin": module},
    })
}

#[tokio::test(start_paused = true)]
async fn a_hundred_changes_in_ten_seconds_are_two_swaps_and_the_last_one_counts() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    let maps = Resource::CONFIG_MAPS;
    world
        .api
        .create(&maps, "kube-system", arm("first"))
        .unwrap();
    world.pass(1).await;
    for second in 1..10 {
        for tenth in 0..11 {
            let module = json!({"data": {"builtin": format!("change-{second}-{tenth}")}});
            world
                .api
                .patch_merge(&maps, "kube-system", "arm", module)
                .unwrap();
        }
        world.pass(1).await;
    }
    world.pass(30).await;
    let calls = registry.calls.lock().unwrap().clone();
    assert_eq!(calls, ["apply arm first", "apply arm change-9-10"]);
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_is_replaced_within_a_minute_never_stops_deciding() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    let maps = Resource::CONFIG_MAPS;
    let create = |module| {
        world.api.create(&maps, "kube-system", arm(module)).unwrap();
    };
    create("one");
    world.pass(15).await;
    world
        .api
        .delete(&maps, "kube-system", "arm", &DeleteOptions::default())
        .unwrap();
    world.pass(20).await;
    create("two");
    world.pass(120).await;
    let calls = registry.calls.lock().unwrap().clone();
    assert_eq!(calls, ["apply arm one", "apply arm two"]);
}

#[tokio::test(start_paused = true)]
async fn failures_at_work_become_events() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    world
        .api
        .create(&Resource::CONFIG_MAPS, "kube-system", arm("prefer-arm64"))
        .unwrap();
    world.pass(5).await;
    registry
        .failures
        .lock()
        .unwrap()
        .push("Trapped: it trapped; the built-in default decided rank-7".to_owned());
    world.pass(20).await;
    let reasons = world.event_reasons("ConfigMap");
    assert_eq!(reasons, ["PolicyActivated", "PolicyFailed"]);
}
