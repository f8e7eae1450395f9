//! Conditions that count as sick: the provider's policies, checked once, and what they say of a node at a moment.
//!
//! Matching needs no clock; resolving takes the moment as an argument. Answers to the repair policies of Karpenter's
//! `pkg/cloudprovider/types.go` and to `pkg/controllers/disruption/repair`.

use std::collections::BTreeSet;
use std::fmt;

use apis::duration::GoDuration;
use apis::{RepairAction, RepairPolicy};
use jiff::{SignedDuration, Timestamp};
use regex::Regex;
use state::StateNode;

const PRIORITY_MAX: u32 = 100;
/// A node overtakes a rival of the next higher rank after so many minutes.
const MINUTES_PER_RANK: f64 = 30.0;

/// A fault in a set of policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFault {
    /// The set has no policy.
    #[error("the provider names no repair policy")]
    Empty,
    #[error("repair policy {0}: the condition type is empty")]
    NoCondition(usize),
    /// The status is neither `True`, `False` nor `Unknown`.
    #[error("repair policy {0}: status {1:?} is neither True, False nor Unknown")]
    Status(usize, String),
    /// The expression does not compile.
    #[error("repair policy {0}: reason {1:?} is not a regular expression")]
    Reason(usize, String),
    /// A duration is negative.
    #[error("repair policy {0}: durations may not be negative")]
    Negative(usize),
    /// Priority out of range.
    #[error("repair policy {0}: priority {1} is above 100")]
    Priority(usize, u32),
    /// Not exactly one policy without a reason.
    #[error("{0} repair policies have no reason; exactly one must be the fallback")]
    Fallbacks(usize),
    #[error("the fallback repair policy must replace the node")]
    FallbackReboots,
}

/// All that is wrong with a set of policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("RepairPolicies: {}", joined(.0))]
pub struct InvalidRepairPolicies(pub Vec<PolicyFault>);

fn joined(faults: &[PolicyFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}

/// Policies that were found sound.
#[derive(Debug, Clone)]
pub struct RepairPolicies {
    policies: Vec<CompiledPolicy>,
    fallback: usize,
}

#[derive(Debug, Clone)]
struct CompiledPolicy {
    policy: RepairPolicy,
    /// `None` for the fallback.
    reason: Option<Regex>,
    rank: u32,
}

/// A condition of a node that a policy is about.
#[derive(Debug, Clone, Copy)]
struct ConditionMatch<'a> {
    policy: &'a CompiledPolicy,
    condition: &'a str,
    reason: &'a str,
    /// When the status came about, or the node.
    since: Timestamp,
}

/// A condition for which a node is replaced, by one policy alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverdueCondition<'a> {
    /// Type of the condition.
    pub condition: &'a str,
    /// When it has been tolerated for long enough.
    pub since: Timestamp,
    /// How long the drain may take; none where the claim says it.
    pub bound: Option<GoDuration>,
}

/// A condition that makes a node sick, as the node tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFault {
    /// Type of the condition.
    pub condition: String,
    /// Its reason.
    pub reason: String,
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.condition, self.reason)
    }
}

/// Action that a node needs now, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Repair to be done.
    pub action: RepairAction,
    /// The condition that decided.
    pub fault: NodeFault,
    /// The shortest bound of all policies that apply.
    pub bound: Option<GoDuration>,
    /// Urgency: the node with the highest score goes first.
    pub score: f64,
}

