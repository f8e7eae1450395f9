//! Commands that are looked at a second time before they begin, and the world as scans see it meanwhile.
//!
//! Whether a command still holds is not decided here. Answers to `pkg/controllers/disruption/validation.go`.

use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::time::Duration;

use disruption::validation::{
    ValidatedCommand, WAITING_MAX, may_be_supposed_begun, supposing_begun, validate,
};
use disruption::{Command, DisruptionInput};
use locks::lock;
use scheduling::Interrupt;
use tokio::time::Instant;

use super::command_entry::{CommandEntry, InFlightCommand};
use super::{SCAN_TIMEOUT, VoluntaryDisruption};
use crate::shell::error::ReconcileError;

/// How long a consolidation command waits before it is looked at a second time and carried out.
pub(super) const VALIDATED_AFTER: Duration = Duration::from_secs(15);

/// A command that is looked at a second time before it begins.
#[derive(Clone)]
pub(super) struct WaitingCommand {
    pub(super) command: Command,
    pub(super) due: Instant,
}

impl VoluntaryDisruption {
    /// Whether another loop can take all that waits for granted.
    pub(super) fn may_look(&self) -> bool {
        let waiting = self.waiting();
        waiting.len() < WAITING_MAX && waiting.iter().all(|it| may_be_supposed_begun(&it.command))
    }

    /// How long the first of the commands that wait has to.
    pub(super) fn until_due(&self) -> Option<Duration> {
        let due = self.waiting().front()?.due;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Looks a second time at the commands that waited long enough, oldest first, each in the world that those before
    /// it left: it must still agree, or the command is dropped. Fails, once all had their turn, where a look did.
    pub(super) async fn begin_what_still_holds(&self) -> Result<(), ReconcileError> {
        let mut outcome = Ok(());
        while self.shell.model.is_synced() && self.until_due().is_some_and(|it| it.is_zero()) {
            let Some(WaitingCommand { command, .. }) = self.waiting().front().cloned() else {
                break;
            };
            self.nominate_awaiting();
            match self.still_holds(command).await {
                Ok(Some(validated)) => {
                    self.orchestration.start(validated).await;
                }
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
            self.waiting().pop_front();
        }
        outcome
    }

    /// The part of the command that still holds at its second look. Of a look that failed nobody knows what holds.
    async fn still_holds(&self, command: Command) -> Result<Option<Command>, ReconcileError> {
        let observed = self.observe(self.next_number()).await;
        let hooks = self.hooks.clone();
        let checked = command.clone();
        let work = move |stop: &Interrupt| validate(&observed, hooks.lent(), stop, checked);
        let looked = self.shell.compute_within(SCAN_TIMEOUT, work).await;
        let subject = InFlightCommand {
            command: &command,
            snapshot: &self.shell.model.snapshot(),
        };
        let journal = &self.shell.journal;
        let ValidatedCommand {
            survivor: validated,
            dropped,
        } = looked.inspect_err(|error| {
            let why = format!("its second look failed: {error}");
            journal.write(&subject, &CommandEntry::Rejected(&why));
        })?;
        if !dropped.is_empty() {
            journal.write(&subject, &CommandEntry::Dropped(&dropped));
        }
        if let Err(rejection) = &validated {
            journal.write(&subject, &CommandEntry::Rejected(&rejection.to_string()));
        }
        Ok(validated.ok())
    }

    /// The world as if what waits had begun.
    pub(super) fn supposing_begun(&self, observed: DisruptionInput) -> DisruptionInput {
        let waiting = self.waiting();
        let commands: Vec<Command> = waiting.iter().map(|it| it.command.clone()).collect();
        drop(waiting);
        if commands.is_empty() {
            return observed;
        }
        let until = self.shell.model.nominated_until(observed.options.now);
        supposing_begun(observed, &commands, until)
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, VecDeque<WaitingCommand>> {
        lock(&self.waiting)
    }
}
