//! Publishes Kubernetes Events with de-duplication, counts and rate limits, off the reconcilers' path.
//!
//! A full queue drops events: they inform, nothing depends on them. Their wording stands with the
//! entries of the journal. Answers to `pkg/events/recorder.go` and client-go's event correlator.

mod gate;
mod written;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudprovider::Clock;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use kube::api::{Api, Patch, PostParams};
use locks::lock;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use self::gate::EventGate;
use self::written::{EventContent, WrittenEvent, WrittenEvents};
use crate::shell::error::is_not_found;
use crate::shell::turn::{Turn, TurnStage};
use crate::shell::writer::patching::patch_params;

/// Repeats of one event within this time are dropped, unless the event says otherwise.
pub(crate) const DEDUPE_DEFAULT: Duration = Duration::from_mins(2);
const QUEUE_MAX: usize = 4096;
const MESSAGE_BYTES_MAX: usize = 1024;

/// `type` of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    /// Nobody has to act.
    Normal,
    /// Someone may have to act.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Kinds of events that share a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RateClass {
    /// Pods nominated to nodes: 5 a second, burst 10.
    Nomination,
    /// Pods whose node could not be bought: 5 a second, burst 10.
    NoCapacity,
}

/// An event to publish.
#[derive(Debug, Clone)]
pub(crate) struct KubernetesEvent {
    /// The object the event is about.
    pub(crate) regarding: ObjectReference,
    /// Whether somebody may have to act.
    pub(crate) event_type: EventType,
    /// CamelCase reason.
    pub(crate) reason: Cow<'static, str>,
    /// Message for people, one sentence.
    pub(crate) message: String,
    /// Together with the reason: what makes two events the same.
    pub(crate) dedupe: String,
    /// For how long the same event is not repeated; zero never drops.
    pub(crate) dedupe_for: Duration,
    /// The token bucket, if there is one.
    pub(crate) rate: Option<RateClass>,
}

impl KubernetesEvent {
    /// An event that is the same as another about the same object with the same reason.
    pub(crate) fn new(
        regarding: ObjectReference,
        event_type: EventType,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            dedupe: identity(&regarding),
            regarding,
            event_type,
            reason: reason.into(),
            message,
            dedupe_for: DEDUPE_DEFAULT,
            rate: None,
        }
    }

    /// The same of an object whose kind is known.
    pub(crate) fn about(
        object: &impl Resource<DynamicType = ()>,
        event_type: EventType,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(object.object_ref(&()), event_type, reason, message)
    }

    /// Adds a value that tells two such events apart.
    #[must_use]
    pub(crate) fn distinct_by(mut self, value: &str) -> Self {
        self.dedupe.push('/');
        self.dedupe.push_str(value);
        self
    }

    /// Repeats are dropped for this long.
    #[must_use]
    pub(crate) fn at_most_every(mut self, time: Duration) -> Self {
        self.dedupe_for = time;
        self
    }

    /// Shares a token bucket.
    #[must_use]
    pub(crate) fn limited_by(mut self, rate: RateClass) -> Self {
        self.rate = Some(rate);
        self
    }
}

/// Takes events from anywhere; [`Publisher::run`] writes them.
#[derive(Debug)]
pub(crate) struct EventRecorder {
    gate: Mutex<EventGate>,
    sender: mpsc::Sender<KubernetesEvent>,
}

impl EventRecorder {
    /// A recorder, and the publisher that someone has to run.
    pub(crate) fn new(client: kube::Client, clock: Arc<dyn Clock>) -> (Self, Publisher) {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let publisher = Publisher {
            client,
            clock,
            receiver,
            written: WrittenEvents::default(),
            sequence: 0,
        };
        (
            Self {
                gate: Mutex::new(EventGate::default()),
                sender,
            },
            publisher,
        )
    }

