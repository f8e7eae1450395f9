//! Interruptions of spot nodes: how often they come, and that lists of types are built again for no other reason.

use std::sync::Arc;

use apis::{CapacityType, NodeClaim, labels};
use async_trait::async_trait;
use aws_sdk_ec2::types::{
    Instance, InstanceLifecycleType, InstanceState, InstanceStateName, Placement,
};
use cloudprovider::{CloudProvider, InterruptionKind, InterruptionQueue};

use super::catalogue::infos;
use super::reservations::{reservation, selecting};
use super::{Rig, class};
use crate::SqsInterruptionQueue;
use crate::seam::{ApiError, ApiResult, QueueMessage, SqsApi};

/// A queue that nobody polls.
struct Unpolled;

#[async_trait]
impl SqsApi for Unpolled {
    async fn queue_url(&self, name: &str) -> ApiResult<String> {
        Err(ApiError::client("NonExistentQueue", name))
    }

    async fn queue_policy(&self, url: &str) -> ApiResult<Option<String>> {
        Err(ApiError::client("NonExistentQueue", url))
    }

    async fn receive(&self, url: &str) -> ApiResult<Vec<QueueMessage>> {
        Err(ApiError::client("NonExistentQueue", url))
    }

    async fn delete(&self, url: &str, _: &str) -> ApiResult<()> {
        Err(ApiError::client("NonExistentQueue", url))
    }
}

fn runs(rig: &Rig, id: &str, zone: &str, lifecycle: Option<InstanceLifecycleType>) {
    let state = InstanceState::builder().name(InstanceStateName::Running);
    let placement = Placement::builder().availability_zone(zone);
    let instance = Instance::builder()
        .instance_id(id)
        .instance_type("m5.large".into())
        .placement(placement.build())
        .state(state.build())
        .set_instance_lifecycle(lifecycle)
        .build();
    rig.aws
        .edit(|state| state.instances.insert(id.to_owned(), instance));
}

