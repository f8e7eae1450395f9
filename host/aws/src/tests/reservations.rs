//! Capacity reservations: which ones a class gets, and when a slot is free again.

use std::collections::BTreeSet;

use apis::ec2nodeclass::CapacityReservationSelectorTerm;
use apis::{CapacityType, Ec2NodeClass, NodeClaim, ProviderId, labels};
use aws_sdk_ec2::types::{
    CapacityReservation, CapacityReservationInstancePlatform, CapacityReservationPreference,
    CapacityReservationSpecificationResponse, CapacityReservationType, GroupIdentifier, Instance,
    InstanceLifecycleType, InstanceState, InstanceStateName, MarketType, Placement,
};
use aws_smithy_types::DateTime;
use cloudprovider::CloudProvider as _;
use jiff::Timestamp;

use super::catalogue::infos;
use super::{Rig, class};

pub(super) fn reservation(id: &str, kind: &str, criteria: &str) -> CapacityReservation {
    let end: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    CapacityReservation::builder()
        .capacity_reservation_id(id)
        .owner_id("111122223333")
        .availability_zone("us-east-1a")
        .instance_type("m5.large")
        .instance_match_criteria(criteria.into())
        .instance_platform(CapacityReservationInstancePlatform::LinuxUnix)
        .reservation_type(CapacityReservationType::from(kind))
        .available_instance_count(2)
        .end_date(DateTime::from_secs(end.as_second()))
        .build()
}

pub(super) fn selecting(ids: &[&str]) -> Ec2NodeClass {
    let mut class = class();
    let term = |id: &&str| CapacityReservationSelectorTerm {
        id: Some((*id).to_owned()),
        ..CapacityReservationSelectorTerm::default()
    };
    class.spec.capacity_reservation_selector_terms = ids.iter().map(term).collect();
    class
}

