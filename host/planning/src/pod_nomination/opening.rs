//! When a node that is about to take pods opens: at once, with others, or later, and what it is held for.
//!
//! Once it is open the scheduler fills it with whatever is there, so it stays closed for a moment, until the pods that
//! it was bought for can be told of it. Each that opens wakes every pod that waits, and the scheduler, which tries them
//! all, gets late to those whose node is there and takes what they were told from those whose node is not: so all that
//! are ready open at one moment, when one has waited for as long as it may. A pod that is tried in vain costs the
//! scheduler a write and a search for victims, a tenth of a second on a busy API server. Pods are told again just
//! before that moment, which is the next full second: a node that opened a moment earlier would have cost them what
//! they were told. Pods that are shut out of their node for now lose what they were told and hold no room, so it waits
//! for nodes whose pods could take it. Where nobody can be told, the nodes of a plan open together, because a scheduler
//! that spreads pods over all of them comes closer to the plan than one that fills the first.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use scheduling::pod::PodKey;
use state::Snapshot;

use super::{awaits_others, awaits_rivals, is_crowded, nominations, opens_with_others};
use crate::coming::is_awaiting;

/// How long a ready node is held closed.
const HELD_READY: Duration = Duration::from_secs(12);
/// How long a ready node is held closed while a crowd of pods waits: instances that are launched together boot in 20 to
/// 45 seconds.
const HELD_IN_CROWD: Duration = Duration::from_secs(30);
/// How long one that is not ready is, which takes no pods anyway: something that it waits for might.
const HELD_UNREADY: Duration = Duration::from_secs(30);

/// A node that is still closed.
#[derive(Debug, Clone, Copy)]
pub struct ClosedNode<'a> {
    /// Name of its claim.
    pub claim: &'a str,
    /// Since when it is ready, where it says so.
    pub ready_at: Option<Timestamp>,
    /// Moment at which the claim was created.
    pub created_at: Option<Timestamp>,
    /// Whether it is ready and lacks nothing that a start takes.
    pub is_up: bool,
}

/// Settings of opening: which of its measures are taken at all.
#[derive(Debug, Clone, Copy)]
pub struct OpeningTerms {
    /// Nodes stay closed until their pods were told of them.
    pub holds_nodes_closed: bool,
    /// Pods are told their node by a nomination.
    pub nominates_pods: bool,
}

/// Reason for which a node stays closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    /// Some of its pods are not there yet.
    PodsAreComing,
    /// A pod that the scheduler tries in vain loses its nomination.
    NotUpYet,
    /// Others of its plan are not ready.
    OthersAreComing,
    /// All that are ready open in a moment.
    OpensWithOthers,
}

impl HoldReason {
    /// As conditions of claims say it.
    pub fn message(self) -> &'static str {
        match self {
            Self::PodsAreComing => "pods that it was planned for are about to be created",
            Self::NotUpYet => "it takes no pods yet",
            Self::OthersAreComing => "other nodes that were planned with it are on their way",
            Self::OpensWithOthers => "it opens in a moment, with others",
        }
    }
}

/// Decision whether a node opens, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeOpening {
    /// It stays closed, and it is too early to tell its pods.
    TooEarly(HoldReason),
    /// It stays closed, and its pods are told.
    Held(HoldReason),
    /// It stays closed, and its pods are told, until all that are ready open at this moment. Their pods may trade
    /// places before.
    Appointed(Timestamp),
    /// It opens, alone: this is the moment.
    OpensAlone(Timestamp),
    Opens,
}

impl NodeOpening {
    /// Reason for which the node stays closed, if it does.
    pub fn hold(self) -> Option<HoldReason> {
        match self {
            Self::TooEarly(hold) | Self::Held(hold) => Some(hold),
            Self::Appointed(_) => Some(HoldReason::OpensWithOthers),
            Self::OpensAlone(_) | Self::Opens => None,
        }
    }

