//! Two replicas as processes, each behind a wire of its own that writes down what it asks: the leader is killed,
//! frozen or cut off in mid-launch. The other goes on, and the first changes nothing once it does.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tests::has_program;
use tests::mortise;
use tests::served::{Served, WEB};
use tests::wire::{Asked, Wire};

/// How long a cluster may be without a leader.
const TAKEOVER_MAX: Duration = Duration::from_secs(20);

/// One of the two, and what it asked.
struct Replica {
    process: Child,
    wire: Wire,
}

impl Replica {
    fn start(served: &Served, name: &str) -> Self {
        let (wire, kubeconfig) = Wire::of_kubeconfig(&served.kubeconfig(), name);
        let process = Command::new(mortise())
            .args(["controller", "--cloud", "simulated"])
            .args(["--metrics-port", "0", "--health-probe-port", "0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, wire }
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// The changes that it asked for, the lease aside.
    fn changes(&self) -> Vec<Asked> {
        let asked = self.wire.asked().into_iter();
        asked
            .filter(|it| it.is_change() && !it.is_of_lease())
            .collect()
    }

    fn leads(&self) -> bool {
        !self.changes().is_empty()
    }

    fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A world in which one replica leads and is about to launch, and another waits.
fn in_mid_launch() -> (Served, Replica, Replica) {
    let served = Served::start(&["--no-controller"]);
    let first = Replica::start(&served, "first");
    served.eventually("one leads", || first.leads());
    let second = Replica::start(&served, "second");
    served.eventually("the other watches", || {
        let asked = second.wire.asked();
        asked
            .iter()
            .any(|it| it.path.contains("/pods?") && it.path.contains("watch=true"))
    });
    let launches = |it: &Asked| it.verb == "POST" && it.path.contains("/nodeclaims");
    let before = first.changes().into_iter().filter(launches).count();
    served.apply(&WEB.replace("replicas: 6", "replicas: 60"));
    served.eventually("it launches", || {
        first.changes().into_iter().filter(launches).count() > before
    });
    (served, first, second)
}

/// The other leads in time and brings the pods to nodes; what the first asked for after that is nothing.
fn goes_on(served: &Served, (first, second): (&Replica, &Replica), since: Instant) {
    served.eventually("the other leads", || second.leads());
    let took_over = second.changes()[0].at;
    let took = took_over.duration_since(since);
    assert!(took <= TAKEOVER_MAX, "{took:?}");
    let late = first.changes().into_iter().filter(|it| it.at >= took_over);
    assert_eq!(late.count(), 0, "the first changed things after its lease");
    let before = second.wire.asked().into_iter();
    let before = before.filter(|it| it.is_change() && it.at < since);
    let early: Vec<_> = before.filter(|it| !it.is_of_lease()).collect();
    assert!(
        early.is_empty(),
        "it changed things while it waited: {early:?}"
    );
}

#[test]
fn a_leader_that_is_killed_is_followed_within_twenty_seconds() {
    if !has_program("kubectl", "help") {
        return;
    }
    let (served, first, second) = in_mid_launch();
    let since = Instant::now();
    first.signal("-KILL");
    goes_on(&served, (&first, &second), since);
    for part in ["controller", "leader-election"] {
        let asked = first.wire.asked();
        assert!(asked.iter().any(|it| it.is_by(part)), "{part}");
    }
}

#[test]
fn a_leader_that_was_frozen_changes_nothing_when_it_thaws() {
    if !has_program("kubectl", "help") {
        return;
    }
    let (served, mut first, second) = in_mid_launch();
    let since = Instant::now();
    first.signal("-STOP");
    served.eventually("the other leads", || second.leads());
    first.signal("-CONT");
    served.eventually("the first ends", || first.has_ended());
    goes_on(&served, (&first, &second), since);
}

#[test]
fn a_leader_that_is_cut_off_changes_nothing_after_its_lease() {
    if !has_program("kubectl", "help") {
        return;
    }
    let (served, mut first, second) = in_mid_launch();
    let since = Instant::now();
    first.wire.cut();
    served.eventually("the first ends", || first.has_ended());
    assert!(since.elapsed() < TAKEOVER_MAX, "it ends by itself");
    goes_on(&served, (&first, &second), since);
}

#[test]
fn a_leader_that_is_asked_to_stop_hands_over_at_once() {
    if !has_program("kubectl", "help") {
        return;
    }
    let (served, mut first, second) = in_mid_launch();
    let since = Instant::now();
    first.signal("-TERM");
    served.eventually("the first ends", || first.has_ended());
    let ended = Instant::now();
    assert!(first.process.wait().unwrap().success());
    goes_on(&served, (&first, &second), since);
    let waited = second.changes()[0].at.duration_since(ended);
    assert!(waited < Duration::from_secs(6), "{waited:?}");
}