impl RepairPolicies {
    /// Checks the policies; all that is wrong with them otherwise.
    pub fn new(policies: Vec<RepairPolicy>) -> Result<Self, InvalidRepairPolicies> {
        let mut faults = Vec::new();
        let mut reasons = Vec::with_capacity(policies.len());
        for (at, policy) in policies.iter().enumerate() {
            let reason = reason_of(policy);
            faults.extend(policy_faults(at, policy, reason.is_err()));
            // What is at fault is in nobody's hands: no set comes of it.
            reasons.extend(reason);
        }
        if policies.is_empty() {
            faults.push(PolicyFault::Empty);
        }
        let fallbacks: Vec<usize> = (0..)
            .zip(&policies)
            .filter(|(_, it)| it.reason_regex.is_empty())
            .map(|(at, _)| at)
            .collect();
        if fallbacks.len() != 1 && !policies.is_empty() {
            faults.push(PolicyFault::Fallbacks(fallbacks.len()));
        }
        let replaces = |at: &usize| {
            policies
                .get(*at)
                .is_some_and(|it| it.action == RepairAction::Replace)
        };
        if fallbacks.len() == 1 && !fallbacks.iter().all(replaces) {
            faults.push(PolicyFault::FallbackReboots);
        }
        let priorities: BTreeSet<u32> = policies.iter().map(|it| it.priority).collect();
        let compile = |(policy, reason): (RepairPolicy, Option<Regex>)| CompiledPolicy {
            reason,
            rank: u32::try_from(priorities.range(..policy.priority).count()).unwrap_or(0),
            policy,
        };
        match fallbacks.first() {
            Some(&fallback) if faults.is_empty() => Ok(Self {
                policies: policies.into_iter().zip(reasons).map(compile).collect(),
                fallback,
            }),
            Some(_) | None => Err(InvalidRepairPolicies(faults)),
        }
    }

    /// Whether a condition of the node is one that policies know, however long and for whatever reason.
    pub(crate) fn is_unhealthy(&self, node: &StateNode) -> bool {
        let conditions = node.node().into_iter().flat_map(|it| &it.conditions);
        conditions
            .into_iter()
            .any(|it| self.knows(&it.condition_type, &it.status))
    }

    /// Action that the node needs at a moment, if any.
    pub fn diagnose(&self, node: &StateNode, now: Timestamp) -> Option<Diagnosis> {
        let conditions = node.claim().map(|it| it.conditions);
        let not_before = conditions.and_then(|it| it.rebooted_at);
        let eligible: Vec<(ConditionMatch<'_>, Timestamp)> = self
            .matches(node)
            .into_iter()
            .filter_map(|it| {
                let start = not_before.map_or(it.since, |at| at.max(it.since));
                let toleration = it.policy.policy.toleration.to_signed_duration();
                let at = start.checked_add(toleration).ok()?;
                (at <= now).then_some((it, at))
            })
            .collect();
        let action = eligible.iter().map(|it| it.0.policy.policy.action).max()?;
        let driving = eligible
            .iter()
            .filter(|it| it.0.policy.policy.action == action)
            .min_by(|a, b| {
                let priority = |it: &(ConditionMatch<'_>, Timestamp)| it.0.policy.policy.priority;
                let by_priority = priority(b).cmp(&priority(a));
                by_priority
                    .then(a.1.cmp(&b.1))
                    .then(a.0.condition.cmp(b.0.condition))
            })?;
        let bounds = eligible
            .iter()
            .filter_map(|it| it.0.policy.policy.termination_grace_period);
        let urgency = |(it, at): &(ConditionMatch<'_>, Timestamp)| {
            let minutes = now.duration_since(*at).as_secs_f64() / 60.0;
            f64::from(it.policy.rank) + minutes / MINUTES_PER_RANK
        };
        Some(Diagnosis {
            action,
            fault: NodeFault {
                condition: driving.0.condition.to_owned(),
                reason: driving.0.reason.to_owned(),
            },
            bound: bounds.min(),
            score: eligible.iter().map(urgency).fold(0.0, f64::max),
        })
    }

    /// Repair as it was before it was a disruption method: each policy by itself, whenever the node came or was last
    /// rebooted. Nothing reboots, and a policy without a reason is one for every reason.
    pub fn replacements<'a>(
        &'a self,
        node: &'a StateNode,
    ) -> impl Iterator<Item = OverdueCondition<'a>> {
        let conditions = node.node().into_iter().flat_map(|it| &it.conditions);
        conditions.flat_map(move |condition| {
            let policies = self.policies.iter().filter(|it| {
                let reason = it.reason.as_ref();
                it.policy.action == RepairAction::Replace
                    && it.policy.condition_type == condition.condition_type
                    && it.policy.condition_status == condition.status
                    && reason.is_none_or(|it| it.is_match(&condition.reason))
            });
            policies.filter_map(|CompiledPolicy { policy, .. }| {
                let toleration = policy.toleration.to_signed_duration();
                Some(OverdueCondition {
                    condition: &condition.condition_type,
                    since: condition.since?.checked_add(toleration).ok()?,
                    bound: policy.termination_grace_period,
                })
            })
        })
    }

