//! What moto does not have is met as what an account denies: the affected part says so, and the rest works.

use std::collections::BTreeSet;

use apis::ec2nodeclass::{CapacityReservationSelectorTerm, PlacementGroupSelector};
use apis::{CapacityType, Ec2NodeClass, NodePool};
use aws::sdk::SdkClients;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_ec2::config::Region;
use cloudprovider::CloudProvider as _;
use serde_json::json;
use tests::moto::Moto;

use crate::calls::assert_made;
use crate::rig::{Rig, class};

/// Calls that moto does not have.
const LACKING: [&str; 3] = [
    "ec2:DescribeCapacityReservations",
    "ec2:DescribePlacementGroups",
    "pricing:GetProducts",
];

/// What is seen of an account: the conditions of classes that need what is lacking, and what can be bought.
#[derive(Debug)]
struct Seen {
    conditions: Vec<(String, String, String)>,
    offerings: BTreeSet<String>,
}

#[tokio::test]
async fn what_moto_lacks_is_met_as_what_an_account_denies() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let lacking = seen(&Rig::new(&moto, ("testing", "testing")).await).await;
    let (key, secret) = moto.deny(&LACKING);
    let denied = seen(&Rig::new(&moto, (&key, &secret)).await).await;
    assert_eq!(lacking.conditions, denied.conditions);
    let only = |these: &BTreeSet<String>, those| -> Vec<String> {
        these.difference(those).cloned().collect()
    };
    let lost = only(&lacking.offerings, &denied.offerings);
    let won = only(&denied.offerings, &lacking.offerings);
    assert_eq!((lost, won), (vec![], vec![]));
    assert!(lacking.offerings.len() > 1000, "{lacking:?}");
    let not_true = lacking.conditions.iter().filter(|it| it.1 != "True");
    let not_true: Vec<_> = not_true.map(|it| (it.0.as_str(), it.1.as_str())).collect();
    let want = [
        ("CapacityReservationsReady", "Unknown"),
        ("Ready", "Unknown"),
        ("PlacementGroupReady", "False"),
        ("Ready", "False"),
    ];
    assert_eq!(not_true, want);
    assert_made("refused", &moto.asked());
}

#[tokio::test]
async fn what_the_role_may_not_do_is_named_with_what_comes_of_it() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let allowed = Rig::new(&moto, ("testing", "testing")).await.clients;
    aws::check_connectivity(&allowed).await.unwrap();
    assert_eq!(aws::missing_permissions(&allowed).await, []);

    let actions = ["ec2:DescribeImages", "ec2:DescribeInstanceStatus"];
    let others = ["ec2:DescribeInstanceTypes", "eks:DescribeCluster"];
    let (key, secret) = moto.deny(&[actions, others].concat());
    let denied = Rig::new(&moto, (&key, &secret)).await.clients;
    let missing = aws::missing_permissions(&denied).await;
    let named: Vec<&str> = missing.iter().map(|it| it.action).collect();
    assert_eq!(named, actions);
    let shut = aws::check_connectivity(&denied).await.unwrap_err();
    let unknown = aws::describe_cluster(&denied, "demo").await.unwrap_err();
    for (error, action) in [shut, unknown].iter().zip(others) {
        assert!(error.to_string().contains(action), "{error}");
    }
}

/// As a profile names it: for controllers outside of AWS, with certificates for instance.
#[tokio::test]
async fn who_it_is_may_come_of_a_process_that_a_profile_names() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let denied = ["ec2:DescribeImages"];
    let (key, secret) = moto.deny(&denied);
    let told = json!({"Version": 1, "AccessKeyId": key, "SecretAccessKey": secret});
    let profile = format!("[profile own]\ncredential_process = printf '%s' '{told}'\n");
    let file = EnvConfigFiles::builder().with_contents(EnvConfigFileKind::Config, profile);
    let config = SdkClients::loader()
        .profile_files(file.build())
        .profile_name("own")
        .endpoint_url(moto.endpoint())
        .region(Region::new("us-east-1"));
    let clients = SdkClients::of(&config.load().await);
    let missing = aws::missing_permissions(&clients).await;
    let named: Vec<&str> = missing.iter().map(|it| it.action).collect();
    assert_eq!(
        named, denied,
        "the key of the process is the one that counts"
    );
}

#[tokio::test]
async fn zonal_shifts_that_cannot_be_asked_for_are_named_with_the_action() {
    let Some(moto) = Moto::start() else {
        return;
    };
    let rig = Rig::new(&moto, ("testing", "testing")).await;
    let cluster = aws::describe_cluster(&rig.clients, "demo").await.unwrap();
    assert!(cluster.arn.is_some(), "{cluster:?}");
    rig.provider.set_discovered_options(|it| {
        it.enable_zonal_shift = true;
        it.learn(cluster);
    });
    let error = rig.provider.shifted_zones().await.unwrap_err();
    let action = "arc-zonal-shift:GetManagedResource";
    assert!(error.to_string().contains(action), "{error}");
}

async fn seen(rig: &Rig) -> Seen {
    rig.provider.hydrate().await.unwrap();
    let term = CapacityReservationSelectorTerm {
        id: Some("cr-0123456789abcdef0".to_owned()),
        ..CapacityReservationSelectorTerm::default()
    };
    let mut reserved = class();
    reserved.metadata.uid = Some("reserved-uid".to_owned());
    reserved.spec.capacity_reservation_selector_terms = vec![term];
    let mut grouped = class();
    grouped.metadata.uid = Some("other-uid".to_owned());
    grouped.spec.placement_group_selector = Some(PlacementGroupSelector {
        name: Some("close".to_owned()),
        ..PlacementGroupSelector::default()
    });
    let plain = rig.resolve(class()).await;
    let pool = NodePool::default();
    let types = rig.provider.instance_types(&pool, &plain);
    let types = types.await.unwrap();
    // Of spot moto tells nothing once it asks for signatures: it takes none of a request with parentheses.
    let sold = types.iter().flat_map(|it| {
        let available = it.offerings.iter().filter(|it| it.is_available());
        let available = available.filter(|it| it.capacity_type() == Some(CapacityType::OnDemand));
        available.map(|sold| {
            let capacity_type = CapacityType::word(sold.capacity_type());
            let zone = sold.zone().unwrap_or_default();
            format!("{} {zone} {capacity_type}", it.name)
        })
    });
    let mut conditions = of(&rig.resolve(reserved).await);
    conditions.extend(of(&rig.resolve(grouped).await));
    Seen {
        conditions,
        offerings: sold.collect(),
    }
}

fn of(class: &Ec2NodeClass) -> Vec<(String, String, String)> {
    let conditions = class.status.iter().flat_map(|it| &it.conditions);
    conditions
        .map(|it| (it.type_.clone(), it.status.clone(), it.reason.clone()))
        .collect()
}
