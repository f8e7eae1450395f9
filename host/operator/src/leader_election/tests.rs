//! Candidates for one lease at an API server that can be frozen, in simulated time.

use std::convert::Infallible;

use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// The one object of an API server.
#[derive(Debug, Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    /// Requests get no answer.
    is_frozen: bool,
    /// There is no namespace for the lease.
    lacks_namespace: bool,
    /// Who held it at each write.
    holders: Vec<String>,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Somebody edits the lease.
    fn touch(&self) {
        let mut state = self.state();
        state.version += 1;
        let version = json!(state.version.to_string());
        state.lease.as_mut().unwrap()["metadata"]["resourceVersion"] = version;
    }

    async fn answer(self, request: Request<Body>) -> Response<Full<bytes::Bytes>> {
        if self.state().is_frozen {
            std::future::pending::<()>().await;
        }
        let method = request.method().clone();
        let body = request.into_body().collect_bytes().await.unwrap();
        let mut state = self.state();
        if state.lacks_namespace {
            return refusal(404);
        }
        let given = serde_json::from_slice::<Value>(&body).ok();
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        let conflicts = match (&state.lease, &given) {
            (Some(_), _) if method == Method::POST => true,
            (Some(known), Some(given)) => version(known) != version(given),
            (None, _) | (_, None) => false,
        };
        if conflicts {
            return refusal(409);
        }
        if let Some(mut lease) = given {
            state.version += 1;
            lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            state.holders.push(holder.to_owned());
            state.lease = Some(lease);
        }
        match &state.lease {
            Some(lease) => Response::new(Full::from(lease.to_string())),
            None => refusal(404),
        }
    }

    /// A candidate whose wall clock shows the second now.
    fn candidate(&self, identity: &str, wall_clock: i64) -> (Election, Fence) {
        let server = self.clone();
        let service = service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let fence = Fence::closed();
        let election = Election::new(LeaderElector {
            leases: Api::namespaced(Client::new(service, "default"), "default"),
            lease_name: "lead".to_owned(),
            identity: identity.to_owned(),
            clock: Arc::new(Wall {
                started_at: Timestamp::from_second(wall_clock).unwrap(),
                started: Instant::now(),
            }),
            fence: fence.clone(),
            slow_renewals: Counter::default(),
        });
        (election, fence)
    }
}

