//! Whose turn it is: whether this replica waits for the lead, leads, or is about to stop.
//!
//! It elects nobody; the binary does, and says so here. Answers to what controller-runtime's manager starts before the
//! election and after it, and to its graceful shutdown.

use std::sync::Arc;

use tokio::sync::watch;

/// How far the process is. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TurnStage {
    /// Changes are watched, so that the model is full when the turn comes; nothing is done.
    StandsBy,
    /// This replica leads, and everything runs.
    Leads,
    /// Nothing new is begun; what was begun is seen to its end.
    Stops,
    /// All is done; what is to be told of it is told.
    Concludes,
}

/// Clones tell of the same process.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    stage: Arc<watch::Sender<TurnStage>>,
}

impl Turn {
    /// Of a process that has to wait for the lease, or leads at once.
    pub(crate) fn new(stands_by: bool) -> Self {
        let first = if stands_by {
            TurnStage::StandsBy
        } else {
            TurnStage::Leads
        };
        Self {
            stage: Arc::new(watch::Sender::new(first)),
        }
    }

    /// The process is as far as that; nothing where it is further already.
    pub(crate) fn reach(&self, stage: TurnStage) {
        self.stage.send_if_modified(|known| {
            let is_further = *known < stage;
            *known = stage.max(*known);
            is_further
        });
    }

    pub(crate) fn stage(&self) -> TurnStage {
        *self.stage.borrow()
    }

    /// Returns once the process is as far as that, or further.
    pub(crate) async fn wait_for(&self, stage: TurnStage) {
        let mut stages = self.stage.subscribe();
        // The sender lives as long as `self`.
        stages.wait_for(|it| *it >= stage).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_never_goes_back() {
        let turn = Turn::new(true);
        for (stage, expected) in [
            (TurnStage::Leads, TurnStage::Leads),
            (TurnStage::StandsBy, TurnStage::Leads),
            (TurnStage::Stops, TurnStage::Stops),
            (TurnStage::Leads, TurnStage::Stops),
        ] {
            turn.reach(stage);
            assert_eq!(turn.stage(), expected, "{stage:?}");
        }
    }
}
