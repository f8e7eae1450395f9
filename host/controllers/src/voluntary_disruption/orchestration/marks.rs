//! The marks of nodes that a command is about: the taint, the condition of the claim, and the mark in the model; put on
//! and taken back.
//!
//! Which nodes those are is decided before. Answers to `markDisrupted` in `pkg/controllers/disruption/queue.go`.

use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::labels;
use disruption::{Command, CommandCandidate};
use futures::future::join_all;
use state::Event;
use tracing::{error, info, warn};

use super::Orchestration;
use crate::node::taints::with_taint;
use crate::shell::error::ReconcileError;
use crate::voluntary_disruption::stale;

/// Result of marking the nodes of a command.
pub(super) enum Marked {
    /// With the nodes that are marked.
    GoesOn(Command),
    /// No mark is left.
    GivenUp(Command),
}

/// The condition by which a claim says that a command is about it.
pub(super) fn disrupted(reason: &str) -> ConditionUpdate<'_> {
    ConditionUpdate {
        condition_type: conditions::DISRUPTION_REASON,
        status: Status::True,
        reason,
        message: reason,
    }
}

impl Orchestration {
    /// Taints the nodes and marks the claims. With replacements it is all or nothing; without, what could be marked
    /// goes on.
    pub(super) async fn mark(&self, mut command: Command) -> Marked {
        let reason = command.reason().to_string();
        let marks = command
            .candidates
            .iter()
            .map(|candidate| self.mark_one(candidate, &reason));
        let results = join_all(marks.collect::<Vec<_>>()).await;
        let mut marked = Vec::new();
        let mut failed = false;
        for (candidate, result) in command.candidates.iter().zip(results) {
            match result {
                Ok(()) => marked.push(candidate.clone()),
                Err(error) => {
                    error!(Node = %candidate.node, %error, "marking node for disruption");
                    failed = true;
                }
            }
        }
        if marked.is_empty() || (failed && !command.replacements().is_empty()) {
            self.take_back(&command.candidates).await;
            return Marked::GivenUp(command);
        }
        command.candidates = marked;
        Marked::GoesOn(command)
    }

    async fn mark_one(
        &self,
        candidate: &CommandCandidate,
        reason: &str,
    ) -> Result<(), ReconcileError> {
        if let Some(node) = self.shell.model.node(&candidate.node).await? {
            let after = with_taint(&node, labels::disrupted_taint());
            self.shell.writer.write_node(&node, &after).await?;
            info!(Node = %candidate.node, taint = labels::DISRUPTED_TAINT_KEY, "tainted node");
        }
        if let Some(claim) = self.shell.model.node_claim(&candidate.claim).await? {
            let after = claim.with_condition(disrupted(reason), self.shell.now());
            self.shell.writer.write_claim_status(&claim, &after).await?;
        }
        Ok(())
    }

    /// No command is about these nodes any more, and they stay.
    pub(super) async fn release(&self, candidates: &[CommandCandidate]) {
        self.take_back(candidates).await;
        let staying = candidates.iter().map(CommandCandidate::node_ref);
        let staying = Event::UnmarkedForDeletion(staying.collect());
        self.shell.model.note(staying);
        self.remember(|history| {
            for candidate in candidates {
                history.note_abandoned(&candidate.claim);
            }
        });
    }

    /// Takes the marks of the candidates back. A mark that cannot be taken back now is stale, and the next scan's
    /// cleaning takes it.
    pub(super) async fn take_back(&self, candidates: &[CommandCandidate]) {
        for candidate in candidates {
            let result = stale::unmark(&self.shell, &candidate.claim, Some(&candidate.node)).await;
            if let Err(error) = result {
                warn!(Node = %candidate.node, %error, "taking disruption marks back");
            }
        }
    }
}