fn refusal(code: u16) -> Response<Full<bytes::Bytes>> {
    let reason = if code == 404 { "NotFound" } else { "Conflict" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason});
    let mut response = Response::new(Full::from(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

struct Wall {
    started_at: Timestamp,
    started: Instant,
}

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        self.started_at + self.started.elapsed()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Leads from now on, in a task of its own, which ends when the lease is lost.
async fn lead(election: Election) -> (Arc<Election>, tokio::task::JoinHandle<anyhow::Result<()>>) {
    let election = Arc::new(election);
    let until = election.acquire().await;
    let leading = Arc::clone(&election);
    (
        election,
        tokio::spawn(async move { leading.keep(until).await }),
    )
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_api_server_freezes_ends_ten_seconds_after_it_last_renewed() {
    let server = Server::default();
    let (election, fence) = server.candidate("a", 0);
    let (_, leading) = lead(election).await;
    pass(61).await;
    assert!(fence.is_open() && !leading.is_finished());
    let frozen_at = Instant::now();
    server.state().is_frozen = true;
    let error = leading.await.unwrap().unwrap_err();
    let lasted = frozen_at.elapsed();
    assert!(
        lasted <= RENEW_DEADLINE && lasted > Duration::from_secs(7),
        "{lasted:?}"
    );
    assert!(
        error.to_string().contains("not renewed within 10s"),
        "{error}"
    );
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_frozen_itself_does_not_try_again() {
    let server = Server::default();
    let (election, fence) = server.candidate("a", 0);
    let until = election.acquire().await;
    let writes = server.state().holders.len();
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(!fence.is_open());
    election.keep(until).await.unwrap_err();
    assert_eq!(server.state().holders.len(), writes);
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_by_years_change_nothing() {
    for wall_clock in [0, 4_000_000_000] {
        let server = Server::default();
        let (first, _) = server.candidate("a", 2_000_000_000);
        let (_, leading) = lead(first).await;
        let (second, fence) = server.candidate("b", wall_clock);
        let waits = timeout(Duration::from_mins(5), second.acquire()).await;
        assert!(waits.is_err() && !fence.is_open(), "the lease is renewed");
        leading.abort();
        let silent_since = Instant::now();
        second.acquire().await;
        let waited = silent_since.elapsed().as_secs();
        assert!((13..=18).contains(&waited), "{waited} s at {wall_clock}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_released_is_taken_at_the_next_try() {
    let server = Server::default();
    let (first, first_fence) = server.candidate("a", 0);
    let (first, leading) = lead(first).await;
    let (second, second_fence) = server.candidate("b", 0);
    let taking = tokio::spawn(async move { second.acquire().await });
    pass(30).await;
    assert!(!second_fence.is_open());
    leading.abort();
    first.release().await;
    assert!(!first_fence.is_open());
    let released_at = Instant::now();
    taking.await.unwrap();
    assert!(released_at.elapsed() <= RETRY_PERIOD);
    assert!(second_fence.is_open());
    pass(3).await;
    first.release().await;
    assert_eq!(
        server.state().holders.last().unwrap(),
        "b",
        "not ours to release"
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_whose_question_hangs_asks_again() {
    let server = Server::default();
    server.state().is_frozen = true;
    let (election, _) = server.candidate("a", 0);
    let taking = tokio::spawn(async move { election.acquire().await });
    pass(30).await;
    assert!(!taking.is_finished());
    server.state().is_frozen = false;
    let thawed_at = Instant::now();
    taking.await.unwrap();
    assert!(thawed_at.elapsed() <= RENEW_DEADLINE + RETRY_PERIOD);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_missing_is_named_and_waited_for() {
    let server = Server::default();
    server.state().lacks_namespace = true;
    let (election, _) = server.candidate("a", 0);
    let error = election.try_hold().await.unwrap_err().to_string();
    for part in [
        "the namespace default of the lease",
        "kubectl create namespace default",
        "--leader-election-namespace",
        "--system-namespace",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let taking = tokio::spawn(async move { election.acquire().await });
    pass(30).await;
    assert!(!taking.is_finished());
    server.state().lacks_namespace = false;
    let made_at = Instant::now();
    taking.await.unwrap();
    assert!(made_at.elapsed() <= RETRY_PERIOD);
}

#[tokio::test(start_paused = true)]
async fn who_edits_the_lease_does_not_end_the_leader() {
    let server = Server::default();
    let (election, fence) = server.candidate("a", 0);
    let (election, leading) = lead(election).await;
    let slow_renewals = || election.candidate.slow_renewals.get();
    assert_eq!(slow_renewals(), 0);
    for _ in 0..5 {
        server.touch();
        pass(12).await;
        assert!(fence.is_open() && !leading.is_finished());
    }
    assert_eq!(slow_renewals(), 5, "one for each edit");
    server.state().lease = None;
    pass(12).await;
    assert!(fence.is_open() && !leading.is_finished(), "it made another");
}

#[test]
fn a_lease_is_taken_when_free_ours_or_unchanged_for_as_long_as_it_lasts() {
    let held_by = |holder: &str, seconds| LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(seconds),
        ..LeaseSpec::default()
    };
    let cases = [
        (LeaseSpec::default(), 0, true),
        (held_by("", 15), 0, true),
        (held_by("a", 15), 0, true),
        (held_by("b", 15), 15, false),
        (held_by("b", 15), 16, true),
        (held_by("b", 40), 16, false),
        (held_by("b", -1), 1, true),
    ];
    for (held, unchanged_for, expected) in cases {
        let got = may_take(&held, "a", Duration::from_secs(unchanged_for));
        assert_eq!(got, expected, "{held:?} {unchanged_for}");
    }
}

#[test]
fn the_one_who_takes_it_counts_the_change_of_hands() {
    let now = Timestamp::from_second(100).unwrap();
    let first = spec(None, "a", now);
    assert_eq!(first.lease_transitions, Some(0));
    let later = Timestamp::from_second(102).unwrap();
    let renewed = spec(Some(&first), "a", later);
    assert_eq!(
        (renewed.lease_transitions, &renewed.acquire_time),
        (Some(0), &first.acquire_time)
    );
    assert_eq!(renewed.renew_time, Some(MicroTime(later)));
    let taken = spec(Some(&renewed), "b", later);
    assert_eq!(
        (taken.lease_transitions, taken.acquire_time),
        (Some(1), Some(MicroTime(later)))
    );
}
