//! What a notice is read as.

use serde_json::{Value, json};

use super::*;

fn read_body(body: &str) -> Interruption {
    let message = QueueMessage {
        receipt: "r".to_owned(),
        body: body.to_owned(),
    };
    let own = AccountRegion {
        account: account_of("https://sqs.us-east-1.amazonaws.com/111122223333/demo"),
        region: "us-east-1",
    };
    read(&message, &own)
}

fn event(source: &str, detail_type: &str, detail: &Value) -> String {
    json!({"version": "0", "id": "1", "detail-type": detail_type, "source": source, "account": "111122223333",
        "region": "us-east-1", "time": "2026-11-20T12:00:00Z", "resources": [], "detail": detail})
    .to_string()
}

#[test]
fn every_kind_of_notice_is_told_from_the_others() {
    use InterruptionKind as Kind;
    let instance = json!({"instance-id": "i-1"});
    let state = |state: &str| json!({"instance-id": "i-1", "state": state});
    let health = |service: &str, category: &str| {
        json!({"service": service, "eventTypeCategory": category,
            "affectedEntities": [{"entityValue": "i-1"}, {"entityValue": "vol-2"}]})
    };
    let spot = "EC2 Spot Instance Interruption Warning";
    let change = "EC2 Instance State-change Notification";
    let reservation = "EC2 Capacity Reservation Instance Interruption Warning";
    let rebalance = "EC2 Instance Rebalance Recommendation";
    let told = "AWS Health Event";
    let (ec2, s3, aws_health) = ("aws.ec2", "aws.s3", "aws.health");
    for (source, detail_type, detail, expected) in [
        (ec2, spot, instance.clone(), Kind::SpotInterrupted),
        (
            ec2,
            rebalance,
            instance.clone(),
            Kind::RebalanceRecommendation,
        ),
        (
            ec2,
            reservation,
            instance.clone(),
            Kind::CapacityReservationInterrupted,
        ),
        (ec2, change, state("stopping"), Kind::InstanceStopped),
        (ec2, change, state("stopped"), Kind::InstanceStopped),
        (
            ec2,
            change,
            state("shutting-down"),
            Kind::InstanceTerminated,
        ),
        (ec2, change, state("terminated"), Kind::InstanceTerminated),
        (ec2, change, state("running"), Kind::NoOp),
        (ec2, change, state("pending"), Kind::NoOp),
        (
            aws_health,
            told,
            health("EC2", "scheduledChange"),
            Kind::ScheduledChange,
        ),
        (aws_health, told, health("EC2", "issue"), Kind::NoOp),
        (
            aws_health,
            told,
            health("RDS", "scheduledChange"),
            Kind::NoOp,
        ),
        (s3, spot, instance.clone(), Kind::NoOp),
        (ec2, "Something New", instance, Kind::NoOp),
    ] {
        let read = read_body(&event(source, detail_type, &detail));
        assert_eq!(read.kind, expected, "{source} {detail_type} {detail}");
        assert_eq!(read.fault, None);
        let is_about_it = read.instance_ids == ["i-1"];
        let is_about_none = read.instance_ids.is_empty();
        assert!(
            if expected == Kind::NoOp {
                is_about_none
            } else {
                is_about_it
            },
            "{detail}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_no_notice_and_says_why() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let wrong = event(
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
        &json!({"instance-id": 7}),
    );
    let long = format!(
        "{{\"version\": \"0\", \"time\": \"{}\"}}",
        "9".repeat(9_000)
    );
    for body in [
        "",
        "{",
        "null",
        "\"text\"",
        "[1]",
        "{\"version\": 3}",
        deep.as_str(),
        &wrong,
        &long,
        &"x".repeat(1 << 20),
    ] {
        let read = read_body(body);
        assert_eq!(read.kind, InterruptionKind::NoOp);
        let fault = read.fault.unwrap_or_default();
        assert!(
            (1..=FAULT_CHARS_MAX).contains(&fault.chars().count()),
            "{fault:?} of {}",
            &body[..body.len().min(40)]
        );
    }
    assert_eq!(read_body("{}").fault, None, "an empty event says nothing");
}

#[test]
fn events_of_another_region_or_account_and_other_versions_are_not_ours() {
    let spot = event(
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
        &json!({"instance-id": "i-1"}),
    );
    for other in [
        spot.replace("us-east-1", "eu-west-1"),
        spot.replace("111122223333", "999900001111"),
        spot.replace("\"region\"", "\"place\""),
        spot.replace("\"account\"", "\"payer\""),
        spot.replace("\"version\":\"0\"", "\"version\":\"1\""),
    ] {
        assert_eq!(read_body(&other).kind, InterruptionKind::NoOp, "{other}");
    }
    assert_eq!(read_body(&spot).kind, InterruptionKind::SpotInterrupted);
}

#[test]
fn every_instance_of_a_long_notice_is_read() {
    let entities: Vec<Value> = (0..1_500)
        .map(|number| json!({"entityValue": format!("i-{number}")}))
        .collect();
    let detail = json!({
        "service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": entities,
    });
    let read = read_body(&event("aws.health", "AWS Health Event", &detail));
    assert_eq!((read.instance_ids.len(), read.fault), (1_500, None));
}
