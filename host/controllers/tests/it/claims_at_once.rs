//! A thousand claims at once: they share fleets, EC2 is asked no more than it allows, and none waits long.

use std::collections::BTreeMap;

use api_server::Resource;
use sim::ec2::Ec2Faults;
use tokio::time::{Duration, Instant, sleep};

use crate::region::{Case, Region};

const CLAIMS: usize = 1_000;
const LOOKED_AT_EVERY: Duration = Duration::from_millis(100);
const LAUNCHED_WITHIN: Duration = Duration::from_mins(1);
/// What the simulated EC2 takes at most for a launch template and a fleet, one after the other.
const OF_EC2: Duration = Duration::from_secs(2);
const OF_THE_CONTROLLER: Duration = Duration::from_secs(2);

/// How long each claim took from when it was first seen to when it was seen launched, shortest first.
async fn waits(region: &mut Region) -> Vec<Duration> {
    let begun = Instant::now();
    let mut seen = BTreeMap::new();
    let mut launched = BTreeMap::new();
    while launched.len() < CLAIMS && begun.elapsed() < LAUNCHED_WITHIN {
        let now = Instant::now();
        for claim in region.list(&Resource::NODE_CLAIMS) {
            let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
            let since = *seen.entry(name.clone()).or_insert(now);
            if claim["status"]["providerID"].is_string() {
                launched
                    .entry(name)
                    .or_insert_with(|| now.duration_since(since));
            }
        }
        sleep(LOOKED_AT_EVERY).await;
    }
    let mut waits: Vec<Duration> = launched.into_values().collect();
    waits.sort();
    waits
}

#[tokio::test(start_paused = true)]
async fn a_thousand_claims_share_fleets_and_are_launched_in_two_seconds_and_ec2s_own() {
    let case = Case {
        seed: 1,
        deployments: vec![(CLAIMS as u64, "1Gi")],
        capacity_type: "on-demand",
        faults: Ec2Faults {
            throttling: true,
            ..Ec2Faults::calm()
        },
        has_queue: false,
    };
    let mut region = Region::new(&case, None);
    region.pass(10).await;
    let before = region.world.ec2().calls();
    region.deploy(&case);
    let waits = waits(&mut region).await;
    assert_eq!(waits.len(), CLAIMS, "{:?} were launched", waits.len());
    let after = region.world.ec2().calls();
    let fleets = after["CreateFleet"] - before.get("CreateFleet").copied().unwrap_or_default();
    let p99 = waits[CLAIMS * 99 / 100 - 1];
    println!(
        "{fleets} fleets, half within {:?}, 99 % within {p99:?}",
        waits[CLAIMS / 2]
    );
    assert!(fleets <= 20, "{fleets} fleets");
    assert_eq!(region.world.ec2().throttled(), 0, "{after:?}");
    assert!(p99 <= OF_EC2 + OF_THE_CONTROLLER, "{p99:?}");
    assert_eq!(region.world.ec2().launches(), CLAIMS as u64);
    assert_eq!(region.violations(), [""; 0]);
}
