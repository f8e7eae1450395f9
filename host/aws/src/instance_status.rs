//! Troubles of instances by EC2: failed status checks and scheduled events.
//!
//! Three sweeps over the account, because EC2 joins filters by "and". Answers to Karpenter's
//! `pkg/providers/instancestatus`, which takes events for open that EC2 calls completed or canceled.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_ec2::operation::describe_instance_status::DescribeInstanceStatusInput;
use aws_sdk_ec2::types::{
    Filter, InstanceStatus, InstanceStatusEvent, InstanceStatusSummary, StatusType,
};
use cloudprovider::{CloudProviderError, Impairment, ImpairmentKind};
use jiff::{SignedDuration, Timestamp};

use crate::pages::all_pages;
use crate::seam::Ec2Api;
use crate::tags::filter;

const PAGE: i32 = 1000;
/// Checks fail now and then; what lasts so long does not pass.
const IMPAIRED_FOR: SignedDuration = SignedDuration::from_secs(120);
const IMPAIRED: &str = "impaired";
const EVENT_CODES: [&str; 5] = [
    "instance-reboot",
    "system-reboot",
    "system-maintenance",
    "instance-retirement",
    "instance-stop",
];
/// EC2 lists an event for a week after its end, with one of these before its description.
const ENDED: [&str; 2] = ["[Completed]", "[Canceled]"];

/// Every instance of the account with a failed check or an open event, once for each kind of trouble.
pub(crate) async fn impairments(
    ec2: &Arc<dyn Ec2Api>,
    now: Timestamp,
) -> Result<Vec<Impairment>, CloudProviderError> {
    let sweeps = [
        filter("instance-status.status", [IMPAIRED]),
        filter("system-status.status", [IMPAIRED]),
        filter("event.code", EVENT_CODES),
    ];
    let mut found = BTreeMap::new();
    for sweep in sweeps {
        for status in statuses(ec2, sweep).await? {
            for impairment in read(&status, now) {
                found.insert(
                    (impairment.instance_id.clone(), impairment.kind),
                    impairment,
                );
            }
        }
    }
    Ok(found.into_values().collect())
}

async fn statuses(
    ec2: &Arc<dyn Ec2Api>,
    sweep: Filter,
) -> Result<Vec<InstanceStatus>, CloudProviderError> {
    all_pages!(
        ec2,
        describe_instance_status,
        "describing the status of instances",
        instance_statuses,
        DescribeInstanceStatusInput::builder()
            .filters(sweep.clone())
            .max_results(PAGE)
    )
}

fn read(status: &InstanceStatus, now: Timestamp) -> Vec<Impairment> {
    let Some(id) = status.instance_id() else {
        return Vec::new();
    };
    let failed_since = |summary: Option<&InstanceStatusSummary>| {
        let details = summary.map(InstanceStatusSummary::details);
        let failed = details
            .unwrap_or_default()
            .iter()
            .filter(|it| it.status() == Some(&StatusType::Failed));
        let since =
            failed.filter_map(|it| Timestamp::from_second(it.impaired_since()?.secs()).ok());
        since
            .filter(|since| now.duration_since(*since) >= IMPAIRED_FOR)
            .min()
    };
    let is_open = status.events().iter().any(is_open);
    let kinds = [
        (
            ImpairmentKind::InstanceStatus,
            failed_since(status.instance_status()),
        ),
        (
            ImpairmentKind::SystemStatus,
            failed_since(status.system_status()),
        ),
        (ImpairmentKind::EventStatus, is_open.then_some(now)),
    ];
    let impaired = kinds.into_iter().filter_map(|(kind, since)| {
        Some(Impairment {
            instance_id: id.to_owned(),
            kind,
            since: since?,
        })
    });
    impaired.collect()
}

fn is_open(event: &InstanceStatusEvent) -> bool {
    let description = event.description().unwrap_or_default();
    let has_code = event
        .code()
        .is_some_and(|code| EVENT_CODES.contains(&code.as_str()));
    has_code && !ENDED.iter().any(|word| description.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::{EventCode, InstanceStatusDetails};
    use aws_smithy_types::DateTime;

    fn summary(status: StatusType, since: i64) -> InstanceStatusSummary {
        let details = InstanceStatusDetails::builder()
            .status(status)
            .impaired_since(DateTime::from_secs(since))
            .build();
        InstanceStatusSummary::builder().details(details).build()
    }

    fn event(code: EventCode, description: &str) -> InstanceStatusEvent {
        InstanceStatusEvent::builder()
            .code(code)
            .description(description)
            .build()
    }

    #[test]
    fn a_check_counts_once_it_failed_for_two_minutes_and_an_event_until_it_has_ended() {
        use ImpairmentKind::{EventStatus, InstanceStatus as Instance, SystemStatus};
        let now = Timestamp::from_second(1_000).unwrap();
        let status = || InstanceStatus::builder().instance_id("i-1");
        let cases = [
            (
                status().instance_status(summary(StatusType::Failed, 880)),
                vec![Instance],
            ),
            (
                status().instance_status(summary(StatusType::Failed, 881)),
                vec![],
            ),
            (
                status().instance_status(summary(StatusType::Passed, 100)),
                vec![],
            ),
            (
                status()
                    .instance_status(summary(StatusType::Failed, 100))
                    .system_status(summary(StatusType::Failed, 200)),
                vec![Instance, SystemStatus],
            ),
            (
                status().events(event(EventCode::InstanceStop, "The host is worn out")),
                vec![EventStatus],
            ),
            (
                status().events(event(EventCode::InstanceStop, "[Completed] The host")),
                vec![],
            ),
            (
                status().events(event(EventCode::SystemReboot, "[Canceled] Patches")),
                vec![],
            ),
            (
                status().events(event(EventCode::from("new-code"), "")),
                vec![],
            ),
            (
                InstanceStatus::builder().events(event(EventCode::InstanceStop, "")),
                vec![],
            ),
        ];
        for (status, expected) in cases {
            let status = status.build();
            let kinds: Vec<_> = read(&status, now).iter().map(|it| it.kind).collect();
            assert_eq!(kinds, expected, "{status:?}");
        }
    }
}