fn claim_of(id: &str, zone: &str) -> NodeClaim {
    let mut claim = NodeClaim::default();
    let told = [
        (labels::INSTANCE_TYPE, "m5.large"),
        (labels::TOPOLOGY_ZONE, zone),
        (labels::CAPACITY_TYPE, labels::CAPACITY_TYPE_SPOT),
    ];
    let told = told.map(|(key, value)| (key.to_owned(), value.to_owned()));
    claim.metadata.labels = Some(told.into());
    let status = claim.status.get_or_insert_default();
    status.provider_id = Some(format!("aws:///{zone}/{id}"));
    claim
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_not_there_is_named_with_the_setting() {
    let rig = Rig::new(infos(&["m5.large"]));
    let queue = SqsInterruptionQueue::new(Arc::new(Unpolled), "typo", Arc::clone(&rig.provider));
    let error = queue.receive().await.unwrap_err().to_string();
    for part in [
        "the interruption queue typo",
        "settings.interruptionQueue",
        "--interruption-queue",
        "NonExistentQueue",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn offerings_tell_how_often_their_nodes_are_taken_back() {
    let rig = Rig::new(infos(&["c5.large", "m5.large"]));
    let queue = SqsInterruptionQueue::new(Arc::new(Unpolled), "q", Arc::clone(&rig.provider));
    let class = rig.resolve(class()).await;
    for serial in 0..20 {
        let id = format!("i-{serial}");
        runs(&rig, &id, "us-east-1a", Some(InstanceLifecycleType::Spot));
    }
    // What runs on demand is not exposed.
    runs(&rig, "i-od", "us-east-1b", None);
    let rates = async || {
        let types = rig.types(&class).await;
        let rate = |zone: &str, kind: CapacityType| {
            types[1].offering(zone, kind).unwrap().interruption_rate
        };
        let other = types[0].offering("us-east-1a", CapacityType::Spot).unwrap();
        assert_eq!(
            other.interruption_rate, None,
            "nothing is known of c5.large"
        );
        assert_eq!(
            rate("us-east-1a", CapacityType::OnDemand),
            None,
            "it is not taken back"
        );
        [
            rate("us-east-1a", CapacityType::Spot),
            rate("us-east-1b", CapacityType::Spot),
        ]
    };
    let list_for = async |hours: usize| {
        for _ in 0..hours {
            rig.pass(3_600);
            rig.provider.list().await.unwrap();
        }
    };
    rig.provider.list().await.unwrap();
    assert_eq!(rates().await, [None; 2], "nothing was seen");
    list_for(12).await;
    assert_eq!(rates().await, [Some(0.0); 2], "ten node-days without any");

    let built = rig.types(&class).await;
    list_for(12).await;
    let again = rig.types(&class).await;
    assert!(
        Arc::ptr_eq(&built, &again),
        "a rate that stays builds nothing"
    );

    let rebalance = InterruptionKind::RebalanceRecommendation;
    queue.note(rebalance, &claim_of("i-1", "us-east-1a"));
    assert_eq!(rates().await, [Some(0.0); 2], "nothing was taken back");
    for _ in 0..2 {
        let interrupted = InterruptionKind::SpotInterrupted;
        queue.note(interrupted, &claim_of("i-1", "us-east-1a"));
    }
    let [here, there] = rates().await.map(Option::unwrap);
    assert!((1.4..1.6).contains(&here), "one in 20 node-days: {here}");
    let is_same = (there - here).abs() < 1e-12;
    assert!(is_same, "the type's rate stands in for the zone's: {there}");
    let marked = rig.types(&class).await;
    assert!(Arc::ptr_eq(&built[0], &marked[0]), "c5.large is as it was");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_is_not_bought_again_at_once() {
    use InterruptionKind as Kind;
    let rig = Rig::new(infos(&["m5.large"]));
    let own = reservation("cr-1", "default", "targeted");
    rig.aws.edit(|state| state.reservations = vec![own]);
    let class = rig.resolve(selecting(&["cr-1"])).await;
    let queue = SqsInterruptionQueue::new(Arc::new(Unpolled), "q", Arc::clone(&rig.provider));
    let mut claim = claim_of("i-1", "us-east-1a");
    let id = labels::CAPACITY_RESERVATION_ID.to_owned();
    let told = claim.metadata.labels.as_mut().unwrap();
    told.insert(id, "cr-1".to_owned());
    // Whether there is spot, and slots of the reservation.
    let offered = async |class| {
        let types = rig.types(class).await;
        let of = |kind| types[0].offering("us-east-1a", kind).unwrap();
        assert!(of(CapacityType::OnDemand).is_available());
        let slots = of(CapacityType::Reserved).reservation_capacity;
        (of(CapacityType::Spot).is_available(), slots)
    };
    assert_eq!(offered(&class).await, (true, 2));
    for (kind, want) in [
        (Kind::RebalanceRecommendation, (true, 2)),
        (Kind::ScheduledChange, (true, 2)),
        (Kind::InstanceTerminated, (true, 2)),
        (Kind::SpotInterrupted, (false, 2)),
        (Kind::CapacityReservationInterrupted, (false, 0)),
    ] {
        queue.note(kind, &claim);
        assert_eq!(offered(&class).await, want, "{kind:?}");
    }
    rig.pass(180);
    assert_eq!(offered(&class).await, (true, 0));
    rig.resolve(class.clone()).await;
    assert_eq!(offered(&class).await, (true, 2), "EC2 has told anew");
}

#[tokio::test(start_paused = true)]
async fn free_addresses_are_those_of_all_subnets_less_what_launches_take() {
    let rig = Rig::new(infos(&["m5.large"]));
    rig.aws.edit(|state| {
        let more = crate::fake::subnet("subnet-9", "us-east-1a", 20);
        state.subnets.push(more);
    });
    assert!(rig.provider.free_addresses(&class()).await.is_empty());
    let class = rig.resolve(class()).await;
    let asked = rig.aws.calls("DescribeSubnets");
    let free = async || {
        let free = rig.provider.free_addresses(&class).await;
        ["us-east-1a", "us-east-1b"].map(|zone| free[zone])
    };
    assert_eq!(free().await, [1020, 1000]);
    let offerings = vec![super::launch::offering(
        "m5.large",
        "us-east-1b",
        CapacityType::OnDemand,
        0.1,
    )];
    let request = super::launch::request(&rig, &class, "one", offerings).await;
    rig.provider.create(request).await.unwrap();
    let [here, there] = free().await;
    assert_eq!(here, 1020, "nothing was launched there");
    assert!(there < 1000, "a node and its pods take some of {there}");
    assert_eq!(rig.aws.calls("DescribeSubnets"), asked);
}
