//! Lists over HTTP: pages, and what may be selected by.

use api_server::{DeleteOptions, Resource};
use serde_json::{Value, json};

use crate::rig::{WIDGETS, get, must, pod, server, widgets};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn pages_follow_each_other_and_count_what_is_left() {
    let server = server();
    for number in 0..5 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    let first = get(&server, &format!("{PODS}?limit=2")).await;
    // What comes and goes between pages is seen where the list has not been yet.
    must(server.create(&Resource::PODS, "default", pod("p00")));
    must(server.create(&Resource::PODS, "default", pod("p9")));
    must(server.delete(&Resource::PODS, "default", "p3", &DeleteOptions::now()));
    let wanted = [
        (vec!["p0", "p1"], json!(3)),
        (vec!["p2", "p4"], json!(1)),
        (vec!["p9"], Value::Null),
    ];
    let mut page = first;
    let revision = page.body()["metadata"]["resourceVersion"].clone();
    for (at, (named, remaining)) in wanted.into_iter().enumerate() {
        let list = page.body();
        assert_eq!(names(list), named);
        let metadata = &list["metadata"];
        assert_eq!(metadata["remainingItemCount"], remaining);
        // A watch from any of them misses nothing.
        assert_eq!(metadata["resourceVersion"], revision);
        let Some(token) = metadata["continue"].as_str() else {
            assert_eq!(at, 2, "the last page");
            break;
        };
        page = get(&server, &format!("{PODS}?limit=2&continue={token}")).await;
        assert_eq!(page.code, 200, "{page:?}");
    }
}

/// Kubernetes leaves out how many are left where a selector would have to be asked of each of them.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn what_is_left_of_a_selection_is_not_counted() {
    let server = server();
    for number in 0..5 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    for selector in ["labelSelector=app%3Dweb", "fieldSelector=spec.nodeName%3D"] {
        let page = get(&server, &format!("{PODS}?limit=2&{selector}")).await;
        let metadata = &page.body()["metadata"];
        assert!(metadata["continue"].is_string(), "{selector}: {metadata}");
        assert!(
            metadata["remainingItemCount"].is_null(),
            "{selector}: {metadata}"
        );
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_page_of_a_time_long_gone_is_refused() {
    let server = server();
    server.stay_small();
    for number in 0..3 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    let page = get(&server, &format!("{PODS}?limit=1")).await;
    let token = page.body()["metadata"]["continue"].as_str().unwrap();
    let next = format!("{PODS}?limit=1&continue={token}");
    assert_eq!(get(&server, &next).await.code, 200);
    for number in 3..9 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    let refusal = get(&server, &next).await;
    assert_eq!(refusal.code, 410);
    assert_eq!(refusal.body()["reason"], "Expired");
    let refusal = get(&server, &format!("{PODS}?continue=nonsense")).await;
    assert_eq!(refusal.code, 400, "{refusal:?}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kinds_are_selected_by_the_fields_that_kubernetes_serves() {
    let server = server();
    let mut definition = widgets();
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    must(server.install_crd(&definition));
    let cases = [
        ("/api/v1/pods", "metadata.name=a,metadata.namespace=b", 200),
        ("/api/v1/pods", "spec.nodeName=a,status.phase!=Running", 200),
        ("/api/v1/pods", "spec.priority=0", 400),
        ("/api/v1/nodes", "spec.unschedulable=true", 200),
        ("/api/v1/nodes", "spec.providerID=a", 400),
        ("/api/v1/configmaps", "metadata.name=a", 200),
        ("/api/v1/configmaps", "data.a=1", 400),
        (
            "/api/v1/events",
            "involvedObject.name=a,reason=b,source=c",
            200,
        ),
        ("/api/v1/events", "regarding.name=a", 400),
        ("/apis/events.k8s.io/v1/events", "regarding.name=a", 200),
        (
            "/apis/events.k8s.io/v1/events",
            "involvedObject.name=a",
            400,
        ),
        ("/apis/batch/v1/jobs", "status.successful=0", 200),
        ("/apis/batch/v1/jobs", "status.succeeded=0", 400),
        ("/apis/apps/v1/replicasets", "status.replicas=0", 200),
        ("/apis/apps/v1/deployments", "status.replicas=0", 400),
        ("/apis/example.com/v1/widgets", "spec.color=red", 200),
        ("/apis/example.com/v1/widgets", "spec.size=1", 400),
        ("/apis/example.com/v1/widgets", "metadata.name", 400),
    ];
    for (path, selector, code) in cases {
        for verb in ["", "&watch=true&timeoutSeconds=1"] {
            let selector = selector.replace('=', "%3D");
            let answer = get(&server, &format!("{path}?fieldSelector={selector}{verb}")).await;
            assert_eq!(answer.code, code, "{path} {selector}{verb}: {answer:?}");
        }
    }
    let refusal = get(&server, "/api/v1/pods?fieldSelector=spec.priority%3D0").await;
    assert_eq!(
        refusal.message(),
        "field label not supported: spec.priority"
    );
    let refusal = get(&server, "/api/v1/pods?labelSelector=app%3D-web").await;
    assert_eq!(refusal.code, 400, "{refusal:?}");
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn objects_are_selected_by_fields_of_their_kind() {
    let server = server();
    let mut definition = widgets();
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    must(server.install_crd(&definition));
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let widget = json!({"metadata": {"name": name}, "spec": {"size": 1, "color": color}});
        must(server.create(&WIDGETS, "", widget));
    }
    for name in ["x", "y"] {
        let event = json!({
            "metadata": {"name": name}, "reason": "R", "source": {"component": name},
            "involvedObject": {"kind": "Pod", "name": name},
        });
        must(server.create(&Resource::EVENTS, "default", event));
    }
    let cases = [
        (
            "/apis/example.com/v1/widgets",
            "spec.color=red",
            vec!["a", "c"],
        ),
        ("/apis/example.com/v1/widgets", "spec.color!=red", vec!["b"]),
        (
            "/apis/example.com/v1/widgets",
            "spec.color=red,metadata.name=c",
            vec!["c"],
        ),
        ("/api/v1/events", "source=x", vec!["x"]),
        (
            "/apis/events.k8s.io/v1/events",
            "regarding.name=y",
            vec!["y"],
        ),
    ];
    for (path, selector, wanted) in cases {
        let selector = selector.replace('=', "%3D");
        let answer = get(&server, &format!("{path}?fieldSelector={selector}")).await;
        assert_eq!(names(answer.body()), wanted, "{selector}");
    }
}
