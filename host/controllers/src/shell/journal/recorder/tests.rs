//! Which Events are written, and which are one too many.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request, Response};
use http_body_util::Full;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

fn event(name: &str) -> KubernetesEvent {
    let regarding = ObjectReference {
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    };
    KubernetesEvent::new(regarding, EventType::Normal, "Nominated", "to node/a")
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_published_again_only_after_two_minutes() {
    let mut gate = EventGate::default();
    assert!(gate.admits(&event("a"), Instant::now()));
    assert!(!gate.admits(&event("a"), Instant::now()));
    assert!(gate.admits(&event("b"), Instant::now()));
    tokio::time::advance(DEDUPE_DEFAULT).await;
    assert!(gate.admits(&event("a"), Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_large_cluster_are_all_remembered() {
    let mut gate = EventGate::default();
    let now = Instant::now();
    let mut admitted = || {
        let events = (0..5_000).map(|number| event(&number.to_string()));
        events.filter(|it| gate.admits(it, now)).count()
    };
    assert_eq!(admitted(), 5_000);
    assert_eq!(admitted(), 0);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_room_what_lapses_next_is_forgotten() {
    let mut gate = EventGate::default();
    let now = Instant::now();
    let lasting = event("a").at_most_every(DEDUPE_DEFAULT * 2);
    assert!(gate.admits(&lasting, now));
    for number in 0..70_000 {
        assert!(gate.admits(&event(&format!("b{number}")), now));
    }
    assert!(!gate.admits(&lasting, now));
    assert!(gate.admits(&event("b0"), now));
    assert!(!gate.admits(&event("b69999"), now));
}

#[test]
fn objects_of_one_name_or_without_uid_are_told_apart() {
    let about = |kind: &str, name: &str, uid: Option<&str>| ObjectReference {
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: uid.map(str::to_owned),
        ..ObjectReference::default()
    };
    let objects = [
        about("NodeClaim", "default", None),
        about("NodePool", "default", None),
        about("NodePool", "other", None),
        about("NodePool", "other", Some("first")),
        about("NodePool", "other", Some("second")),
    ];
    let mut gate = EventGate::default();
    for object in objects {
        let event = KubernetesEvent::new(object, EventType::Normal, "DisruptionBlocked", "budget");
        assert!(gate.admits(&event, Instant::now()), "{event:?}");
        assert!(!gate.admits(&event, Instant::now()), "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nominations_share_a_bucket_of_ten_that_fills_at_five_a_second() {
    let mut gate = EventGate::default();
    let mut admitted = |from: u32| {
        (from..from + 30)
            .filter(|n| {
                let event = event(&n.to_string()).limited_by(RateClass::Nomination);
                gate.admits(&event, Instant::now())
            })
            .count()
    };
    assert_eq!(admitted(0), 10);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(admitted(100), 5);
}

#[test]
fn a_long_message_is_cut_between_characters() {
    assert_eq!(shorten("ääää", 8), "ääää");
    assert_eq!(shorten("ääää", 7), "ää...");
}

#[tokio::test(start_paused = true)]
async fn a_repetition_that_was_refused_is_not_counted() {
    let (refuses, counts) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let (refused, told) = (Arc::clone(&refuses), Arc::clone(&counts));
    let service = service_fn(move |request: Request<Body>| {
        let (refused, told) = (Arc::clone(&refused), Arc::clone(&told));
        async move {
            let is_repetition = request.method() == Method::PATCH;
            let bytes = request.into_body().collect_bytes().await.unwrap();
            let mut event: Value = serde_json::from_slice(&bytes).unwrap();
            let is_refused = refused.load(Ordering::Relaxed);
            lock(&told).push((is_refused, event["count"].as_i64()));
            if is_repetition {
                event["metadata"] = json!({"name": "a"});
                event["involvedObject"] = json!({});
            }
            let (status, answer) = if is_refused {
                let failure = json!({"kind": "Status", "status": "Failure", "code": 500});
                (500, failure)
            } else {
                (200, event)
            };
            let text = answer.to_string();
            let answer = Response::builder().status(status);
            let answer = answer.body(Full::from(text));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    let client = kube::Client::new(service, "default");
    let clock = Arc::new(sim::SimulatedClock::virtual_time());
    let (_recorder, mut publisher) = EventRecorder::new(client, clock);
    for is_refused in [false, true, true, false] {
        refuses.store(is_refused, Ordering::Relaxed);
        let written = publisher.write(event("a")).await;
        assert_eq!(written.is_err(), is_refused);
    }
    let told = lock(&counts).clone();
    assert_eq!(
        told,
        [
            (false, Some(1)),
            (true, Some(2)),
            (true, Some(2)),
            (false, Some(2))
        ]
    );
}
