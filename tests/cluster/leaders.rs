//! Two replicas: the leader is killed, frozen or cut off in mid-launch, mid-drain and mid-replace, and the other goes
//! on.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::rig::{Cluster, is_true, names};

/// How long a cluster may be without a leader.
const TAKEOVER_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Launch,
    Drain,
    Replacement,
}

/// What happens to the leader.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    Kill,
    Freeze,
    /// Nothing it says arrives any more, and nobody tells it so.
    CutOff,
}

/// Brings the cluster to the moment.
fn reach(cluster: &Cluster, moment: Moment) {
    let claims = || cluster.owned("nodeclaims");
    let is_going = |it: &serde_json::Value| !it["metadata"]["deletionTimestamp"].is_null();
    match moment {
        Moment::Launch => {
            cluster.deploy(60, &json!({}));
            cluster.until("claims whose nodes are not there yet", || {
                let claims = claims();
                !claims.is_empty() && claims.iter().all(|it| !is_true(it, "Registered"))
            });
        }
        Moment::Drain => {
            cluster.deploy(12, &json!({}));
            cluster.until("the pods run", || cluster.running() == 12);
            let victim = names(&claims()).pop_first().unwrap();
            cluster.kubectl(&["delete", "nodeclaim", &victim, "--wait=false"]);
            cluster.until("a claim on its way out", || claims().iter().any(is_going));
        }
        Moment::Replacement => {
            cluster.deploy(12, &json!({}));
            cluster.until("the pods run", || cluster.running() == 12);
            let before = claims().len();
            let labels = json!({"round": "second"});
            cluster.patch_pool(&json!({"spec": {"template": {"metadata": {"labels": labels}}}}));
            cluster.until("a successor beside them", || claims().len() > before);
        }
    }
}

/// Every pod runs, on nodes that nobody leaves.
fn settles(cluster: &Cluster, moment: Moment) {
    let pods = if moment == Moment::Launch { 60 } else { 12 };
    cluster.until("all is at rest", || {
        let claims = cluster.owned("nodeclaims");
        let is_left = |it: &serde_json::Value| {
            is_true(it, "Drifted") || !it["metadata"]["deletionTimestamp"].is_null()
        };
        cluster.running() == pods
            && claims
                .iter()
                .all(|it| is_true(it, "Initialized") && !is_left(it))
            && cluster.owned("nodes").len() == claims.len()
    });
    cluster.assert_one_node_a_claim();
}

fn leader_is_lost(name: &'static str, moment: Moment, loss: Loss) {
    let Some(cluster) = Cluster::start(name) else {
        return;
    };
    let (mut first, wire) = cluster.controller_over_wire("first");
    cluster.until("one leads", || first.leads());
    let second = cluster.controller("second");
    cluster.until("the other waits", || {
        second.log().contains("waiting for the lease")
    });
    reach(&cluster, moment);
    let since = Instant::now();
    match loss {
        Loss::Kill => first.signal("-KILL"),
        Loss::Freeze => first.signal("-STOP"),
        Loss::CutOff => wire.cut(),
    }
    cluster.until("the other leads", || second.leads());
    assert!(since.elapsed() <= TAKEOVER_MAX, "{:?}", since.elapsed());
    if loss == Loss::CutOff {
        cluster.until("the first ends", || first.has_ended());
        assert!(since.elapsed() <= TAKEOVER_MAX, "it ends by itself");
    }
    if loss == Loss::Freeze {
        let before = first.log();
        first.signal("-CONT");
        cluster.until("the first ends", || first.has_ended());
        let said = first.log();
        let late = said.strip_prefix(&before).unwrap();
        assert!(!late.contains("created nodeclaim"), "{late}");
        assert!(!late.contains("deleted node"), "{late}");
    }
    settles(&cluster, moment);
    second.assert_content();
}

#[test]
fn a_leader_is_killed_in_mid_launch() {
    leader_is_lost("mortise-test-kill-launch", Moment::Launch, Loss::Kill);
}

#[test]
fn a_leader_is_killed_in_mid_drain() {
    leader_is_lost("mortise-test-kill-drain", Moment::Drain, Loss::Kill);
}

#[test]
fn a_leader_is_killed_in_mid_replacement() {
    leader_is_lost("mortise-test-kill-replace", Moment::Replacement, Loss::Kill);
}

#[test]
fn a_leader_is_frozen_in_mid_launch() {
    leader_is_lost("mortise-test-freeze-launch", Moment::Launch, Loss::Freeze);
}

#[test]
fn a_leader_is_frozen_in_mid_drain() {
    leader_is_lost("mortise-test-freeze-drain", Moment::Drain, Loss::Freeze);
}

#[test]
fn a_leader_is_frozen_in_mid_replacement() {
    leader_is_lost(
        "mortise-test-freeze-replace",
        Moment::Replacement,
        Loss::Freeze,
    );
}

#[test]
fn a_leader_is_cut_off_in_mid_launch() {
    leader_is_lost("mortise-test-cut-launch", Moment::Launch, Loss::CutOff);
}

#[test]
fn a_leader_is_cut_off_in_mid_drain() {
    leader_is_lost("mortise-test-cut-drain", Moment::Drain, Loss::CutOff);
}

#[test]
fn a_leader_is_cut_off_in_mid_replacement() {
    leader_is_lost(
        "mortise-test-cut-replace",
        Moment::Replacement,
        Loss::CutOff,
    );
}
