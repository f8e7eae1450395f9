//! Objects that nobody wrote lately are kept as text. Of a server that keeps all but a few so nobody may be told
//! anything else than of one that keeps none so: both are asked the same.

use std::sync::Arc;

use api_server::{
    ApiServer, DeleteOptions, NamespacedName, ObjectPart, Patch, Propagation, Resource, Selection,
    StatusError, Watch, WriteOptions,
};
use serde_json::{Value, json};

use crate::rig::{WIDGETS, get, must, pod, send, server, widgets};

/// Enough that those that were written first rest on the small server, and none on the other.
const PODS: usize = 80;

fn name(number: usize) -> String {
    format!("p{number:02}")
}

fn key(number: usize) -> NamespacedName {
    NamespacedName::new("default", name(number))
}

fn populated(is_small: bool) -> ApiServer {
    let server = server();
    if is_small {
        server.stay_small();
    }
    must(server.install_crd(&widgets()));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "map", "annotations": {"text": "ä\u{0}\"\\\n"},
    }});
    must(server.create(&Resource::CONFIG_MAPS, "default", map));
    let widget = json!({"metadata": {"name": "w"}, "spec": {"size": 1, "parts": [{"name": "a"}]}});
    must(server.create(&WIDGETS, "", widget));
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "ResourceSlice", "metadata": {"name": "numbers"},
        "spec": {"a": 0.300_000_000_000_000_04, "b": 1e21, "c": -0.0, "d": u64::MAX, "e": i64::MIN},
    });
    must(server.create(
        &Resource::new("resource.k8s.io", "resourceslices"),
        "",
        slice,
    ));
    for number in 0..PODS {
        let mut pod = pod(&name(number));
        pod["metadata"]["labels"]["parity"] = if number % 2 == 0 { "even" } else { "odd" }.into();
        if number > 0 {
            let owner = must(server.get(&Resource::PODS, "default", &name(0)));
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "Pod", "name": name(0), "uid": owner["metadata"]["uid"],
            }]);
        }
        must(server.create(&Resource::PODS, "default", pod));
    }
    server
}

/// What an answer is to whoever compares it.
fn shown(answer: Result<Arc<Value>, StatusError>) -> Value {
    answer.map_or_else(|status| status.to_value(), |object| (*object).clone())
}

fn told(watch: &mut Watch) -> Value {
    let mut told = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        let before = event.previous.as_deref().cloned().unwrap_or_default();
        told.push(json!([event.change.as_str(), *event.object, before]));
    }
    told.into()
}

type Ask = fn(&ApiServer) -> Value;

fn list(server: &ApiServer, resource: &Resource, labels: &str) -> Value {
    let selection = must(Selection::everything().labelled(labels));
    let found = server.list(resource, &selection);
    found.iter().map(|it| (**it).clone()).collect()
}

const READS_AND_PATCHES: &[(&str, Ask)] = &[
    ("all", |server| list(server, &Resource::PODS, "")),
    ("by label", |server| {
        list(server, &Resource::PODS, "parity=odd")
    }),
    ("one", |server| {
        shown(server.get(&Resource::CONFIG_MAPS, "default", "map"))
    }),
    ("numbers", |server| {
        list(
            server,
            &Resource::new("resource.k8s.io", "resourceslices"),
            "",
        )
    }),
    ("an update of nothing", |server| {
        let changed = server.modify(&Resource::PODS, &key(1), |_| {});
        shown(changed)
    }),
    ("a stale update", |server| {
        let mut stale = (*must(server.get(&Resource::PODS, "default", &name(2)))).clone();
        stale["metadata"]["resourceVersion"] = "1".into();
        shown(server.update(&Resource::PODS, stale))
    }),
    ("a status", |server| {
        let status = json!({"status": {"phase": "Running"}});
        let changed = server.patch_merge_status(&Resource::PODS, "default", &name(3), status);
        shown(changed)
    }),
    ("a strategic patch", |server| {
        let image = json!({"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}});
        let options = WriteOptions::default();
        let changed = server.patch(&Resource::PODS, &key(4), &Patch::Strategic(image), &options);
        shown(changed)
    }),
    ("an apply", |server| {
        let patch = Patch::Apply {
            intent: json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
                    "spec": {"size": 1, "parts": [{"name": "b"}]}}),
            is_forced: false,
        };
        let options = WriteOptions {
            field_manager: Some("one".to_owned()),
            ..WriteOptions::default()
        };
        let changed = server.patch(&WIDGETS, &NamespacedName::new("", "w"), &patch, &options);
        shown(changed)
    }),
];

