//! Watches over HTTP: where they begin, what they tell, and how they end.

use api_server::{ApiServer, DeleteOptions, NamespacedName, Resource};
use serde_json::{Value, json};

use crate::rig::{Answer, get, must, pod, server};

const MAPS: &str = "/api/v1/configmaps?watch=true&timeoutSeconds=1";

/// The types of the events, each with the name of its object.
fn told(answer: &Answer) -> Vec<String> {
    let lines = answer.lines.iter();
    lines
        .map(|it| {
            let name = it["object"]["metadata"]["name"].as_str();
            format!("{} {}", it["type"].as_str().unwrap(), name.unwrap_or("-"))
        })
        .collect()
}

fn revision(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

fn make_map(server: &ApiServer, name: &str) -> String {
    let map = json!({"metadata": {"name": name}});
    let map = must(server.create(&Resource::CONFIG_MAPS, "default", map));
    revision(&map).to_owned()
}

fn change_map(server: &ApiServer, name: &str, value: usize) -> String {
    let key = NamespacedName::new("default", name);
    let map = must(server.modify(&Resource::CONFIG_MAPS, &key, |map| {
        map["data"] = json!({"n": value.to_string()});
    }));
    revision(&map).to_owned()
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn watches_begin_where_they_are_asked_to() {
    let server = server();
    let made = make_map(&server, "a");
    make_map(&server, "b");
    let changed = change_map(&server, "a", 1);
    must(server.delete(
        &Resource::CONFIG_MAPS,
        "default",
        "b",
        &DeleteOptions::default(),
    ));
    let now = server.revision();
    let cases = [
        (String::new(), vec!["ADDED a"]),
        ("&resourceVersion=0".to_owned(), vec!["ADDED a"]),
        (
            format!("&resourceVersion={made}"),
            vec!["ADDED b", "MODIFIED a", "DELETED b"],
        ),
        (format!("&resourceVersion={changed}"), vec!["DELETED b"]),
        (format!("&resourceVersion={now}"), vec![]),
        (
            format!("&resourceVersion={made}&fieldSelector=metadata.name%3Da"),
            vec!["MODIFIED a"],
        ),
        (
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
                .to_owned(),
            vec!["ADDED a", "BOOKMARK -"],
        ),
    ];
    for (query, wanted) in cases {
        let answer = get(&server, &format!("{MAPS}{query}")).await;
        assert_eq!(answer.code, 200, "{query}");
        assert_eq!(told(&answer), wanted, "{query}");
    }
    let refusal = get(&server, &format!("{MAPS}&resourceVersion=yesterday")).await;
    assert_eq!(refusal.code, 400, "{refusal:?}");
}

/// The log of each kind forgets by its own length: whoever saw the change before the oldest one that is known resumes.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn what_the_log_forgot_is_gone() {
    let server = server();
    server.stay_small();
    make_map(&server, "a");
    let revisions: Vec<String> = (0..6)
        .map(|value| change_map(&server, "a", value))
        .collect();
    // Other kinds have a log of their own.
    for number in 0..9 {
        must(server.create(&Resource::PODS, "default", pod(&format!("p{number}"))));
    }
    for (at, revision) in revisions.iter().enumerate() {
        let answer = get(&server, &format!("{MAPS}&resourceVersion={revision}")).await;
        assert_eq!(answer.code, 200, "told as an event");
        // Four changes are known: of those after the second one, nobody misses any.
        if at == 0 {
            let gone = answer.body();
            assert_eq!(gone["type"], "ERROR");
            assert_eq!(gone["object"]["code"], 410);
            assert_eq!(gone["object"]["reason"], "Expired");
        } else {
            assert_eq!(answer.lines.len(), 5 - at, "{answer:?}");
        }
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn bookmarks_tell_how_far_a_watch_has_come() {
    let server = server();
    let made = make_map(&server, "a");
    must(server.create(&Resource::PODS, "default", pod("p")));
    let long = "/api/v1/configmaps?watch=true&timeoutSeconds=150&allowWatchBookmarks=true";
    let answer = get(&server, &format!("{long}&resourceVersion={made}")).await;
    assert_eq!(told(&answer), ["BOOKMARK -", "BOOKMARK -"]);
    for line in &answer.lines {
        let object = &line["object"];
        assert_eq!(object["kind"], "ConfigMap");
        assert_eq!(revision(object), server.revision().to_string());
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn what_leaves_a_selection_is_told_as_it_was_in_it() {
    let server = server();
    let made = must(server.create(&Resource::PODS, "default", pod("a")));
    let since = revision(&made).to_owned();
    let key = NamespacedName::new("default", "a");
    let mut revisions = Vec::new();
    for app in ["db", "web", "cache"] {
        let changed = must(server.modify(&Resource::PODS, &key, |pod| {
            pod["metadata"]["labels"]["app"] = app.into();
        }));
        revisions.push(revision(&changed).to_owned());
    }
    must(server.delete(&Resource::PODS, "default", "a", &DeleteOptions::now()));
    let path = "/api/v1/pods?watch=true&timeoutSeconds=1&labelSelector=app%3Dweb";
    let answer = get(&server, &format!("{path}&resourceVersion={since}")).await;
    assert_eq!(told(&answer), ["DELETED a", "ADDED a", "DELETED a"]);
    for (line, revision_then) in answer.lines.iter().zip(&revisions) {
        let object = &line["object"];
        assert_eq!(object["metadata"]["labels"]["app"], "web");
        assert_eq!(revision(object), revision_then);
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn metadata_alone_is_told_to_who_asks_for_it() {
    let server = server();
    make_map(&server, "a");
    let mut service = server.clone();
    let request = http::Request::get(MAPS)
        .header(
            "Accept",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = tower::Service::call(&mut service, request).await.unwrap();
    let body = http_body_util::BodyExt::collect(answer.into_body());
    let line: Value = serde_json::from_slice(&body.await.unwrap().to_bytes()).unwrap();
    assert_eq!(line["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(line["object"]["metadata"]["name"], "a");
}
