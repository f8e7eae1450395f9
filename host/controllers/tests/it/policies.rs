//! Policy bindings: what the registry is told, and what is told of it.

use std::sync::{Arc, Mutex};

use controllers::{BindingReport, BindingSource, BindingState, PolicyRegistry};
use serde_json::json;
use sim::api_server::{DeleteOptions, Resource};

use crate::world::World;

#[derive(Default)]
struct Registry {
    calls: Mutex<Vec<String>>,
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
        .until("degraded", 2, |world| {
            state(world).as_deref() == Some("Degraded")
        })
        .await;
    world.pass(60).await;
    world
        .api
        .delete(&maps, "kube-system", "arm", &DeleteOptions::default())
        .unwrap();
    world.pass(2).await;
    let calls = registry.calls.lock().unwrap().clone();
    assert_eq!(
        calls,
        ["apply arm prefer-arm64", "apply arm nonsense", "remove arm"]
    );
    let reasons = world.event_reasons("ConfigMap");
    assert_eq!(reasons, ["PolicyActivated", "PolicyRejected"]);
}
