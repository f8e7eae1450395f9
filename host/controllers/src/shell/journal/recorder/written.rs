//! Events that were written before, by what a repetition of them has in common, so that it raises their count.
//!
//! Bounded; it writes nothing itself. Answers to the cache of client-go's event logger.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// As many as client-go remembers.
const WRITTEN_MAX: usize = 4096;

/// Everything that an event and its repetition have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventContent {
    /// Identity of the object.
    pub(super) object: String,
    pub(super) reason: Cow<'static, str>,
    pub(super) message: String,
}

/// An Event of the API server.
#[derive(Debug)]
pub(super) struct WrittenEvent {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: i32,
}

/// The last events that were written.
#[derive(Debug, Default)]
pub(super) struct WrittenEvents {
    by_content: BTreeMap<Arc<EventContent>, (u64, WrittenEvent)>,
    /// In the order in which they were written, by their number.
    by_number: BTreeMap<u64, Arc<EventContent>>,
    last_number: u64,
}

impl WrittenEvents {
    pub(super) fn get_mut(&mut self, content: &EventContent) -> Option<&mut WrittenEvent> {
        self.by_content.get_mut(content).map(|(_, event)| event)
    }

    /// The event is gone.
    pub(super) fn remove(&mut self, content: &EventContent) {
        if let Some((number, _)) = self.by_content.remove(content) {
            self.by_number.remove(&number);
        }
    }

    /// An event was written; where there is no room, the oldest is forgotten.
    pub(super) fn add(&mut self, content: EventContent, event: WrittenEvent) {
        self.remove(&content);
        if self.by_number.len() >= WRITTEN_MAX
            && let Some((_, oldest)) = self.by_number.pop_first()
        {
            self.by_content.remove(&oldest);
        }
        self.last_number += 1;
        let content = Arc::new(content);
        self.by_number
            .insert(self.last_number, Arc::clone(&content));
        self.by_content.insert(content, (self.last_number, event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let content = |number: usize| EventContent {
            object: String::new(),
            reason: Cow::Borrowed("Nominated"),
            message: number.to_string(),
        };
        let event = || WrittenEvent {
            namespace: "default".to_owned(),
            name: "a".to_owned(),
            count: 1,
        };
        let mut written = WrittenEvents::default();
        for number in 0..WRITTEN_MAX {
            written.add(content(number), event());
        }
        // One that was deleted and written anew is the youngest.
        written.remove(&content(0));
        written.add(content(0), event());
        written.add(content(WRITTEN_MAX), event());
        let mut knows = |number| written.get_mut(&content(number)).is_some();
        let known = [0, 1, 2, WRITTEN_MAX].map(&mut knows);
        assert_eq!(known, [true, false, true, true]);
    }
}
