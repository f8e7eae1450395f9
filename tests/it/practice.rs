//! A simulated account beside an API server that is another process: it goes on when its controller starts anew.

use std::collections::BTreeSet;

use tests::has_program;
use tests::served::{Served, WEB};

use crate::kubectl::workload_free;

const CONTROLLER: [&str; 9] = [
    "controller",
    "--cloud=simulated",
    "--boot=3s",
    "--termination=2s",
    "--metrics-port=0",
    "--health-probe-port=0",
    "--batch-idle-duration=500ms",
    "--disable-leader-election",
    "--seed=7",
];

#[test]
fn a_simulated_account_outlives_its_controller() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let mut served = Served::start(&["--no-controller", "-f", empty.to_str().unwrap()]);
    served.also_run(&CONTROLLER);
    served.apply(WEB);
    served.eventually("the pods run", || served.running("web-") == 6);
    let before = provider_ids(&served, "nodeclaims");
    assert!(!before.is_empty());

    served.kill_others();
    served.also_run(&CONTROLLER);
    // More pods than there is room for: the new process launches beside what the old one left.
    served.kubectl(&["scale", "deployment/web", "--replicas=60"]);
    served.eventually("more pods run", || served.running("web-") == 60);
    let after = provider_ids(&served, "nodeclaims");
    assert!(after.is_superset(&before), "{before:?}, then {after:?}");
    assert_eq!(after, provider_ids(&served, "nodes"));

    served.kubectl(&["delete", "deployment/web"]);
    served.eventually("what the old process launched ends too", || {
        provider_ids(&served, "nodes").is_empty()
    });
}

fn provider_ids(served: &Served, resource: &str) -> BTreeSet<String> {
    let items = served.items(resource);
    let ids = items.iter().filter_map(|item| {
        let of_claim = item["status"]["providerID"].as_str();
        of_claim.or_else(|| item["spec"]["providerID"].as_str())
    });
    ids.map(ToOwned::to_owned).collect()
}
