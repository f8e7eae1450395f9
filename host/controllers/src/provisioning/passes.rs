//! The last pass of each controller that runs the solver: what it is called, what is left in it, and since when it is
//! at work.
//!
//! Answers to the gauges of a pass in Karpenter's `pkg/controllers/provisioning/scheduling/metrics.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use locks::lock;
use tokio::time::Instant;

/// The last pass of a controller.
#[derive(Debug)]
pub(crate) struct LastPass {
    /// As decisions are called.
    pub(crate) id: String,
    /// Pods that still want a place.
    pub(crate) pods: usize,
    /// Since when it is at work; none when it is over.
    pub(crate) began: Option<Instant>,
}

/// By the names of controllers.
#[derive(Debug, Default)]
pub(crate) struct Passes(Mutex<BTreeMap<&'static str, LastPass>>);

impl Passes {
    /// A pass begins.
    pub(crate) fn begin(&self, controller: &'static str, id: &str, pods: usize) {
        let pass = LastPass {
            id: id.to_owned(),
            pods,
            began: Some(Instant::now()),
        };
        self.lock().insert(controller, pass);
    }

    /// It is over, and these pods found no place.
    pub(crate) fn end(&self, controller: &'static str, pods: usize) {
        if let Some(pass) = self.lock().get_mut(controller) {
            (pass.pods, pass.began) = (pods, None);
        }
    }

    /// Tells of the last pass of each controller.
    pub(crate) fn each(&self, mut tell: impl FnMut(&'static str, &LastPass)) {
        for (controller, pass) in self.lock().iter() {
            tell(controller, pass);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, LastPass>> {
        lock(&self.0)
    }
}
