//! Subresources over HTTP: scale, status, eviction and binding, who has them, and what a dry run leaves alone.

use api_server::{ApiServer, Resource};
use serde_json::{Value, json};

use crate::rig::{WIDGETS, get, must, pod, send, server, widgets};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/d";
const POD: &str = "/api/v1/namespaces/default/pods/a";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("a")["spec"]},
        },
    })
}

/// A server with a deployment, a pod that is ready on its node, a budget that lets none go, and a widget.
fn populated() -> ApiServer {
    let server = server();
    must(server.create(&Resource::DEPLOYMENTS, "default", deployment()));
    must(server.create(&Resource::PODS, "default", pod("a")));
    must(server.create(&Resource::PODS, "default", pod("free")));
    must(server.bind("default", "a", "n1"));
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"status": {"phase": "Running", "conditions": ready}});
    must(server.patch_merge_status(&Resource::PODS, "default", "a", status));
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    let budgets = &Resource::POD_DISRUPTION_BUDGETS;
    must(server.create(budgets, "default", budget));
    let status = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 0,
        "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    }});
    must(server.patch_merge_status(budgets, "default", "b", status));
    must(server.install_crd(&widgets()));
    must(server.create(
        &WIDGETS,
        "",
        json!({"metadata": {"name": "w"}, "spec": {"size": 1}}),
    ));
    server
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn scales_are_read_and_set() {
    let scale = |replicas: i64| json!({"spec": {"replicas": replicas}});
    let replace = |path: &str| json!([{"op": "replace", "path": path, "value": 4}]);
    // The code, and the replicas that the deployment has then.
    let cases = [
        ("GET", "json", Value::Null, 200, 2),
        ("PUT", "json", scale(4), 200, 4),
        ("PUT", "json", scale(-1), 422, 2),
        ("PATCH", "merge-patch+json", scale(4), 200, 4),
        ("PATCH", "strategic-merge-patch+json", scale(0), 200, 0),
        (
            "PATCH",
            "json-patch+json",
            replace("/spec/replicas"),
            200,
            4,
        ),
        ("PATCH", "json-patch+json", replace("/spec/size"), 400, 2),
        ("PATCH", "merge-patch+json", scale(-1), 422, 2),
        (
            "PUT",
            "json",
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 4}}),
            409,
            2,
        ),
    ];
    for (method, content, body, code, replicas) in cases {
        let server = populated();
        let line = format!("{method} {DEPLOYMENT}/scale");
        let answer = send(&server, &line, content, &body).await;
        assert_eq!(answer.code, code, "{method} {body}: {answer:?}");
        let stored = must(server.get(&Resource::DEPLOYMENTS, "default", "d"));
        assert_eq!(stored["spec"]["replicas"], replicas, "{method} {body}");
        if code == 200 {
            let scale = answer.body();
            assert_eq!(scale["kind"], "Scale");
            assert_eq!(scale["spec"]["replicas"], replicas);
            assert_eq!(scale["status"]["selector"], "app=web");
        }
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn kinds_have_the_subresources_that_are_theirs() {
    let map = "/api/v1/namespaces/kube-system/configmaps/m";
    let widget = "/apis/example.com/v1/widgets/w";
    let cases = [
        (format!("GET {DEPLOYMENT}/status"), 200),
        (format!("PATCH {DEPLOYMENT}/status"), 200),
        (format!("PATCH {DEPLOYMENT}/scale"), 200),
        (format!("PATCH {DEPLOYMENT}/resize"), 404),
        (format!("PATCH {DEPLOYMENT}/nonsense"), 404),
        (format!("PATCH {POD}/status"), 200),
        (format!("PATCH {POD}/resize"), 200),
        (format!("PATCH {POD}/scale"), 404),
        (format!("GET {POD}/scale"), 404),
        (format!("PATCH {widget}/status"), 200),
        (format!("PATCH {widget}/scale"), 200),
        (format!("GET {map}/status"), 404),
        (format!("PATCH {map}/status"), 404),
        (format!("PUT {map}/status"), 404),
        (format!("PUT {map}/finalize"), 404),
        (format!("PUT {map}/scale"), 404),
        (format!("POST {DEPLOYMENT}/eviction"), 405),
    ];
    for (line, code) in cases {
        let server = populated();
        let map = json!({"metadata": {"name": "m", "namespace": "kube-system"}});
        must(server.create(&Resource::CONFIG_MAPS, "", map));
        let body = if line.starts_with("GET") {
            Value::Null
        } else {
            json!({"spec": {"replicas": 3}})
        };
        let content = if line.starts_with("PATCH") {
            "merge-patch+json"
        } else {
            "json"
        };
        let path = line.split(' ').next_back().unwrap();
        // A pod has no replicas.
        let body = if path.starts_with(POD) && code == 200 {
            json!({})
        } else {
            body
        };
        let answer = send(&server, &line, content, &body).await;
        assert_eq!(answer.code, code, "{line}: {answer:?}");
    }
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn status_and_the_rest_are_written_apart() {
    let server = populated();
    let both = json!({
        "metadata": {"labels": {"new": "x"}}, "spec": {"replicas": 7},
        "status": {"replicas": 5, "observedGeneration": 1},
    });
    let patch = "merge-patch+json";
    let line = format!("PATCH {DEPLOYMENT}/status");
    let after = send(&server, &line, patch, &both).await;
    let after = after.body();
    assert_eq!(after["status"]["replicas"], 5);
    assert_eq!(after["spec"]["replicas"], 2);
    assert_eq!(after["metadata"]["labels"], Value::Null);
    assert_eq!(
        after["metadata"]["generation"], 1,
        "no change of what is wanted"
    );
    let mut both = both;
    both["status"]["replicas"] = 6.into();
    let after = send(&server, &format!("PATCH {DEPLOYMENT}"), patch, &both).await;
    let after = after.body();
    assert_eq!(after["status"]["replicas"], 5);
    assert_eq!(after["spec"]["replicas"], 7);
    assert_eq!(after["metadata"]["labels"], json!({"new": "x"}));
    assert_eq!(after["metadata"]["generation"], 2);
    // An object begins without a status, whatever its maker says.
    let mut other = deployment();
    other["metadata"]["name"] = "e".into();
    other["status"] = json!({"replicas": 5});
    let all = DEPLOYMENT.trim_end_matches("/d");
    let made = send(&server, &format!("POST {all}"), "json", &other).await;
    assert_eq!(made.code, 201);
    assert_eq!(made.body()["status"]["replicas"], Value::Null);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn evictions_that_a_budget_refuses_say_why() {
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let server = populated();
    let line = format!("POST {POD}/eviction");
    let refusal = send(&server, &line, "json", &eviction("a")).await;
    assert_eq!(refusal.code, 429);
    let refusal = refusal.body();
    assert_eq!(
        (&refusal["reason"], &refusal["message"]),
        (
            &json!("TooManyRequests"),
            &json!("Cannot evict pod as it would violate the pod's disruption budget.")
        )
    );
    assert_eq!(
        refusal["details"]["causes"],
        json!([{
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
        }])
    );
    // The name in the body is that of the pod, or somebody else's pod would go.
    for body in [eviction("free"), json!({"metadata": {}})] {
        let refusal = send(&server, &line, "json", &body).await;
        assert_eq!(refusal.code, 400, "{refusal:?}");
    }
    let free = POD.trim_end_matches('a').to_owned() + "free";
    let granted = send(
        &server,
        &format!("POST {free}/eviction"),
        "json",
        &eviction("free"),
    )
    .await;
    assert_eq!(granted.code, 201, "it waits for a node, and serves nobody");
    assert!(server.get(&Resource::PODS, "default", "free").is_err());
    let missing = send(
        &server,
        &format!("POST {free}/eviction"),
        "json",
        &eviction("free"),
    )
    .await;
    assert_eq!(missing.code, 404);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn dry_runs_answer_and_change_nothing() {
    let merge = "merge-patch+json";
    let free = POD.trim_end_matches('a').to_owned() + "free";
    let eviction = json!({"metadata": {"name": "free"}});
    let binding = json!({"metadata": {"name": "free"}, "target": {"kind": "Node", "name": "n1"}});
    let mut other = deployment();
    other["metadata"]["name"] = "e".into();
    let all = DEPLOYMENT.trim_end_matches("/d");
    let cases = [
        (format!("POST {all}"), "json", other, 201),
        (format!("POST {all}"), "json", deployment(), 409),
        (format!("PUT {DEPLOYMENT}"), "json", deployment(), 200),
        (
            format!("PATCH {DEPLOYMENT}"),
            merge,
            json!({"spec": {"replicas": 3}}),
            200,
        ),
        (
            format!("PATCH {DEPLOYMENT}"),
            merge,
            json!({"spec": {"replicas": -3}}),
            422,
        ),
        (
            format!("PATCH {DEPLOYMENT}/status"),
            merge,
            json!({"status": {"replicas": 3}}),
            200,
        ),
        (
            format!("PATCH {DEPLOYMENT}/scale"),
            merge,
            json!({"spec": {"replicas": 3}}),
            200,
        ),
        (format!("DELETE {DEPLOYMENT}"), "json", Value::Null, 200),
        (format!("POST {free}/eviction"), "json", eviction, 201),
        (format!("POST {free}/binding"), "json", binding, 201),
    ];
    for (line, content, body, code) in cases {
        let server = populated();
        let before = server.revision();
        let answer = send(&server, &format!("{line}?dryRun=All"), content, &body).await;
        assert_eq!(answer.code, code, "{line}: {answer:?}");
        assert_eq!(server.revision(), before, "{line}");
        // What is asked for in other words is not taken for the real thing.
        let answer = send(&server, &format!("{line}?dryRun=true"), content, &body).await;
        assert_eq!(answer.code, 422, "{line}: {answer:?}");
        assert_eq!(server.revision(), before, "{line}");
    }
    let server = populated();
    let shown = get(&server, DEPLOYMENT).await;
    assert_eq!(shown.body()["spec"]["replicas"], 2);
}
