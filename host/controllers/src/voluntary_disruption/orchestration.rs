//! Sees commands through: taint, launch replacements, wait for them, delete; or take everything back.
//!
//! Candidates are marked for deletion in the model only once their replacements exist, so that nothing is launched
//! twice. Answers to `pkg/controllers/disruption/queue.go`.

mod ends;
mod marks;
mod reboot;
mod replacements;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use apis::NodeClaim;
use disruption::history::History;
use disruption::queue::{CommandProgress, RunningCommand, progress};
use disruption::{Command, CommandCandidate, Execution};
use kube::ResourceExt;
use locks::lock;
use state::Event;
use tracing::{debug, error};

use crate::node_claim::creation::ClaimCreator;
use crate::node_claim::entries::running::AwaitedByCommand;
use crate::shell::Shell;
use crate::shell::runtime::periodic::{self, PastRound, Periodic};
use crate::static_capacity::pending::StaticPending;
use crate::voluntary_disruption::command_entry::{CommandEntry, InFlightCommand};
use crate::voluntary_disruption::orchestration::marks::Marked;

const POLL: Duration = Duration::from_secs(1);

/// The commands under way.
pub(super) struct Orchestration {
    shell: Arc<Shell>,
    claims: ClaimCreator,
    static_pending: Arc<StaticPending>,
    running: Mutex<Vec<RunningCommand>>,
    history: Mutex<History>,
}

/// Whether a command began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandStart {
    Begun,
    NotBegun,
}

/// Decision on a command that is to start.
#[derive(Debug, PartialEq, Eq)]
enum Decided {
    /// Nothing is left of it.
    Nothing,
    Refuse(String),
    /// Its node is asked to reboot.
    Reboot,
    /// Its nodes are marked, and its replacements created.
    Move,
}

/// A claim takes part in one command at a time.
fn decide(command: &Command, queued: &BTreeSet<String>) -> Decided {
    let mut candidates = command.candidates.iter();
    if let Some(it) = candidates.find(|it| queued.contains(&it.claim)) {
        return Decided::Refuse(format!("another command about {} is under way", it.node));
    }
    if command.candidates.is_empty() {
        return Decided::Nothing;
    }
    match command.execution {
        Execution::Reboot => Decided::Reboot,
        Execution::ReplaceFirst(_) | Execution::TerminateFirst(_) => Decided::Move,
    }
}

/// The rounds in which commands are looked after.
pub(crate) struct CommandRounds<'a>(&'a Orchestration);

impl Periodic for CommandRounds<'_> {
    const NAME: &'static str = "disruption.queue";
    const BEGINS_AT_ONCE: bool = false;
    type Error = Infallible;

    fn is_due(&self) -> bool {
        self.0.len() > 0
    }

    async fn round(&mut self) -> Result<(), Infallible> {
        let Orchestration { shell, .. } = self.0;
        let commands: Vec<RunningCommand> = self.0.running().clone();
        let queued = commands.iter().map(|it| it.command.candidates.len()).sum();
        for running in commands {
            let step = progress(&running, &shell.model.snapshot(), queued, shell.now());
            self.0.apply(running, step).await;
        }
        Ok(())
    }

    fn pause(&self, _: PastRound) -> Duration {
        POLL
    }
}

