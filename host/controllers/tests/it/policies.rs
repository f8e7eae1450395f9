//! Policy bindings: what the registry is told, and what is told of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api_server::{DeleteOptions, Resource};
use apis::ObjectKey;
use hooks::binding::{
    AppliesTo, Authority, BindingListener, BindingSource, BindingState, BindingStatus, InCharge,
    Mode, NodePoolLabels, OnFailure, PolicyRegistry,
};
use serde_json::json;

use crate::world::World;

#[derive(Default)]
pub(crate) struct Registry {
    calls: Mutex<Vec<String>>,
    failures: Mutex<Vec<String>>,
    /// Whether what was applied last is in quarantine.
    is_quarantined: Mutex<bool>,
    listener: Mutex<Option<BindingListener>>,
    pools: Mutex<NodePoolLabels>,
    /// What was applied last.
    applied: Mutex<BindingSource>,
}

impl Registry {
    fn answer(&self) -> BindingStatus {
        let applied = self.applied.lock().unwrap();
        let module = applied.data.get("builtin").cloned().unwrap_or_default();
        let (key, message) = (applied.key(), format!("builtin {module}"));
        if module != "prefer-arm64" {
            return BindingStatus::refused(key, "NoSuchBuiltin", message);
        }
        let state = if *self.is_quarantined.lock().unwrap() {
            BindingState::Quarantined
        } else {
            BindingState::Ready
        };
        BindingStatus {
            state,
            digest: Some("sha256:1".to_owned()),
            in_charge: Some(self.in_charge(&applied.annotations)),
            ..BindingStatus::refused(key, "Active", message)
        }
    }

    /// A call failed: whoever listens hears of it.
    fn fail(&self, failure: &str) {
        self.failures.lock().unwrap().push(failure.to_owned());
        let key = self.applied.lock().unwrap().key();
        let listener = self.listener.lock().unwrap().clone();
        listener.unwrap()(&key);
    }

    /// For the pools of the team that the annotation names.
    fn in_charge(&self, annotations: &BTreeMap<String, String>) -> InCharge {
        let pools = self.pools.lock().unwrap();
        let team = annotations.get("mortise.dev/nodepool-selector");
        let is_for =
            |labels: &BTreeMap<String, String>| team.is_none_or(|it| labels.contains_key(it));
        let named = pools.iter().filter(|(_, labels)| is_for(labels));
        InCharge {
            mode: Mode::Enforce,
            order: 0,
            on_failure: OnFailure::Default,
            authority: Authority::Lower,
            applies_to: AppliesTo {
                names: named.map(|(name, _)| name.clone()).collect(),
                total: pools.len(),
                unmatched: Vec::new(),
            },
        }
    }
}

impl PolicyRegistry for Registry {
    fn apply(&self, source: &BindingSource) -> BindingStatus {
        let module = source.data.get("builtin").cloned().unwrap_or_default();
        let others = source.others.iter().map(|(name, it)| {
            let settings = it.data.values().cloned().collect::<Vec<_>>().join(",");
            format!(" {name}={settings}")
        });
        self.calls.lock().unwrap().push(format!(
            "apply {} {module}{}",
            source.name,
            others.collect::<String>()
        ));
        source.clone_into(&mut self.applied.lock().unwrap());
        self.answer()
    }

    fn status(&self, _key: &ObjectKey) -> Option<BindingStatus> {
        Some(self.answer())
    }

    fn references(&self, source: &BindingSource) -> Vec<String> {
        source
            .data
            .get("config-from")
            .cloned()
            .into_iter()
            .collect()
    }

    fn set_node_pools(&self, pools: NodePoolLabels) {
        let names: Vec<&str> = pools.keys().map(String::as_str).collect();
        let told = format!("pools {}", names.join(" "));
        self.calls.lock().unwrap().push(told);
        *self.pools.lock().unwrap() = pools;
    }

    fn remove(&self, key: &ObjectKey) {
        let mut calls = self.calls.lock().unwrap();
        calls.push(format!("remove {}", key.name));
    }

    fn take_failures(&self, _key: &ObjectKey) -> Vec<String> {
        std::mem::take(&mut *self.failures.lock().unwrap())
    }

