//! Commands that reboot a node in place: asked for on the claim.
//!
//! How it reboots is another controller's (`node_claim/reboot.rs`). Answers to `pkg/controllers/disruption/queue.go`.

use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::{NodeClaim, labels};
use disruption::{Command, CommandCandidate};
use jiff::Timestamp;
use kube::ResourceExt;
use tracing::error;

use super::marks::disrupted;
use super::{CommandStart, Orchestration};
use crate::node_claim::reboot;
use crate::shell::error::ReconcileError;
use crate::voluntary_disruption::command_entry::CommandEntry;

impl Orchestration {
    /// Asks for a reboot by writing it on the claim; the rest is another controller's.
    pub(super) async fn reboot(&self, command: &Command) -> CommandStart {
        let Some(candidate) = command.candidates.first() else {
            return CommandStart::NotBegun;
        };
        match self.request_reboot(command, candidate).await {
            Ok(None) => CommandStart::NotBegun,
            Ok(Some(uid)) => {
                self.write_entry(command, &CommandEntry::Announced);
                // What was just written is at hand.
                let claims = command.candidates.iter();
                let claims = claims.filter_map(|it| self.shell.model.recent_node_claim(&it.claim));
                let entry = CommandEntry::Started {
                    replacements: &[],
                    rebooting: claims.collect(),
                };
                self.write_entry(command, &entry);
                let now = self.shell.now();
                self.remember(|history| history.note_reboot(&uid, now));
                CommandStart::Begun
            }
            Err(error) => {
                error!(command = %command.id, %error, "asking for a reboot");
                self.not_begun(command, &format!("asking for a reboot: {error}"))
            }
        }
    }

    /// The UID of the claim, unless it reboots or goes already.
    async fn request_reboot(
        &self,
        command: &Command,
        candidate: &CommandCandidate,
    ) -> Result<Option<String>, ReconcileError> {
        let claims = self.shell.writer.api::<NodeClaim>();
        let Some(claim) = claims.get_opt(&candidate.claim).await? else {
            return Ok(None);
        };
        let is_rebooting = claim.is_condition_true(conditions::REBOOTING);
        if is_rebooting || claim.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let writer = &self.shell.writer;
        let bounded = bounded(&claim, command);
        let claim = writer.write_claim(&claim, &bounded).await?;
        let requested = requested(&claim, command, self.shell.now());
        writer.write_claim_status(&claim, &requested).await?;
        Ok(claim.uid())
    }
}

/// The claim with the bound on the drain before its reboot, and without what was noted of an earlier one.
fn bounded(claim: &NodeClaim, command: &Command) -> NodeClaim {
    let mut after = claim.clone();
    let annotations = after.annotations_mut();
    annotations.remove(labels::REBOOT_PRE_BOOT_ID_ANNOTATION);
    let key = labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION;
    let repair_reason = command.repair_reason.as_ref();
    match repair_reason.and_then(|it| it.drain_bound) {
        Some(bound) => annotations.insert(key.to_owned(), bound.to_string()),
        None => annotations.remove(key),
    };
    after
}

/// The claim, whose conditions ask for the reboot and say what for.
fn requested(claim: &NodeClaim, command: &Command, now: Timestamp) -> NodeClaim {
    let repair_reason = command.repair_reason.as_ref();
    let fault = repair_reason.map(|it| it.fault.to_string());
    let message = format!("rebooting for {}", fault.unwrap_or_default());
    let rebooting = ConditionUpdate {
        condition_type: conditions::REBOOTING,
        status: Status::True,
        reason: reboot::draining::REQUESTED,
        message: &message,
    };
    let reason = command.reason().to_string();
    let after = claim.with_condition(disrupted(&reason), now);
    after.with_condition(rebooting, now)
}
