//! How the version of devices is found out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;
use locks::lock;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

fn status(code: u16) -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"});
    (code, body)
}

fn groups(names: &[&str]) -> (u16, Value) {
    let group = |name: &&str| {
        let version = json!({"groupVersion": format!("{name}/v1beta1"), "version": "v1beta1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let groups: Vec<Value> = names.iter().map(group).collect();
    let body = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
    (200, body)
}

fn resources() -> (u16, Value) {
    let slices = json!({
        "name": "resourceslices", "singularName": "resourceslice", "namespaced": false,
        "kind": "ResourceSlice", "verbs": ["list", "watch"],
    });
    let body = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "resource.k8s.io/v1beta1",
        "resources": [slices],
    });
    (200, body)
}

/// The version that comes of these answers, and how many answers are left.
async fn version_of(answers: Vec<(u16, Value)>) -> (String, usize) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let told = Arc::clone(&answers);
    let service = service_fn(move |_: Request<Body>| {
        let (code, body) = lock(&told).pop_front().unwrap_or_else(|| status(404));
        let answer = Response::builder().status(code);
        let answer = answer.body(Full::from(body.to_string()));
        async move { Ok::<_, Infallible>(answer.unwrap()) }
    });
    let version = device_version(&Client::new(service, "default")).await;
    let left = lock(&answers).len();
    (version, left)
}

#[tokio::test(start_paused = true)]
async fn the_version_of_devices_is_asked_for_until_the_api_server_tells_it() {
    let group = || groups(&["apps", "resource.k8s.io"]);
    let cases = [
        (vec![group(), resources()], "v1beta1"),
        (
            vec![status(503), status(500), group(), resources()],
            "v1beta1",
        ),
        (vec![group(), status(503), group(), resources()], "v1beta1"),
        (vec![groups(&["apps"])], "v1"),
        (vec![status(403)], "v1"),
    ];
    for (number, (answers, expected)) in cases.into_iter().enumerate() {
        let found = version_of(answers).await;
        assert_eq!(found, (expected.to_owned(), 0), "case {number}");
    }
}
