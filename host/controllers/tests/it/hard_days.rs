//! Days on which the cloud takes back, refuses and repeats itself: pods run again, and nothing is left over.

use std::collections::BTreeSet;

use api_server::Resource;
use apis::CapacityType;
use sim::ec2::Ec2Faults;

use crate::region::{Case, Region};

const CLASS_IS_READY_SECONDS: u64 = 8;
const HOUR_SECONDS: u64 = 3_600;
const SETTLES_SECONDS_MAX: u64 = 1_800;

fn case(capacity_type: &'static str, pods: u64, faults: Ec2Faults) -> Case {
    Case {
        seed: 7,
        deployments: vec![(pods, "1Gi")],
        capacity_type,
        faults,
        has_queue: true,
    }
}

/// The region with its Deployments, each pod of which needs a node of its own.
async fn begin(case: &Case) -> Region {
    let mut region = Region::new(case, None);
    region.pass(CLASS_IS_READY_SECONDS).await;
    region.deploy(case);
    region
}

/// Waits until every pod runs, every claim has its instance and no other lives.
async fn settle(region: &mut Region, case: &Case) {
    for _ in 0..SETTLES_SECONDS_MAX {
        let claims = region.list(&Resource::NODE_CLAIMS);
        let named = claims.iter().filter_map(|it| {
            let id = it["status"]["providerID"].as_str();
            id.map(str::to_owned)
        });
        let named: BTreeSet<String> = named.collect();
        if region.is_registered(case) && named.len() == claims.len() && named == region.living() {
            return;
        }
        region.pass(1).await;
    }
    panic!("not every pod runs, or an instance is nobody's");
}

fn has_notices(region: &Region) -> bool {
    region.queue.as_ref().is_some_and(|it| !it.is_empty())
}

#[tokio::test(start_paused = true)]
async fn spot_nodes_that_are_taken_back_are_replaced_though_calls_fail_and_notices_come_twice() {
    let case = case(
        "spot",
        8,
        Ec2Faults {
            spot_pools_dry: 0.1,
            spot_interruptions_per_hour: 1.5,
            visibility_delay_seconds_max: 15,
            throttling: true,
            internal_error_chance: 0.05,
            lost_answer_chance: 0.2,
            repeated_message_chance: 0.3,
            ..Ec2Faults::default()
        },
    );
    let mut region = begin(&case).await;
    region.pass(2 * HOUR_SECONDS).await;
    let instances = region.world.ec2().instances();
    let taken_back = instances.iter().filter(|it| it.interruption_at.is_some());
    assert!(taken_back.count() > 2, "{instances:?}");
    region
        .world
        .ec2()
        .change_faults(|it| *it = Ec2Faults::calm());
    settle(&mut region, &case).await;
    region.pass(HOUR_SECONDS / 2).await;
    assert!(!has_notices(&region));
    assert_eq!(region.violations(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_vcpu_limit_leaves_pods_waiting_and_not_a_cent_wasted_until_it_is_raised() {
    let limited = Ec2Faults {
        on_demand_vcpus_max: Some(6),
        ..Ec2Faults::calm()
    };
    let case = case("on-demand", 5, limited);
    let mut region = begin(&case).await;
    region.pass(HOUR_SECONDS / 4).await;
    assert_eq!(region.living().len(), 3, "two CPUs each");
    let bought = |it: &sim::ec2::SimulatedInstance| it.capacity_type == CapacityType::OnDemand;
    assert!(region.world.ec2().instances().iter().all(bought));
    region
        .world
        .ec2()
        .change_faults(|it| it.on_demand_vcpus_max = None);
    settle(&mut region, &case).await;
    assert_eq!(region.living().len(), 5);
    assert_eq!(region.world.ec2().terminations(), 0);
    assert_eq!(region.violations(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_may_not_be_read_takes_no_node_and_is_heard_once_it_may() {
    let denied = [
        "GetQueueUrl",
        "GetQueueAttributes",
        "DescribeInstanceStatus",
    ];
    let faults = Ec2Faults {
        denied: denied.map(str::to_owned).to_vec(),
        ..Ec2Faults::calm()
    };
    let case = case("spot", 2, faults);
    let mut region = begin(&case).await;
    settle(&mut region, &case).await;
    let before = region.living();
    let instance = region.world.ec2().instances().remove(0);
    assert!(region.world.ec2().interrupt_spot(&instance.id));
    region.pass(60).await;
    assert!(has_notices(&region), "nobody could hear it");
    region
        .world
        .ec2()
        .change_faults(|it| it.denied.retain(|it| it == "GetQueueAttributes"));
    region.pass(100).await;
    settle(&mut region, &case).await;
    assert_ne!(region.living(), before, "the node was replaced");
    assert!(!has_notices(&region));
    assert_eq!(region.violations(), [""; 0]);
}

/// In another region EC2 knows none of the instances, which is no sign that they are gone.
#[tokio::test(start_paused = true)]
async fn with_credentials_that_expire_or_in_the_wrong_region_nothing_is_let_go_of() {
    for is_elsewhere in [false, true] {
        let case = case("on-demand", 2, Ec2Faults::calm());
        let mut region = begin(&case).await;
        settle(&mut region, &case).await;
        let claims = region.names_of_claims();
        let before = region.living();
        if is_elsewhere {
            region.look_elsewhere("eu-west-1");
        } else {
            region.world.ec2().change_faults(|it| it.is_expired = true);
        }
        region.pass(HOUR_SECONDS / 4).await;
        assert_eq!(
            region.names_of_claims(),
            claims,
            "elsewhere: {is_elsewhere}"
        );
        for name in &claims {
            region.delete_claim(name);
        }
        region.pass(HOUR_SECONDS / 4).await;
        assert_eq!(region.living(), before, "elsewhere: {is_elsewhere}");
        assert!(region.names_of_claims().is_superset(&claims));
        region.world.ec2().change_faults(|it| it.is_expired = false);
        region.look_here();
        settle(&mut region, &case).await;
        assert!(
            region.living().is_disjoint(&before),
            "they go as they were told to"
        );
        assert_eq!(region.violations(), [""; 0]);
    }
}
