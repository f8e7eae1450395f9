//! The answer for people: what is bought and for whom, then what found no place and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use problem_file::{AnswerReport, ClaimReport, Explanation};
use scheduling::pod::Pod;
use scheduling::problem::Problem;

use super::SimulationAnswer;

/// Pods named in a line before the rest is only counted.
const NAMED_MAX: usize = 3;

pub(super) struct Text {
    /// Name of the workload, by pod.
    workloads: BTreeMap<String, String>,
    has_timing: bool,
}

impl Text {
    pub(super) fn new(problem: &Problem, has_timing: bool) -> Self {
        let workloads = problem.pods.iter().filter_map(|pod| {
            let workload = workload(pod)?;
            Some((pod.key.to_string(), workload))
        });
        Self {
            workloads: workloads.collect(),
            has_timing,
        }
    }

    pub(super) fn of(&self, answer: &SimulationAnswer<'_>) -> String {
        let mut text = String::new();
        let report = answer.report;
        let _ = writeln!(
            text,
            "{} of {} pods placed; {} new nodes for {:.4} USD/h",
            report.placed, report.pods, report.nodes, report.price_per_hour
        );
        self.claims(report, &mut text);
        for existing in &report.existing {
            let _ = writeln!(
                text,
                "  on {}: {}",
                existing.node,
                self.names(&existing.pods)
            );
        }
        match &answer.explanations {
            Some(explanations) => self.write_explained(report, explanations, &mut text),
            None => self.write_unexplained(report, &mut text),
        }
        for room in &answer.buffers {
            let reason = match room.message.as_str() {
                "" => room.provisioning,
                message => message,
            };
            let _ = writeln!(
                text,
                "capacitybuffer {}: {} pods, {reason}",
                room.buffer, room.replicas
            );
        }
        scaled_to_zero(answer, &mut text);
        for (pool, reason) in &report.pool_errors {
            let _ = writeln!(text, "nodepool {pool} takes no part: {reason}");
        }
        for policy in report.policies.iter().filter(|it| !it.ends_with(": ok")) {
            let _ = writeln!(text, "policy {policy}");
        }
        for fault in &report.faults {
            let _ = writeln!(text, "fault: {fault}");
        }
        for warning in &report.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        if self.has_timing {
            timing(report, &mut text);
        }
        text
    }

    /// Equal nodes in one line.
    fn claims(&self, report: &AnswerReport, text: &mut String) {
        let mut groups: Vec<(&ClaimReport, String, usize)> = Vec::new();
        for claim in &report.claims {
            let pods = self.names(&claim.pods);
            let known = groups
                .iter_mut()
                .find(|(other, names, _)| *names == pods && is_alike(other, claim));
            match known {
                Some((_, _, count)) => *count += 1,
                None => groups.push((claim, pods, 1)),
            }
        }
        for (claim, pods, count) in groups {
            let _ = writeln!(
                text,
                "  {count:>3} x {} {} {} in {}, {:.4} USD/h each, {} types possible: {pods}",
                claim.node_pool,
                claim.instance_type,
                claim.capacity_type,
                claim.zone,
                claim.price_per_hour,
                claim.instance_type_options,
            );
        }
    }

    fn write_unexplained(&self, report: &AnswerReport, text: &mut String) {
        let mut groups: BTreeMap<(&str, &str, Option<&str>), Vec<String>> = BTreeMap::new();
        for (pod, error) in &report.pod_errors {
            let miss = error.nearest_miss.as_deref();
            let key = (error.reason.as_str(), error.message.as_str(), miss);
            groups.entry(key).or_default().push(pod.clone());
        }
        for ((reason, message, miss), pods) in groups {
            let _ = writeln!(text, "no place for {}: {reason}", self.names(&pods));
            // One line a pool.
            for line in message.split("; ") {
                let _ = writeln!(text, "  {line}");
            }
            if let Some(miss) = miss {
                let _ = writeln!(text, "  nearest miss: {miss}");
            }
        }
    }

