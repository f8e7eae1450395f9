//! What the process around the controllers asks of the API server is in the table of rights, and no more is.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{ApiServer, RequestInfo};
use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::get;
use controllers::rbac::{RULES, ResourceAttributes, Role};
use http::Request as HttpRequest;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use prometheus_client::metrics::counter::Counter;
use serde_json::json;
use sim::SimulatedClock;
use tower::ServiceExt as _;

use crate::fence::Fence;
use crate::leader_election::{Election, LeaderElector};
use crate::simulated_nodes::{Practice, SimulatedNodes, Step};

const LEASE: &str = "karpenter-leader-election";

type SeenRequests = Arc<Mutex<Vec<RequestInfo>>>;

/// A client, and what is asked by it.
fn client() -> (Client, SeenRequests) {
    let clock = SimulatedClock::virtual_time();
    let api = ApiServer::new(1, Arc::new(move || clock.now()));
    let asked = SeenRequests::default();
    let log = Arc::clone(&asked);
    let service = api.map_request(move |request: HttpRequest<Body>| {
        let info = RequestInfo::of(request.method(), request.uri());
        log.lock().unwrap().extend(info);
        request
    });
    (Client::new(service, "mortise"), asked)
}

/// Resource and verb of what a role grants and nobody asked for, and of what was asked for and no role grants.
fn differences(
    role: Role,
    resource: &str,
    asked: &SeenRequests,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let asked = asked.lock().unwrap();
    let rules = RULES.iter().filter(|it| it.role == role);
    let rules: Vec<_> = rules
        .filter(|it| it.resources.contains(&resource))
        .collect();
    let allows = |info: &RequestInfo| {
        let request = ResourceAttributes {
            verb: info.verb,
            group: &info.group,
            resource: &info.resource,
            name: &info.name,
        };
        RULES.iter().any(|rule| rule.allows(request))
    };
    let told = |verb: &str, resource: &str| format!("{verb} {resource}");
    let unlawful = asked.iter().filter(|it| !allows(it));
    let unlawful = unlawful.map(|it| told(it.verb, &it.resource)).collect();
    let used: BTreeSet<String> = asked.iter().map(|it| told(it.verb, &it.resource)).collect();
    let granted = rules.iter().flat_map(|it| it.verbs);
    let granted: BTreeSet<String> = granted.map(|verb| told(verb, resource)).collect();
    (granted.difference(&used).cloned().collect(), unlawful)
}

fn check(role: Role, resource: &str, asked: &SeenRequests) {
    let (unused, unlawful) = differences(role, resource, asked);
    assert!(
        unused.is_empty(),
        "granted to {role:?} and not used: {unused:?}"
    );
    assert!(unlawful.is_empty(), "used and not granted: {unlawful:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_and_renewed_with_the_rights_that_there_are() {
    let (client, asked) = client();
    let election = Election::new(LeaderElector {
        leases: Api::namespaced(client, "kube-system"),
        lease_name: LEASE.to_owned(),
        identity: "a".to_owned(),
        clock: Arc::new(SimulatedClock::virtual_time()),
        fence: Fence::open(),
        slow_renewals: Counter::default(),
    });
    let acquiring = tokio::time::timeout(Duration::from_secs(30), election.acquire());
    let until = acquiring.await.expect("the lease is free");
    let renewing = tokio::time::timeout(Duration::from_secs(5), election.keep(until));
    assert!(renewing.await.is_err(), "it is kept");
    check(Role::LeaderElection, "leases", &asked);
}

#[tokio::test]
async fn who_reads_metrics_is_asked_about_with_the_rights_for_it() {
    let (client, asked) = client();
    let router = Router::new().route("/metrics", get(|| async { "told" }));
    let request = HttpRequest::get("/metrics").header("authorization", "Bearer token");
    let request = request.body(AxumBody::empty()).unwrap();
    let answer = crate::http::secured(router, client).oneshot(request).await;
    assert_eq!(answer.unwrap().status(), 200);
    for resource in ["tokenreviews", "subjectaccessreviews"] {
        check(Role::Metrics, resource, &asked);
    }
}

#[tokio::test]
async fn what_nodes_need_of_the_cluster_is_asked_for_by_name() {
    let (client, asked) = client();
    crate::cluster::service_range(&client).await;
    crate::cluster::dns(&client).await;
    for resource in ["servicecidrs", "services"] {
        check(Role::Aws, resource, &asked);
    }
}

#[tokio::test]
async fn simulated_nodes_come_and_go_with_the_rights_of_practice() {
    let (client, asked) = client();
    let now = SimulatedClock::virtual_time().now();
    let nodes = SimulatedNodes::new(client, "blue", Practice::default(), now);
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let steps = [
        Step::Register(Box::new(node.clone())),
        Step::BecomeReady(Box::new(node)),
        Step::BootAnew {
            node: "a".to_owned(),
            boot_id: "boot-1".to_owned(),
        },
        Step::Remove("a".to_owned()),
    ];
    nodes.resume().await.unwrap();
    for step in steps {
        nodes.take(step).await.unwrap();
    }
    for resource in ["nodes", "nodes/status"] {
        check(Role::Practice, resource, &asked);
    }
}

#[tokio::test]
async fn a_node_that_becomes_ready_does_not_bring_back_a_taint_that_went_meanwhile() {
    let (client, _) = client();
    let api: Api<Node> = Api::all(client.clone());
    let now = SimulatedClock::virtual_time().now();
    let nodes = SimulatedNodes::new(client, "blue", Practice::default(), now);
    let taint = json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"});
    let node = json!({"metadata": {"name": "a"}, "spec": {"taints": [taint]}});
    let node: Node = serde_json::from_value(node).unwrap();
    nodes.take(Step::Register(Box::new(node))).await.unwrap();
    let seen = api.get("a").await.unwrap();
    let opened = Patch::Merge(json!({"spec": {"taints": null}}));
    api.patch("a", &PatchParams::default(), &opened)
        .await
        .unwrap();
    let late = Step::BecomeReady(Box::new(seen));
    assert!(!nodes.take(late).await.unwrap());
    let taints = api.get("a").await.unwrap().spec.unwrap().taints;
    assert_eq!(taints.unwrap_or_default(), []);
}
