//! Partition placement groups: who chooses the partition, and when a node may say which it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ec2nodeclass::PlacementGroupSelector;
use apis::{
    CapacityType, Ec2NodeClass, NodeClaim, NodeSelectorRequirementWithMinValues, Operator, labels,
};
use aws_sdk_ec2::types::{
    InstanceTypeInfo, Placement, PlacementGroup, PlacementGroupInfo, PlacementGroupStrategy,
    PlacementStrategy,
};
use cloudprovider::{CloudProvider, Launched, Registrable};

use super::catalogue::infos;
use super::launch::{offering, request};
use super::{Rig, class};
use crate::seam::ApiError;

fn rig(strategy: PlacementStrategy, partitions: Option<i32>) -> Rig {
    let supported = PlacementGroupInfo::builder()
        .supported_strategies(PlacementGroupStrategy::Partition)
        .supported_strategies(PlacementGroupStrategy::Spread)
        .build();
    let info = |mut info: InstanceTypeInfo| {
        info.placement_group_info = Some(supported.clone());
        info
    };
    let rig = Rig::new(infos(&["m5.large"]).into_iter().map(info).collect());
    let group = PlacementGroup::builder()
        .group_id("pg-1")
        .group_name("racks")
        .strategy(strategy)
        .set_partition_count(partitions);
    rig.aws
        .edit(|state| state.placement_groups = vec![group.build()]);
    rig
}

async fn class_in_racks(rig: &Rig) -> Ec2NodeClass {
    let mut class = class();
    class.spec.placement_group_selector = Some(PlacementGroupSelector {
        name: Some("racks".to_owned()),
        id: None,
    });
    rig.resolve(class).await
}

/// A claim for the wanted partitions, launched.
async fn launch(rig: &Rig, wanted: Option<(Operator, &[&str])>) -> (NodeClaim, Launched) {
    let class = class_in_racks(rig).await;
    let offerings = vec![offering("m5.large", "us-east-1a", CapacityType::Spot, 0.04)];
    let mut request = request(rig, &class, "one", offerings).await;
    let mut claim = NodeClaim::clone(&request.node_claim);
    let wanted = wanted.map(|(operator, partitions)| {
        let key = labels::PLACEMENT_GROUP_PARTITION;
        NodeSelectorRequirementWithMinValues::new(key, operator, partitions.iter().copied())
    });
    claim.spec.requirements = Vec::from_iter(wanted);
    request.node_claim = Arc::new(claim.clone());
    let launched = rig.provider.create(request).await.unwrap();
    claim.metadata.labels = Some(launched.labels.clone());
    claim.status.get_or_insert_default().provider_id = Some(launched.provider_id.to_string());
    (claim, launched)
}

fn asked_of_ec2(rig: &Rig) -> Option<i32> {
    let data = rig
        .aws
        .edit(|state| state.templates.values().next().cloned());
    let placement = data.unwrap().placement.unwrap();
    assert_eq!(placement.group_id(), Some("pg-1"));
    placement.partition_number()
}