    /// Every policy of the condition's type and status whose reason matches; the fallback where none does.
    fn matches<'a>(&'a self, node: &'a StateNode) -> Vec<ConditionMatch<'a>> {
        let Some(node) = node.node() else {
            return Vec::new();
        };
        let mut matches = Vec::new();
        for condition in &node.conditions {
            if !self.knows(&condition.condition_type, &condition.status) {
                continue;
            }
            let since = condition.since.max(node.created_at);
            let of = |policy| ConditionMatch {
                policy,
                condition: condition.condition_type.as_str(),
                reason: condition.reason.as_str(),
                since: since.unwrap_or(Timestamp::UNIX_EPOCH),
            };
            let before = matches.len();
            let specific = self.policies.iter().filter(|it| {
                it.policy.condition_type == condition.condition_type
                    && it.policy.condition_status == condition.status
                    && it
                        .reason
                        .as_ref()
                        .is_some_and(|reason| reason.is_match(&condition.reason))
            });
            matches.extend(specific.map(of));
            if matches.len() == before {
                matches.extend(self.policies.get(self.fallback).map(of));
            }
        }
        matches
    }

    fn knows(&self, kind: &str, status: &str) -> bool {
        self.policies
            .iter()
            .any(|it| it.policy.condition_type == kind && it.policy.condition_status == status)
    }
}

/// The expression of a policy's reasons; none of one for every reason.
fn reason_of(policy: &RepairPolicy) -> Result<Option<Regex>, regex::Error> {
    match policy.reason_regex.as_str() {
        "" => Ok(None),
        text => Regex::new(text).map(Some),
    }
}

fn policy_faults(at: usize, policy: &RepairPolicy, is_reason_at_fault: bool) -> Vec<PolicyFault> {
    let mut faults = Vec::new();
    if policy.condition_type.is_empty() {
        faults.push(PolicyFault::NoCondition(at));
    }
    if !["True", "False", "Unknown"].contains(&policy.condition_status.as_str()) {
        faults.push(PolicyFault::Status(at, policy.condition_status.clone()));
    }
    if is_reason_at_fault {
        faults.push(PolicyFault::Reason(at, policy.reason_regex.clone()));
    }
    let is_negative = |it: GoDuration| it.to_signed_duration() < SignedDuration::ZERO;
    if is_negative(policy.toleration) || policy.termination_grace_period.is_some_and(is_negative) {
        faults.push(PolicyFault::Negative(at));
    }
    if policy.priority > PRIORITY_MAX {
        faults.push(PolicyFault::Priority(at, policy.priority));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(reason: &str) -> RepairPolicy {
        RepairPolicy {
            condition_type: "Ready".to_owned(),
            condition_status: "False".to_owned(),
            reason_regex: reason.to_owned(),
            toleration: GoDuration::from_seconds(60),
            termination_grace_period: None,
            priority: 0,
            action: RepairAction::Replace,
        }
    }

    #[test]
    fn every_fault_of_a_set_is_told_at_once() {
        let rebooting = RepairPolicy {
            action: RepairAction::Reboot,
            ..policy("")
        };
        let wrong = RepairPolicy {
            condition_type: String::new(),
            condition_status: "Maybe".to_owned(),
            priority: 101,
            ..policy("[")
        };
        let cases: [(Vec<RepairPolicy>, &[&str]); 5] = [
            (vec![], &["names no repair policy"]),
            (vec![policy("a")], &["0 repair policies have no reason"]),
            (
                vec![policy(""), policy("")],
                &["2 repair policies have no reason"],
            ),
            (vec![rebooting], &["must replace the node"]),
            (
                vec![policy(""), wrong],
                &["type is empty", "\"Maybe\"", "\"[\"", "priority 101"],
            ),
        ];
        for (policies, expected) in cases {
            let InvalidRepairPolicies(faults) = RepairPolicies::new(policies).unwrap_err();
            assert_eq!(faults.len(), expected.len(), "{faults:?}");
            for (fault, words) in faults.iter().zip(expected) {
                assert!(fault.to_string().contains(words), "{fault}");
            }
        }
        assert!(RepairPolicies::new(vec![policy(""), policy(".*")]).is_ok());
    }
}
