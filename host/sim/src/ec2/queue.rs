//! The interruption queue: EventBridge's messages about simulated instances, on a queue that behaves as SQS does.
//!
//! What is received is hidden for a while and comes again unless it is deleted; an old receipt deletes nothing. It
//! fails as its account does, and may repeat itself, which SQS reserves the right to.
//! Tests send what they like, malformed bodies included.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws::seam::{ApiError, ApiResult, QueueMessage, SqsApi};
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::SimulatedEc2;
use super::instance::InstanceEvent;
use super::network::ACCOUNT;
use crate::clock::SimulatedClock;

const BATCH: usize = 10;
const WAIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(500);
const HIDDEN: SignedDuration = SignedDuration::from_secs(20);

struct QueuedMessage {
    body: String,
    serial: u64,
    hidden_until: Option<Timestamp>,
    receipt: String,
}

struct QueueContents {
    held: Vec<QueuedMessage>,
    events: UnboundedReceiver<InstanceEvent>,
    serial: u64,
}

/// A queue of one name. Clones share it.
#[derive(Clone)]
pub struct SimulatedQueue {
    name: String,
    region: String,
    ec2: SimulatedEc2,
    clock: SimulatedClock,
    queue: Arc<Mutex<QueueContents>>,
}

impl SimulatedQueue {
    /// A queue that hears of all that happens to instances from now on.
    pub fn new(name: &str, ec2: &SimulatedEc2, clock: SimulatedClock) -> Self {
        Self {
            name: name.to_owned(),
            region: ec2.region(),
            ec2: ec2.clone(),
            clock,
            queue: Arc::new(Mutex::new(QueueContents {
                held: Vec::new(),
                events: ec2.subscribe(),
                serial: 0,
            })),
        }
    }

    /// Puts a message on the queue.
    pub fn send(&self, body: impl Into<String>) {
        let mut queue = self.queue();
        let serial = queue.serial;
        queue.serial += 1;
        queue.held.push(QueuedMessage {
            body: body.into(),
            serial,
            hidden_until: None,
            receipt: String::new(),
        });
    }

    /// Messages that nobody deleted yet, hidden ones included.
    pub fn len(&self) -> usize {
        self.hear();
        self.queue().held.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What EventBridge would have sent since.
    fn hear(&self) {
        let mut events = Vec::new();
        {
            let mut queue = self.queue();
            while let Ok(event) = queue.events.try_recv() {
                events.push(event);
            }
        }
        for event in events {
            if let Some(message) = self.message(&event) {
                self.send(message);
            }
        }
    }

    fn message(&self, event: &InstanceEvent) -> Option<String> {
        let change = "EC2 Instance State-change Notification";
        let (detail_type, detail) = match event {
            InstanceEvent::SpotInterruptionWarning(id) => (
                "EC2 Spot Instance Interruption Warning",
                json!({"instance-id": id, "instance-action": "terminate"}),
            ),
            // EventBridge does not tell of reboots.
            InstanceEvent::Rebooted(_) => return None,
            InstanceEvent::Launched(id) => (change, json!({"instance-id": id, "state": "pending"})),
            InstanceEvent::ShuttingDown(id) => {
                (change, json!({"instance-id": id, "state": "shutting-down"}))
            }
            InstanceEvent::Terminated(id) => {
                (change, json!({"instance-id": id, "state": "terminated"}))
            }
        };
        let zone = detail["instance-id"]
            .as_str()
            .and_then(|id| self.ec2.instance(id))
            .map_or_else(String::new, |it| it.zone);
        let message = json!({
            "version": "0", "id": "simulated", "detail-type": detail_type, "source": "aws.ec2",
            "account": ACCOUNT, "time": self.clock.now(), "region": self.region,
            "resources": [format!("arn:aws:ec2:{zone}:instance")], "detail": detail,
        });
        Some(message.to_string())
    }

    fn take(&self) -> Vec<QueueMessage> {
        self.hear();
        let now = self.clock.now();
        let mut queue = self.queue();
        let open = queue
            .held
            .iter_mut()
            .filter(|it| it.hidden_until.is_none_or(|until| until <= now));
        open.take(BATCH)
            .map(|it| {
                it.hidden_until = now.checked_add(HIDDEN).ok();
                it.receipt = format!("{}@{now}", it.serial);
                QueueMessage {
                    receipt: it.receipt.clone(),
                    body: it.body.clone(),
                }
            })
            .collect()
    }

    fn admit(&self, operation: &str) -> ApiResult<()> {
        self.ec2.state().admit(operation)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, QueueContents> {
        lock(&self.queue)
    }
}

#[async_trait]
impl SqsApi for SimulatedQueue {
    async fn queue_url(&self, name: &str) -> ApiResult<String> {
        self.admit("GetQueueUrl")?;
        if name == self.name {
            return Ok(format!(
                "https://sqs.{}.amazonaws.com/{ACCOUNT}/{name}",
                self.region
            ));
        }
        Err(ApiError::client(
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
        ))
    }

    async fn queue_policy(&self, _: &str) -> ApiResult<Option<String>> {
        self.admit("GetQueueAttributes")?;
        Ok(None)
    }

    async fn receive(&self, _: &str) -> ApiResult<Vec<QueueMessage>> {
        self.admit("ReceiveMessage")?;
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let taken = self.take();
            if !taken.is_empty() || tokio::time::Instant::now() >= deadline {
                return Ok(taken);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn delete(&self, _: &str, receipt: &str) -> ApiResult<()> {
        self.admit("DeleteMessage")?;
        let is_repeated = {
            let mut state = self.ec2.state();
            let chance = state.config.faults.repeated_message_chance;
            state.happens(chance)
        };
        if !is_repeated {
            self.queue().held.retain(|it| it.receipt != receipt);
        }
        Ok(())
    }
}
