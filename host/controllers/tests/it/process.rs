//! The controllers as a process that may die: every write to the API server and every call of EC2 is counted, and the
//! process dies at the one it is told to die at, before it is sent or before its answer is heard.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use api_server::{ApiServer, RequestInfo, ResponseBody};
use controllers::{Settings, SharedLedger};
use futures::{FutureExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use jiff::SignedDuration;
use kube::client::Body;
use sim::SimulatedClock;
use sim::ec2::Gate;
use tower::Service;

use crate::invariants::{Judge, JudgedWrite};
use crate::rbac;

/// Frames of a watch that can be on their way.
const FRAMES_LATE_MAX: usize = 10_000;

/// At which of its calls a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Death {
    /// Counted from one.
    pub(crate) call: usize,
    /// Whether the call takes effect, so that only its answer is lost.
    pub(crate) is_sent: bool,
}

/// Writes under a path whose body contains the text are refused so often, as the object was changed meanwhile.
#[derive(Debug)]
struct ArmedConflict {
    path: String,
    text: String,
    times: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Writes to the API server and calls of EC2, in order.
    calls: Vec<String>,
    /// Writes to the API server, by path.
    written: BTreeMap<String, usize>,
    /// Reads of single objects and of lists, by path.
    read: BTreeMap<String, usize>,
    /// What was asked for, whatever the names.
    asked: BTreeSet<RequestInfo>,
    death: Option<Death>,
    is_dead: bool,
    /// How far the clock of its machine is off.
    clock_off_by: SignedDuration,
    /// Reads whose path and query contain the text are answered so late.
    slow: Vec<(String, Duration)>,
    /// Paths of kinds that the API server does not serve.
    unserved: Vec<String>,
    /// Writes under these paths are answered with an error of the server.
    failing: Vec<String>,
    /// Writes to paths that end so are forbidden.
    forbidden: Vec<String>,
    /// Writes to that path happen, and the answer is lost so often.
    lost_answers: Option<(String, usize)>,
    /// Writes that somebody else came before.
    conflict: Option<ArmedConflict>,
    /// How long a write takes.
    writes_take: Duration,
    /// Paths of kinds whose watches tell so late.
    lagging: Vec<(String, Duration)>,
}

/// Counts the writes of one process after another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    state: Arc<Mutex<State>>,
}

impl Process {
    /// Counts from now on, and dies at the n-th write, if at all.
    pub(crate) fn dies_at(&self, write: Option<usize>) {
        let mut state = self.state.lock().unwrap();
        state.calls.clear();
        state.death = write.map(|call| Death {
            call,
            is_sent: true,
        });
    }

    /// A process that dies at one of its calls, if at all.
    pub(crate) fn dying(death: Option<Death>) -> Self {
        let process = Self::default();
        process.state.lock().unwrap().death = death;
        process
    }

