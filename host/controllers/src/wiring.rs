//! Puts the controllers together and runs them; what the binary sees of them.
//!
//! The order in which they begin and end, no decisions. Answers to `pkg/controllers/controllers.go`.

mod activity;
mod config;
mod parts;
mod workers;

use std::sync::Arc;

use state::Snapshot;
use tokio::task::JoinSet;

use self::parts::{Task, Wiring};
use crate::observability::StateMetrics;
use crate::shell::feed::DecisionFeed;
use crate::shell::journal::SharedLedger;
use crate::shell::turn::TurnStage;
use crate::watches;

pub use self::activity::ControllerActivity;
pub use self::config::{ControllersConfig, ControllersHooks};

/// The controllers, ready to run. Clones share everything.
#[derive(Clone)]
pub struct Controllers {
    parts: Arc<Wiring>,
}

impl Controllers {
    /// Puts them together; nothing happens before [`Self::run`].
    pub fn new(config: ControllersConfig) -> Self {
        Self {
            parts: Arc::new(Wiring::new(config)),
        }
    }

    /// Makes this one of several replicas: [`Self::run`] only watches until [`Self::lead`] is called.
    pub fn stand_by(&self) {
        self.parts.shell.turn.set(TurnStage::StandsBy);
    }

    /// It is this replica's turn.
    pub fn lead(&self) {
        self.parts.shell.turn.set(TurnStage::Leads);
    }

    /// Has [`Self::run`] end once what was begun is done and told.
    pub fn stop(&self) {
        self.parts.shell.turn.set(TurnStage::Stops);
    }

    /// Whether this replica's turn has come and is not over.
    pub fn leads(&self) -> bool {
        self.parts.shell.turn.stage() == TurnStage::Leads
    }

    /// Returns once this replica's turn has come.
    pub async fn until_leading(&self) {
        self.parts.shell.turn.wait_for(TurnStage::Leads).await;
    }

    /// Runs everything until the future is dropped, one of the loops dies of a bug, or all is done after
    /// [`Self::stop`]. Call it once.
    ///
    /// Only the watches run at first: who acts on half of what there is takes a node for drained whose pods are on
    /// the second page. A replica whose turn has not come goes no further.
    pub async fn run(&self) {
        let parts = &self.parts;
        let turn = &parts.shell.turn;
        let mut watching = JoinSet::new();
        watching.spawn(watches::run(Arc::clone(&parts.shell), parts.router()));
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
        workers.spawn(parts.provisioning());
        workers.spawn(parts.static_pools());
        spawn_all(&mut loops, parts.loops());
        spawn_all(&mut telling, parts.publisher());
        spawn_all(&mut workers, parts.workers());
        // None of them ends by itself before. Dropping the sets ends all.
        tokio::select! {
            () = turn.wait_for(TurnStage::Stops) => {}
            _ = watching.join_next() => return,
            _ = loops.join_next() => return,
            _ = workers.join_next() => return,
            _ = telling.join_next(), if !telling.is_empty() => return,
        }
        // What these do is looked at anew by whoever comes next, from what was written.
        loops.abort_all();
        while workers.join_next().await.is_some() {}
        turn.set(TurnStage::Concludes);
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
        StateMetrics::new(Arc::clone(&self.parts.shell))
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

fn spawn_all(set: &mut JoinSet<()>, tasks: impl IntoIterator<Item = Task>) {
    for task in tasks {
        set.spawn(task);
    }
}
