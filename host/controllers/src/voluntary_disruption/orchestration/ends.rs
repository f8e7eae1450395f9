//! The end of a command: its candidates are deleted once their replacements are ready, or all is given up.
//!
//! Whom somebody protected meanwhile stays; who that is, `decision.rs` says. Answers to
//! `pkg/controllers/disruption/queue.go`.

mod decision;

use std::sync::Arc;

use apis::duration::GoDuration;
use apis::{NodeClaim, NodeRef};
use disruption::method::DisruptionClass;
use disruption::queue::RunningCommand;
use disruption::{Command, CommandCandidate, RepairReason};
use k8s_openapi::api::core::v1;
use kube::api::{Api, ListParams};
use tracing::warn;

use self::decision::{Decided, Observed, SeenCandidate, StayingCandidate, decide, pods_matter};
use super::Orchestration;
use crate::node_claim::with_drain_within;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::voluntary_disruption::command_entry::CommandEntry;

impl Orchestration {
    /// The replacements are ready.
    pub(super) async fn finish(&self, mut running: RunningCommand) {
        let decided = match self.observe(&running.command).await {
            Ok(observed) => decide(observed),
            Err(error) => {
                warn!(command = %running.command.id, %error, "looking at candidates, will be tried again");
                return;
            }
        };
        match decided {
            Decided::GiveUp { why } => self.give_up(&running, &why).await,
            Decided::Go { staying } => {
                if !staying.is_empty() {
                    self.leave_out(&mut running, staying).await;
                }
                self.delete_all(&running).await;
            }
        }
    }

    /// The candidates as they are now; asked of the API, as a watch may lag behind whoever asked for protection.
    async fn observe(&self, command: &Command) -> Result<Observed, ReconcileError> {
        let mut candidates = Vec::new();
        // A sick node is not worth protecting.
        if command.method.class() != DisruptionClass::Repair {
            for candidate in &command.candidates {
                let seen = self.look_at(command, candidate).await?;
                candidates.push((candidate.clone(), seen));
            }
        }
        Ok(Observed {
            candidates,
            now: self.shell.now(),
        })
    }

    async fn look_at(
        &self,
        command: &Command,
        candidate: &CommandCandidate,
    ) -> Result<SeenCandidate, ReconcileError> {
        let claim = self.shell.model.node_claim(&candidate.claim).await?;
        let Some(claim) = claim.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            return Ok(SeenCandidate::Going);
        };
        let Some(node) = self.shell.model.node(&candidate.node).await? else {
            return Ok(SeenCandidate::WithoutNode);
        };
        let pods = if pods_matter(command.method.class(), &claim, &node) {
            self.pods_on(&candidate.node).await?
        } else {
            Vec::new()
        };
        Ok(SeenCandidate::with_pods(node, &pods))
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<v1::Pod>, ReconcileError> {
        let pods: Api<v1::Pod> = Api::all(self.shell.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
        Ok(pods.list(&here).await?.items)
    }

    /// Deletes the candidates that are left; one that cannot be deleted has all tried again.
    async fn delete_all(&self, running: &RunningCommand) {
        let command = &running.command;
        for candidate in &command.candidates {
            if let Err(error) = self.delete(command, candidate).await {
                warn!(NodeClaim = %candidate.claim, %error, "deleting candidate, will be tried again");
                return;
            }
        }
        // Empty until the pods of those that go arrive.
        for name in &running.replacements {
            self.shell.model.nominate(NodeRef::claim(&**name));
        }
        self.remember(|history| {
            for candidate in &command.candidates {
                history.note_end(&candidate.claim, &candidate.pool, self.shell.now());
            }
        });
        let replacements = &running.replacements;
        self.write_entry(command, &CommandEntry::Finished { replacements });
        self.forget(command).await;
    }

    /// Some nodes of a command stay although others go.
    async fn leave_out(&self, running: &mut RunningCommand, staying: Vec<StayingCandidate>) {
        for StayingCandidate { candidate, why } in &staying {
            let entry = CommandEntry::LeftOut { candidate, why };
            self.write_entry(&running.command, &entry);
        }
        let staying: Vec<CommandCandidate> = staying.into_iter().map(|it| it.candidate).collect();
        self.release(&staying).await;
        self.no_longer_pending(&staying).await;
        running
            .command
            .candidates
            .retain(|it| !staying.contains(it));
        let same = |it: &&mut RunningCommand| it.command.id == running.command.id;
        if let Some(it) = self.running().iter_mut().find(same) {
            it.command
                .candidates
                .clone_from(&running.command.candidates);
        }
    }

    async fn delete(
        &self,
        command: &Command,
        candidate: &CommandCandidate,
    ) -> Result<(), ReconcileError> {
        let Some(claim) = self.shell.model.node_claim(&candidate.claim).await? else {
            return Ok(());
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let claim = match &command.repair_reason {
            Some(RepairReason {
                drain_bound: Some(bound),
                ..
            }) => self.bound_drain(&claim, *bound).await?,
            Some(_) | None => claim,
        };
        ignore_not_found(self.shell.writer.delete(claim.as_ref()).await)?;
        let claim = claim.as_ref();
        self.write_entry(command, &CommandEntry::Deleted { candidate, claim });
        Ok(())
    }

    /// Says by when the node must be gone, counted from now that its replacement is there.
    async fn bound_drain(
        &self,
        claim: &Arc<NodeClaim>,
        bound: GoDuration,
    ) -> Result<Arc<NodeClaim>, ReconcileError> {
        let after = with_drain_within(claim, bound, self.shell.now());
        self.shell
            .writer
            .write_claim(claim, &after)
            .await
            .map(Arc::new)
    }

    pub(super) async fn give_up(&self, running: &RunningCommand, why: &str) {
        let command = &running.command;
        self.release(&command.candidates).await;
        let replacements = &running.replacements;
        self.write_entry(command, &CommandEntry::GivenUp { replacements, why });
        self.forget(command).await;
        self.return_replacements(&running.replacements).await;
    }

    /// The command is over: what was pending about static pools is not any more.
    async fn forget(&self, command: &Command) {
        self.running().retain(|it| it.command.id != command.id);
        self.no_longer_pending(&command.candidates).await;
    }

    async fn no_longer_pending(&self, candidates: &[CommandCandidate]) {
        let mut pending = self.static_pending.lock().await;
        for candidate in candidates {
            pending.remove(&candidate.claim);
        }
    }
}
