//! Watches: what changed since a revision, delivered in order.
//!
//! A watch never blocks a write: the server pushes into the watch's own queue and wakes it. Wake-ups happen in
//! the order of subscription, so that runs repeat.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use crate::resource::Resource;
use crate::selectors::Selection;
use crate::sync::lock;

/// Kind of change to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// The object came to be, or came into the watch's selection.
    Added,
    /// The object changed.
    Modified,
    /// The object went away, or out of the watch's selection.
    Deleted,
}

impl WatchEventType {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one object.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// Table that holds the object.
    pub resource: Resource,
    /// Kind of change.
    pub change: WatchEventType,
    /// The object after the change; for one that goes, or leaves the selection, its last state there.
    pub object: Arc<Value>,
    /// The object before the change, if there was one.
    pub previous: Option<Arc<Value>>,
    /// Revision of the change.
    pub revision: u64,
}

impl WatchEvent {
    /// The event as a watch with this selection sees it.
    pub(crate) fn seen_through(&self, selection: &Selection) -> Option<Self> {
        if selection.is_everything() {
            return Some(self.clone());
        }
        let before = self.previous.as_ref().is_some_and(|p| selection.matches(p));
        let after = self.change != WatchEventType::Deleted && selection.matches(&self.object);
        let change = match (before, after) {
            (false, false) => return None,
            (false, true) => WatchEventType::Added,
            (true, true) => WatchEventType::Modified,
            (true, false) => WatchEventType::Deleted,
        };
        let mut seen = self.clone();
        seen.change = change;
        // What leaves the selection is told as it was there, with the revision of its leave.
        if let Some(previous) = &self.previous
            && change == WatchEventType::Deleted
            && self.change != WatchEventType::Deleted
        {
            let mut last = (**previous).clone();
            last["metadata"]["resourceVersion"] = self.revision.to_string().into();
            seen.object = Arc::new(last);
        }
        Some(seen)
    }
}

#[derive(Debug, Default)]
struct WatchQueue {
    events: VecDeque<WatchEvent>,
    waker: Option<Waker>,
    is_overrun: bool,
}

/// Events a watch may leave unread before it is cut off, as a cluster cuts off slow watchers.
const UNREAD_EVENTS_MAX: usize = 500_000;

/// The server's end of a watch.
#[derive(Debug)]
pub(crate) struct Subscriber {
    resources: Vec<Resource>,
    selection: Selection,
    queue: Weak<Mutex<WatchQueue>>,
}

impl Subscriber {
    /// Whether the other end is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.queue.strong_count() == 0
    }

    /// Hands the event over when it concerns this watch.
    pub(crate) fn push(&self, event: &WatchEvent) {
        if !self.resources.contains(&event.resource) {
            return;
        }
        let Some(queue) = self.queue.upgrade() else {
            return;
        };
        let Some(seen) = event.seen_through(&self.selection) else {
            return;
        };
        let mut queue = lock(&queue);
        if queue.is_overrun {
            return;
        }
        if queue.events.len() >= UNREAD_EVENTS_MAX {
            queue.is_overrun = true;
            queue.events = VecDeque::new();
        } else {
            queue.events.push_back(seen);
        }
        if let Some(waker) = queue.waker.take() {
            waker.wake();
        }
    }
}

/// The reader of a watch fell hopelessly behind, and is told nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOverrun;

impl fmt::Display for WatchOverrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the watch was cut off, as too many events were left unread")
    }
}

impl std::error::Error for WatchOverrun {}

/// A running watch. It ends (yields `None`) only when its reader fell hopelessly behind.
#[derive(Debug)]
pub struct Watch {
    queue: Arc<Mutex<WatchQueue>>,
}

impl Watch {
    pub(crate) fn new(
        resources: Vec<Resource>,
        selection: Selection,
        past: Vec<WatchEvent>,
    ) -> (Self, Subscriber) {
        let queue = Arc::new(Mutex::new(WatchQueue {
            events: past.into(),
            waker: None,
            is_overrun: false,
        }));
        let subscriber = Subscriber {
            resources,
            selection,
            queue: Arc::downgrade(&queue),
        };
        (Self { queue }, subscriber)
    }

    /// The next event if one is waiting.
    ///
    /// # Errors
    /// Where the watch has ended, so that no event waiting does not mean that all were told.
    pub fn try_next(&mut self) -> Result<Option<WatchEvent>, WatchOverrun> {
        let mut queue = lock(&self.queue);
        if queue.is_overrun {
            return Err(WatchOverrun);
        }
        Ok(queue.events.pop_front())
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        lock(&self.queue).events.is_empty()
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        let mut queue = lock(&self.queue);
        if queue.is_overrun {
            return Poll::Ready(None);
        }
        if let Some(event) = queue.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl futures::Stream for Watch {
    type Item = WatchEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        self.poll_event(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_fell_too_far_behind_is_told_nothing_more_and_nothing_is_kept_for_it() {
        let event = WatchEvent {
            resource: Resource::PODS,
            change: WatchEventType::Added,
            object: Arc::new(Value::Null),
            previous: None,
            revision: 1,
        };
        let unread = vec![event.clone(); UNREAD_EVENTS_MAX - 1];
        let (mut watch, server) = Watch::new(vec![Resource::PODS], Selection::everything(), unread);
        server.push(&event);
        assert!(!watch.is_empty());
        for _ in 0..2 {
            server.push(&event);
            assert!(watch.is_empty());
            assert_eq!(watch.try_next().err(), Some(WatchOverrun));
        }
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(watch.poll_event(&mut context), Poll::Ready(None)));
    }
}
