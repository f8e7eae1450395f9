//! How busy the controllers are: for whoever waits until they are done, as the demo and the tests do.
//!
//! No controller may ask for it: none waits for another.

/// How busy the controllers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControllerActivity {
    /// Keys waiting or at work, of all queues.
    pub queued: usize,
    /// Keys that failed and wait for another try.
    pub failing: usize,
    /// Keys that will be worked on within seconds, chores that come back by themselves left out.
    pub due_soon: usize,
    /// Whether a batch of pods is being collected or solved.
    pub is_provisioning: bool,
    /// Disruption commands under way.
    pub commands: usize,
    /// Whether the model is synced: every kind listed, no claim without instance.
    pub is_synced: bool,
}

impl ControllerActivity {
    /// Whether nothing is being done and nothing is about to be done.
    pub fn is_idle(&self) -> bool {
        let Self {
            queued,
            failing,
            due_soon,
            is_provisioning,
            commands,
            is_synced,
        } = *self;
        queued == 0
            && failing == 0
            && due_soon == 0
            && !is_provisioning
            && commands == 0
            && is_synced
    }
}
