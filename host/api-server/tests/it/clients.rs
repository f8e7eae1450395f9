//! The API server as its clients see it: kube's own client and watcher, through the tower service and the listener.

use std::pin::pin;

use api_server::{ApiServer, DeleteOptions, NamespacedName, Resource, kubeconfig, serve};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::KubeConfigOptions;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::rig::{must, pod, server};

fn client(server: &ApiServer) -> Client {
    Client::new(server.clone(), "default")
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kube_lists_in_pages_and_selects() {
    let server = server();
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
        let server = server();
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
    let server = server();
    let key = NamespacedName::new("default", "c");
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
    let server = server();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let params = WatchParams::default().timeout(100);
    let mut events = pin!(maps.watch(&params, "1").await.unwrap());
    let first = events.next().await.unwrap().unwrap();
    assert!(matches!(first, kube::api::WatchEvent::Bookmark(_)));
    assert!(events.next().await.is_none());
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kube_writes_with_conflicts_and_preconditions() {
    let server = server();
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
    let server = server();
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
    let server = server();
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
    let server = server();
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

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn values_of_the_wrong_type_are_refused_with_their_field() {
    let server = server();
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

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn openapi_names_the_version_that_the_server_claims() {
    let server = server();
    server.claim_minor_version(29);
    let request = http::Request::get("/openapi/v3/api/v1");
    let request = request.body(Vec::new()).unwrap();
    let document: Value = client(&server).request(request).await.unwrap();
    assert_eq!(document["info"]["version"], "v1.29.0");
}

#[tokio::test(flavor = "current_thread")]
async fn the_listener_asks_for_its_token() {
    let server = server();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(server, listener, "secret".to_owned()));
    for (token, is_admitted) in [("secret", true), ("guess", false)] {
        let text = kubeconfig(address, token);
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let pods: Api<Pod> = Api::all(client);
        let listed = pods.list(&ListParams::default()).await;
        assert_eq!(listed.is_ok(), is_admitted, "{token}: {listed:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_listener_stays_on_loopback() {
    let server = server();
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refusal = serve(server, listener, "secret".to_owned())
        .await
        .unwrap_err();
    assert!(
        refusal.to_string().contains("loopback addresses only"),
        "{refusal}"
    );
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn both_groups_read_the_same_events() {
    use k8s_openapi::api::{core::v1::Event as CoreEvent, events::v1::Event};
    let server = server();
    let client = client(&server);
    let pool = json!({"kind": "NodePool", "name": "default", "apiVersion": "karpenter.sh/v1"});
    let reporter = kube::runtime::events::Reporter::from("mortise");
    let recorder = kube::runtime::events::Recorder::new(client.clone(), reporter);
    let event = kube::runtime::events::Event {
        type_: kube::runtime::events::EventType::Normal,
        reason: "Tried".to_owned(),
        note: Some("as told".to_owned()),
        action: "Trying".to_owned(),
        secondary: None,
    };
    recorder
        .publish(&event, &serde_json::from_value(pool).unwrap())
        .await
        .unwrap();
    let selected = ListParams::default().fields("involvedObject.name=default");
    let core: Api<CoreEvent> = Api::all(client.clone());
    let core = core.list(&selected).await.unwrap();
    assert_eq!(core.items[0].message.as_deref(), Some("as told"));
    let events: Api<Event> = Api::all(client);
    let events = events.list(&ListParams::default()).await.unwrap();
    assert_eq!(events.items[0].note.as_deref(), Some("as told"));
    assert_eq!(
        events.items[0].reporting_controller.as_deref(),
        Some("mortise")
    );
}
