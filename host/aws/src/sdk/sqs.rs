//! SQS over the SDK. Decides nothing, but for how long messages are waited for.

use crate::sdk::SdkClients;
use crate::sdk::change_fence::CallEffect;
use crate::sdk::request::api_error;
use crate::seam::{ApiResult, QueueMessage, SqsApi};
use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName;

/// Messages taken at a time, seconds waited for them, and seconds for which nobody else gets them.
const QUEUE_BATCH: i32 = 10;
const QUEUE_WAIT_SECONDS: i32 = 20;
const QUEUE_HIDDEN_SECONDS: i32 = 20;

#[async_trait]
impl SqsApi for SdkClients {
    async fn queue_url(&self, name: &str) -> ApiResult<String> {
        let answer = self.sqs.get_queue_url().queue_name(name).send().await;
        let answer = answer.map_err(|error| api_error(&error))?;
        Ok(answer.queue_url.unwrap_or_default())
    }

    async fn queue_policy(&self, queue_url: &str) -> ApiResult<Option<String>> {
        let answer = self
            .sqs
            .get_queue_attributes()
            .queue_url(queue_url)
            .attribute_names(QueueAttributeName::Policy)
            .send()
            .await;
        let answer = answer.map_err(|error| api_error(&error))?;
        let mut attributes = answer.attributes.unwrap_or_default();
        Ok(attributes.remove(&QueueAttributeName::Policy))
    }

    async fn receive(&self, queue_url: &str) -> ApiResult<Vec<QueueMessage>> {
        let call = async {
            let answer = self
                .sqs
                .receive_message()
                .queue_url(queue_url)
                .max_number_of_messages(QUEUE_BATCH)
                .wait_time_seconds(QUEUE_WAIT_SECONDS)
                .visibility_timeout(QUEUE_HIDDEN_SECONDS)
                .send()
                .await;
            answer.map_err(|error| api_error(&error))
        };
        // What is taken is hidden from who leads.
        let answer = self.change_fence.fence(CallEffect::Change, call).await?;
        let messages = answer.messages.unwrap_or_default().into_iter();
        Ok(messages
            .map(|it| QueueMessage {
                receipt: it.receipt_handle.unwrap_or_default(),
                body: it.body.unwrap_or_default(),
            })
            .collect())
    }

    async fn delete(&self, queue_url: &str, receipt: &str) -> ApiResult<()> {
        let call = async {
            let deleted = self
                .sqs
                .delete_message()
                .queue_url(queue_url)
                .receipt_handle(receipt)
                .send()
                .await;
            deleted.map(drop).map_err(|error| api_error(&error))
        };
        self.change_fence.fence(CallEffect::Change, call).await
    }
}
