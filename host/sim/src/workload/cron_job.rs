//! CronJobs, for the schedules that simulations use: every so many minutes, or at a minute of each hour.
//!
//! Full cron syntax belongs to the scheduler of a real cluster; a schedule that is not understood makes no job
//! and says so in an event.

use api_server::{NamespacedName, Resource, time_text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{job::finished, owner_reference};
use crate::cluster::SimulatedCluster;
use crate::cluster::object_meta::{is_controlled_by, is_deleting, uid};
use crate::cluster::timers::Timer;
use crate::machine::later;
use crate::status::{SimulatedEvent, write_event};

impl SimulatedCluster {
    pub(super) fn reconcile_cron_job(&mut self, key: &NamespacedName) {
        let Some(cron) = self.object(&Resource::CRON_JOBS, key).cloned() else {
            return;
        };
        if is_deleting(&cron) || cron["spec"]["suspend"] == true {
            return;
        }
        let now = self.clock.now();
        let since = cron["status"]["lastScheduleTime"]
            .as_str()
            .or_else(|| cron["metadata"]["creationTimestamp"].as_str())
            .and_then(|text| text.parse::<Timestamp>().ok())
            .unwrap_or(now);
        let schedule = cron["spec"]["schedule"].as_str().unwrap_or_default();
        let Some(CronRuns { due, next }) = runs(schedule, now) else {
            let message = format!("unparseable schedule \"{schedule}\"");
            self.note_refusal(write_event(
                &self.api,
                &cron,
                SimulatedEvent::UnparseableSchedule,
                &message,
                self.clock.now_seconds(),
            ));
            return;
        };
        self.timers.set_once(next, Timer::CronJob(key.clone()));
        // Of several runs that were missed the last is made up for.
        if due <= since || is_too_late(&cron, due, now) || !self.run_cron_job(key, &cron, due) {
            return;
        }
        self.write_status(
            &Resource::CRON_JOBS,
            key,
            &json!({ "lastScheduleTime": time_text(due) }),
        );
    }

    /// Makes a Job for the run, and says whether those that are not finished let it. One that is held back may come
    /// later: whenever one of its Jobs changes, the CronJob is looked at again.
    fn run_cron_job(&self, key: &NamespacedName, cron: &Value, at: Timestamp) -> bool {
        let mut open = self
            .table(&Resource::JOBS)
            .filter(|(_, job)| finished(job).is_none() && is_controlled_by(job, uid(cron)));
        let policy = &cron["spec"]["concurrencyPolicy"];
        if policy == "Forbid" && open.next().is_some() {
            return false;
        }
        if policy == "Replace" {
            for (_, job) in open {
                self.delete_job(job);
            }
        }
        self.create_cron_run(key, cron, at);
        true
    }

    fn create_cron_run(&self, key: &NamespacedName, cron: &Value, at: Timestamp) {
        let template = &cron["spec"]["jobTemplate"];
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": format!("{}-{}", key.name, at.as_second() / 60),
                "namespace": key.namespace,
                "labels": template["metadata"]["labels"],
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": [owner_reference(cron)],
            },
            "spec": template["spec"],
        });
        self.note_refusal(self.api.create(&Resource::JOBS, &key.namespace, job));
    }
}

/// Whether a run may not start any more.
fn is_too_late(cron: &Value, due: Timestamp, now: Timestamp) -> bool {
    let deadline = cron["spec"]["startingDeadlineSeconds"].as_i64();
    deadline.is_some_and(|seconds| later(due, SignedDuration::from_secs(seconds)) < now)
}

/// The runs of a schedule on both sides of a moment.
#[derive(Debug, PartialEq, Eq)]
struct CronRuns {
    /// The last one until then.
    due: Timestamp,
    /// The first one after it.
    next: Timestamp,
}

fn runs(schedule: &str, now: Timestamp) -> Option<CronRuns> {
    const DAY: i64 = 24 * 60;
    let schedule = match schedule {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        other => other,
    };
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return None;
    };
    if [day, month, weekday] != ["*", "*", "*"] {
        return None;
    }
    let (minutes, hours) = (values(minute, 60)?, values(hour, 24)?);
    let is_run = |at: &i64| {
        minutes.contains(&at.rem_euclid(60)) && hours.contains(&at.div_euclid(60).rem_euclid(24))
    };
    let this = now.as_second().div_euclid(60);
    let time = |minute: i64| Timestamp::from_second(minute * 60).ok();
    Some(CronRuns {
        due: time((this - DAY..=this).rev().find(is_run)?)?,
        next: time((this + 1..=this + DAY).find(is_run)?)?,
    })
}

/// The values of one field: `*`, `*/5`, `3`, `3/5`, `1,2,3`, `9-17`, `9-17/2`.
fn values(field: &str, limit: i64) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (low, high) = match (range, range.split_once('-')) {
            ("*", _) => (0, limit - 1),
            (_, Some((low, high))) => (low.parse().ok()?, high.parse().ok()?),
            (single, None) => {
                let low = single.parse().ok()?;
                // With a step it is where a range begins.
                (low, if step.is_some() { limit - 1 } else { low })
            }
        };
        let step: usize = step.unwrap_or("1").parse().ok().filter(|it| *it > 0)?;
        all.extend(
            (low..=high)
                .step_by(step)
                .filter(|value| (0..limit).contains(value)),
        );
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests;
