//! Watches of a cluster, all in one stream: what changed, what cannot be read, and when it is back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::bail;
use apis::ObjectKey;
use controllers::{WATCH_TIMEOUT_SECONDS, WatchBackoff};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use shadow::{Gathered, ObjectChange, ReadKind, ReadRow, TABLE, key_of, slim};
use tokio::time::{Instant, timeout_at};

/// Few, because each page is held as text and as values at once.
const PAGE_SIZE: u32 = 100;
/// How long first lists may take, all together.
const FIRST_LISTS: Duration = Duration::from_mins(1);

/// Message of a watch.
enum ReadMessage {
    Changed(ObjectChange),
    Listed(ReadKind),
    Failed(ReadKind, ReadFailure),
}

/// Why a kind cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadFailure {
    NotServed,
    Denied(String),
    Unreached(String),
}

impl ReadFailure {
    /// Whether the API server answered.
    fn is_refusal(&self) -> bool {
        match self {
            Self::NotServed | Self::Denied(_) => true,
            Self::Unreached(_) => false,
        }
    }
}

/// News to tell, or to act upon.
pub(super) enum ReadNews {
    Changed(ObjectChange),
    /// A sentence for people.
    Said(String),
    Nothing,
}

/// Watches of all kinds that are read, and what came of them.
pub(super) struct Readings {
    messages: SelectAll<BoxStream<'static, ReadMessage>>,
    listed: BTreeSet<ReadKind>,
    failed: BTreeMap<ReadKind, ReadFailure>,
    is_away: bool,
    /// Change that was told when the server was back.
    held: Option<ObjectChange>,
}

impl Readings {
    /// A watch of every kind of the table.
    pub(super) fn of(client: &Client) -> Self {
        Self {
            messages: TABLE.iter().map(|row| watch(client, row)).collect(),
            listed: BTreeSet::new(),
            failed: BTreeMap::new(),
            is_away: false,
            held: None,
        }
    }

    /// Everything there is, once each kind was listed or cannot be.
    pub(super) async fn gather(&mut self) -> anyhow::Result<Gathered> {
        let mut gathered = Gathered::default();
        let until = Instant::now() + FIRST_LISTS;
        while !self.is_complete() {
            let Ok(news) = timeout_at(until, self.next()).await else {
                break;
            };
            match news {
                ReadNews::Changed(change) => gathered.apply(change),
                ReadNews::Said(sentence) => eprintln!("{sentence}"),
                ReadNews::Nothing => {}
            }
        }
        if self.listed.is_empty() {
            bail!(
                "nothing of the cluster could be read: {}",
                self.unread().join("; ")
            );
        }
        Ok(gathered)
    }

    fn is_complete(&self) -> bool {
        let is_settled = |row: &ReadRow| {
            let failure = self.failed.get(&row.kind);
            self.listed.contains(&row.kind) || failure.is_some_and(ReadFailure::is_refusal)
        };
        TABLE.iter().all(is_settled)
    }

    /// Waits for the next news of any watch.
    pub(super) async fn next(&mut self) -> ReadNews {
        if let Some(change) = self.held.take() {
            return ReadNews::Changed(change);
        }
        // A watch never ends by itself.
        let Some(message) = self.messages.next().await else {
            return std::future::pending().await;
        };
        match message {
            ReadMessage::Changed(change) => match self.back() {
                ReadNews::Said(sentence) => {
                    self.held = Some(change);
                    ReadNews::Said(sentence)
                }
                ReadNews::Changed(_) | ReadNews::Nothing => ReadNews::Changed(change),
            },
            ReadMessage::Listed(kind) => {
                self.listed.insert(kind);
                self.failed.remove(&kind);
                self.back()
            }
            ReadMessage::Failed(kind, failure) => {
                let is_away = matches!(failure, ReadFailure::Unreached(_));
                let said = match &failure {
                    ReadFailure::Unreached(why) if !self.is_away => ReadNews::Said(format!(
                        "the API server does not answer ({why}); the watch goes on when it does"
                    )),
                    ReadFailure::NotServed | ReadFailure::Denied(_) | ReadFailure::Unreached(_) => {
                        ReadNews::Nothing
                    }
                };
                self.is_away |= is_away;
                if !is_away || !self.listed.contains(&kind) {
                    self.failed.insert(kind, failure);
                }
                said
            }
        }
    }

    fn back(&mut self) -> ReadNews {
        if std::mem::take(&mut self.is_away) {
            ReadNews::Said("the API server answers again".to_owned())
        } else {
            ReadNews::Nothing
        }
    }