    /// What it wrote to the API server and asked of EC2, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.clone()
    }

    /// From now on reads (watches aside) whose path and query contain the text are answered late.
    pub(crate) fn reads_slowly(&self, text: &str, late: Duration) {
        self.state
            .lock()
            .unwrap()
            .slow
            .push((text.to_owned(), late));
    }

    /// From now on the API server knows nothing under that path.
    pub(crate) fn is_not_served(&self, path: &str) {
        self.state.lock().unwrap().unserved.push(path.to_owned());
    }

    /// From now on the API server fails at writes under that path.
    pub(crate) fn writes_fail(&self, path: &str) {
        self.state.lock().unwrap().failing.push(path.to_owned());
    }

    /// From now on nobody may write to paths that end so.
    pub(crate) fn may_not_write(&self, end: &str) {
        self.state.lock().unwrap().forbidden.push(end.to_owned());
    }

    /// The next writes to that path happen, and who asked for them is told that time was over.
    pub(crate) fn loses_answers(&self, path: &str, times: usize) {
        self.state.lock().unwrap().lost_answers = Some((path.to_owned(), times));
    }

    fn loses_answer(&self, path: &str) -> bool {
        let lost = &mut self.state.lock().unwrap().lost_answers;
        match lost {
            Some((lossy, times)) if lossy == path && *times > 0 => {
                *times -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// The next writes under that path whose body contains the text meet a conflict.
    pub(crate) fn conflicts(&self, path: &str, text: &str, times: usize) {
        self.state.lock().unwrap().conflict = Some(ArmedConflict {
            path: path.to_owned(),
            text: text.to_owned(),
            times,
        });
    }

    /// Conflicts that are still to be met.
    pub(crate) fn conflicts_left(&self) -> usize {
        let conflict = &self.state.lock().unwrap().conflict;
        conflict.as_ref().map_or(0, |it| it.times)
    }

    fn may_conflict(&self, path: &str) -> bool {
        let conflict = &self.state.lock().unwrap().conflict;
        let left = conflict.as_ref().filter(|it| it.times > 0);
        left.is_some_and(|it| path.starts_with(&it.path))
    }

    fn has_conflict(&self, body: &[u8]) -> bool {
        let body = String::from_utf8_lossy(body);
        let conflict = &mut self.state.lock().unwrap().conflict;
        match conflict {
            Some(it) if it.times > 0 && body.contains(&it.text) => {
                it.times -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    fn is_forbidden(&self, path: &str) -> bool {
        let forbidden = &self.state.lock().unwrap().forbidden;
        forbidden.iter().any(|end| path.ends_with(end))
    }

    /// Writes succeed again.
    pub(crate) fn writes_succeed(&self) {
        self.state.lock().unwrap().failing.clear();
    }

    fn fails(&self, uri: &str) -> bool {
        let failing = &self.state.lock().unwrap().failing;
        failing.iter().any(|path| uri.contains(path))
    }

    /// From now on a write takes so long.
    pub(crate) fn writes_take(&self, time: Duration) {
        self.state.lock().unwrap().writes_take = time;
    }

    /// From now on what happens under that path is told so late to those who watch it.
    pub(crate) fn watches_lag(&self, path: &str, late: Duration) {
        let lag = (path.to_owned(), late);
        self.state.lock().unwrap().lagging.push(lag);
    }

    fn lag(&self, uri: &str) -> Duration {
        let lagging = &self.state.lock().unwrap().lagging;
        let lag = uri.contains("watch=").then(|| late(lagging, uri));
        lag.flatten().unwrap_or_default()
    }

    fn takes(&self) -> Duration {
        self.state.lock().unwrap().writes_take
    }

    fn lateness(&self, uri: &str) -> Option<Duration> {
        let slow = &self.state.lock().unwrap().slow;
        (!uri.contains("watch=")).then(|| late(slow, uri)).flatten()
    }

    fn is_served(&self, uri: &str) -> bool {
        let unserved = &self.state.lock().unwrap().unserved;
        !unserved.iter().any(|path| uri.contains(path))
    }

    /// Sets the clock of its machine.
    pub(crate) fn sets_clock(&self, off_by: SignedDuration) {
        self.state.lock().unwrap().clock_off_by = off_by;
    }

    pub(crate) fn clock_off_by(&self) -> SignedDuration {
        self.state.lock().unwrap().clock_off_by
    }

    pub(crate) fn writes(&self) -> usize {
        self.state.lock().unwrap().calls.len()
    }

    /// Writes to the API server under that path.
    pub(crate) fn written(&self, path: &str) -> usize {
        let written = &self.state.lock().unwrap().written;
        let under = written.iter().filter(|(uri, _)| uri.starts_with(path));
        under.map(|(_, times)| times).sum()
    }

    /// Reads from the API server under that path, watches aside.
    pub(crate) fn read_from(&self, path: &str) -> usize {
        let read = &self.state.lock().unwrap().read;
        let under = read.iter().filter(|(uri, _)| uri.starts_with(path));
        under.map(|(_, times)| times).sum()
    }

    /// What was asked of the API server since the beginning, without names of objects.
    pub(crate) fn asked(&self) -> BTreeSet<RequestInfo> {
        self.state.lock().unwrap().asked.clone()
    }

    fn asks(&self, info: RequestInfo) {
        let name = String::new();
        let info = RequestInfo { name, ..info };
        self.state.lock().unwrap().asked.insert(info);
    }

    fn reads_from(&self, path: &str) {
        let mut state = self.state.lock().unwrap();
        *state.read.entry(path.to_owned()).or_default() += 1;
    }

    fn writes_to(&self, path: &str) {
        let mut state = self.state.lock().unwrap();
        *state.written.entry(path.to_owned()).or_default() += 1;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().unwrap().is_dead
    }

    /// Another process takes its place.
    pub(crate) fn restarts(&self) {
        let mut state = self.state.lock().unwrap();
        (state.death, state.is_dead) = (None, false);
    }

    /// Does a write and tells of it, unless the process dies of it or is dead already.
    pub(crate) async fn write<T>(&self, work: impl Future<Output = T>) -> T {
        self.call("", work).await
    }

    async fn call<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let number = self.sends(what).await;
        let done = work.await;
        self.hears(number).await;
        done
    }

    async fn sends(&self, what: &str) -> usize {
        self.read(async {}).await;
        let number = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(what.to_owned());
            state.calls.len()
        };
        self.dies_if(Death {
            call: number,
            is_sent: false,
        });
        self.read(async {}).await;
        number
    }

    async fn hears(&self, number: usize) {
        self.dies_if(Death {
            call: number,
            is_sent: true,
        });
        self.read(async {}).await;
    }

    fn dies_if(&self, moment: Death) {
        let mut state = self.state.lock().unwrap();
        state.is_dead |= state.death == Some(moment);
    }

    /// The dead learn nothing.
    async fn read<T>(&self, work: impl Future<Output = T>) -> T {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        work.await
    }
}

#[async_trait::async_trait]
impl Gate for Process {
    async fn leaves(&self, operation: &'static str) -> usize {
        self.sends(operation).await
    }

    async fn returns(&self, number: usize) {
        self.hears(number).await;
    }
}

/// The API server as the process reaches it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) api: ApiServer,
    pub(crate) process: Process,
    pub(crate) clock: SimulatedClock,
    pub(crate) ledger: SharedLedger,
    pub(crate) judged: Judged,
    /// By which it is known what the process may ask for.
    pub(crate) settings: Arc<Settings>,
}

/// The judge of a world, and what it found wrong about writes.
#[derive(Clone, Default)]
pub(crate) struct Judged {
    pub(crate) judge: Arc<Mutex<Judge>>,
    pub(crate) found: Arc<Mutex<Vec<String>>>,
}

impl Door {
    /// Whether the chart grants what is asked, and whether it is said who writes.
    fn authorize(&self, request: &Request<Body>) {
        let Some(info) = RequestInfo::of(request.method(), request.uri()) else {
            return;
        };
        let mut found = self.judged.found.lock().unwrap();
        found.extend(rbac::unlawful(&info, &self.settings));
        found.extend(unsigned(request));
        drop(found);
        self.process.asks(info);
    }

    fn judge(&self, request: &Request<Body>) {
        let asked = JudgedWrite {
            method: request.method().as_str(),
            path: request.uri().path(),
        };
        let now = self.clock.now();
        let mut judge = self.judged.judge.lock().unwrap();
        let found = judge.write(&self.api, now, &self.ledger, asked);
        self.judged.found.lock().unwrap().extend(found);
    }
}

/// A patch by nobody: the API server would call its owner by the user agent.
fn unsigned(request: &Request<Body>) -> Option<String> {
    let is_signed = request
        .uri()
        .query()
        .unwrap_or_default()
        .contains("fieldManager=");
    let is_unsigned = request.method() == Method::PATCH && !is_signed;
    is_unsigned.then(|| {
        format!(
            "{} is patched without a field manager",
            request.uri().path()
        )
    })
}

/// How late the first is of which the URI contains the text.
fn late(known: &[(String, Duration)], uri: &str) -> Option<Duration> {
    let found = known.iter().find(|(text, _)| uri.contains(text));
    found.map(|(_, late)| *late)
}

fn server_error() -> Response<ResponseBody> {
    refusal(
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalError",
        "etcd has no leader",
    )
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Response<ResponseBody> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": message,
    });
    let mut answer = Response::new(ResponseBody::new(Full::from(status.to_string())));
    *answer.status_mut() = code;
    answer
}