    fn listen(&self, listener: BindingListener) {
        *self.listener.lock().unwrap() = Some(listener);
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
    let applied = [
        "pools default",
        "apply arm prefer-arm64",
        "apply arm nonsense",
    ];
    world.pass(55).await;
    assert_eq!(calls(), applied, "it decides for a minute more");
    world.pass(10).await;
    assert_eq!(calls()[3..], ["remove arm"]);
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
    assert_eq!(calls[1..], ["apply arm first", "apply arm change-9-10"]);
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
    assert_eq!(calls[1..], ["apply arm one", "apply arm two"]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_of_a_policy_at_work_is_shown_at_once() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    world
        .api
        .create(&Resource::CONFIG_MAPS, "kube-system", arm("prefer-arm64"))
        .unwrap();
    world.pass(5).await;
    registry.fail("Trapped: it trapped; the built-in default decided rank-7");
    world.pass(1).await;
    let reasons = || world.event_reasons("ConfigMap");
    assert_eq!(reasons(), ["PolicyActivated", "PolicyFailed"]);
    *registry.is_quarantined.lock().unwrap() = true;
    registry.fail("Trapped: it trapped; the built-in default decided rank-8");
    world.pass(1).await;
    assert!(reasons().contains(&"PolicyQuarantined".to_owned()));
    let binding = world
        .api
        .get(&Resource::CONFIG_MAPS, "kube-system", "arm")
        .unwrap();
    let shown = binding["metadata"]["annotations"]["mortise.dev/status"].as_str();
    assert!(shown.unwrap().contains(r#""state":"Quarantined""#));
}

fn data(name: &str, value: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": {"settings": value},
    })
}

#[tokio::test(start_paused = true)]
async fn what_a_binding_names_is_read_when_it_changes_and_nothing_is_read_meanwhile() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    let maps = Resource::CONFIG_MAPS;
    let create = |object| world.api.create(&maps, "kube-system", object).unwrap();
    let mut binding = arm("prefer-arm64");
    binding["data"]["config-from"] = json!("prices");
    create(binding);
    create(data("bystander", "0"));
    world.pass(15).await;
    create(data("prices", "1"));
    world.pass(15).await;
    let read = || {
        world
            .process
            .read_from("/api/v1/namespaces/kube-system/configmaps/")
    };
    let before = read();
    let change = |name: &str, value: &str| {
        let change = json!({"data": {"settings": value}});
        world
            .api
            .patch_merge(&maps, "kube-system", name, change)
            .unwrap();
    };
    change("bystander", "1");
    world.pass(60).await;
    assert_eq!(
        read(),
        before,
        "what nobody names is not read, nor is anything that did not change"
    );
    change("prices", "2");
    world.pass(5).await;
    assert_eq!(read(), before + 1);
    world.pass(10).await;
    let options = DeleteOptions::default();
    world
        .api
        .delete(&maps, "kube-system", "prices", &options)
        .unwrap();
    world.pass(15).await;
    let calls = registry.calls.lock().unwrap().clone();
    let applied = ["", " prices=1", " prices=2", ""];
    assert_eq!(
        calls[1..],
        applied.map(|it| format!("apply arm prefer-arm64{it}"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_registry_hears_of_pools_first_and_their_change_is_shown() {
    let registry = Arc::new(Registry::default());
    let world = World::with_policies(registry.clone());
    world.pass(5).await;
    let maps = Resource::CONFIG_MAPS;
    let mut binding = arm("prefer-arm64");
    binding["metadata"]["annotations"] = json!({"mortise.dev/nodepool-selector": "team"});
    world.api.create(&maps, "kube-system", binding).unwrap();
    let shown = || {
        let map = world.api.get(&maps, "kube-system", "arm").unwrap();
        let text = map["metadata"]["annotations"]["mortise.dev/status"].clone();
        let status = text.as_str().map(|it| serde_json::from_str(it).unwrap());
        let status: serde_json::Value = status.unwrap_or_default();
        status["appliesTo"].as_str().unwrap_or_default().to_owned()
    };
    world.pass(5).await;
    assert_eq!(shown(), "none of 1");
    let labels = json!({"metadata": {"labels": {"team": "web"}}});
    world
        .api
        .patch_merge(&Resource::NODE_POOLS, "", "default", labels)
        .unwrap();
    world.pass(5).await;
    assert_eq!(shown(), "all of 1");
    let calls = registry.calls.lock().unwrap().clone();
    assert_eq!(
        calls,
        ["pools default", "apply arm prefer-arm64", "pools default"]
    );
    let team = registry.pools.lock().unwrap()["default"]["team"].clone();
    assert_eq!(team, "web");
    let reasons = world.event_reasons("ConfigMap");
    assert_eq!(reasons, ["PolicyActivated", "PolicyNodePoolNotFound"]);
}
