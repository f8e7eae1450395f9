//! The watch of one kind: pages, time-outs and delays, and each object as a fact.
//!
//! A watch whose revision is too old (410 Gone) is no fault: kube's watcher lists anew, which is told as
//! [`watcher::Event::Init`]. Which kinds are watched is no business of this file.

use std::collections::BTreeSet;
use std::fmt::Debug;

use apis::labels::NOMINATION_MANAGER;
use futures::stream::{BoxStream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::backoff::WatchBackoff;
use super::fact::{WatchFact, key_of};
use super::mapping::ObjectMapper;
use crate::shell::model::first_lists::WatchedKind;

/// Objects a page, on the first list of each kind and when a watch has to start over.
const PAGE_SIZE: u32 = 500;
/// An API server that ends a watch is asked again after this long; it bounds how long a dead connection goes
/// unnoticed.
pub const WATCH_TIMEOUT_SECONDS: u32 = 290;

/// Message of a watch.
#[derive(Debug)]
pub(super) enum WatchMessage {
    /// An object was added, changed or deleted.
    Fact(WatchFact),
    /// Everything there is was told.
    Complete(WatchedKind, WatchFact),
    /// The watch failed and will be tried again.
    Failed(WatchedKind, watcher::Error),
    /// The watch starts over: everything there is will be told.
    StartsOver,
}

/// A kind and what its watch tells.
pub(super) type KindWatch = (WatchedKind, BoxStream<'static, WatchMessage>);

pub(super) fn watch_some<K>(
    api: Api<K>,
    config: watcher::Config,
    kind: WatchedKind,
    mapper: impl ObjectMapper<K>,
) -> KindWatch
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let config = config.page_size(PAGE_SIZE).timeout(WATCH_TIMEOUT_SECONDS);
    let mut listed = BTreeSet::new();
    let messages = watcher(api, config)
        .backoff(WatchBackoff::default())
        .map(move |event| match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                WatchMessage::StartsOver
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.insert(key_of(&object));
                WatchMessage::Fact(mapper.applied(trimmed(object)))
            }
            Ok(watcher::Event::InitDone) => {
                WatchMessage::Complete(kind, mapper.listed(std::mem::take(&mut listed)))
            }
            Ok(watcher::Event::Apply(object)) => {
                WatchMessage::Fact(mapper.applied(trimmed(object)))
            }
            Ok(watcher::Event::Delete(object)) => {
                WatchMessage::Fact(mapper.deleted(key_of(&object)))
            }
            Err(error) => WatchMessage::Failed(kind, error),
        });
    (kind, messages.boxed())
}

/// Who else wrote fields is of no interest; which ones they wrote is gone before an object is parsed.
fn trimmed<K: ResourceExt>(mut object: K) -> K {
    let is_plan = |manager: &Option<String>| manager.as_deref() == Some(NOMINATION_MANAGER);
    object
        .managed_fields_mut()
        .retain(|it| is_plan(&it.manager));
    object
}