    /// Publishes unless the same was published lately.
    pub(crate) fn publish(&self, event: KubernetesEvent) {
        let admitted = {
            let mut gate = lock(&self.gate);
            gate.admits(&event, Instant::now())
        };
        if admitted && self.sender.try_send(event).is_err() {
            debug!("event dropped, the queue is full");
        }
    }
}

/// Writes events one after the other.
pub(crate) struct Publisher {
    client: kube::Client,
    clock: Arc<dyn Clock>,
    receiver: mpsc::Receiver<KubernetesEvent>,
    written: WrittenEvents,
    sequence: u64,
}

impl Publisher {
    /// Writes until the process concludes and everything was written.
    pub(crate) async fn run(mut self, turn: Turn) {
        let mut concludes = pin!(turn.wait_for(TurnStage::Concludes));
        loop {
            let event = tokio::select! { biased;
                () = &mut concludes, if !self.receiver.is_closed() => {
                    self.receiver.close();
                    continue;
                }
                event = self.receiver.recv() => event,
            };
            let Some(event) = event else { return };
            if let Err(error) = self.write(event).await {
                debug!(%error, "event not written");
            }
        }
    }

    async fn write(&mut self, event: KubernetesEvent) -> Result<(), kube::Error> {
        let content = EventContent {
            object: identity(&event.regarding),
            reason: event.reason.clone(),
            message: event.message.clone(),
        };
        if self.count_again(&content).await? {
            return Ok(());
        }
        let event = self.event(&event);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let name = event.metadata.name.clone().unwrap_or_default();
        Api::<Event>::namespaced(self.client.clone(), &namespace)
            .create(&PostParams::default(), &event)
            .await?;
        let written = WrittenEvent {
            namespace,
            name,
            count: 1,
        };
        self.written.add(content, written);
        Ok(())
    }

    /// Raises the count of an event written before; false where there is none, or none any more.
    async fn count_again(&mut self, content: &EventContent) -> Result<bool, kube::Error> {
        let now = self.clock.now();
        let Some(known) = self.written.get_mut(content) else {
            return Ok(false);
        };
        let count = known.count.saturating_add(1);
        let patch = serde_json::json!({ "count": count, "lastTimestamp": Time(now) });
        let api = Api::<Event>::namespaced(self.client.clone(), &known.namespace);
        match api
            .patch(&known.name, &patch_params(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => {
                known.count = count;
                Ok(true)
            }
            Err(error) if is_not_found(&error) => {
                self.written.remove(content);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn event(&mut self, event: &KubernetesEvent) -> Event {
        let now = self.clock.now();
        self.sequence += 1;
        let regarding = event.regarding.clone();
        let namespace = regarding.namespace.clone().filter(|name| !name.is_empty());
        let nanoseconds = now.as_nanosecond() + i128::from(self.sequence);
        let name = format!(
            "{}.{nanoseconds:x}",
            regarding.name.as_deref().unwrap_or("object")
        );
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: regarding,
            type_: Some(event.event_type.as_str().to_owned()),
            reason: Some(event.reason.clone().into_owned()),
            message: Some(shorten(&event.message, MESSAGE_BYTES_MAX)),
            source: Some(EventSource {
                component: Some("karpenter".to_owned()),
                host: None,
            }),
            reporting_component: Some("karpenter".to_owned()),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            count: Some(1),
            ..Event::default()
        }
    }
}

/// Key that tells an object from every other: many have a name in common, and not each reference has a UID.
fn identity(object: &ObjectReference) -> String {
    let ObjectReference {
        kind,
        namespace,
        name,
        uid,
        api_version: _,
        field_path: _,
        resource_version: _,
    } = object;
    [kind, namespace, name, uid]
        .map(|part| part.as_deref().unwrap_or_default())
        .join("/")
}

/// The text cut at a character boundary, with an ellipsis when something was cut.
pub(crate) fn shorten(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max.saturating_sub(3);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

#[cfg(test)]
mod tests;
