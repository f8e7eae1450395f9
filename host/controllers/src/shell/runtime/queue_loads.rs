//! The queues of all controllers that run, by the name of the controller, for whoever asks how much they have to do.
//!
//! It takes nothing off a queue. Answers to the gauges that client-go's `util/workqueue` keeps of its queues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use locks::lock;

use crate::shell::runtime::work_queue::{Load, WorkQueue};

type Ask = Box<dyn Fn() -> Load + Send + Sync>;

/// Shared by all that run controllers.
#[derive(Default)]
pub(crate) struct QueueLoads(Mutex<BTreeMap<&'static str, Ask>>);

impl QueueLoads {
    /// A controller runs over this queue.
    pub(crate) fn add<K>(&self, controller: &'static str, queue: &Arc<WorkQueue<K>>)
    where
        K: Ord + Clone + Send + Sync + 'static,
    {
        let queue = Arc::clone(queue);
        let mut all = lock(&self.0);
        all.insert(controller, Box::new(move || queue.load()));
    }

    /// Tells what each has to do now.
    pub(crate) fn each(&self, mut tell: impl FnMut(&'static str, &Load)) {
        let all = lock(&self.0);
        for (controller, ask) in all.iter() {
            tell(controller, &ask());
        }
    }
}
