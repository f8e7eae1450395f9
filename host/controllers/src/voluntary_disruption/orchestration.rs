//! Sees commands through: taint, launch replacements, wait for them, delete; or take everything back.
//!
//! Candidates are marked for deletion in the model only once their replacements exist, so that nothing is launched
//! twice. Answers to `pkg/controllers/disruption/queue.go`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apis::conditions::{self, Status};
use apis::{NodeClaim, labels};
use disruption::history::History;
use disruption::method::DisruptionClass;
use disruption::queue::{Progress, RunningCommand, progress};
use disruption::{Command, CommandCandidate};
use futures::future::join_all;
use kube::ResourceExt;
use kube::api::PostParams;
use state::Event;
use state::ledger::{CommandStep, OutcomeId};
use state::pod::PodLife;
use tracing::{error, info, warn};

use crate::error::{ReconcileError, ignore_not_found};
use crate::node_claim::NodeClaimExt;
use crate::shell::Shell;
use crate::voluntary_disruption::{events, report, stale};

const POLL: Duration = Duration::from_secs(1);

/// The commands under way.
pub(super) struct Orchestration {
    shell: Arc<Shell>,
    running: Mutex<Vec<RunningCommand>>,
    history: Mutex<History>,
}

impl Orchestration {
    pub(super) fn new(shell: Arc<Shell>) -> Self {
        let (running, history) = (Mutex::new(Vec::new()), Mutex::new(History::default()));
        Self {
            shell,
            running,
            history,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.running().len()
    }

    /// Claims that a command is about: those that go, and those that come in their place and are empty until then.
    pub(super) fn claims(&self) -> BTreeSet<String> {
        let running = self.running();
        let leaving = running.iter().flat_map(|it| &it.command.candidates);
        let leaving = leaving.map(|candidate| &candidate.claim);
        let coming = running.iter().flat_map(|it| &it.replacements);
        leaving.chain(coming).cloned().collect()
    }

    pub(super) fn history(&self) -> History {
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Looks after every command once a second.
    pub(super) async fn run(&self) {
        loop {
            tokio::time::sleep(POLL).await;
            let commands: Vec<RunningCommand> = self.running().clone();
            let queued = commands.iter().map(|it| it.command.candidates.len()).sum();
            for running in commands {
                let step = progress(&running, &self.shell.snapshot(), queued, self.shell.now());
                self.apply(running, step).await;
            }
        }
    }

    /// Starts a command; false when it could not.
    pub(super) async fn start(&self, command: Command) -> bool {
        let queued = self.claims();
        if command.candidates.is_empty()
            || command
                .candidates
                .iter()
                .any(|candidate| queued.contains(&candidate.claim))
        {
            return false;
        }
        report::announce(&self.shell, &command);
        let Some(command) = self.mark(command).await else {
            return false;
        };
        let replacements = match self.create_replacements(&command).await {
            Ok(replacements) => replacements,
            Err(error) => {
                error!(command = %command.id, %error, "creating replacements, giving the command up");
                self.take_back(&command).await;
                let detail = format!("creating replacements: {error}");
                report::step(
                    &self.shell,
                    &command,
                    CommandStep::Finished,
                    OutcomeId::CommandFailed,
                    (&[], &detail),
                );
                return false;
            }
        };
        let claims: Vec<String> = command
            .candidates
            .iter()
            .map(|it| it.claim.clone())
            .collect();
        self.shell.tell(Event::MarkedForDeletion(claims)).ok();
        self.nominate(&command.destinations);
        let names: Vec<String> = replacements.iter().map(ResourceExt::name_any).collect();
        report::started(&self.shell, &command, &replacements);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for candidate in &command.candidates {
            history.started(&candidate.claim, command.method.budget_reason());
        }
        let started_at = self.shell.now();
        history.replaced(&command, &names, started_at);
        drop(history);
        self.running().push(RunningCommand {
            command,
            replacements: names,
            started_at,
        });
        true
    }

    /// Keeps the nodes from being taken for empty while pods are on their way.
    fn nominate(&self, names: &[String]) {
        let window = self.shell.settings.nomination_window();
        let now = self.shell.now();
        let until = now.saturating_add(window).unwrap_or(jiff::Timestamp::MAX);
        for name in names {
            let name = name.clone();
            self.shell.tell(Event::Nominated { name, until }).ok();
        }
    }

    /// Taints the nodes and marks the claims. With replacements it is all or nothing; without, what could be marked
    /// goes on.
    async fn mark(&self, mut command: Command) -> Option<Command> {
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
        if marked.is_empty() || (failed && !command.replacements.is_empty()) {
            self.take_back(&command).await;
            return None;
        }
        command.candidates = marked;
        Some(command)
    }

    async fn mark_one(
        &self,
        candidate: &CommandCandidate,
        reason: &str,
    ) -> Result<(), ReconcileError> {
        if let Some(node) = self.shell.node(&candidate.node).await? {
            self.shell.write_node(&node, &stale::tainted(&node)).await?;
            info!(Node = %candidate.node, taint = labels::DISRUPTED_TAINT_KEY, "tainted node");
        }
        if let Some(claim) = self.shell.node_claim(&candidate.claim).await? {
            let told = (Status::True, reason, reason);
            let now = self.shell.now();
            let after = claim.with_condition(conditions::DISRUPTION_REASON, told, now);
            self.shell.write_claim_status(&claim, &after).await?;
        }
        Ok(())
    }

    async fn create_replacements(
        &self,
        command: &Command,
    ) -> Result<Vec<NodeClaim>, ReconcileError> {
        let mut created: Vec<NodeClaim> = Vec::new();
        for replacement in &command.replacements {
            let result = self.create_replacement(command, replacement).await;
            match result {
                Ok(claim) => created.push(claim),
                Err(error) => {
                    // What was created already would run for nothing.
                    for claim in &created {
                        self.shell.delete(claim).await.ok();
                    }
                    return Err(error);
                }
            }
        }
        Ok(created)
    }

    async fn create_replacement(
        &self,
        command: &Command,
        replacement: &scheduling::solution::NewClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        let pool = self.shell.node_pool(&replacement.pool).ok_or_else(|| {
            ReconcileError::Terminal(format!("nodepool \"{}\" is gone", replacement.pool))
        })?;
        let mut object = replacement.to_node_claim(&pool, self.shell.seed_for(&command.id));
        self.shell.overlays.mark(&mut object, &replacement.pool);
        let created: NodeClaim = self
            .shell
            .cluster_api()
            .create(&PostParams::default(), &object)
            .await?;
        self.shell.claim_seen(created.clone()).ok();
        self.shell
            .pod_ledger()
            .claim_for(&created.name_any(), replacement.pods.clone());
        let reason = command.reason().to_string().to_lowercase();
        info!(NodePool = %replacement.pool, NodeClaim = %created.name_any(), reason, "created nodeclaim");
        let labels = vec![
            ("reason", reason),
            ("nodepool", replacement.pool.clone()),
            (
                "min_values_relaxed",
                replacement.are_min_values_relaxed.to_string(),
            ),
        ];
        self.shell
            .metrics
            .node_claims_created
            .get_or_create(&labels)
            .inc();
        Ok(created)
    }

    async fn apply(&self, running: RunningCommand, step: Progress) {
        match step {
            Progress::Wait { on } => {
                for name in on {
                    if let Ok(Some(claim)) = self.shell.node_claim(&name).await {
                        self.shell.events.publish(events::waiting_readiness(&claim));
                    }
                }
            }
            Progress::Delete => self.finish(running).await,
            Progress::GiveUp { reason } => self.give_up(&running, &reason).await,
        }
    }

    async fn finish(&self, running: RunningCommand) {
        let command = &running.command;
        match self.protection(command).await {
            Ok(None) => {}
            Ok(Some(why)) => return self.give_up(&running, &why).await,
            Err(error) => {
                warn!(command = %command.id, %error, "looking at candidates, will be tried again");
                return;
            }
        }
        for candidate in &command.candidates {
            if let Err(error) = self.delete(command, candidate).await {
                warn!(NodeClaim = %candidate.claim, %error, "deleting candidate, will be tried again");
                return;
            }
        }
        // Empty until the pods of those that go arrive.
        self.nominate(&running.replacements);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for candidate in &command.candidates {
            history.finished(&candidate.claim, &candidate.pool, self.shell.now());
        }
        drop(history);
        let (step, outcome) = (CommandStep::Finished, OutcomeId::CommandSucceeded);
        report::step(
            &self.shell,
            command,
            step,
            outcome,
            (&running.replacements, ""),
        );
        self.forget(&command.id);
    }

    /// A person may have asked for protection since the decision; asked of the API, not of memory.
    async fn protection(&self, command: &Command) -> Result<Option<String>, ReconcileError> {
        if command.method.class() == DisruptionClass::Eventual {
            return Ok(None);
        }
        for candidate in &command.candidates {
            let Some(node) = self.shell.node(&candidate.node).await? else {
                continue;
            };
            let annotation = node.annotations().get(labels::DO_NOT_DISRUPT_ANNOTATION);
            if annotation.is_some_and(|value| value == "true") {
                return Ok(Some(format!(
                    "{} is protected by do-not-disrupt now",
                    candidate.node
                )));
            }
            let now = self.shell.now();
            let pods = self.shell.pods_on(&candidate.node);
            if let Some(pod) = pods
                .iter()
                .find(|pod| pod.is_active() && pod.is_protected(now))
            {
                return Ok(Some(format!(
                    "pod {} is protected by do-not-disrupt now",
                    pod.key
                )));
            }
        }
        Ok(None)
    }

    async fn delete(
        &self,
        command: &Command,
        candidate: &CommandCandidate,
    ) -> Result<(), ReconcileError> {
        let Some(claim) = self.shell.node_claim(&candidate.claim).await? else {
            return Ok(());
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        ignore_not_found(self.shell.delete(claim.as_ref()).await)?;
        report::deleted(&self.shell, command, candidate, &claim);
        Ok(())
    }

    async fn give_up(&self, running: &RunningCommand, why: &str) {
        let command = &running.command;
        warn!(command = %command.id, reason = why, "failed terminating nodes while executing a disruption command");
        self.take_back(command).await;
        let claims: Vec<String> = command
            .candidates
            .iter()
            .map(|it| it.claim.clone())
            .collect();
        self.shell.tell(Event::UnmarkedForDeletion(claims)).ok();
        {
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            for candidate in &command.candidates {
                history.abandoned(&candidate.claim);
            }
        }
        report::failed(&self.shell, command, &running.replacements, why);
        self.forget(&command.id);
        self.return_replacements(&running.replacements).await;
    }

    /// Replacements without pods serve nothing any more. One that pods came to, or are planned for, stays.
    async fn return_replacements(&self, names: &[String]) {
        let (snapshot, now) = (self.shell.snapshot(), self.shell.now());
        let is_unused = |name: &&String| {
            let Some(node) = snapshot.node_of_claim(name) else {
                return false;
            };
            let is_awaited = node.nominated_until.is_some_and(|until| until > now);
            let mut pods = node
                .node_name()
                .into_iter()
                .flat_map(|it| snapshot.bound_to(it).pods());
            !is_awaited && !pods.any(|pod| pod.is_reschedulable())
        };
        for name in names.iter().filter(is_unused) {
            let Ok(Some(claim)) = self.shell.node_claim(name).await else {
                continue;
            };
            match ignore_not_found(self.shell.delete(claim.as_ref()).await) {
                Ok(_) => info!(NodeClaim = %name, "deleted unused replacement"),
                Err(error) => {
                    warn!(NodeClaim = %name, %error, "deleting unused replacement, left to consolidation");
                }
            }
        }
    }

    /// What cannot be taken back now is stale, and the next scan's cleaning takes it.
    async fn take_back(&self, command: &Command) {
        for candidate in &command.candidates {
            let result = stale::unmark(&self.shell, &candidate.claim, Some(&candidate.node)).await;
            if let Err(error) = result {
                warn!(Node = %candidate.node, %error, "taking disruption marks back");
            }
        }
    }

    fn forget(&self, id: &str) {
        self.running().retain(|it| it.command.id != id);
    }

    fn running(&self) -> MutexGuard<'_, Vec<RunningCommand>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
