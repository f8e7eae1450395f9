//! Watches on the wire: one JSON line an event, bookmarks, initial events, an end after a while.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api_server::ApiServer;
use crate::request::answer::{ApiResponse, answer_bytes};
use crate::request::{QueryParameters, Representation, Target, selection};
use crate::selectors::Selection;
use crate::served::table;
use crate::status::StatusError;
use crate::store::watch::{Watch, WatchOverrun};

/// How often a watch that allows it is told how far it has come.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// How long a watch lasts that does not say.
const DURATION_DEFAULT: Duration = Duration::from_mins(30);

/// A watch being sent.
struct Sender {
    server: ApiServer,
    target: Target,
    shape: Representation,
    include_object: String,
    /// Lines that come before anything new.
    ready: VecDeque<Vec<u8>>,
    watch: Watch,
    has_bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
}

impl Sender {
    fn line(&self, change: &str, object: &Value) -> Vec<u8> {
        let wire = self.target.kind.to_wire(object, &self.target.version);
        let shown = match self.shape {
            Representation::Full => wire,
            Representation::Partial => std::borrow::Cow::Owned(table::partial(&wire)),
            Representation::Table => {
                let now = self.server.with(|store| store.now());
                let rows = [wire.as_ref()];
                let view = table::TableView {
                    kind: &self.target.kind,
                    version: &self.target.version,
                    now,
                    include_object: &self.include_object,
                };
                std::borrow::Cow::Owned(view.render(
                    &rows,
                    &json!({"resourceVersion": object["metadata"]["resourceVersion"]}),
                ))
            }
        };
        event_line(change, &shown)
    }

    fn bookmark(&self, revision: u64, ends_initial_events: bool) -> Vec<u8> {
        let kind = &self.target.kind;
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = json!({
            "kind": kind.kind, "apiVersion": kind.api_version(&self.target.version),
            "metadata": metadata,
        });
        if self.shape == Representation::Partial {
            object["kind"] = "PartialObjectMetadata".into();
            object["apiVersion"] = "meta.k8s.io/v1".into();
        }
        // The typed readers of clients want the fields that the type requires.
        for field in ["spec", "status"] {
            if self.shape == Representation::Full && kind.is_custom() {
                object[field] = json!({});
            }
        }
        event_line("BOOKMARK", &object)
    }

    /// The next line; `None` ends the watch.
    async fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(line) = self.ready.pop_front() {
            return Some(line);
        }
        let wake = if self.has_bookmarks {
            self.next_bookmark.min(self.deadline)
        } else {
            self.deadline
        };
        tokio::select! {
            biased;
            event = self.watch.next() => {
                let event = event?;
                Some(self.line(event.change.as_str(), &event.object))
            }
            () = tokio::time::sleep_until(wake) => {
                if Instant::now() >= self.deadline {
                    return None;
                }
                self.next_bookmark = Instant::now() + BOOKMARK_PERIOD;
                // Under the store's lock nothing can slip in between queue and revision.
                let server = self.server.clone();
                let (waiting, revision) =
                    server.with(|store| (self.watch.try_next(), store.revision()));
                match waiting {
                    Ok(Some(event)) => Some(self.line(event.change.as_str(), &event.object)),
                    Ok(None) => Some(self.bookmark(revision, false)),
                    // A bookmark would vouch for what was lost.
                    Err(WatchOverrun) => None,
                }
            }
        }
    }
}

fn event_line(change: &str, object: &Value) -> Vec<u8> {
    let mut line = format!("{{\"type\":\"{change}\",\"object\":").into_bytes();
    // Writing JSON into memory does not fail.
    let _ = serde_json::to_writer(&mut line, object);
    line.extend_from_slice(b"}\n");
    line
}

/// Starts to answer a watch request.
pub(crate) fn start(
    server: &ApiServer,
    target: Target,
    shape: Representation,
    query: &QueryParameters,
) -> Result<ApiResponse, StatusError> {
    let selection = selection(&target, query)?;
    let begin = Begin::of(query);
    let opened = server.with(|store| open(store, &target, &selection, &begin));
    let (initial, watch, head) = match opened {
        Ok(opened) => opened,
        // An expired revision is told as an event, as a cluster does: clients list again on it.
        Err(status) if status.code == 410 => {
            let line = event_line("ERROR", &status.to_value());
            return Ok(answer_bytes(200, "application/json", line));
        }
        Err(status) => return Err(status),
    };
    let duration = match query.get("timeoutSeconds").parse() {
        Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
        _ => DURATION_DEFAULT,
    };
    let now = Instant::now();
    let mut sender = Sender {
        server: server.clone(),
        target,
        shape,
        include_object: query.get("includeObject").to_owned(),
        ready: VecDeque::new(),
        watch,
        has_bookmarks: query.is_true("allowWatchBookmarks"),
        next_bookmark: now + BOOKMARK_PERIOD,
        deadline: now + duration,
    };
    let mut ready: VecDeque<Vec<u8>> = initial
        .iter()
        .map(|object| sender.line("ADDED", object))
        .collect();
    if query.is_true("sendInitialEvents") && sender.has_bookmarks {
        ready.push_back(sender.bookmark(head, true));
    }
    sender.ready = ready;
    let lines = futures::stream::unfold(sender, |mut sender| async move {
        let line = sender.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), sender))
    });
    let mut answer = answer_bytes(200, "application/json", Vec::new());
    *answer.body_mut() = StreamBody::new(lines).boxed_unsync();
    Ok(answer)
}

/// From where a watch tells.
enum Begin<'a> {
    /// Everything there is, then what happens.
    Everything,
    /// What happens from now on.
    Now,
    /// What happened since a revision.
    Since(&'a str),
}

impl<'a> Begin<'a> {
    fn of(query: &'a QueryParameters) -> Self {
        let revision = query.get("resourceVersion");
        let sends_initial = match query.get("sendInitialEvents") {
            "" => revision.is_empty() || revision == "0",
            _ => query.is_true("sendInitialEvents"),
        };
        match revision {
            _ if sends_initial => Self::Everything,
            "" => Self::Now,
            revision => Self::Since(revision),
        }
    }
}

type Opened = (Vec<Arc<Value>>, Watch, u64);

fn open(
    store: &mut crate::store::Store,
    target: &Target,
    selection: &Selection,
    begin: &Begin<'_>,
) -> Result<Opened, StatusError> {
    let resource = &target.kind.resource;
    let head = store.revision();
    let objects = match begin {
        Begin::Everything => store.list(resource, selection),
        Begin::Now | Begin::Since(_) => Vec::new(),
    };
    let watch = match begin {
        Begin::Everything | Begin::Now => store.watch_from_now(&[resource], selection.clone()),
        Begin::Since(revision) => {
            let since = revision.parse().map_err(|_| {
                StatusError::bad_request(format!(
                    "invalid resource version {revision:?}: not a number"
                ))
            })?;
            store.watch(std::slice::from_ref(resource), selection.clone(), since)?
        }
    };
    Ok((objects, watch, head))
}
