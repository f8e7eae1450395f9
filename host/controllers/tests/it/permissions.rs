//! An account without any one permission: what does not work without it says which one it is, everything else works,
//! and all does once it is given.

use api_server::Resource;
use serde_json::Value;
use sim::ec2::Ec2Faults;

use crate::region::{Case, Region};

const PODS: u64 = 2;
const SETTLES_SECONDS: u64 = 300;
/// Until a class whose account could not be asked is asked about again, and nodes have come.
const RECOVERS_SECONDS: u64 = 420;
/// Longer than two passes of garbage collection.
const EMPTIES_SECONDS: u64 = 420;

/// Without these nothing can be launched.
const ESSENTIAL: [&str; 11] = [
    "DescribeSubnets",
    "DescribeSecurityGroups",
    "DescribeImages",
    "DescribeLaunchTemplates",
    "CreateLaunchTemplate",
    "CreateFleet",
    "RunInstances",
    "GetInstanceProfile",
    "CreateInstanceProfile",
    "AddRoleToInstanceProfile",
    "GetParameter",
];

/// Without these something is missing, late or left over, and pods run.
const OTHERS: [&str; 16] = [
    "DescribeSpotPriceHistory",
    "DeleteLaunchTemplate",
    "DescribeInstanceStatus",
    "CreateTags",
    "DescribeCapacityReservations",
    "DescribePlacementGroups",
    "RebootInstances",
    "RemoveRoleFromInstanceProfile",
    "DeleteInstanceProfile",
    "ListInstanceProfiles",
    "GetProducts",
    "GetQueueUrl",
    "GetQueueAttributes",
    "ReceiveMessage",
    "DeleteMessage",
    "DescribeCluster",
];

fn case(denied: &str) -> Case {
    Case {
        seed: 3,
        deployments: vec![(PODS, "1Gi")],
        capacity_type: "on-demand",
        faults: Ec2Faults {
            denied: vec![denied.to_owned()],
            ..Ec2Faults::calm()
        },
        has_queue: true,
    }
}

async fn begin(case: &Case) -> Region {
    let mut region = Region::new(case, None);
    region.pass(10).await;
    region.deploy(case);
    region.pass(SETTLES_SECONDS).await;
    region
}

fn allow_all(region: &Region) {
    region.world.ec2().change_faults(|it| it.denied.clear());
}

/// Messages of the conditions of the class.
fn told(region: &Region) -> Vec<String> {
    let classes = region.list(&Resource::EC2_NODE_CLASSES);
    let conditions = classes
        .iter()
        .filter_map(|it| it["status"]["conditions"].as_array());
    let messages = conditions.flatten().map(|it| &it["message"]);
    messages
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

async fn empties(region: &mut Region) {
    let deployments = &Resource::DEPLOYMENTS;
    let api = region.world.api();
    let none = serde_json::json!({"spec": {"replicas": 0}});
    api.patch_merge(deployments, "default", "web-0", none)
        .unwrap();
    for name in region.names_of_claims() {
        region.delete_claim(&name);
    }
    region.pass(EMPTIES_SECONDS).await;
}

/// Nothing is left, of the cluster or of the account.
fn assert_empty(region: &Region, denied: &str) {
    let living = region.living();
    assert!(living.is_empty(), "{denied}: {living:?}");
    assert!(region.names_of_claims().is_empty(), "{denied}");
    assert_eq!(region.violations(), [""; 0], "{denied}");
}

#[tokio::test(start_paused = true)]
async fn what_nothing_can_be_launched_without_is_named_on_the_class_and_is_all_that_is_missing() {
    for denied in ESSENTIAL {
        let case = case(denied);
        let mut region = begin(&case).await;
        assert_eq!(region.world.ec2().launches(), 0, "{denied}");
        let told = told(&region);
        assert!(
            told.iter().any(|it| it.contains(denied)),
            "{denied}: {told:?}"
        );
        allow_all(&region);
        region.pass(RECOVERS_SECONDS).await;
        assert!(
            region.is_registered(&case),
            "{denied}: {:?}",
            self::told(&region)
        );
        assert_eq!(region.violations(), [""; 0], "{denied}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_else_is_denied_keeps_no_pod_from_running_and_no_node_from_going() {
    for denied in OTHERS {
        let case = case(denied);
        let mut region = begin(&case).await;
        assert!(region.is_registered(&case), "{denied}: {:?}", told(&region));
        empties(&mut region).await;
        assert_empty(&region, denied);
    }
}

/// Whether an instance lives is not known then, so that nothing is taken for gone.
#[tokio::test(start_paused = true)]
async fn nothing_is_let_go_of_whose_end_is_not_allowed_or_cannot_be_seen() {
    for denied in ["TerminateInstances", "DescribeInstances"] {
        let case = case(denied);
        let mut region = begin(&case).await;
        assert!(region.is_registered(&case), "{denied}");
        empties(&mut region).await;
        assert!(!region.names_of_claims().is_empty(), "{denied}");
        allow_all(&region);
        region.pass(EMPTIES_SECONDS).await;
        assert_empty(&region, denied);
    }
}
