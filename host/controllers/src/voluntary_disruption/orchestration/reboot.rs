//! Commands that reboot a node in place: asked for on the claim.
//!
//! How it reboots is another controller's (`node_claim/reboot.rs`). Answers to `pkg/controllers/disruption/queue.go`.

use apis::conditions::{self, ConditionUpdate, Conditioned, Status};
use apis::{NodeClaim, labels};
use disruption::{Command, CommandCandidate};
use kube::ResourceExt;
use tracing::error;

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
                CommandStart::NotBegun
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
        let repair_reason = command.repair_reason.as_ref();
        let bound = repair_reason.and_then(|it| it.drain_bound);
        let fault = repair_reason.map(|it| it.fault.to_string());
        let message = format!("rebooting for {}", fault.unwrap_or_default());
        let key = labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION;
        let mut after = claim.clone();
        after
            .annotations_mut()
            .remove(labels::REBOOT_PRE_BOOT_ID_ANNOTATION);
        match bound {
            Some(bound) => after
                .annotations_mut()
                .insert(key.to_owned(), bound.to_string()),
            None => after.annotations_mut().remove(key),
        };
        let claim = self.shell.writer.write_claim(&claim, &after).await?;
        let (reason, now) = (command.reason().to_string(), self.shell.now());
        let disrupted = ConditionUpdate {
            condition_type: conditions::DISRUPTION_REASON,
            status: Status::True,
            reason: &reason,
            message: &reason,
        };
        let rebooting = ConditionUpdate {
            condition_type: conditions::REBOOTING,
            status: Status::True,
            reason: reboot::draining::REQUESTED,
            message: &message,
        };
        let after = claim.with_condition(disrupted, now);
        let after = after.with_condition(rebooting, now);
        self.shell.writer.write_claim_status(&claim, &after).await?;
        Ok(claim.uid())
    }
}