    /// What could not be read, what that means, and what mends it. Kinds that nobody serves have no objects.
    pub(super) fn unread(&self) -> Vec<String> {
        let told = TABLE.iter().filter_map(|row| {
            let (resource, without) = (row.resource(), row.without);
            match self.failed.get(&row.kind) {
                Some(ReadFailure::NotServed) => None,
                Some(ReadFailure::Denied(why)) => Some(format!(
                    "{resource} ({why}): {without}; grant it with: {}",
                    row.grant()
                )),
                Some(ReadFailure::Unreached(why)) => Some(format!("{resource} ({why}): {without}")),
                None if self.listed.contains(&row.kind) => None,
                // What came of it by then is part of the whole.
                None => Some(format!("{resource} (still being listed): {without}")),
            }
        });
        told.collect()
    }
}

fn watch(client: &Client, row: &'static ReadRow) -> BoxStream<'static, ReadMessage> {
    let resource = ApiResource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        api_version: row.api_version(),
        kind: row.name.to_owned(),
        plural: row.plural.to_owned(),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let config = watcher::Config::default()
        .page_size(PAGE_SIZE)
        .timeout(WATCH_TIMEOUT_SECONDS);
    let mut listed = ListedObjects::default();
    watcher(api, config)
        .backoff(WatchBackoff::default())
        .flat_map(move |event| stream::iter(listed.take(row.kind, event)))
        .boxed()
}

/// What is left of each object for the day on which a list no longer has it, as JSON.
#[derive(Default)]
struct ListedObjects {
    remains: BTreeMap<ObjectKey, Box<str>>,
    listing: BTreeMap<ObjectKey, Box<str>>,
}

impl ListedObjects {
    fn take(
        &mut self,
        kind: ReadKind,
        event: watcher::Result<watcher::Event<DynamicObject>>,
    ) -> Vec<ReadMessage> {
        match event {
            Ok(watcher::Event::Init) => {
                self.listing.clear();
                Vec::new()
            }
            Ok(watcher::Event::InitApply(object)) => {
                let object = value(kind, object);
                self.listing.insert(key_of(&object), remains_of(&object));
                vec![changed(kind, object, false)]
            }
            Ok(watcher::Event::InitDone) => {
                let listed = std::mem::take(&mut self.listing);
                let before = std::mem::replace(&mut self.remains, listed);
                let gone = before
                    .into_iter()
                    .filter(|(key, _)| !self.remains.contains_key(key));
                // Text that was written from a value reads back.
                let remains = |text: &str| serde_json::from_str(text).unwrap_or_default();
                let gone = gone.map(|(_, text)| changed(kind, remains(&text), true));
                gone.chain([ReadMessage::Listed(kind)]).collect()
            }
            Ok(watcher::Event::Apply(object)) => {
                let object = value(kind, object);
                self.remains.insert(key_of(&object), remains_of(&object));
                vec![changed(kind, object, false)]
            }
            Ok(watcher::Event::Delete(object)) => {
                let object = value(kind, object);
                self.remains.remove(&key_of(&object));
                vec![changed(kind, object, true)]
            }
            Err(error) => {
                let failed = failure(&error).map(|it| ReadMessage::Failed(kind, it));
                failed.into_iter().collect()
            }
        }
    }
}

fn changed(kind: ReadKind, object: Value, is_gone: bool) -> ReadMessage {
    ReadMessage::Changed(ObjectChange {
        kind,
        object,
        is_gone,
    })
}

/// The object, slim.
fn value(kind: ReadKind, mut object: DynamicObject) -> Value {
    object.managed_fields_mut().clear();
    // What was JSON becomes JSON.
    slim(kind, serde_json::to_value(object).unwrap_or_default())
}

fn remains_of(object: &Value) -> Box<str> {
    let metadata = &object["metadata"];
    let remains = json!({"metadata": {
        "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"],
        "labels": metadata["labels"], "ownerReferences": metadata["ownerReferences"],
    }});
    remains.to_string().into()
}

/// Why; nothing where a watch only is too old and lists anew.
fn failure(error: &watcher::Error) -> Option<ReadFailure> {
    let api = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    };
    match api.map(|status| status.code) {
        Some(410) => None,
        Some(404) => Some(ReadFailure::NotServed),
        Some(401 | 403) => api.map(|status| ReadFailure::Denied(status.message.clone())),
        Some(_) | None => Some(ReadFailure::Unreached(root(error))),
    }
}

/// The innermost cause, which is what people know.
fn root(error: &watcher::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
