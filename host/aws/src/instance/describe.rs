//! Batched look-ups and terminations of instances.
//!
//! One id that EC2 does not know fails a whole call, so what a call leaves open is asked for one by one; not where EC2
//! is overloaded or does not answer, for it would have hundreds of calls instead of one. Answers to Karpenter's
//! `pkg/batcher/describeinstances.go` and `terminateinstances.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels;
use async_trait::async_trait;
use aws_sdk_ec2::operation::describe_instances::DescribeInstancesInput;
use aws_sdk_ec2::operation::terminate_instances::TerminateInstancesInput;
use aws_sdk_ec2::types::{Filter, Instance, InstanceStateName};

use super::live_states;
use crate::batcher::BatchCall;
use crate::error::{is_not_found, is_of_the_call, unbuilt};
use crate::pages::each_item_as_told;
use crate::seam::{ApiResult, Ec2Api};
use crate::tags::{filter, tag_value};

/// EC2 takes this many values in a filter.
const FILTER_VALUES_MAX: usize = 200;

/// All instances that the ids and filters name.
async fn described(
    ec2: &Arc<dyn Ec2Api>,
    ids: Option<Vec<String>>,
    filters: Vec<Filter>,
) -> ApiResult<Vec<Instance>> {
    let mut found = Vec::new();
    let input = || {
        DescribeInstancesInput::builder()
            .set_instance_ids(ids.clone())
            .set_filters(Some(filters.clone()))
    };
    each_item_as_told!(
        ec2,
        describe_instances,
        reservations,
        input(),
        |reservation| {
            found.extend(reservation.instances.unwrap_or_default());
        }
    )?;
    Ok(found)
}

/// Looks up instances by the value of one tag.
pub(super) struct FindCall {
    ec2: Arc<dyn Ec2Api>,
    cluster_name: String,
    key: &'static str,
}

impl FindCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>, cluster_name: &str, key: &'static str) -> Self {
        let cluster_name = cluster_name.to_owned();
        Self {
            ec2,
            cluster_name,
            key,
        }
    }

    async fn find(&self, values: &[String]) -> ApiResult<Vec<Instance>> {
        let tag = |key: &str| format!("tag:{key}");
        let cluster = tag(labels::EKS_CLUSTER_NAME_TAG);
        let filters = vec![
            filter(&tag(self.key), values.to_vec()),
            filter(&cluster, [self.cluster_name.as_str()]),
            live_states(),
        ];
        described(&self.ec2, None, filters).await
    }
}

#[async_trait]
impl BatchCall for FindCall {
    type In = String;
    type Out = ApiResult<Vec<Instance>>;

    fn bucket(&self, _: &String) -> String {
        String::new()
    }

    async fn call(&self, values: Vec<String>) -> Vec<Self::Out> {
        let distinct: BTreeSet<&String> = values.iter().collect();
        let distinct: Vec<String> = distinct.into_iter().cloned().collect();
        let mut found = Vec::new();
        for some in distinct.chunks(FILTER_VALUES_MAX) {
            match self.find(some).await {
                Ok(instances) => found.extend(instances),
                Err(error) => return vec![Err(error); values.len()],
            }
        }
        let of = |value: &String| {
            let is_of = |it: &&Instance| tag_value(it.tags(), self.key) == Some(value);
            Ok(found.iter().filter(is_of).cloned().collect())
        };
        values.iter().map(of).collect()
    }
}

/// Looks up instances by id; `None` for one that is gone.
pub(super) struct DescribeCall {
    ec2: Arc<dyn Ec2Api>,
}

impl DescribeCall {
    pub(super) fn new(ec2: Arc<dyn Ec2Api>) -> Self {
        Self { ec2 }
    }

    async fn describe(&self, ids: &[String]) -> ApiResult<BTreeMap<String, Instance>> {
        let found = described(&self.ec2, Some(ids.to_vec()), vec![live_states()]).await?;
        let by_id = |it: Instance| Some((it.instance_id.clone()?, it));
        Ok(found.into_iter().filter_map(by_id).collect())
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
        let found = match self.describe(&ids).await {
            Err(error) if is_of_the_call(&error) => return vec![Err(error); ids.len()],
            answer => answer.unwrap_or_default(),
        };
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
            .map_err(unbuilt)?;
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
        let going = match self.terminate(&ids).await {
            Err(error) if is_of_the_call(&error) => return vec![Err(error); ids.len()],
            answer => answer.unwrap_or_default(),
        };
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
