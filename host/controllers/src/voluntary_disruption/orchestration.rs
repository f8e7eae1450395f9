//! Sees commands through: taint, launch replacements, wait for them, delete; or take everything back.
//!
//! Candidates are marked for deletion in the model only once their replacements exist, so that nothing is launched
//! twice. Answers to `pkg/controllers/disruption/queue.go`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::conditions::{self, Conditioned, Status};
use apis::duration::GoDuration;
use apis::{NodeClaim, labels};
use disruption::history::History;
use disruption::method::DisruptionClass;
use disruption::queue::{CommandProgress, RunningCommand, is_unused, progress};
use disruption::{Command, CommandCandidate, Execution, RepairReason};
use futures::future::join_all;
use k8s_openapi::api::core::v1;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use scheduling::pod::{Pod, ShapeTable};
use scheduling::solution::NewClaim;
use state::Event;
use state::pod::PodLife;
use tracing::{error, info, warn};

use crate::node_claim::entries::ClaimEntry;
use crate::node_claim::{ConditionUpdate, NodeClaimExt, reboot, with_deadline};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::periodic::{self, PastRound, Periodic};
use crate::shell::sync::lock;
use crate::static_capacity;
use crate::voluntary_disruption::command_entry::{CommandEntry, Underway};
use crate::voluntary_disruption::stale;

const POLL: Duration = Duration::from_secs(1);

/// The commands under way.
pub(super) struct Orchestration {
    shell: Arc<Shell>,
    running: Mutex<Vec<RunningCommand>>,
    history: Mutex<History>,
}

/// Candidates that somebody protected meanwhile, with the reason.
#[derive(Default)]
struct Protected {
    staying: Vec<(CommandCandidate, String)>,
    /// Others of the command are going already.
    is_begun: bool,
}

/// The rounds in which commands are looked after.
pub(crate) struct CommandRounds<'a>(&'a Orchestration);

