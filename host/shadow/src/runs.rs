//! How long pods ran that ended in the cluster, so that those of the shadow work as long for the same end.

use std::collections::BTreeMap;

use apis::ObjectKey;
use jiff::{SignedDuration, Timestamp};

/// A pod that ended in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) lasted: SignedDuration,
    /// Phase in which the pod ended, `Succeeded` or `Failed`.
    pub(crate) phase: String,
}

/// A pod of the shadow that runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Running {
    pub(crate) since: Timestamp,
    pub(crate) pod: ObjectKey,
}

/// Runs that no pod of the shadow has done yet, by what the pods are of: a Job, or a pod itself.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    of: BTreeMap<ObjectKey, Vec<Run>>,
}

impl Runs {
    pub(crate) fn add(&mut self, group: ObjectKey, run: Run) {
        self.of.entry(group).or_default().push(run);
    }

    /// Whether the shadow has yet to do any of them.
    pub(crate) fn is_open(&self, group: &ObjectKey) -> bool {
        self.of.contains_key(group)
    }

    /// What has open runs.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &ObjectKey> {
        self.of.keys()
    }

    /// Which pods end now: who runs for longest takes the shortest run.
    pub(crate) fn due(
        &mut self,
        group: &ObjectKey,
        mut running: Vec<Running>,
        now: Timestamp,
    ) -> Vec<(ObjectKey, String)> {
        let Some(runs) = self.of.get_mut(group) else {
            return Vec::new();
        };
        runs.sort();
        running.sort();
        let done = |(run, it): &(&Run, &Running)| now.duration_since(it.since) >= run.lasted;
        let ended: Vec<(ObjectKey, String)> = runs
            .iter()
            .zip(&running)
            .take_while(done)
            .map(|(run, it)| (it.pod.clone(), run.phase.clone()))
            .collect();
        runs.drain(..ended.len());
        if runs.is_empty() {
            self.of.remove(group);
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn run(seconds: i64) -> Run {
        Run {
            lasted: SignedDuration::from_secs(seconds),
            phase: "Succeeded".to_owned(),
        }
    }

    #[test]
    fn a_pod_that_started_later_ends_later_by_as_much() {
        let (job, pod) = (ObjectKey::new("a", "job"), ObjectKey::new("a", "job-x"));
        let mut runs = Runs::default();
        runs.add(job.clone(), run(30));
        let running = || {
            vec![Running {
                since: at(100),
                pod: pod.clone(),
            }]
        };
        assert!(
            runs.due(&job, Vec::new(), at(120)).is_empty(),
            "nobody runs"
        );
        assert!(
            runs.due(&job, running(), at(129)).is_empty(),
            "it has a second to go"
        );
        assert_eq!(
            runs.due(&job, running(), at(130)),
            [(pod.clone(), "Succeeded".to_owned())]
        );
        assert!(!runs.is_open(&job));
    }

    #[test]
    fn runs_are_dealt_out_shortest_first_to_who_runs_for_longest() {
        let job = ObjectKey::new("a", "job");
        let mut runs = Runs::default();
        for seconds in [50, 10] {
            runs.add(job.clone(), run(seconds));
        }
        let pod = |name: &str, since: i64| Running {
            since: at(since),
            pod: ObjectKey::new("a", name),
        };
        let ended = runs.due(&job, vec![pod("late", 95), pod("early", 80)], at(100));
        assert_eq!(
            ended,
            [(ObjectKey::new("a", "early"), "Succeeded".to_owned())]
        );
        assert!(runs.is_open(&job), "one is left");
    }
}