fn rig() -> Rig {
    let rig = Rig::new(infos(&["m5.large"]));
    rig.aws.edit(|state| {
        state.reservations = vec![
            reservation("cr-1", "default", "targeted"),
            reservation("cr-2", "capacity-block", "targeted"),
            reservation("cr-3", "from-the-future", "targeted"),
            reservation("cr-4", "default", "by-the-moon"),
        ];
    });
    rig
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_or_not_understood_does_not_fail_the_others() {
    let rig = rig();
    let class = rig
        .resolve(selecting(&["cr-0", "cr-1", "cr-2", "cr-3", "cr-4"]))
        .await;
    let status = class.status.unwrap();
    let ids: Vec<&str> = status
        .capacity_reservations
        .iter()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(ids, ["cr-1", "cr-2"]);
    let conditions = &status.conditions;
    assert!(
        apis::conditions::is_true(conditions, apis::conditions::READY),
        "{conditions:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_block_expires_forty_minutes_before_its_end() {
    let rig = rig();
    let ids: BTreeSet<String> = ["cr-0", "cr-1", "cr-2"].map(str::to_owned).into();
    for (seconds, want) in [(0, vec![]), (19 * 60, vec![]), (61, vec!["cr-2"])] {
        rig.pass(seconds);
        let expiring = rig.provider.expiring_reservations(&ids).await.unwrap();
        assert_eq!(expiring.into_iter().collect::<Vec<_>>(), want);
    }
}

/// Has an instance run, in a reservation or not.
fn runs(rig: &Rig, reservation: Option<&str>, lifecycle: Option<InstanceLifecycleType>) {
    let only = CapacityReservationSpecificationResponse::builder()
        .capacity_reservation_preference(CapacityReservationPreference::CapacityReservationsOnly);
    let running = InstanceState::builder().name(InstanceStateName::Running);
    let placement = Placement::builder().availability_zone("us-east-1a");
    let instance = Instance::builder()
        .instance_id("i-1")
        .instance_type("m5.large".into())
        .image_id("ami-x86")
        .subnet_id("subnet-0")
        .security_groups(GroupIdentifier::builder().group_id("sg-1").build())
        .placement(placement.build())
        .state(running.build())
        .set_capacity_reservation_id(reservation.map(str::to_owned))
        .capacity_reservation_specification(only.build())
        .set_instance_lifecycle(lifecycle)
        .build();
    rig.aws
        .edit(|state| state.instances.insert("i-1".to_owned(), instance));
}

#[tokio::test(start_paused = true)]
async fn an_instance_says_what_kind_of_reservation_it_runs_in() {
    let cases = [
        (None, "default", "false"),
        (
            Some(InstanceLifecycleType::CapacityBlock),
            "capacity-block",
            "false",
        ),
        (
            Some(InstanceLifecycleType::InterruptibleCapacityReservation),
            "default",
            "true",
        ),
    ];
    for (lifecycle, kind, interruptible) in cases {
        let rig = rig();
        runs(&rig, Some("cr-1"), lifecycle);
        let told = rig
            .provider
            .get(&ProviderId::of_instance("us-east-1a", "i-1"))
            .await
            .unwrap();
        let label = |key: &str| told.labels.get(key).map(String::as_str);
        assert_eq!(label(labels::CAPACITY_RESERVATION_TYPE), Some(kind));
        assert_eq!(
            label(labels::CAPACITY_RESERVATION_INTERRUPTIBLE),
            Some(interruptible)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_has_left_its_reservation_is_not_drifted() {
    let rig = rig();
    let class = rig.resolve(selecting(&["cr-2"])).await;
    let mut claim = NodeClaim::default();
    let own = [(labels::INSTANCE_TYPE.to_owned(), "m5.large".to_owned())];
    claim.metadata.labels = Some(own.into());
    claim.status = Some(apis::NodeClaimStatus {
        provider_id: Some("aws:///us-east-1a/i-1".to_owned()),
        image_id: Some("ami-x86".to_owned()),
        ..apis::NodeClaimStatus::default()
    });
    runs(&rig, Some("cr-1"), None);
    let drift = async || rig.provider.is_drifted(&claim, &class).await.unwrap();
    assert_eq!(drift().await.as_deref(), Some("CapacityReservationDrift"));
    runs(&rig, None, None);
    assert_eq!(drift().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_launch_runs_in_the_reservation_and_takes_a_slot_of_it() {
    // Kind, whether it is lent, what the fleet is for, and what the template says of the market.
    let cases = [
        ("default", false, "on-demand", None),
        (
            "default",
            true,
            "reserved-capacity",
            Some("interruptible-capacity-reservation"),
        ),
        (
            "capacity-block",
            false,
            "capacity-block",
            Some("capacity-block"),
        ),
    ];
    for (kind, is_lent, target, market) in cases {
        let rig = Rig::new(infos(&["m5.large"]));
        let mut own = reservation("cr-1", kind, "targeted");
        own.interruptible = Some(is_lent);
        rig.aws.edit(|state| state.reservations = vec![own]);
        let class = rig.resolve(selecting(&["cr-1"])).await;
        let free = async || {
            let types = rig.types(&class).await;
            let offering = types[0].offering("us-east-1a", CapacityType::Reserved);
            offering.unwrap().reservation_capacity
        };
        assert_eq!(free().await, 2);
        let offered =
            super::launch::offering("m5.large", "us-east-1a", CapacityType::Reserved, 0.1);
        let request = super::launch::request(&rig, &class, "one", vec![offered]).await;
        let launched = rig.provider.create(request).await.unwrap();
        let lent = is_lent.to_string();
        for (key, value) in [
            (labels::CAPACITY_TYPE, "reserved"),
            (labels::CAPACITY_RESERVATION_ID, "cr-1"),
            (labels::CAPACITY_RESERVATION_TYPE, kind),
            (labels::CAPACITY_RESERVATION_INTERRUPTIBLE, lent.as_str()),
        ] {
            assert_eq!(launched.labels[key], value, "{key}");
        }
        let (fleet, data) = rig.aws.edit(|state| {
            let data = state.templates.values().next().cloned();
            (state.fleets.last().cloned().unwrap(), data.unwrap())
        });
        let asked = fleet.target_capacity_specification().unwrap();
        let asked = asked.default_target_capacity_type().unwrap();
        assert_eq!(asked.as_str(), target);
        let told = data.instance_market_options();
        let told = told.and_then(|it| it.market_type());
        assert_eq!(told.map(MarketType::as_str), market);
        let own = data.capacity_reservation_specification().unwrap();
        let own = own.capacity_reservation_target().unwrap();
        assert_eq!(own.capacity_reservation_id(), Some("cr-1"));
        assert_eq!(free().await, 1);
    }
}
