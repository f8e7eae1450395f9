//! Interruption notices: EventBridge's messages on an SQS queue, read and handed on.
//!
//! Trusts nothing in a message: what cannot be read is no notice, and what is of another account or region is not ours.
//! Answers to `pkg/controllers/interruption/messages` and `pkg/providers/sqs` of the AWS provider.

mod queue_policy;

use std::sync::{Arc, Mutex, MutexGuard};

use apis::{CapacityType, NodeClaim, labels};
use async_trait::async_trait;
use cloudprovider::{CloudProviderError, Interruption, InterruptionKind, InterruptionQueue};
use jiff::Timestamp;
use locks::lock;
use serde::Deserialize;
use tracing::{debug, warn};

use crate::account::is_account_id;
use crate::error::call_failure;
use crate::interruption::queue_policy::strangers;
use crate::interruption_history::Interrupted;
use crate::provider::AwsProvider;
use crate::seam::{QueueMessage, SqsApi};
use crate::unavailable_offerings::OfferingName;

const VERSION: &str = "0";
const SOURCE_EC2: &str = "aws.ec2";
const SOURCE_HEALTH: &str = "aws.health";
/// Longer bodies are not read: EventBridge sends at most 256 KiB.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Longer words about what cannot be read, which repeat the message, are cut off.
const FAULT_CHARS_MAX: usize = 200;

/// The queue of one cluster.
pub struct SqsInterruptionQueue {
    sqs: Arc<dyn SqsApi>,
    name: String,
    /// Found with the first poll, and again after a failure: the queue may have been made anew.
    url: Mutex<Option<String>>,
    provider: Arc<AwsProvider>,
}

impl SqsInterruptionQueue {
    /// The queue of that name; nothing is asked of AWS before the first poll.
    pub fn new(sqs: Arc<dyn SqsApi>, name: &str, provider: Arc<AwsProvider>) -> Self {
        Self {
            sqs,
            name: name.to_owned(),
            url: Mutex::new(None),
            provider,
        }
    }

    async fn url(&self) -> Result<String, CloudProviderError> {
        let known = self.lock_remembered().clone();
        if let Some(url) = known {
            return Ok(url);
        }
        let found = self.sqs.queue_url(&self.name).await;
        let url = found.map_err(|error| call_failure(&self.looking_for(), &error))?;
        self.check_policy(&url).await;
        *self.lock_remembered() = Some(url.clone());
        Ok(url)
    }

    /// What is done, and by which setting: a name that is wrong is the commonest reason that it fails.
    fn looking_for(&self) -> String {
        let options = self.provider.options();
        format!(
            "looking for the interruption queue {} in {} (settings.interruptionQueue of the chart, \
             --interruption-queue or INTERRUPTION_QUEUE)",
            self.name, options.region
        )
    }

    /// Says who else may send to the queue.
    async fn check_policy(&self, url: &str) {
        let queue = &self.name;
        let policy = match self.sqs.queue_policy(url).await {
            Ok(policy) => policy.unwrap_or_default(),
            Err(error) => {
                // Karpenter's own policies do not allow it, and nothing depends on it.
                debug!(%error, queue, "who may send to the interruption queue cannot be told; that needs sqs:GetQueueAttributes");
                return;
            }
        };
        let strangers = strangers(&policy, account_of(url).unwrap_or_default());
        if !strangers.is_empty() {
            warn!(
                queue,
                ?strangers,
                "others than this account may send to the interruption queue and have nodes taken away; leave \
                 sqs:SendMessage in its policy to events.amazonaws.com and sqs.amazonaws.com, or add a condition on \
                 aws:SourceAccount"
            );
        }
    }

    fn lock_remembered(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.url)
    }
}

#[async_trait]
impl InterruptionQueue for SqsInterruptionQueue {
    async fn receive(&self) -> Result<Vec<Interruption>, CloudProviderError> {
        let url = self.url().await?;
        let options = self.provider.options();
        let own = AccountRegion {
            account: account_of(&url),
            region: &options.region,
        };
        match self.sqs.receive(&url).await {
            Ok(messages) => Ok(messages.iter().map(|it| read(it, &own)).collect()),
            Err(error) => {
                *self.lock_remembered() = None;
                let doing = format!("receiving interruption notices from {}", self.name);
                Err(call_failure(&doing, &error))
            }
        }
    }

    async fn delete(&self, receipt: &str) -> Result<(), CloudProviderError> {
        let url = self.url().await?;
        let deleted = self.sqs.delete(&url, receipt).await;
        deleted.map_err(|error| call_failure("deleting an interruption notice", &error))
    }

    fn note(&self, kind: InterruptionKind, node_claim: &NodeClaim) {
        let label = |key: &str| {
            let labels = node_claim.metadata.labels.as_ref();
            labels.and_then(|it| it.get(key)).map_or("", String::as_str)
        };
        match kind {
            InterruptionKind::SpotInterrupted => {
                let offered = OfferingName {
                    instance_type: label(labels::INSTANCE_TYPE),
                    zone: label(labels::TOPOLOGY_ZONE),
                    capacity_type: CapacityType::Spot,
                };
                self.provider.mark_unavailable(offered);
                if let Some(provider_id) = node_claim.provider_id()
                    && let Some(instance) = provider_id.instance()
                {
                    self.provider.count_interruption(Interrupted {
                        instance_id: instance.id,
                        instance_type: offered.instance_type,
                        zone: offered.zone,
                    });
                }
            }
            InterruptionKind::CapacityReservationInterrupted => {
                let id = label(labels::CAPACITY_RESERVATION_ID);
                if !id.is_empty() {
                    self.provider.empty_reservation(id);
                }
            }
            InterruptionKind::RebalanceRecommendation
            | InterruptionKind::ScheduledChange
            | InterruptionKind::InstanceStopped
            | InterruptionKind::InstanceTerminated
            | InterruptionKind::InstanceStatus
            | InterruptionKind::SystemStatus
            | InterruptionKind::EventStatus
            | InterruptionKind::NoOp => {}
        }
    }
}

