//! Batched look-ups and terminations of instances.
//!
//! One id that EC2 does not know fails a whole call, so what a call leaves open is asked for one by one.
//! Answers to Karpenter's `pkg/batcher/describeinstances.go` and `terminateinstances.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::terminate_instances::TerminateInstancesInput;
use aws_sdk_ec2::types::{Instance, InstanceStateName};

use super::live_states;
use crate::batcher::BatchCall;
use crate::error::is_not_found;
use crate::seam::{ApiError, ApiResult, Ec2Api};

/// Looks up instances by id; `None` for one that is gone.
pub(super) struct DescribeCall {
    ec2: Arc<dyn Ec2Api>,
}

impl DescribeCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self { ec2 }
    }

    async fn describe(&self, ids: &[String]) -> ApiResult<BTreeMap<String, Instance>> {
        let mut found = BTreeMap::new();
        let mut next_token = None;
        loop {
            let input = DescribeInstancesInput::builder()
                .set_instance_ids(Some(ids.to_vec()))
                .filters(live_states())
                .set_next_token(next_token)
                .build()
                .map_err(|error| ApiError::client("ValidationError", error.to_string()))?;
            let page = self.ec2.describe_instances(input).await?;
            let instances = page.reservations.unwrap_or_default().into_iter();
            for instance in
                instances.flat_map(|reservation| reservation.instances.unwrap_or_default())
            {
                if let Some(id) = instance.instance_id.clone() {
                    found.insert(id, instance);
                }
            }
            next_token = page.next_token.filter(|token| !token.is_empty());
            if next_token.is_none() {
                return Ok(found);
            }
        }
    }

    async fn describe_one(&self, id: &str) -> ApiResult<Option<Instance>> {
        match self.describe(&[id.to_owned()]).await {
            Ok(mut found) => Ok(found.remove(id)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl BatchCall for DescribeCall {
    type In = String;
    type Out = ApiResult<Option<Instance>>;

    fn bucket(&self, _: &String) -> String {
        String::new()
    }

    async fn call(&self, ids: Vec<String>) -> Vec<Self::Out> {
        if let [id] = ids.as_slice() {
            return vec![self.describe_one(id).await];
        }
        let found = self.describe(&ids).await.unwrap_or_default();
        let answers = ids.iter().map(|id| async {
            match found.get(id) {
                Some(instance) => Ok(Some(instance.clone())),
                None => self.describe_one(id).await,
            }
        });
        futures::future::join_all(answers).await
    }
}

/// Terminates instances by id.
pub(super) struct TerminateCall {
    ec2: Arc<dyn Ec2Api>,
}

impl TerminateCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self { ec2 }
    }

    /// The ids that EC2 says are going or gone.
    async fn terminate(&self, ids: &[String]) -> ApiResult<Vec<String>> {
        let input = TerminateInstancesInput::builder()
            .set_instance_ids(Some(ids.to_vec()))
            .build()
            .map_err(|error| ApiError::client("ValidationError", error.to_string()))?;
        let answer = self.ec2.terminate_instances(input).await?;
        let is_going = |state: &InstanceStateName| {
            matches!(
                state,
                InstanceStateName::ShuttingDown | InstanceStateName::Terminated
            )
        };
        Ok(answer
            .terminating_instances
            .unwrap_or_default()
            .into_iter()
            .filter(|change| {
                change
                    .current_state()
                    .and_then(|state| state.name())
                    .is_some_and(is_going)
            })
            .filter_map(|change| change.instance_id)
            .collect())
    }
}

#[async_trait]
impl BatchCall for TerminateCall {
    type In = String;
    type Out = ApiResult<()>;

    fn bucket(&self, _: &String) -> String {
        String::new()
    }

    async fn call(&self, ids: Vec<String>) -> Vec<Self::Out> {
        if let [_] = ids.as_slice() {
            return vec![self.terminate(&ids).await.map(drop)];
        }
        let going = self.terminate(&ids).await.unwrap_or_default();
        let answers = ids.iter().map(|id| async {
            if going.contains(id) {
                Ok(())
            } else {
                self.terminate(std::slice::from_ref(id)).await.map(drop)
            }
        });
        futures::future::join_all(answers).await
    }
}
