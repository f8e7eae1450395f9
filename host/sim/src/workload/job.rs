//! Jobs: pods that run to their end.
//!
//! How long the pods run is the kubelet's (`kubelet.rs`). Answers to `pkg/controller/job` of Kubernetes.

use std::collections::BTreeSet;

use api_server::{DeleteOptions, NamespacedName, Propagation, Resource, time_text};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{BURST_MAX, count, integer};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{is_deleting, uid};
use crate::cluster::pod::{PodRecord, SimulatedPhase};
use crate::cluster::timers::Timer;
use crate::machine::later;
use crate::status::set_condition;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How far a Job has come, by its pods.
struct JobProgress {
    active: i64,
    ready: i64,
    succeeded: i64,
    failed: i64,
    is_done: bool,
    gave_up: bool,
}

impl SimulatedCluster {
    pub(super) fn reconcile_job(&mut self, key: &NamespacedName) {
        let Some(job) = self.object(&Resource::JOBS, key).cloned() else {
            return;
        };
        if is_deleting(&job) || finished(&job).is_some() {
            return;
        }
        let spec = &job["spec"];
        let pods: Vec<&PodRecord> = self.pods_of(uid(&job)).collect();
        let of = |phase: SimulatedPhase| pods.iter().filter(move |pod| pod.phase == phase);
        let (succeeded, failed) = (
            count(of(SimulatedPhase::Succeeded)),
            count(of(SimulatedPhase::Failed)),
        );
        let parallelism = integer(&spec["parallelism"], 1);
        let completions = spec["completions"].as_i64();
        let suspended = spec["suspend"] == true;
        let live: Vec<&&PodRecord> = pods.iter().filter(|pod| pod.is_live()).collect();
        let active = count(live.iter());
        let done = match completions {
            Some(completions) => succeeded >= completions,
            // A work queue: one success, and the rest has drained.
            None => succeeded > 0 && active == 0,
        };
        let gave_up = failed > integer(&spec["backoffLimit"], 6);
        if suspended || gave_up {
            for pod in &live {
                self.delete_pod(pod);
            }
        } else if !done {
            let open = completions.map_or(i64::MAX, |completions| completions - succeeded);
            let more = if completions.is_none() && succeeded > 0 {
                0
            } else {
                parallelism.min(open) - active
            };
            let surplus = usize::try_from(-more).unwrap_or_default().min(BURST_MAX);
            for pod in live.iter().rev().take(surplus) {
                self.delete_pod(pod);
            }
            let more = usize::try_from(more).unwrap_or_default().min(BURST_MAX);
            self.create_job_pods(&job, &pods, more);
        }
        let ready = count(live.iter().filter(|pod| pod.is_ready()));
        let progress = JobProgress {
            active: if suspended { 0 } else { active },
            ready,
            succeeded,
            failed,
            is_done: done,
            gave_up,
        };
        self.job_status(key, &job, &progress);
    }

    fn create_job_pods(&self, job: &Value, pods: &[&PodRecord], more: usize) {
        let name = job["metadata"]["name"].clone();
        let indexed = job["spec"]["completionMode"] == "Indexed";
        let taken: BTreeSet<i64> = pods
            .iter()
            .filter(|pod| pod.phase == SimulatedPhase::Succeeded || pod.is_live())
            .filter_map(|pod| pod.annotation(INDEX)?.parse().ok())
            .collect();
        let mut free = (0..i64::MAX).filter(|index| !taken.contains(index));
        for _ in 0..more {
            let index = free.next().unwrap_or_default();
            self.create_pod(job, &job["spec"]["template"], |pod| {
                let labels = &mut pod["metadata"]["labels"];
                labels["batch.kubernetes.io/job-name"] = name.clone();
                labels["job-name"] = name.clone();
                labels["batch.kubernetes.io/controller-uid"] = uid(job).into();
                if indexed {
                    let base = name.as_str().unwrap_or_default();
                    pod["metadata"]["generateName"] = format!("{base}-{index}-").into();
                    pod["metadata"]["annotations"][INDEX] = index.to_string().into();
                    pod["metadata"]["labels"][INDEX] = index.to_string().into();
                }
            });
        }
    }

    fn job_status(&mut self, key: &NamespacedName, job: &Value, progress: &JobProgress) {
        let JobProgress {
            active,
            ready,
            succeeded,
            failed,
            is_done,
            gave_up,
        } = *progress;
        let now = self.clock.now_seconds();
        let mut fields = json!({
            "active": active, "ready": ready, "succeeded": succeeded, "failed": failed,
            "startTime": job["status"]["startTime"],
        });
        if fields["startTime"].is_null() {
            fields["startTime"] = time_text(now).into();
        }
        if is_done || gave_up {
            fields["conditions"] = job["status"]["conditions"].clone();
            let condition = if is_done {
                fields["completionTime"] = time_text(now).into();
                json!({ "type": "Complete", "status": "True", "reason": "CompletionsReached",
                    "message": "Reached expected number of succeeded pods" })
            } else {
                json!({ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                    "message": "Job has reached the specified backoff limit" })
            };
            set_condition(&mut fields, condition, now);
            if let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_i64() {
                let at = later(now, SignedDuration::from_secs(seconds));
                self.timers.set(at, Timer::JobExpires(key.clone()));
            }
        }
        self.write_status(&Resource::JOBS, key, &fields);
    }

    pub(crate) fn expire_job(&self, key: &NamespacedName) {
        let Some(job) = self.object(&Resource::JOBS, key) else {
            return;
        };
        if finished(job).is_some() {
            self.delete_job(job);
        }
    }

    /// Deletes a Job, and its pods after it.
    pub(super) fn delete_job(&self, job: &Value) {
        let key = NamespacedName::of(job);
        let options = DeleteOptions {
            uid: Some(uid(job).to_owned()),
            propagation: Propagation::Background,
            ..DeleteOptions::default()
        };
        self.note_refusal(
            self.api
                .delete(&Resource::JOBS, &key.namespace, &key.name, &options),
        );
    }
}

/// Whether a job ended, and how.
pub(super) fn finished(job: &Value) -> Option<&str> {
    let conditions = job["status"]["conditions"].as_array()?;
    let ended = conditions.iter().find(|condition| {
        condition["status"] == "True"
            && (condition["type"] == "Complete" || condition["type"] == "Failed")
    });
    ended.and_then(|condition| condition["type"].as_str())
}
