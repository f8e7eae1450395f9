//! The kubelets of all nodes: pods start, finish and stop after seeded delays.
//!
//! One write starts a pod and one removes it; nothing is reported in between, so that ten thousand pods cost
//! ten thousand writes. A kubelet whose instance is gone does nothing. Answers to kubelet's pod workers.

use api_server::{DeleteOptions, NamespacedName, Resource, StatusError, time_text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::SimulatedCluster;
use crate::cluster::pod::{PodRecord, SimulatedPhase};
use crate::cluster::timers::Timer;
use crate::random::hash;
use crate::status::set_condition;
use crate::world::SimulatedWorld;

/// Annotation: the containers finish after so many seconds.
const RUN_SECONDS_ANNOTATION: &str = "sim.mortise.dev/run-seconds";

/// Annotation: the containers take so many seconds to stop, within their grace period.
const STOP_SECONDS_ANNOTATION: &str = "sim.mortise.dev/stop-seconds";

/// How long a pod of a Job runs when nothing else is said, in seconds.
const JOB_RUN_SECONDS: (u64, u64) = (20, 120);

impl SimulatedCluster {
    /// A pod was bound, or someone deletes it: its kubelet sets to work.
    pub(crate) fn kubelet_sees(
        &mut self,
        key: &NamespacedName,
        pod: &PodRecord,
        old: Option<&PodRecord>,
    ) {
        if pod.node.is_none() {
            return;
        }
        let now = self.clock.now();
        let old = old.filter(|old| old.uid == pod.uid);
        if pod.is_deleting() {
            if old.is_none_or(|old| !old.is_deleting() || old.deletion != pod.deletion) {
                let at = self.stop_time(pod, now);
                self.timers
                    .set(at, Timer::PodStops(key.clone(), pod.uid.clone()));
            }
        } else if pod.phase == SimulatedPhase::Pending && old.is_none_or(|old| old.node.is_none()) {
            let at = after_millis(now, 800 + hash(self.seed, &["start", &pod.uid]) % 2_400);
            self.timers
                .set(at, Timer::PodStarts(key.clone(), pod.uid.clone()));
        }
    }

    /// Containers stop in a second or two, or as annotated, but never later than the grace period ends.
    fn stop_time(&self, pod: &PodRecord, now: Timestamp) -> Timestamp {
        let annotated = pod
            .annotation(STOP_SECONDS_ANNOTATION)
            .and_then(|s| s.parse::<u64>().ok());
        let millis = annotated.map_or_else(
            || 400 + hash(self.seed, &["stop", &pod.uid]) % 1_600,
            |seconds| seconds.saturating_mul(1_000),
        );
        let wish = after_millis(now, millis);
        pod.deletion
            .map_or(wish, |deadline| wish.min(deadline))
            .max(now)
    }

    /// The kubelet of a node lives: the node is there and its instance runs.
    fn kubelet_lives(&self, node: &str) -> bool {
        let Some(record) = self.nodes.get(node) else {
            return false;
        };
        let Some(id) = &record.instance_id else {
            return true;
        };
        // A node that somebody else made has no instance here; its kubelet is taken to live.
        self.ec2
            .instance(id)
            .is_none_or(|instance| instance.shutting_down_at.is_none())
    }

    /// All pods that wait on a node that became ready.
    pub(crate) fn start_pods_of(&mut self, node: &str) {
        let Some(record) = self.nodes.get(node) else {
            return;
        };
        let now = self.clock.now();
        let waiting = record.pods.iter().filter_map(|key| self.pods.get(key));
        let waiting: Vec<(NamespacedName, String)> = waiting
            .filter(|pod| pod.phase == SimulatedPhase::Pending && !pod.is_deleting())
            .map(|pod| (pod.key.clone(), pod.uid.clone()))
            .collect();
        for (key, uid) in waiting {
            let at = after_millis(now, 800 + hash(self.seed, &["start", &uid]) % 2_400);
            self.timers.set(at, Timer::PodStarts(key, uid));
        }
    }

    pub(crate) fn pod_starts(&mut self, key: &NamespacedName, uid: &str) {
        let Some(pod) = self
            .pods
            .get(key)
            .filter(|pod| pod.uid == uid && !pod.is_deleting())
        else {
            return;
        };
        let Some(node) = pod
            .node
            .clone()
            .filter(|_| pod.phase == SimulatedPhase::Pending)
        else {
            return;
        };
        // A node that is not ready yet starts its pods when it is.
        if !self.nodes.get(&node).is_some_and(|node| node.ready) || !self.kubelet_lives(&node) {
            return;
        }
        let run = self.run_time(pod);
        let host_ip = self.nodes[&node]
            .address
            .clone()
            .unwrap_or_else(|| "10.0.0.1".to_owned());
        let host_network = pod.host_network;
        let pod_ip = if host_network {
            host_ip.clone()
        } else {
            self.next_pod_ip()
        };
        let now = self.clock.now_seconds();
        self.note_refusal(self.api.modify_status(&Resource::PODS, key, |pod| {
            start_status(pod, &host_ip, &pod_ip, now);
        }));
        if let Some(seconds) = run {
            let at = after_millis(now, seconds.saturating_mul(1_000));
            self.timers
                .set(at, Timer::PodCompletes(key.clone(), uid.to_owned()));
        }
    }

    /// Seconds after which the containers are done, for those that ever are.
    fn run_time(&self, pod: &PodRecord) -> Option<u64> {
        if let Some(seconds) = pod.annotation(RUN_SECONDS_ANNOTATION) {
            return seconds.parse().ok();
        }
        let (low, high) = JOB_RUN_SECONDS;
        let of_job = pod.owner.as_ref().is_some_and(|owner| owner.kind == "Job");
        of_job.then(|| low + hash(self.seed, &["run", &pod.uid]) % (high - low + 1))
    }

    pub(crate) fn pod_completes(&mut self, key: &NamespacedName, uid: &str) {
        let Some(pod) = self.pods.get(key).filter(|pod| pod.uid == uid) else {
            return;
        };
        let Some(node) = pod
            .node
            .clone()
            .filter(|_| pod.phase == SimulatedPhase::Running)
        else {
            return;
        };
        if !self.kubelet_lives(&node) {
            return;
        }
        let now = self.clock.now_seconds();
        self.note_refusal(
            self.api
                .modify_status(&Resource::PODS, key, |pod| complete_status(pod, now)),
        );
    }

    pub(crate) fn pod_stops(&mut self, key: &NamespacedName, uid: &str) {
        let Some(pod) = self
            .pods
            .get(key)
            .filter(|pod| pod.uid == uid && pod.is_deleting())
        else {
            return;
        };
        if pod
            .node
            .clone()
            .is_some_and(|node| !self.kubelet_lives(&node))
        {
            return;
        }
        let options = DeleteOptions {
            uid: Some(uid.to_owned()),
            ..DeleteOptions::now()
        };
        self.note_refusal(
            self.api
                .delete(&Resource::PODS, &key.namespace, &key.name, &options),
        );
    }

    /// Collects the pods of a node that is gone, as pod garbage collection does.
    pub(crate) fn collect_pods(&mut self, node: &str) {
        if self.nodes.contains_key(node) {
            return;
        }
        let lost = self
            .pods
            .values()
            .filter(|pod| pod.node.as_deref() == Some(node));
        let lost: Vec<(NamespacedName, String)> =
            lost.map(|pod| (pod.key.clone(), pod.uid.clone())).collect();
        for (key, uid) in lost {
            let options = DeleteOptions {
                uid: Some(uid),
                ..DeleteOptions::now()
            };
            self.note_refusal(self.api.delete(
                &Resource::PODS,
                &key.namespace,
                &key.name,
                &options,
            ));
        }
    }

    fn next_pod_ip(&mut self) -> String {
        self.pod_ips += 1;
        // The shared address space, as with the VPC CNI's custom networking.
        let n = self.pod_ips;
        format!("100.{}.{}.{}", 64 + n / 65_536 % 64, n / 256 % 256, n % 256)
    }
}

impl SimulatedWorld {
    /// Ends the containers of a pod now, `Succeeded` or `Failed`.
    pub fn end_pod(&self, key: &NamespacedName, phase: &str) -> Result<(), StatusError> {
        let now = self.clock().now_seconds();
        let ended = self.api().modify_status(&Resource::PODS, key, |pod| {
            complete_status(pod, now);
            pod["status"]["phase"] = phase.into();
        });
        ended.map(drop)
    }
}

/// A moment some milliseconds later.
pub(crate) fn after_millis(at: Timestamp, millis: u64) -> Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    at.checked_add(SignedDuration::from_millis(millis))
        .unwrap_or(at)
}