/// The body, late where watches of its kind lag.
fn told_late(body: ResponseBody, process: Process, uri: String) -> ResponseBody {
    let frames = BodyStream::new(body).map(move |frame| {
        let told = tokio::time::sleep(process.lag(&uri));
        told.map(|()| frame)
    });
    ResponseBody::new(StreamBody::new(frames.buffered(FRAMES_LATE_MAX)))
}

impl Service<Request<Body>> for Door {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (mut api, process) = (self.api.clone(), self.process.clone());
        let uri = request.uri().to_string();
        self.authorize(&request);
        if !process.is_served(&uri) {
            *request.uri_mut() = http::Uri::from_static("/apis/not.served/v1/things");
        }
        // Events are told to people; nothing is decided by them.
        let is_write = request.method() != Method::GET && !request.uri().path().contains("/events");
        if is_write && !self.process.is_dead() {
            self.judge(&request);
            self.process.writes_to(request.uri().path());
        }
        if request.method() == Method::GET && !uri.contains("watch=") {
            self.process.reads_from(request.uri().path());
        }
        Box::pin(async move {
            if is_write && process.fails(&uri) {
                return Ok(server_error());
            }
            if is_write && process.is_forbidden(request.uri().path()) {
                return Ok(refusal(StatusCode::FORBIDDEN, "Forbidden", "may not patch"));
            }
            if is_write && process.may_conflict(request.uri().path()) {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                if process.has_conflict(&body) {
                    let message = "the object has been modified";
                    return Ok(refusal(StatusCode::CONFLICT, "Conflict", message));
                }
                request = Request::from_parts(parts, Body::from(body.to_vec()));
            }
            if is_write {
                tokio::time::sleep(process.takes()).await;
                let what = format!("{} {}", request.method(), request.uri().path());
                if process.loses_answer(request.uri().path()) {
                    process.call(&what, api.call(request)).await?;
                    let reason = "request did not complete within the allotted timeout";
                    return Ok(refusal(StatusCode::GATEWAY_TIMEOUT, "Timeout", reason));
                }
                return process.call(&what, api.call(request)).await;
            }
            if let Some(late) = process.lateness(&uri) {
                tokio::time::sleep(late).await;
            }
            let answer = process.read(api.call(request)).await?;
            Ok(answer.map(|body| told_late(body, process, uri)))
        })
    }
}
