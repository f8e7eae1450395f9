//! The API server as its clients see it: kube's own client and watcher through the tower service, and the direct
//! calls of the simulated world.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sim::api_server::{
    ApiServer, Change, DeleteOptions, ObjectKey, Propagation, Resource, Selection, Status,
};

/// A server whose clock the test moves.
fn server() -> (ApiServer, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(1_700_000_000));
    let clock = seconds.clone();
    let now = Arc::new(move || {
        Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
    });
    (ApiServer::new(7, now), seconds)
}

fn client(server: &ApiServer) -> Client {
    Client::new(server.clone(), "default")
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    })
}

fn must<T>(result: Result<T, Status>) -> T {
    result.unwrap_or_else(|status| panic!("{status}"))
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object", "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                "replicas": {"type": "integer"},
                                "color": {"type": "string", "default": "red",
                                          "enum": ["red", "blue"]},
                                "parts": {
                                    "type": "array", "maxItems": 2,
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {"type": "object", "required": ["name"], "properties": {
                                        "name": {"type": "string", "pattern": "^[a-z]+$"},
                                        "count": {"type": "integer"},
                                    }},
                                },
                            },
                            "x-kubernetes-validations": [
                                {"rule": "self.size >= oldSelf.size", "message": "size never shrinks"},
                                {"rule": "!has(self.parts) || self.parts.all(p, p.name != 'bad')",
                                 "message": "no bad part"},
                            ],
                        },
                        "status": {"type": "object", "properties": {
                            "replicas": {"type": "integer"},
                        }},
                    },
                }},
            }],
        },
    })
}

const WIDGETS: Resource = Resource::fixed("example.com", "widgets");

fn widget(spec: impl Into<Value>) -> Value {
    json!({"metadata": {"name": "w"}, "spec": spec.into()})
}

#[test]
fn pods_are_defaulted_as_kubernetes_defaults_them() {
    let (server, _) = server();
    let mut object = pod("a");
    object["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    object["spec"]["priorityClassName"] = "system-node-critical".into();
    let stored = must(server.create(&Resource::PODS, "default", object));
    let spec = &stored["spec"];
    assert_eq!(spec["containers"][0]["resources"]["requests"]["cpu"], "1");
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(spec["priority"], 2_000_001_000);
    assert_eq!(spec["tolerations"][0]["tolerationSeconds"], 300);
    assert_eq!(
        stored["status"],
        json!({"phase": "Pending", "qosClass": "Burstable"})
    );
}

#[test]
fn refusals_name_kind_name_field_and_reason() {
    let deployment = |change: fn(&mut Value)| {
        let mut object = json!({
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                             "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
            },
        });
        change(&mut object);
        object
    };
    let cases: [(Resource, Value, &str); 6] = [
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"containers": []}}),
            "Pod \"a\" is invalid: spec.containers: Required value",
        ),
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "lots"}}}]}}),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"lots\": quantities must match",
        ),
        (
            Resource::CONFIG_MAPS,
            json!({"metadata": {"name": "No_Good"}}),
            "ConfigMap \"No_Good\" is invalid: metadata.name: Invalid value: \"No_Good\"",
        ),
        (
            Resource::DEPLOYMENTS,
            deployment(|d| d["spec"]["selector"]["matchLabels"]["app"] = "other".into()),
            "`selector` does not match template `labels`",
        ),
        (
            Resource::DEPLOYMENTS,
            deployment(|d| d["spec"]["replicas"] = (-1).into()),
            "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1",
        ),
        (
            Resource::PODS,
            json!({"metadata": {"name": "a"}, "spec": {"priorityClassName": "none",
                "containers": [{"name": "c", "image": "i"}]}}),
            "pods \"a\" is forbidden: no PriorityClass with name none was found",
        ),
    ];
    let (server, _) = server();
    for (resource, object, words) in cases {
        let status = server.create(&resource, "default", object).unwrap_err();
        assert!(
            status.message.contains(words),
            "{}\nlacks {words}",
            status.message
        );
    }
}

