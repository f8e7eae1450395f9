//! Reading of clusters that do not tell everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_server::{ApiServer, Resource};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use sim::SimulatedClock;
use tower::{ServiceExt as _, service_fn};

use super::*;

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, tower::BoxError>>;

fn status(code: u16, message: &str) -> Answer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message,
        "reason": "Forbidden", "metadata": {},
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder()
        .status(code)
        .body(body.boxed_unsync())
        .unwrap()
}

/// A client of a server without CRDs that lets nobody list budgets, and is away for as long as the flag is set.
fn client(api: &ApiServer, is_away: &Arc<AtomicBool>) -> Client {
    client_that_waits_for(None, api, is_away)
}

/// The same of one that never answers what is asked of a kind.
fn client_that_waits_for(
    plural: Option<&'static str>,
    api: &ApiServer,
    is_away: &Arc<AtomicBool>,
) -> Client {
    let (api, is_away) = (api.clone(), Arc::clone(is_away));
    let service = service_fn(
        move |request: Request<Body>| -> BoxFuture<'static, Result<Answer, tower::BoxError>> {
            let (api, is_away) = (api.clone(), Arc::clone(&is_away));
            Box::pin(async move {
                if is_away.load(Ordering::Relaxed) {
                    return Err("connection refused".into());
                }
                if plural.is_some_and(|it| request.uri().path().ends_with(it)) {
                    return std::future::pending().await;
                }
                if request.uri().path().contains("poddisruptionbudgets") {
                    return Ok(status(403, "budgets are not yours"));
                }
                let answer = api.oneshot(request).await?;
                Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
            })
        },
    );
    Client::new(service, "default")
}

fn api() -> ApiServer {
    let clock = SimulatedClock::virtual_time();
    ApiServer::new(1, Arc::new(move || clock.now()))
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_listed_is_said_once_and_the_rest_is_read() {
    let api = api();
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "m", "image": "i"}]}});
    api.create(&Resource::PODS, "default", pod).unwrap();
    let mut readings = Readings::of(&client(&api, &Arc::default()));
    let gathered = readings.gather().await.unwrap();
    assert_eq!(gathered.of(ReadKind::Pods).count(), 1);
    assert!(gathered.of(ReadKind::Namespaces).count() > 0);
    assert_eq!(
        gathered.of(ReadKind::NodePools).count(),
        0,
        "nobody serves them"
    );
    let unread = readings.unread();
    assert_eq!(
        unread,
        [
            "poddisruptionbudgets.policy (budgets are not yours): nothing holds up evictions in the shadow; \
         grant it with: mortise shadow --rbac | kubectl apply -f -"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_still_being_listed_when_time_is_over_is_said() {
    let client = client_that_waits_for(Some("/statefulsets"), &api(), &Arc::default());
    let mut readings = Readings::of(&client);
    readings.gather().await.unwrap();
    let unread = readings.unread();
    let said = unread.iter().find(|it| it.starts_with("statefulsets.apps"));
    assert_eq!(
        said.map(String::as_str),
        Some(
            "statefulsets.apps (still being listed): their pods are taken for pods without a controller"
        )
    );
    assert_eq!(unread.len(), 2, "{unread:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_server_that_is_away_is_an_error() {
    let away = Arc::new(AtomicBool::new(true));
    let mut readings = Readings::of(&client(&api(), &away));
    let error = readings.gather().await.unwrap_err().to_string();
    assert!(
        error.starts_with("nothing of the cluster could be read"),
        "{error}"
    );
    assert!(error.contains("connection refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_asked_for_over_and_over() {
    let mut told = watch(
        &client(&api(), &Arc::default()),
        ReadKind::PodDisruptionBudgets.row(),
    );
    let until = Instant::now() + Duration::from_mins(5);
    let mut refusals = 0;
    while let Ok(Some(message)) = timeout_at(until, told.next()).await {
        refusals += u32::from(matches!(message, ReadMessage::Failed(..)));
    }
    // Half a second, doubled up to half a minute.
    assert_eq!(refusals, 15);
}

#[test]
fn what_a_new_list_no_longer_has_is_gone() {
    let mut listed = ListedObjects::default();
    let object = |name: &str| {
        let json = json!({"metadata": {"name": name, "namespace": "a", "uid": name}});
        serde_json::from_value::<DynamicObject>(json).unwrap()
    };
    let mut list = |names: &[&str]| {
        let mut told = listed.take(ReadKind::Pods, Ok(watcher::Event::Init));
        for name in names {
            told.extend(listed.take(ReadKind::Pods, Ok(watcher::Event::InitApply(object(name)))));
        }
        told.extend(listed.take(ReadKind::Pods, Ok(watcher::Event::InitDone)));
        let told = told.into_iter().map(|told| match told {
            ReadMessage::Changed(it) => format!(
                "{} {}",
                if it.is_gone { "gone" } else { "there" },
                key_of(&it.object).name
            ),
            ReadMessage::Listed(_) => "listed".to_owned(),
            ReadMessage::Failed(..) => "failed".to_owned(),
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(list(&["x", "y"]), ["there x", "there y", "listed"]);
    assert_eq!(list(&["y"]), ["there y", "gone x", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_is_waited_for_and_what_it_told_last_is_not_lost() {
    let (api, away) = (api(), Arc::new(AtomicBool::new(false)));
    let mut readings = Readings::of(&client(&api, &away));
    readings.gather().await.unwrap();
    away.store(true, Ordering::Relaxed);
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "m", "image": "i"}]}});
    api.create(&Resource::PODS, "default", pod("before"))
        .unwrap();
    // Watches end after five minutes, and cannot begin anew.
    let mut said = Vec::new();
    while said.len() < 2 {
        match readings.next().await {
            ReadNews::Said(sentence) => {
                away.store(false, Ordering::Relaxed);
                said.push(sentence);
            }
            ReadNews::Changed(_) | ReadNews::Nothing => {}
        }
        if said.len() == 1 && !api_has(&api, "after") {
            api.create(&Resource::PODS, "default", pod("after"))
                .unwrap();
        }
    }
    assert!(
        said[0].starts_with("the API server does not answer (connection refused)"),
        "{said:?}"
    );
    assert_eq!(said[1], "the API server answers again");
    let ReadNews::Changed(change) = readings.next().await else {
        panic!("the change is lost")
    };
    assert!(
        change.kind.row().plural == "pods" && !change.is_gone,
        "{change:?}"
    );
}

fn api_has(api: &ApiServer, pod: &str) -> bool {
    api.get(&Resource::PODS, "default", pod).is_ok()
}