/// Account and region of the instances that can be ours.
struct AccountRegion<'a> {
    /// None where it is not known, which leaves it unchecked.
    account: Option<&'a str>,
    region: &'a str,
}

impl AccountRegion<'_> {
    fn holds(&self, envelope: &Envelope) -> bool {
        let is_account = self.account.is_none_or(|it| it == envelope.account);
        is_account && envelope.region == self.region
    }
}

/// The account of a queue, which is that of the controller: `https://sqs.REGION.amazonaws.com/ACCOUNT/NAME`.
fn account_of(queue_url: &str) -> Option<&str> {
    let account = queue_url.rsplit('/').nth(1)?;
    is_account_id(account).then_some(account)
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    version: String,
    #[serde(default)]
    source: String,
    #[serde(default, rename = "detail-type")]
    detail_type: String,
    #[serde(default)]
    account: String,
    #[serde(default)]
    region: String,
    #[serde(default)]
    time: Option<Timestamp>,
    #[serde(default)]
    detail: serde_json::Value,
}

#[derive(Default, Deserialize)]
struct InstanceDetail {
    #[serde(default, rename = "instance-id")]
    instance_id: String,
    #[serde(default)]
    state: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthDetail {
    #[serde(default)]
    service: String,
    #[serde(default)]
    event_type_category: String,
    #[serde(default)]
    affected_entities: Vec<AffectedEntity>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AffectedEntity {
    #[serde(default)]
    entity_value: String,
}

fn read(message: &QueueMessage, own: &AccountRegion<'_>) -> Interruption {
    let nothing = |fault: Option<String>| Interruption {
        receipt: message.receipt.clone(),
        kind: InterruptionKind::NoOp,
        instance_ids: Vec::new(),
        happened_at: None,
        fault: fault.map(|it| it.chars().take(FAULT_CHARS_MAX).collect()),
    };
    if message.body.len() > BODY_BYTES_MAX {
        return nothing(Some(format!("{} bytes are too long", message.body.len())));
    }
    let envelope: Envelope = match serde_json::from_str(&message.body) {
        Ok(envelope) => envelope,
        Err(error) => return nothing(Some(error.to_string())),
    };
    // EventBridge says of each event where it happened, and elsewhere nothing can happen to our instances.
    if !own.holds(&envelope) {
        return nothing(None);
    }
    match notice_of(&envelope) {
        Ok((kind, mut instance_ids)) => {
            instance_ids.retain(|it| it.starts_with("i-"));
            Interruption {
                kind,
                instance_ids,
                happened_at: envelope.time,
                ..nothing(None)
            }
        }
        Err(error) => nothing(Some(error.to_string())),
    }
}

/// What an envelope says, by its version, source and type; anything else says nothing.
fn notice_of(envelope: &Envelope) -> Result<(InterruptionKind, Vec<String>), serde_json::Error> {
    let kind = match (
        envelope.version.as_str(),
        envelope.source.as_str(),
        envelope.detail_type.as_str(),
    ) {
        (VERSION, SOURCE_EC2, "EC2 Spot Instance Interruption Warning") => {
            InterruptionKind::SpotInterrupted
        }
        (VERSION, SOURCE_EC2, "EC2 Instance Rebalance Recommendation") => {
            InterruptionKind::RebalanceRecommendation
        }
        (VERSION, SOURCE_EC2, "EC2 Capacity Reservation Instance Interruption Warning") => {
            InterruptionKind::CapacityReservationInterrupted
        }
        (VERSION, SOURCE_EC2, "EC2 Instance State-change Notification") => {
            let detail = InstanceDetail::deserialize(&envelope.detail)?;
            let kind = match detail.state.to_lowercase().as_str() {
                "stopping" | "stopped" => InterruptionKind::InstanceStopped,
                "shutting-down" | "terminated" => InterruptionKind::InstanceTerminated,
                _ => return Ok((InterruptionKind::NoOp, Vec::new())),
            };
            return Ok((kind, vec![detail.instance_id]));
        }
        (VERSION, SOURCE_HEALTH, "AWS Health Event") => {
            let detail = HealthDetail::deserialize(&envelope.detail)?;
            if detail.service != "EC2" || detail.event_type_category != "scheduledChange" {
                return Ok((InterruptionKind::NoOp, Vec::new()));
            }
            let affected = detail.affected_entities.into_iter();
            let ids = affected.map(|it| it.entity_value).collect();
            return Ok((InterruptionKind::ScheduledChange, ids));
        }
        _ => return Ok((InterruptionKind::NoOp, Vec::new())),
    };
    let detail = InstanceDetail::deserialize(&envelope.detail)?;
    Ok((kind, vec![detail.instance_id]))
}

#[cfg(test)]
mod tests;
