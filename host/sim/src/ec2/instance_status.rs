//! Status checks and scheduled events of instances, as DescribeInstanceStatus tells them.

use aws::seam::ApiResult;
use aws_sdk_ec2::operation::describe_instance_status::{
    DescribeInstanceStatusInput, DescribeInstanceStatusOutput,
};
use aws_sdk_ec2::types::{
    EventCode, InstanceStatus, InstanceStatusDetails, InstanceStatusEvent, InstanceStatusSummary,
    StatusName, StatusType, SummaryStatus,
};
use jiff::Timestamp;

use super::filters::{matches, page};
use super::instance::{InstanceState, SimulatedInstance, StatusCheck};
use super::{AccountState, date_time};

impl AccountState {
    pub(super) fn describe_instance_status(
        &self,
        input: &DescribeInstanceStatusInput,
    ) -> ApiResult<DescribeInstanceStatusOutput> {
        let now = self.now();
        let ids = input.instance_ids.as_deref().unwrap_or_default();
        self.known(ids, now)?;
        let filters = input.filters.as_deref().unwrap_or_default();
        let with_all = input.include_all_instances == Some(true);
        let found = self
            .instances
            .values()
            .filter(|it| with_all || it.state(now) == InstanceState::Running)
            .filter(|it| ids.is_empty() || ids.contains(&it.id))
            .filter(|it| matches(filters, &it.tags, |name| attribute(it, name)));
        let (statuses, next) = page(
            found.map(description).collect(),
            input.max_results,
            input.next_token.as_deref(),
        )?;
        Ok(DescribeInstanceStatusOutput::builder()
            .set_instance_statuses(Some(statuses))
            .set_next_token(next)
            .build())
    }
}

fn failed_at(instance: &SimulatedInstance, check: StatusCheck) -> Option<Timestamp> {
    let failed = instance.failed_check.filter(|it| it.0 == check);
    failed.map(|it| it.1)
}

fn attribute(instance: &SimulatedInstance, name: &str) -> Vec<String> {
    let status = |check| match failed_at(instance, check) {
        Some(_) => vec![SummaryStatus::Impaired.as_str().to_owned()],
        None => vec![SummaryStatus::Ok.as_str().to_owned()],
    };
    match name {
        "instance-status.status" => status(StatusCheck::Instance),
        "system-status.status" => status(StatusCheck::System),
        "event.code" => instance.scheduled_event.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

fn description(instance: &SimulatedInstance) -> InstanceStatus {
    let summary = |check| {
        let failed_at = failed_at(instance, check);
        let (overall, reachability) = match failed_at {
            Some(_) => (SummaryStatus::Impaired, StatusType::Failed),
            None => (SummaryStatus::Ok, StatusType::Passed),
        };
        let details = InstanceStatusDetails::builder()
            .name(StatusName::Reachability)
            .status(reachability)
            .set_impaired_since(failed_at.map(date_time));
        InstanceStatusSummary::builder()
            .status(overall)
            .details(details.build())
            .build()
    };
    let events = instance.scheduled_event.iter().map(|code| {
        InstanceStatusEvent::builder()
            .code(EventCode::from(code.as_str()))
            .description("The host needs care")
            .build()
    });
    InstanceStatus::builder()
        .instance_id(&instance.id)
        .availability_zone(&instance.zone)
        .instance_status(summary(StatusCheck::Instance))
        .system_status(summary(StatusCheck::System))
        .set_events(Some(events.collect()))
        .build()
}
