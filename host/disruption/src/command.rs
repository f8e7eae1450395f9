//! Commands, the decisions of a disruption loop: nodes that go, and claims that come in their place.
//!
//! Values only. Answers to Karpenter's `disruption/types.go` (`Command`).

use apis::duration::GoDuration;
use apis::nodepool::DisruptionReason;
use apis::{CapacityType, NodeRef};
use hooks::columns::saturated;
use hooks::disruption::Verdict;
use scheduling::solution::NewClaim;

use crate::candidate::Candidate;
use crate::method::Method;
use crate::repair::policies::NodeFault;

/// How the nodes of a command go.
#[derive(Debug, Clone, PartialEq)]
pub enum Execution {
    /// Once the nodes of these claims are ready; at once where nothing need come in their place.
    ReplaceFirst(Vec<NewClaim>),
    /// They go first, as nothing could come before there is room for it.
    TerminateFirst(TerminateFirst),
    /// The one node stays and reboots.
    Reboot,
}

impl Execution {
    /// Nothing need come in their place.
    pub(crate) const DELETE: Self = Self::ReplaceFirst(Vec::new());

    /// Claims to make first.
    pub(crate) fn replacements(&self) -> &[NewClaim] {
        match self {
            Self::ReplaceFirst(replacements) => replacements,
            Self::TerminateFirst(_) | Self::Reboot => &[],
        }
    }
}

/// Why a node goes before its replacement comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminateFirst {
    /// The only place for its pods is the slot it holds itself in a full capacity reservation.
    NoReservedCapacity,
    /// Its pool keeps replicas and is at its limit of nodes.
    StaticAtLimit,
}

impl TerminateFirst {
    /// The word of logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReservedCapacity => "no-reserved-capacity",
            Self::StaticAtLimit => "static-at-limit",
        }
    }
}

/// Finding of repair, for a command of that method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairReason {
    /// The condition that decided.
    pub fault: NodeFault,
    /// How long the drain may take, whatever the claim says; `None` as the claim says.
    pub drain_bound: Option<GoDuration>,
    /// The policy's own bound, which tells how hard the end is.
    pub policy_bound: Option<GoDuration>,
    /// Reboots did not help, so the node is replaced.
    pub is_escalated: bool,
}

impl std::fmt::Display for RepairReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "condition {}", self.fault.condition)?;
        if self.is_escalated {
            f.write_str(", reboots did not help")?;
        }
        Ok(())
    }
}

/// A move that could be made, before any policy has judged it.
#[derive(Debug, Clone)]
pub(crate) struct Proposal<'s> {
    /// Method that found the move.
    pub method: Method,
    /// How the nodes go.
    pub execution: Execution,
    /// Nodes that go.
    pub candidates: Vec<&'s Candidate>,
    /// Existing nodes that take pods over.
    pub destinations: Vec<NodeRef>,
    /// Cost of the nodes that go.
    pub before: Cost,
    /// Cost of the nodes that come, each at its best offering.
    pub after: Cost,
}

/// A proposal that its policy approved of.
#[derive(Debug, Clone)]
pub(crate) struct Approved<'s> {
    pub(crate) proposal: Proposal<'s>,
    pub(crate) verdict: Verdict,
}

impl Approved<'_> {
    /// Effective USD an hour that the move saves.
    pub(crate) fn savings_per_hour(&self) -> f64 {
        self.proposal.savings_per_hour()
    }
}

impl Proposal<'_> {
    /// Names of the claims of the nodes that go.
    pub(crate) fn claims(&self) -> Vec<&str> {
        self.candidates.iter().map(|it| it.claim()).collect()
    }

    /// Claims to make first.
    pub(crate) fn replacements(&self) -> &[NewClaim] {
        self.execution.replacements()
    }

    /// Effective USD an hour that the move saves.
    pub(crate) fn savings_per_hour(&self) -> f64 {
        self.before.effective_per_hour - self.after.effective_per_hour
    }
}

/// Cost of some nodes in both currencies. Decisions reckon with the effective cost, reports show both.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// List prices, USD an hour.
    pub price_per_hour: f64,
    /// Cost as the ranking policy reckons, effective USD an hour.
    pub effective_per_hour: f64,
}