impl Orchestration {
    pub(super) fn new(
        shell: Arc<Shell>,
        claims: ClaimCreator,
        static_pending: Arc<StaticPending>,
    ) -> Self {
        let (running, history) = (Mutex::new(Vec::new()), Mutex::new(History::default()));
        Self {
            shell,
            claims,
            static_pending,
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

    /// Starts a command, if it still can be.
    pub(super) async fn start(&self, command: Command) -> CommandStart {
        match decide(&command, &self.claims()) {
            Decided::Nothing => CommandStart::NotBegun,
            Decided::Refuse(why) => self.not_begun(&command, &why),
            Decided::Reboot => self.reboot(&command).await,
            Decided::Move => self.begin_move(command).await,
        }
    }

    /// Taints the nodes, has what comes for them created, and looks after the rest from then on.
    async fn begin_move(&self, command: Command) -> CommandStart {
        self.write_entry(&command, &CommandEntry::Announced);
        let command = match self.mark(command).await {
            Marked::GoesOn(command) => command,
            Marked::GivenUp(command) => {
                return self.not_begun(&command, "its nodes could not be marked");
            }
        };
        match self.create_replacements(&command).await {
            Ok(replacements) => {
                self.note_begun(command, &replacements);
                CommandStart::Begun
            }
            Err(error) => {
                error!(command = %command.id, %error, "creating replacements, giving the command up");
                self.take_back(&command.candidates).await;
                let now = self.shell.now();
                self.remember(|history| history.note_failure(&command, now));
                self.not_begun(&command, &format!("creating replacements: {error}"))
            }
        }
    }

    fn note_begun(&self, command: Command, replacements: &[NodeClaim]) {
        let leaving = command.candidates.iter().map(CommandCandidate::node_ref);
        let leaving = Event::MarkedForDeletion(leaving.collect());
        self.shell.model.note(leaving);
        for node in &command.destinations {
            self.shell.model.nominate(node.clone());
        }
        let names: Vec<String> = replacements.iter().map(ResourceExt::name_any).collect();
        let entry = CommandEntry::Started {
            replacements,
            rebooting: Vec::new(),
        };
        self.write_entry(&command, &entry);
        let started_at = self.shell.now();
        self.remember(|history| {
            for candidate in &command.candidates {
                history.note_start(&candidate.claim, command.method.budget_reason());
            }
            history.note_replacements(&command, &names, started_at);
        });
        self.running().push(RunningCommand {
            command,
            replacements: names,
            started_at,
            is_wait_told: false,
        });
    }

    fn not_begun(&self, command: &Command, why: &str) -> CommandStart {
        self.write_entry(command, &CommandEntry::NotBegun { why });
        CommandStart::NotBegun
    }

    fn write_entry(&self, command: &Command, entry: &CommandEntry<'_>) {
        let subject = InFlightCommand {
            command,
            snapshot: &self.shell.model.snapshot(),
        };
        self.shell.journal.write(&subject, entry);
    }

    async fn apply(&self, running: RunningCommand, step: CommandProgress) {
        match step {
            CommandProgress::Wait { on } => {
                self.tell_of_wait(&running, &on);
                for name in on {
                    match self.shell.model.node_claim(&name).await {
                        Ok(Some(claim)) => {
                            self.shell.journal.write(claim.as_ref(), &AwaitedByCommand);
                        }
                        Ok(None) => {}
                        Err(error) => {
                            debug!(NodeClaim = %name, %error, "reading a claim that a command waits for");
                        }
                    }
                }
            }
            CommandProgress::Delete => self.finish(running).await,
            CommandProgress::GiveUp { reason } => {
                let now = self.shell.now();
                self.remember(|history| history.note_failure(&running.command, now));
                self.give_up(&running, &reason).await;
            }
        }
    }

    /// Tells that the command waits, once for each command.
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

    fn running(&self) -> MutexGuard<'_, Vec<RunningCommand>> {
        lock(&self.running)
    }
}

#[cfg(test)]
mod tests {
    use disruption::Method;
    use disruption::command::Cost;

    use super::*;

    #[test]
    fn a_command_begins_unless_another_has_one_of_its_claims() {
        let command = |execution, claims: &[&str]| Command {
            id: "c".to_owned(),
            method: Method::Drift,
            execution,
            repair_reason: None,
            candidates: claims
                .iter()
                .map(|claim| CommandCandidate {
                    node: format!("node-of-{claim}"),
                    claim: (*claim).to_owned(),
                    ..CommandCandidate::default()
                })
                .collect(),
            destinations: Vec::new(),
            before: Cost::default(),
            after: Cost::default(),
            policy_reason: None,
            score: 0.0,
        };
        let moves = || Execution::ReplaceFirst(Vec::new());
        let queued = BTreeSet::from(["taken".to_owned()]);
        let taken = "another command about node-of-taken is under way".to_owned();
        for (command, expected) in [
            (command(moves(), &["free"]), Decided::Move),
            (command(Execution::Reboot, &["free"]), Decided::Reboot),
            (command(moves(), &[]), Decided::Nothing),
            (command(moves(), &["free", "taken"]), Decided::Refuse(taken)),
        ] {
            assert_eq!(decide(&command, &queued), expected);
        }
    }
}
