//! Puts the controllers together and runs them; what the binary sees of them.
//!
//! The order in which they begin and end, no decisions. Answers to `pkg/controllers/controllers.go`.

mod activity;
mod config;
mod controller_provider;
mod parts;
mod shared;
mod workers;

use std::sync::Arc;

use disruption::repair::InvalidRepairPolicies;
use state::Snapshot;
use tokio::task::JoinSet;

use self::parts::{TaskEnd, Wiring};
use crate::observability::StateMetrics;
use crate::shell::journal::SharedLedger;
use crate::shell::journal::feed::DecisionFeed;
use crate::shell::turn::TurnStage;
use crate::watches::{self, WatchSource};

pub use self::activity::ControllerActivity;
pub use self::config::{ControllersConfig, ControllersHooks};

/// The controllers, ready to run. Clones share everything.
#[derive(Clone)]
pub struct Controllers {
    parts: Arc<Wiring>,
}

impl Controllers {
    /// Puts them together; nothing happens before [`Self::run`]. Fails where they could not do what the settings say.
    pub fn new(config: ControllersConfig) -> Result<Self, InvalidRepairPolicies> {
        let parts = Arc::new(Wiring::new(config)?);
        Ok(Self { parts })
    }

    /// It is this replica's turn.
    pub fn lead(&self) {
        self.parts.turn.reach(TurnStage::Leads);
    }

    /// Has [`Self::run`] end once what was begun is done and told.
    pub fn stop(&self) {
        self.parts.turn.reach(TurnStage::Stops);
    }

    /// Whether this replica's turn has come and is not over.
    pub fn leads(&self) -> bool {
        self.parts.turn.stage() == TurnStage::Leads
    }

    /// Returns once this replica's turn has come.
    pub async fn until_leading(&self) {
        self.parts.turn.wait_for(TurnStage::Leads).await;
    }

    /// Runs everything until the future is dropped, one of the loops dies of a bug, or all is done after
    /// [`Self::stop`]. Call it once.
    ///
    /// Only the watches run at first: who acts on half of what there is takes a node for drained whose pods are on
    /// the second page. A replica whose turn has not come goes no further.
    pub async fn run(&self) {
        let parts = &self.parts;
        let turn = &parts.turn;
        let mut watching = JoinSet::new();
        let source = WatchSource {
            shell: Arc::clone(&parts.shell),
            written_costs: Arc::clone(&parts.notes.written_costs),
        };
        watching.spawn(watches::run(source, parts.router()));
        let has_begun = async {
            watches::first_lists(&parts.shell).await;
            turn.wait_for(TurnStage::Leads).await;
        };
        tokio::select! {
            () = has_begun => {}
            _ = watching.join_next() => return,
        }
        let (mut loops, mut workers, mut telling) =
            (JoinSet::new(), JoinSet::new(), JoinSet::new());
        for (end, task) in parts.tasks() {
            let set = match end {
                TaskEnd::AtStop => &mut loops,
                TaskEnd::AfterWork => &mut workers,
                TaskEnd::AfterTelling => &mut telling,
            };
            set.spawn(task);
        }
        // None of them ends by itself before. Dropping the sets ends all.
        tokio::select! {
            () = turn.wait_for(TurnStage::Stops) => {}
            _ = watching.join_next() => return,
            _ = loops.join_next() => return,
            _ = workers.join_next() => return,
            _ = telling.join_next(), if !telling.is_empty() => return,
        }
        loops.abort_all();
        while workers.join_next().await.is_some() {}
        turn.reach(TurnStage::Concludes);
        while telling.join_next().await.is_some() {}
    }

    /// The model of the cluster as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.parts.shell.model.snapshot()
    }

    /// The record of decisions.
    pub fn ledger(&self) -> SharedLedger {
        Arc::clone(&self.parts.shell.journal.ledger)
    }

    /// Gauges of what there is now; the caller registers them.
    pub fn state_metrics(&self) -> StateMetrics {
        self.parts.state_metrics()
    }

    /// The latest decisions, as lines.
    pub fn feed(&self) -> Arc<DecisionFeed> {
        Arc::clone(&self.parts.shell.journal.feed)
    }

    /// Whether every kind was listed once; for readiness probes.
    pub fn is_started(&self) -> bool {
        self.parts.shell.model.progress().is_complete()
    }

    /// How busy the controllers are.
    pub fn activity(&self) -> ControllerActivity {
        self.parts.activity()
    }

    /// Whether nothing is being done and nothing is about to be done.
    pub fn is_idle(&self) -> bool {
        self.activity().is_idle()
    }
}