    /// The moment at which nodes open, where it is another now.
    pub fn appointment(self) -> Option<Timestamp> {
        match self {
            Self::Appointed(at) | Self::OpensAlone(at) => Some(at),
            Self::TooEarly(_) | Self::Held(_) | Self::Opens => None,
        }
    }
}

/// What a node opens among.
#[derive(Debug, Clone, Copy)]
pub struct OpeningContext<'a> {
    pub snapshot: &'a Snapshot,
    /// Pods that would be kept off their node now, whoever traded places.
    pub shut_out: &'a BTreeSet<PodKey>,
    /// When nodes open next, or opened last.
    pub opens_at: Timestamp,
}

impl OpeningTerms {
    /// Decides whether a node opens now.
    pub fn decide(
        self,
        among: OpeningContext<'_>,
        node: ClosedNode<'_>,
        now: Timestamp,
    ) -> NodeOpening {
        let OpeningContext {
            snapshot,
            shut_out,
            opens_at,
        } = among;
        if let Some(hold) = self.too_early(snapshot, node, now) {
            return NodeOpening::TooEarly(hold);
        }
        if !self.holds_nodes_closed {
            return NodeOpening::Opens;
        }
        let may_wait = self.nominates_pods && is_early(node, HELD_READY, now);
        if may_wait && awaits_rivals(snapshot, shut_out, node.claim) {
            return NodeOpening::Held(HoldReason::OthersAreComing);
        }
        if node.ready_at.is_some_and(|it| it <= opens_at) {
            return if now < opens_at {
                NodeOpening::Held(HoldReason::OpensWithOthers)
            } else {
                NodeOpening::Opens
            };
        }
        if self.waits_for_others(snapshot, node, now) {
            return NodeOpening::Held(HoldReason::OthersAreComing);
        }
        // One that does not say since when it is ready, or whose clock is ahead of ours, would put this off for ever.
        let may_wait = node.ready_at.is_some_and(|it| it <= now);
        if may_wait && opens_with_others(snapshot, node.claim) {
            NodeOpening::Appointed(next_look(now))
        } else {
            NodeOpening::OpensAlone(now)
        }
    }

    /// Why it is too early to tell pods of a node, if it is.
    fn too_early(
        self,
        snapshot: &Snapshot,
        node: ClosedNode<'_>,
        now: Timestamp,
    ) -> Option<HoldReason> {
        let may_hold = self.holds_nodes_closed && self.nominates_pods;
        if !may_hold || !is_early(node, HELD_READY, now) {
            return None;
        }
        if is_awaiting(snapshot, node.claim, now) {
            return Some(HoldReason::PodsAreComing);
        }
        let tells = |node| !nominations(snapshot, node, &BTreeSet::new()).is_empty();
        let state_node = snapshot.node_of_claim(node.claim);
        let holds = !node.is_up && state_node.is_some_and(|it| tells(it));
        holds.then_some(HoldReason::NotUpYet)
    }

    fn waits_for_others(self, snapshot: &Snapshot, node: ClosedNode<'_>, now: Timestamp) -> bool {
        let is_crowded = is_crowded(snapshot);
        let held = if is_crowded {
            HELD_IN_CROWD
        } else {
            HELD_READY
        };
        let matters = !self.nominates_pods || is_crowded;
        matters && is_early(node, held, now) && awaits_others(snapshot, node.claim)
    }
}

/// Whether a node may still be held closed, where one that is ready is for so long.
fn is_early(node: ClosedNode<'_>, held_ready: Duration, now: Timestamp) -> bool {
    let latest = match (node.ready_at, node.created_at) {
        (Some(at), _) => at.checked_add(held_ready).ok(),
        (None, Some(at)) => at.checked_add(HELD_UNREADY).ok(),
        (None, None) => None,
    };
    latest.is_some_and(|it| now < it)
}

/// The next full second, at which nodes that are held closed are looked at again.
pub fn next_look(now: Timestamp) -> Timestamp {
    let nanos = now.subsec_nanosecond().unsigned_abs();
    let left = Duration::from_secs(1).saturating_sub(Duration::from_nanos(nanos.into()));
    now.checked_add(left).unwrap_or(now)
}