#[tokio::test(start_paused = true)]
async fn types_offer_every_partition_of_the_group() {
    let rig = rig(PlacementStrategy::Partition, Some(3));
    let types = rig.types(&class_in_racks(&rig).await).await;
    let offered = types[0].requirements.get(labels::PLACEMENT_GROUP_PARTITION);
    assert!(["1", "2", "3"].iter().all(|it| offered.has(it)));
    assert!(!offered.has("4") && !offered.has("0"));
    assert!(
        types[0]
            .offerings
            .iter()
            .any(scheduling::instance_type::Offering::is_available)
    );
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_asked_for_is_pinned_and_known_at_once() {
    let cases: [(Operator, &[&str], Option<i32>); 5] = [
        (Operator::In, &["3"], Some(3)),
        // By string order, as in Karpenter.
        (Operator::In, &["2", "10"], Some(10)),
        (Operator::NotIn, &["1", "10"], Some(2)),
        // Every one will do.
        (Operator::Exists, &[], None),
        (Operator::NotIn, &["12"], None),
    ];
    for (operator, partitions, expected) in cases {
        let rig = rig(PlacementStrategy::Partition, Some(10));
        let (claim, launched) = launch(&rig, Some((operator, partitions))).await;
        assert_eq!(asked_of_ec2(&rig), expected, "{operator:?} {partitions:?}");
        let label = expected.map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(launched.labels[labels::PLACEMENT_GROUP_PARTITION], label);
        let may = rig.provider.registrable(&claim).await.unwrap();
        let is_ready = may == Registrable::Ready(BTreeMap::new());
        assert_eq!(is_ready, expected.is_some(), "{may:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_ec2_chooses_is_waited_for() {
    let rig = rig(PlacementStrategy::Partition, Some(3));
    let (claim, _) = launch(&rig, None).await;
    let may = async || rig.provider.registrable(&claim).await.unwrap();
    assert_eq!(
        may().await,
        Registrable::Pending("PlacementGroupRegistrationHook")
    );
    rig.aws.edit(|state| {
        let instance = state.instances.values_mut().next().unwrap();
        let zone = instance.placement().unwrap().availability_zone().unwrap();
        let placement = Placement::builder().availability_zone(zone);
        instance.placement = Some(placement.partition_number(2).build());
    });
    let key = labels::PLACEMENT_GROUP_PARTITION.to_owned();
    let labels = BTreeMap::from([(key, "2".to_owned())]);
    assert_eq!(may().await, Registrable::Ready(labels));
}

#[tokio::test(start_paused = true)]
async fn other_groups_have_no_partitions() {
    let rig = rig(PlacementStrategy::Spread, None);
    let (claim, launched) = launch(&rig, None).await;
    assert_eq!(asked_of_ec2(&rig), None);
    let partition = labels::PLACEMENT_GROUP_PARTITION;
    assert!(!launched.labels.contains_key(partition));
    assert_eq!(launched.labels[labels::PLACEMENT_GROUP_ID], "pg-1");
    let may = rig.provider.registrable(&claim).await.unwrap();
    assert_eq!(may, Registrable::Ready(BTreeMap::new()));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_ec2_does_not_describe_now_is_as_it_was_for_a_day() {
    let rig = rig(PlacementStrategy::Spread, None);
    let class = class_in_racks(&rig).await;
    let (claim, _) = launch(&rig, None).await;
    let claim = {
        let mut claim = claim;
        let labels = claim.metadata.labels.get_or_insert_default();
        labels.insert(labels::PLACEMENT_GROUP_ID.to_owned(), "pg-1".to_owned());
        claim
    };
    let fails = ApiError::server("InternalError", "x");
    rig.aws
        .edit(|state| state.no_placement_groups = Some(fails));
    for (seconds, is_known) in [(61, true), (23 * 3600, true), (3600, false)] {
        rig.pass(seconds);
        assert!(!rig.types(&class).await.is_empty());
        assert_ne!(
            rig.provider
                .is_drifted(&claim, &class)
                .await
                .unwrap()
                .as_deref(),
            Some("PlacementGroupDrift")
        );
        let offerings = vec![offering("m5.large", "us-east-1a", CapacityType::Spot, 0.04)];
        let request = request(&rig, &class, "two", offerings).await;
        let launched = rig.provider.create(request).await;
        assert_eq!(launched.is_ok(), is_known, "{launched:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_not_there_is_told_as_such() {
    let rig = rig(PlacementStrategy::Spread, None);
    let unknown = ApiError::client("InvalidPlacementGroup.Unknown", "unknown");
    rig.aws
        .edit(|state| state.no_placement_groups = Some(unknown));
    let class = class_in_racks(&rig).await;
    let conditions = &class.status.as_ref().unwrap().conditions;
    let found = apis::conditions::get(conditions, apis::conditions::PLACEMENT_GROUP_READY);
    assert_eq!(found.unwrap().reason, "PlacementGroupNotFound");
    assert!(!rig.types(&class).await.is_empty());
}