#[test]
fn custom_resources_are_pruned_defaulted_and_validated() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    let stored = must(server.create(&WIDGETS, "", widget(json!({"size": 2, "wieght": 1}))));
    assert_eq!(stored["spec"], json!({"size": 2, "color": "red"}));
    assert_eq!(stored["metadata"]["generation"], 1);
    let refused = [
        (json!({}), "spec.size: Required value"),
        (json!({"size": 10}), "should be less than or equal to 9"),
        (json!({"size": "2"}), "must be of type integer: \"string\""),
        (
            json!({"size": 2, "color": "green"}),
            "supported values: \"red\", \"blue\"",
        ),
        (
            json!({"size": 2, "parts": [{"name": "A"}]}),
            "spec.parts[0].name in body should match",
        ),
        (
            json!({"size": 2, "parts": [{"name": "a"}, {"name": "a"}]}),
            "Duplicate value",
        ),
        (
            json!({"size": 2, "parts": [{"name": "bad"}]}),
            "no bad part",
        ),
        (json!({"size": 1}), "size never shrinks"),
    ];
    for (spec, words) in refused {
        let status = server.update(&WIDGETS, widget(spec)).unwrap_err();
        assert_eq!(status.code, 422);
        assert!(
            status.message.contains(words),
            "{}\nlacks {words}",
            status.message
        );
    }
    let grown = must(server.update(&WIDGETS, widget(json!({"size": 3}))));
    assert_eq!(grown["metadata"]["generation"], 2);
    let scaled = must(server.scale(&WIDGETS, "", "w", 4));
    assert_eq!(scaled["spec"]["replicas"], 4);
}

#[test]
fn status_and_spec_are_kept_apart() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    must(server.create(&WIDGETS, "", widget(json!({"size": 2}))));
    let mut both = widget(json!({"size": 5}));
    both["status"] = json!({"replicas": 1});
    let after = must(server.update_status(&WIDGETS, both.clone()));
    assert_eq!(
        (&after["spec"]["size"], &after["status"]["replicas"]),
        (&json!(2), &json!(1))
    );
    both["status"] = json!({"replicas": 9});
    let after = must(server.update(&WIDGETS, both));
    assert_eq!(
        (&after["spec"]["size"], &after["status"]["replicas"]),
        (&json!(5), &json!(1))
    );
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_off() {
    let (server, _) = server();
    must(server.install_crd(&widgets()));
    let mut object = widget(json!({"size": 2}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    must(server.create(&WIDGETS, "", object));
    let marked = must(server.delete(&WIDGETS, "", "w", &DeleteOptions::default()));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let key = ObjectKey::new("", "w");
    must(server.modify(&WIDGETS, &key, |o| o["metadata"]["finalizers"] = json!([])));
    assert!(server.get(&WIDGETS, "", "w").unwrap_err().is_not_found());
}

#[test]
fn owned_objects_go_with_their_owner() {
    for (propagation, is_left) in [
        (Propagation::Background, false),
        (Propagation::Foreground, false),
        (Propagation::Orphan, true),
    ] {
        let (server, _) = server();
        let owner = must(server.create(
            &Resource::CONFIG_MAPS,
            "default",
            json!({"metadata": {"name": "o"}}),
        ));
        let mut owned = pod("p");
        owned["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "o",
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        }]);
        must(server.create(&Resource::PODS, "default", owned));
        let options = DeleteOptions {
            propagation,
            ..DeleteOptions::default()
        };
        must(server.delete(&Resource::CONFIG_MAPS, "default", "o", &options));
        assert!(server.get(&Resource::CONFIG_MAPS, "default", "o").is_err());
        let pod = server.get(&Resource::PODS, "default", "p");
        assert_eq!(pod.is_ok(), is_left, "{propagation:?}");
        if let Ok(pod) = pod {
            assert!(pod["metadata"]["ownerReferences"].is_null());
        }
    }
}