const OTHER_WRITES: &[(&str, Ask)] = &[
    ("a scale", |server| {
        shown(server.scale(&WIDGETS, "", "w", 3))
    }),
    ("a rule about a change", |server| {
        let smaller = json!({"spec": {"size": 0}});
        shown(server.patch_merge(&WIDGETS, "", "w", smaller))
    }),
    ("a part as a whole", |server| {
        let changed = server.modify_part(&Resource::PODS, &key(5), ObjectPart::Whole, |pod| {
            pod["status"]["phase"] = "Failed".into();
            pod["spec"]["nodeName"] = "n9".into();
        });
        shown(changed)
    }),
    ("a binding", |server| {
        shown(server.bind("default", &name(6), "n1"))
    }),
    ("an eviction", |server| {
        let evicted = server.evict("default", &name(7), &DeleteOptions::default());
        shown(evicted.map(|()| Arc::default()))
    }),
    ("a restored one", |server| {
        let restored =
            json!({"metadata": {"name": name(8), "namespace": "default"}, "spec": {"a": 1}});
        shown(server.restore(&Resource::PODS, restored))
    }),
    ("a deletion", |server| {
        let options = DeleteOptions::default();
        let gone = server.delete(&Resource::PODS, "default", &name(9), &options);
        shown(gone)
    }),
    ("the deletion of the owner of all", |server| {
        let options = DeleteOptions {
            propagation: Propagation::Orphan,
            ..DeleteOptions::default()
        };
        let gone = server.delete(&Resource::PODS, "default", &name(0), &options);
        shown(gone)
    }),
    ("what is left", |server| list(server, &Resource::PODS, "")),
];

#[test]
fn nobody_is_told_apart_who_rests_and_who_does_not() {
    let (awake, small) = (populated(false), populated(true));
    let odd = must(Selection::everything().labelled("parity=odd"));
    let [mut of_awake, mut of_small] =
        [&awake, &small].map(|it| it.list_and_watch(&Resource::PODS, &odd).1);
    for (what, ask) in READS_AND_PATCHES.iter().chain(OTHER_WRITES) {
        assert_eq!(ask(&awake), ask(&small), "{what}");
        assert_eq!(told(&mut of_awake), told(&mut of_small), "told of {what}");
        assert_eq!(awake.revision(), small.revision(), "{what}");
    }
}

/// One that rests leaves a selection, and comes back, as one does that is awake.
#[test]
fn what_rests_is_told_as_it_was() {
    let server = populated(true);
    let odd = must(Selection::everything().labelled("parity=odd"));
    let (listed, mut watch) = server.list_and_watch(&Resource::PODS, &odd);
    assert_eq!(listed.len(), PODS / 2);
    for parity in ["even", "odd"] {
        must(server.modify(&Resource::PODS, &key(1), |pod| {
            pod["metadata"]["labels"]["parity"] = parity.into();
        }));
    }
    let told = told(&mut watch);
    assert_eq!(told[0][0], "DELETED");
    assert_eq!(told[0][2], *listed[0], "as it was listed");
    assert_eq!(told[1][0], "ADDED");
}

/// A server that is told to stay small does so from then on, whatever it kept before.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_server_may_be_told_late_to_stay_small() {
    let (never, late) = (populated(false), populated(false));
    late.stay_small();
    let created = [&never, &late].map(|it| must(it.create(&Resource::PODS, "default", pod("z"))));
    assert_eq!(created[0], created[1]);
    let path = "/api/v1/pods?limit=500";
    let (one, other) = (get(&never, path).await, get(&late, path).await);
    assert_eq!(one.lines, other.lines);
    // All of its log but the last few changes is gone.
    let watch = "/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=";
    let since = never.revision() - 10;
    let remembered = get(&never, &format!("{watch}{since}")).await;
    assert_eq!(remembered.lines.len(), 10);
    let gone = get(&late, &format!("{watch}{since}")).await;
    assert_eq!(gone.body()["type"], "ERROR");
    let patch = json!({"metadata": {"labels": {"new": "x"}}});
    let line = "PATCH /api/v1/namespaces/default/pods/p01";
    for server in [&never, &late] {
        let answer = send(server, line, "merge-patch+json", &patch).await;
        assert_eq!(answer.code, 200);
        assert_eq!(answer.body()["metadata"]["labels"]["new"], "x");
    }
}