    fn write_explained(
        &self,
        report: &AnswerReport,
        explanations: &[Explanation],
        text: &mut String,
    ) {
        for explanation in explanations {
            let pods = self.names(&explanation.pods);
            let _ = writeln!(text, "no place for {pods}: {}", explanation.reason);
            if let Some(message) = &explanation.message {
                let _ = writeln!(text, "  {message}");
            }
            pools(explanation, text);
        }
        let explained = |pod: &String| explanations.iter().any(|it| it.pods.contains(pod));
        for (pod, error) in report.pod_errors.iter().filter(|(pod, _)| !explained(pod)) {
            let (reason, message) = (&error.reason, &error.message);
            let _ = writeln!(text, "no place for {pod}: {reason}: {message}");
        }
    }

    /// Pods of one workload by its name and their number, others by their own.
    fn names(&self, pods: &[String]) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in pods {
            let name = self.workloads.get(pod).unwrap_or(pod);
            *counts.entry(name).or_default() += 1;
        }
        let mut names: Vec<String> = counts
            .iter()
            .take(NAMED_MAX)
            .map(|(name, count)| match count {
                1 => (*name).to_owned(),
                _ => format!("{count} x {name}"),
            })
            .collect();
        let rest: usize = counts.values().skip(NAMED_MAX).sum();
        if rest > 0 {
            names.push(format!("{rest} more"));
        }
        names.join(", ")
    }
}

fn is_alike(a: &ClaimReport, b: &ClaimReport) -> bool {
    a.node_pool == b.node_pool
        && a.instance_type == b.instance_type
        && a.zone == b.zone
        && a.capacity_type == b.capacity_type
}

/// What each pool says.
fn pools(explanation: &Explanation, text: &mut String) {
    for pool in &explanation.pools {
        let _ = writeln!(text, "  nodepool {}: {}", pool.node_pool, pool.cause);
        for (index, step) in pool.funnel.iter().enumerate() {
            let (left, rule, from) = (step.left, &step.rule, step.from);
            let line = match index {
                0 => rule.clone(),
                _ => format!("left by {rule} ({from})"),
            };
            let _ = writeln!(text, "    {left:>5} {line}");
        }
        if let Some(miss) = &pool.nearest_miss {
            let _ = writeln!(text, "    nearest miss: {miss}");
        }
    }
}

fn scaled_to_zero(answer: &SimulationAnswer<'_>, text: &mut String) {
    for probe in &answer.scaled_to_zero {
        let head = format!("scaled to zero: a pod of {}", probe.workload);
        let price = probe.price_per_hour.unwrap_or_default();
        let _ = match (&probe.place, &probe.instance_type, &probe.reason) {
            (Some(pool), Some(instance_type), _) => writeln!(
                text,
                "{head} would go to nodepool {pool}, {instance_type} for {price:.4} USD/h"
            ),
            (Some(node), None, _) => writeln!(text, "{head} would go to node {node}"),
            (None, _, Some(reason)) => writeln!(text, "{head} would find no place: {reason}"),
            (None, _, None) => Ok(()),
        };
        if let Some(explanation) = &probe.explanation {
            pools(explanation, text);
        } else if let Some(miss) = &probe.nearest_miss {
            let _ = writeln!(text, "  nearest miss: {miss}");
        }
    }
}

fn timing(report: &AnswerReport, text: &mut String) {
    let timing = &report.timing;
    let _ = writeln!(
        text,
        "setup {:.4} s (ranking policy {:.4} s), packing {:.4} s, {:.0} pods/s, {} MiB at most",
        timing.setup_seconds,
        timing.policy_seconds,
        timing.solve_seconds,
        timing.pods_per_second,
        timing.peak_rss_bytes >> 20
    );
}

/// Namespace and name of the workload, a Deployment's without the hash of its ReplicaSet.
fn workload(pod: &Pod) -> Option<String> {
    let owner = pod.shape.owner.as_ref()?;
    let hash = pod.shape.labels.get("pod-template-hash");
    let name = hash.and_then(|hash| owner.name.strip_suffix(&format!("-{hash}")));
    Some(format!(
        "{}/{}",
        pod.key.namespace,
        name.unwrap_or(&owner.name)
    ))
}