impl Cost {
    /// Where no ranking policy says otherwise. What has no known price costs nothing here, so that no move is made to
    /// save what nobody can say.
    pub fn at_list_price(price_per_hour: impl Into<Option<f64>>) -> Self {
        let price_per_hour = price_per_hour.into().unwrap_or(0.0);
        Self {
            price_per_hour,
            effective_per_hour: price_per_hour,
        }
    }

    /// Of nodes that come, were each its best offering.
    pub(crate) fn of_claims(claims: &[NewClaim]) -> Self {
        let best = claims.iter().map(|it| Self {
            price_per_hour: it.best.price_per_hour,
            effective_per_hour: it.best.effective_cost_per_hour,
        });
        best.sum()
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, it| Self {
            price_per_hour: sum.price_per_hour + it.price_per_hour,
            effective_per_hour: sum.effective_per_hour + it.effective_per_hour,
        })
    }
}

/// A move that was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Same in all its records.
    pub id: String,
    /// Method that found the move.
    pub method: Method,
    /// How the nodes go.
    pub execution: Execution,
    /// Of a repair: what is wrong.
    pub repair_reason: Option<RepairReason>,
    /// Nodes that go.
    pub candidates: Vec<CommandCandidate>,
    /// Existing nodes that take pods over, to be nominated.
    pub destinations: Vec<NodeRef>,
    /// Cost of the nodes that go.
    pub before: Cost,
    /// Cost of the nodes that come, each at its best offering.
    pub after: Cost,
    /// Reason that the policy gave with its verdict, where it was asked and gave one.
    pub policy_reason: Option<String>,
    /// Score that the policy gave the move: the highest goes first.
    pub score: f64,
}

/// A node that goes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommandCandidate {
    /// Name of the Node.
    pub node: String,
    /// Name of the claim.
    pub claim: String,
    /// Name of the NodePool.
    pub pool: String,
    pub instance_type: String,
    /// None where the node does not say in which.
    pub zone: Option<String>,
    /// None where nobody knows it.
    pub capacity_type: Option<CapacityType>,
    /// Cost of the node.
    pub cost: Cost,
    /// Pods that must find another node.
    pub pods: u32,
}

impl Command {
    /// A command from a proposal that was approved; `cost` tells what a candidate costs.
    pub(crate) fn new(
        id: String,
        approved: Approved<'_>,
        cost: impl Fn(&Candidate) -> Cost,
    ) -> Self {
        let Approved { proposal, verdict } = approved;
        let Proposal {
            method,
            execution,
            candidates,
            destinations,
            before,
            after,
        } = proposal;
        let candidates = candidates.into_iter();
        Self {
            id,
            method,
            execution,
            repair_reason: None,
            candidates: candidates
                .map(|it| CommandCandidate::new(it, cost(it)))
                .collect(),
            destinations,
            before,
            after,
            policy_reason: Some(verdict.reason).filter(|it| !it.is_empty()),
            score: verdict.score,
        }
    }

    /// Word of metrics and events for the command: `delete`, `replace`, `reboot` or `terminate-first`.
    pub fn decision(&self) -> &'static str {
        match &self.execution {
            Execution::TerminateFirst(_) => "terminate-first",
            Execution::Reboot => "reboot",
            Execution::ReplaceFirst(comes) if comes.is_empty() => "delete",
            Execution::ReplaceFirst(_) => "replace",
        }
    }

    /// Claims to make first.
    pub fn replacements(&self) -> &[NewClaim] {
        self.execution.replacements()
    }

    /// Why these nodes go in particular, for people: the trouble of a node that is repaired, or what the policy said.
    pub fn explanation(&self) -> Option<String> {
        let trouble = self.repair_reason.as_ref().map(ToString::to_string);
        trouble.or_else(|| self.policy_reason.clone())
    }

    /// Why the nodes go.
    pub fn reason(&self) -> DisruptionReason {
        self.method.reason()
    }
}

impl CommandCandidate {
    /// The node, by its claim: that outlasts it.
    pub fn node_ref(&self) -> NodeRef {
        NodeRef::claim(&*self.claim)
    }

    fn new(candidate: &Candidate, cost: Cost) -> Self {
        Self {
            node: candidate.name().to_owned(),
            claim: candidate.claim().to_owned(),
            pool: candidate.pool().to_owned(),
            instance_type: candidate
                .instance_type_name()
                .unwrap_or_default()
                .to_owned(),
            zone: candidate.zone().map(str::to_owned),
            capacity_type: candidate.capacity_type(),
            cost,
            pods: saturated(candidate.reschedulable.len()),
        }
    }
}