impl Periodic for CommandRounds<'_> {
    const NAME: &'static str = "disruption.queue";
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    fn is_due(&self) -> bool {
        self.0.len() > 0
    }

    async fn round(&mut self) -> Result<(), ReconcileError> {
        let Orchestration { shell, .. } = self.0;
        let commands: Vec<RunningCommand> = self.0.running().clone();
        let queued = commands.iter().map(|it| it.command.candidates.len()).sum();
        for running in commands {
            let step = progress(&running, &shell.model.snapshot(), queued, shell.now());
            self.0.apply(running, step).await;
        }
        Ok(())
    }

    /// A command that fails is told of with what it is about.
    fn log(&mut self, _: &ReconcileError) {}

    fn pause(&self, _: PastRound) -> Duration {
        POLL
    }
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
        lock(&self.history).clone()
    }

    fn remember(&self, note: impl FnOnce(&mut History)) {
        note(&mut lock(&self.history));
    }

    /// Looks after every command once a second.
    pub(super) async fn run(&self) {
        periodic::run(&self.shell.metrics, CommandRounds(self)).await;
    }

    /// Starts a command; false when it could not.
    pub(super) async fn start(&self, command: Command) -> bool {
        let queued = self.claims();
        let mut candidates = command.candidates.iter();
        if let Some(it) = candidates.find(|it| queued.contains(&it.claim)) {
            let why = format!("another command about {} is under way", it.node);
            return self.not_begun(&command, &why);
        }
        if command.candidates.is_empty() {
            return false;
        }
        if command.execution == Execution::Reboot {
            return self.reboot(&command).await;
        }
        self.write_entry(&command, &CommandEntry::Announced);
        let command = match self.mark(command).await {
            Ok(command) => command,
            Err(command) => return self.not_begun(&command, "its nodes could not be marked"),
        };
        let created = if command.replacements.iter().any(NewClaim::is_of_template) {
            self.create_static_replacements(&command).await
        } else {
            self.create_replacements(&command).await
        };
        let replacements = match created {
            Ok(replacements) => replacements,
            Err(error) => {
                error!(command = %command.id, %error, "creating replacements, giving the command up");
                self.take_back(&command.candidates).await;
                let now = self.shell.now();
                self.remember(|history| history.failed(&command, now));
                return self.not_begun(&command, &format!("creating replacements: {error}"));
            }
        };
        let claims: Vec<String> = command
            .candidates
            .iter()
            .map(|it| it.claim.clone())
            .collect();
        self.shell.model.note(Event::MarkedForDeletion(claims));
        for name in &command.destinations {
            self.shell.model.nominate(name);
        }
        let names: Vec<String> = replacements.iter().map(ResourceExt::name_any).collect();
        let entry = CommandEntry::Started {
            replacements: &replacements,
            rebooting: Vec::new(),
        };
        self.write_entry(&command, &entry);
        let started_at = self.shell.now();
        self.remember(|history| {
            for candidate in &command.candidates {
                history.started(&candidate.claim, command.method.budget_reason());
            }
            history.replaced(&command, &names, started_at);
        });
        self.running().push(RunningCommand {
            command,
            replacements: names,
            started_at,
            is_wait_told: false,
        });
        true
    }

    fn not_begun(&self, command: &Command, why: &str) -> bool {
        self.write_entry(command, &CommandEntry::NotBegun { why });
        false
    }

    fn write_entry(&self, command: &Command, entry: &CommandEntry<'_>) {
        let subject = Underway {
            command,
            snapshot: &self.shell.model.snapshot(),
        };
        self.shell.journal.write(&subject, entry);
    }

    /// Asks for a reboot by writing it on the claim; the rest is another controller's.
    async fn reboot(&self, command: &Command) -> bool {
        let Some(candidate) = command.candidates.first() else {
            return false;
        };
        match self.request_reboot(command, candidate).await {
            Ok(None) => false,
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
                self.remember(|history| history.rebooted(&uid, now));
                true
            }
            Err(error) => {
                error!(command = %command.id, %error, "asking for a reboot");
                false
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
        let bound = command.repair_reason.as_ref().and_then(|it| it.drain_bound);
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
            message: "",
        };
        let after = claim.with_condition(disrupted, now);
        let after = after.with_condition(rebooting, now);
        self.shell.writer.write_claim_status(&claim, &after).await?;
        Ok(claim.uid())
    }

    /// Taints the nodes and marks the claims. With replacements it is all or nothing; without, what could be marked
    /// goes on. An error is the command that does not.
    async fn mark(&self, mut command: Command) -> Result<Command, Command> {
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
            self.take_back(&command.candidates).await;
            return Err(command);
        }
        command.candidates = marked;
        Ok(command)
    }

    async fn mark_one(
        &self,
        candidate: &CommandCandidate,
        reason: &str,
    ) -> Result<(), ReconcileError> {
        if let Some(node) = self.shell.model.node(&candidate.node).await? {
            self.shell
                .writer
                .write_node(&node, &stale::tainted(&node))
                .await?;
            info!(Node = %candidate.node, taint = labels::DISRUPTED_TAINT_KEY, "tainted node");
        }
        if let Some(claim) = self.shell.model.node_claim(&candidate.claim).await? {
            let disrupted = ConditionUpdate {
                condition_type: conditions::DISRUPTION_REASON,
                status: Status::True,
                reason,
                message: reason,
            };
            let after = claim.with_condition(disrupted, self.shell.now());
            self.shell.writer.write_claim_status(&claim, &after).await?;
        }
        Ok(())
    }

    /// A pool that keeps replicas must not take what comes for one node too many, nor get more than its limit.
    async fn create_static_replacements(
        &self,
        command: &Command,
    ) -> Result<Vec<NodeClaim>, ReconcileError> {
        let mut pending = self.shell.static_pending.lock().await;
        for replacement in &command.replacements {
            let count = static_capacity::count(&self.shell, &replacement.pool, &pending).await?;
            if count.headroom() == 0 {
                let reason = format!("nodepool \"{}\" is at its limit of nodes", replacement.pool);
                return Err(ReconcileError::Terminal(reason));
            }
        }
        let created = self.create_replacements(command).await?;
        pending.extend(command.candidates.iter().map(|it| it.claim.clone()));
        Ok(created)
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
                        self.shell.writer.delete(claim).await.ok();
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
        replacement: &NewClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        let pool = self
            .shell
            .model
            .node_pool(&replacement.pool)
            .ok_or_else(|| {
                ReconcileError::Terminal(format!("nodepool \"{}\" is gone", replacement.pool))
            })?;
        let mut object = replacement.to_node_claim(&pool, self.shell.seed_for(&command.id));
        self.shell.overlays.mark(&mut object, &replacement.pool);
        let reason = command.reason().to_string().to_lowercase();
        let created = self.shell.writer.create_claim(&object).await?;
        let entry = ClaimEntry::Created {
            reason: &reason,
            record: None,
        };
        self.shell.journal.write(&created, &entry);
        // Else whoever looks at the pods next plans anew for nodes that were chosen for an exact fit.
        self.shell.model.note(Event::Placed {
            name: created.name_any(),
            pods: replacement.pods.clone(),
        });
        self.shell
            .pods
            .claim_for(&created.name_any(), replacement.pods.clone());
        Ok(created)
    }

    async fn apply(&self, running: RunningCommand, step: CommandProgress) {
        match step {
            CommandProgress::Wait { on } => {
                self.tell_of_wait(&running, &on);
                for name in on {
                    if let Ok(Some(claim)) = self.shell.model.node_claim(&name).await {
                        let entry = ClaimEntry::AwaitedByCommand;
                        self.shell.journal.write(claim.as_ref(), &entry);
                    }
                }
            }
            CommandProgress::Delete => self.finish(running).await,
            CommandProgress::GiveUp { reason } => {
                let now = self.shell.now();
                self.remember(|history| history.failed(&running.command, now));
                self.give_up(&running, &reason).await;
            }
        }
    }

    /// Once a command.
    fn tell_of_wait(&self, running: &RunningCommand, on: &[String]) {
        let same = |it: &&mut RunningCommand| it.command.id == running.command.id;
        let is_new = self
            .running()
            .iter_mut()
            .find(same)
            .is_some_and(|it| !std::mem::replace(&mut it.is_wait_told, true));
        if is_new {
            let replacements = &running.replacements;
            let entry = CommandEntry::Waiting { replacements, on };
            self.write_entry(&running.command, &entry);
        }
    }

    async fn finish(&self, mut running: RunningCommand) {
        let protected = match self.protected(&running.command).await {
            Ok(protected) => protected,
            Err(error) => {
                warn!(command = %running.command.id, %error, "looking at candidates, will be tried again");
                return;
            }
        };
        if let Some((_, why)) = protected.staying.first() {
            if !protected.is_begun {
                return self.give_up(&running, why).await;
            }
            // Pods of the others are on their way to the replacements already.
            self.leave_out(&mut running, protected.staying).await;
        }
        let command = &running.command;
        for candidate in &command.candidates {
            if let Err(error) = self.delete(command, candidate).await {
                warn!(NodeClaim = %candidate.claim, %error, "deleting candidate, will be tried again");
                return;
            }
        }
        // Empty until the pods of those that go arrive.
        for name in &running.replacements {
            self.shell.model.nominate(name);
        }
        self.remember(|history| {
            for candidate in &command.candidates {
                history.finished(&candidate.claim, &candidate.pool, self.shell.now());
            }
        });
        let replacements = &running.replacements;
        self.write_entry(command, &CommandEntry::Finished { replacements });
        self.forget(command).await;
    }

    /// Which candidates a person protected since the decision.
    async fn protected(&self, command: &Command) -> Result<Protected, ReconcileError> {
        let mut protected = Protected::default();
        // A sick node is not worth protecting.
        if command.method.class() == DisruptionClass::Repair {
            return Ok(protected);
        }
        for candidate in &command.candidates {
            let claim = self.shell.model.node_claim(&candidate.claim).await?;
            match claim {
                Some(claim) if claim.metadata.deletion_timestamp.is_none() => {
                    let why = self.protection(command, candidate, &claim).await?;
                    let staying = why.map(|why| (candidate.clone(), why));
                    protected.staying.extend(staying);
                }
                Some(_) | None => protected.is_begun = true,
            }
        }
        Ok(protected)
    }

    /// What protects the node now; asked of the API, as a watch may lag behind whoever asked for protection.
    async fn protection(
        &self,
        command: &Command,
        candidate: &CommandCandidate,
        claim: &NodeClaim,
    ) -> Result<Option<String>, ReconcileError> {
        let Some(node) = self.shell.model.node(&candidate.node).await? else {
            return Ok(None);
        };
        if labels::has_do_not_disrupt(node.annotations()) {
            let why = format!("{} is protected by do-not-disrupt now", candidate.node);
            return Ok(Some(why));
        }
        let is_bounded = claim.spec.termination_grace_period.is_some();
        if is_bounded && command.method.class() == DisruptionClass::Eventual {
            return Ok(None);
        }
        let pods: Api<v1::Pod> = Api::all(self.shell.client.clone());
        let here = ListParams::default().fields(&format!("spec.nodeName={}", candidate.node));
        let mut shapes = ShapeTable::default();
        let pods = pods.list(&here).await?.items.into_iter();
        // One that cannot be read is none of the model's either.
        let mut pods = pods.filter_map(|pod| Pod::parse(&pod, &mut shapes).ok());
        let now = self.shell.now();
        let pod = pods.find(|pod| pod.is_active() && pod.is_protected(now));
        Ok(pod.map(|pod| format!("pod {} is protected by do-not-disrupt now", pod.key)))
    }

    /// Some nodes of a command stay although others go.
    async fn leave_out(
        &self,
        running: &mut RunningCommand,
        staying: Vec<(CommandCandidate, String)>,
    ) {
        for (candidate, why) in &staying {
            let entry = CommandEntry::LeftOut { candidate, why };
            self.write_entry(&running.command, &entry);
        }
        let staying: Vec<CommandCandidate> = staying.into_iter().map(|it| it.0).collect();
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

    /// Says by when the node must be gone, counted from now that its replacement is there; never later than what
    /// somebody said already.
    async fn bound_drain(
        &self,
        claim: &Arc<NodeClaim>,
        bound: GoDuration,
    ) -> Result<Arc<NodeClaim>, ReconcileError> {
        let now = self.shell.now();
        let at = now
            .checked_add(bound.to_signed_duration())
            .unwrap_or(jiff::Timestamp::MAX);
        let deadline = claim.termination_deadline().map_or(at, |it| it.min(at));
        let after = with_deadline(claim, deadline);
        self.shell
            .writer
            .write_claim(claim, &after)
            .await
            .map(Arc::new)
    }

    async fn give_up(&self, running: &RunningCommand, why: &str) {
        let command = &running.command;
        self.release(&command.candidates).await;
        let replacements = &running.replacements;
        self.write_entry(command, &CommandEntry::GivenUp { replacements, why });
        self.forget(command).await;
        self.return_replacements(&running.replacements).await;
    }

    /// Replacements without pods serve nothing any more. One that pods came to, or are planned for, stays.
    async fn return_replacements(&self, names: &[String]) {
        let (snapshot, now) = (self.shell.model.snapshot(), self.shell.now());
        for name in names {
            if !is_unused(&snapshot, name, now) {
                continue;
            }
            let Ok(Some(claim)) = self.shell.model.node_claim(name).await else {
                continue;
            };
            match ignore_not_found(self.shell.writer.delete(claim.as_ref()).await) {
                Ok(_) => info!(NodeClaim = %name, "deleted unused replacement"),
                Err(error) => {
                    warn!(NodeClaim = %name, %error, "deleting unused replacement, left to consolidation");
                }
            }
        }
    }

    /// No command is about these nodes any more, and they stay.
    async fn release(&self, candidates: &[CommandCandidate]) {
        self.take_back(candidates).await;
        let claims = candidates.iter().map(|it| it.claim.clone()).collect();
        self.shell.model.note(Event::UnmarkedForDeletion(claims));
        self.remember(|history| {
            for candidate in candidates {
                history.abandoned(&candidate.claim);
            }
        });
    }

    /// What cannot be taken back now is stale, and the next scan's cleaning takes it.
    async fn take_back(&self, candidates: &[CommandCandidate]) {
        for candidate in candidates {
            let result = stale::unmark(&self.shell, &candidate.claim, Some(&candidate.node)).await;
            if let Err(error) = result {
                warn!(Node = %candidate.node, %error, "taking disruption marks back");
            }
        }
    }

    /// The command is over: what was pending about static pools is not any more.
    async fn forget(&self, command: &Command) {
        self.running().retain(|it| it.command.id != command.id);
        self.no_longer_pending(&command.candidates).await;
    }

    async fn no_longer_pending(&self, candidates: &[CommandCandidate]) {
        let mut pending = self.shell.static_pending.lock().await;
        for candidate in candidates {
            pending.remove(&candidate.claim);
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<RunningCommand>> {
        lock(&self.running)
    }
}