#[test]
fn a_bound_pod_is_given_its_grace() {
    let (server, _) = server();
    must(server.create(&Resource::PODS, "default", pod("a")));
    must(server.bind("default", "a", "n1"));
    let marked = must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::default()));
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        marked["metadata"]["deletionTimestamp"],
        "2023-11-14T22:13:50Z"
    );
    must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::now()));
    assert!(server.get(&Resource::PODS, "default", "a").is_err());
}

fn guarded_pod(server: &ApiServer, budgets: &[&str]) {
    must(server.create(&Resource::PODS, "default", pod("a")));
    must(server.bind("default", "a", "n1"));
    must(server.patch_merge_status(
        &Resource::PODS,
        "default",
        "a",
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
    ));
    for name in budgets {
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        });
        must(server.create(&Resource::POD_DISRUPTION_BUDGETS, "default", budget));
    }
}

#[test]
fn evictions_honour_budgets() {
    let (server, _) = server();
    guarded_pod(&server, &["b"]);
    let status = |allowed: i64| {
        json!({"status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
                          "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}})
    };
    let budgets = &Resource::POD_DISRUPTION_BUDGETS;
    must(server.patch_merge_status(budgets, "default", "b", status(0)));
    let refusal = server
        .evict("default", "a", &DeleteOptions::default())
        .unwrap_err();
    assert_eq!(refusal.code, 429);
    assert_eq!(
        refusal.to_value()["details"]["causes"][0]["reason"],
        "DisruptionBudget"
    );
    must(server.patch_merge_status(budgets, "default", "b", status(1)));
    must(server.evict("default", "a", &DeleteOptions::default()));
    let spent = must(server.get(budgets, "default", "b"));
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"]["a"].is_string());
}

#[test]
fn two_budgets_over_one_pod_are_an_error() {
    let (server, _) = server();
    guarded_pod(&server, &["b", "c"]);
    assert_eq!(
        server
            .evict("default", "a", &DeleteOptions::default())
            .unwrap_err()
            .code,
        500
    );
}

#[test]
fn a_namespace_takes_its_content_with_it() {
    let (server, _) = server();
    must(server.create(
        &Resource::NAMESPACES,
        "",
        json!({"metadata": {"name": "x"}}),
    ));
    must(server.create(
        &Resource::CONFIG_MAPS,
        "x",
        json!({"metadata": {"name": "c"}}),
    ));
    must(server.delete(&Resource::NAMESPACES, "", "x", &DeleteOptions::default()));
    assert!(
        server
            .list(&Resource::CONFIG_MAPS, &Selection::namespace("x"))
            .is_empty()
    );
    let status = server
        .create(
            &Resource::CONFIG_MAPS,
            "x",
            json!({"metadata": {"name": "c"}}),
        )
        .unwrap_err();
    assert_eq!(status.message, "namespaces \"x\" not found");
}

#[test]
fn watches_see_changes_through_their_selection() {
    let (server, _) = server();
    let selection = Selection::everything().labelled("app=web").unwrap();
    let (listed, mut watch) = server.list_and_watch(&Resource::PODS, &selection);
    assert!(listed.is_empty());
    must(server.create(&Resource::PODS, "default", pod("a")));
    let key = ObjectKey::new("default", "a");
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["x"] = "1".into();
    }));
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["app"] = "db".into();
    }));
    must(server.modify(&Resource::PODS, &key, |o| {
        o["metadata"]["labels"]["y"] = "1".into();
    }));
    let seen: Vec<Change> = std::iter::from_fn(|| watch.try_next())
        .map(|e| e.change)
        .collect();
    assert_eq!(seen, [Change::Added, Change::Modified, Change::Deleted]);
}