fn start_status(pod: &mut Value, host_ip: &str, pod_ip: &str, now: Timestamp) {
    let running = json!({ "running": { "startedAt": time_text(now) } });
    let statuses = container_statuses(&pod["spec"]["containers"], &running, true);
    let done = json!({ "terminated": {
        "exitCode": 0, "reason": "Completed",
        "startedAt": time_text(now), "finishedAt": time_text(now),
    }});
    let init = pod["spec"]["initContainers"].as_array().map(|containers| {
        let status = |container: &Value| {
            let sidecar = container["restartPolicy"] == "Always";
            let state = if sidecar { &running } else { &done };
            container_status(container, state, true)
        };
        containers.iter().map(status).collect::<Vec<_>>()
    });
    let status = &mut pod["status"];
    status["phase"] = "Running".into();
    status["hostIP"] = host_ip.into();
    status["podIP"] = pod_ip.into();
    status["podIPs"] = json!([{ "ip": pod_ip }]);
    status["startTime"] = time_text(now).into();
    status["containerStatuses"] = statuses;
    if let Some(init) = init {
        status["initContainerStatuses"] = init.into();
    }
    for type_ in [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
    ] {
        set_condition(status, json!({ "type": type_, "status": "True" }), now);
    }
}

fn complete_status(pod: &mut Value, now: Timestamp) {
    let started = pod["status"]["startTime"].clone();
    let state = json!({ "terminated": {
        "exitCode": 0, "reason": "Completed",
        "startedAt": started, "finishedAt": time_text(now),
    }});
    let statuses = container_statuses(&pod["spec"]["containers"], &state, false);
    let status = &mut pod["status"];
    status["phase"] = "Succeeded".into();
    status["containerStatuses"] = statuses;
    for type_ in ["Ready", "ContainersReady"] {
        let condition = json!({ "type": type_, "status": "False", "reason": "PodCompleted" });
        set_condition(status, condition, now);
    }
}

fn container_statuses(containers: &Value, state: &Value, ready: bool) -> Value {
    let containers = containers.as_array().into_iter().flatten();
    containers
        .map(|container| container_status(container, state, ready))
        .collect()
}

fn container_status(container: &Value, state: &Value, ready: bool) -> Value {
    json!({
        "name": container["name"], "image": container["image"], "imageID": "",
        "ready": ready, "started": ready, "restartCount": 0, "state": state,
    })
}