#[test]
fn equal_seeds_give_equal_worlds() {
    let names = || {
        let (server, _) = server();
        let object = json!({"metadata": {"generateName": "p-"},
                            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let made = must(server.create(&Resource::PODS, "default", object));
        (
            made["metadata"]["name"].clone(),
            made["metadata"]["uid"].clone(),
        )
    };
    assert_eq!(names(), names());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kube_lists_in_pages_and_selects() {
    let (server, _) = server();
    for number in 0..7 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    must(server.bind("default", "p3", "n1"));
    let pods: Api<Pod> = Api::default_namespaced(client(&server));
    let mut page = pods.list(&ListParams::default().limit(3)).await.unwrap();
    let mut names: Vec<String> = page.items.iter().map(ResourceExt::name_any).collect();
    while let Some(token) = page.metadata.continue_.filter(|t| !t.is_empty()) {
        page = pods
            .list(&ListParams::default().limit(3).continue_token(&token))
            .await
            .unwrap();
        names.extend(page.items.iter().map(ResourceExt::name_any));
    }
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
    let bound = pods
        .list(&ListParams::default().fields("spec.nodeName=n1"))
        .await
        .unwrap();
    assert_eq!(bound.items.len(), 1);
    let unbound = pods
        .list(&ListParams::default().fields("spec.nodeName="))
        .await
        .unwrap();
    assert_eq!(unbound.items.len(), 6);
    let selected = pods
        .list(&ListParams::default().labels("app in (web,db),!x"))
        .await
        .unwrap();
    assert_eq!(selected.items.len(), 7);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kube_watchers_follow_either_way() {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let (server, _) = server();
        must(server.create(&Resource::PODS, "default", pod("a")));
        let mut events = pin!(watcher(Api::<Pod>::all(client(&server)), config));
        let mut seen = Vec::new();
        while seen.len() < 5 {
            let event = events.next().await.unwrap().unwrap();
            seen.push(match event {
                watcher::Event::Init => "init",
                watcher::Event::InitApply(_) => "init-apply",
                watcher::Event::InitDone => {
                    must(server.create(&Resource::PODS, "default", pod("b")));
                    let options = DeleteOptions::default();
                    must(server.delete(&Resource::PODS, "default", "a", &options));
                    "init-done"
                }
                watcher::Event::Apply(_) => "apply",
                watcher::Event::Delete(_) => "delete",
            });
        }
        assert_eq!(seen, ["init", "init-apply", "init-done", "apply", "delete"]);
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_forgotten_revision_is_gone() {
    let (server, _) = server();
    let key = ObjectKey::new("default", "c");
    must(server.create(
        &Resource::CONFIG_MAPS,
        "default",
        json!({"metadata": {"name": "c"}}),
    ));
    for number in 0..5000 {
        must(server.modify(&Resource::CONFIG_MAPS, &key, |o| {
            o["data"] = json!({"n": number.to_string()});
        }));
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let mut events = pin!(maps.watch(&WatchParams::default(), "1").await.unwrap());
    match events.next().await.unwrap().unwrap() {
        kube::api::WatchEvent::Error(status) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn watches_end_after_their_time_and_bookmark_on_the_way() {
    let (server, _) = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let params = WatchParams::default().timeout(100);
    let mut events = pin!(maps.watch(&params, "1").await.unwrap());
    let first = events.next().await.unwrap().unwrap();
    assert!(matches!(first, kube::api::WatchEvent::Bookmark(_)));
    assert!(events.next().await.is_none());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kube_writes_with_conflicts_and_preconditions() {
    let (server, _) = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let object: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "c"}, "data": {"a": "1"}})).unwrap();
    let made = maps.create(&PostParams::default(), &object).await.unwrap();
    let mut fresh = made.clone();
    fresh.data = Some([("a".to_owned(), "2".to_owned())].into());
    maps.replace("c", &PostParams::default(), &fresh)
        .await
        .unwrap();
    let stale = maps
        .replace("c", &PostParams::default(), &fresh)
        .await
        .unwrap_err();
    assert!(matches!(stale, kube::Error::Api(s) if s.code == 409));
    let wrong = DeleteParams::default().preconditions(kube::api::Preconditions {
        uid: Some("other".to_owned()),
        resource_version: None,
    });
    assert!(maps.delete("c", &wrong).await.is_err());
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut other = object.clone();
    other.metadata.name = Some("d".to_owned());
    maps.create(&dry, &other).await.unwrap();
    assert!(maps.get_opt("d").await.unwrap().is_none());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn apply_owns_fields_and_lets_go_of_them() {
    let (server, _) = server();
    let client = client(&server);
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::default_namespaced(client.clone());
    let intent = |image: &str, env: Value, replicas: Option<i64>| {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                             "spec": {"containers": [{"name": "c", "image": image, "env": env}]}},
            },
        });
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = replicas.into();
        }
        Patch::Apply(object)
    };
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    deployments
        .patch("web", &one, &intent("nginx:1", env, Some(3)))
        .await
        .unwrap();
    let scale = Patch::Apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 5},
    }));
    let conflict = deployments.patch("web", &two, &scale).await.unwrap_err();
    assert!(
        conflict.to_string().contains(".spec.replicas"),
        "{conflict}"
    );
    let taken = deployments
        .patch("web", &two.clone().force(), &scale)
        .await
        .unwrap();
    assert_eq!(taken.spec.unwrap().replicas, Some(5));
    // What is no longer stated goes, unless another manager owns it.
    let env = json!([{"name": "A", "value": "1"}]);
    let after = deployments
        .patch("web", &one, &intent("nginx:1", env, None))
        .await
        .unwrap();
    let spec = after.spec.unwrap();
    assert_eq!(spec.replicas, Some(5));
    let container = &spec.template.spec.unwrap().containers[0];
    let names: Vec<_> = container
        .env
        .iter()
        .flatten()
        .map(|e| e.name.as_str())
        .collect();
    assert_eq!(names, ["A"]);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn strategic_patches_merge_lists_by_their_keys() {
    let (server, _) = server();
    let mut object = pod("a");
    object["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}]);
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": object["spec"]}},
    });
    must(server.create(&Resource::DEPLOYMENTS, "default", deployment));
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::default_namespaced(client(&server));
    let change = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "env": [{"name": "B", "value": "2"}]},
        {"name": "d", "image": "busybox"},
    ]}}}});
    let after = deployments
        .patch("d", &PatchParams::default(), &Patch::Strategic(change))
        .await
        .unwrap();
    let containers = after.spec.unwrap().template.spec.unwrap().containers;
    let env = containers[0].env.as_ref().unwrap();
    assert_eq!((containers.len(), env.len()), (2, 2));
    assert_eq!(containers[0].image.as_deref(), Some("nginx:1"));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unknown_kinds_are_not_found() {
    let (server, _) = server();
    let resource = kube::api::ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.com/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    let api: Api<kube::api::DynamicObject> = Api::all_with(client(&server), &resource);
    let error = api.list(&ListParams::default()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the server could not find the requested resource")
    );
}

#[test]
fn events_age_out() {
    let (server, seconds) = server();
    let event = |name: &str| {
        json!({"metadata": {"name": name}, "reason": "R",
        "involvedObject": {"kind": "Pod", "name": "a"}})
    };
    must(server.create(&Resource::EVENTS, "default", event("old")));
    seconds.fetch_add(3600, Ordering::Relaxed);
    must(server.create(&Resource::EVENTS, "default", event("new")));
    assert_eq!(
        server
            .list(&Resource::EVENTS, &Selection::everything())
            .len(),
        1
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn values_of_the_wrong_type_are_refused_with_their_field() {
    let (server, _) = server();
    let resource = kube::api::ApiResource::erase::<Pod>(&());
    let pods: Api<kube::api::DynamicObject> =
        Api::default_namespaced_with(client(&server), &resource);
    let mut object = pod("a");
    object["apiVersion"] = "v1".into();
    object["kind"] = "Pod".into();
    // Quantities may be numbers, names may not.
    object["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": 0.5}});
    let good = serde_json::from_value(object.clone()).unwrap();
    pods.create(&PostParams::default(), &good).await.unwrap();
    object["spec"]["containers"] = "x".into();
    let bad = serde_json::from_value(object).unwrap();
    let error = pods.create(&PostParams::default(), &bad).await.unwrap_err();
    assert!(
        error.to_string().contains("cannot unmarshal string"),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("Pod.spec.containers of type array"),
        "{error}"
    );
}
