//! Watches: how changes are told to those that are open, and to those that resume.

use crate::resource::Resource;
use crate::selectors::Selection;
use crate::status::StatusError;
use crate::store::Store;
use crate::store::watch::{Watch, WatchEvent};

/// Changes each table remembers for watches that resume; older ones answer 410. A watch resumes from what it saw
/// last, and each change holds on to two states of its object.
pub(super) const LOG_LENGTH_MAX: usize = 256;

impl Store {
    pub(super) fn publish(&mut self, event: WatchEvent) {
        self.subscribers.retain(|s| !s.is_closed());
        for subscriber in &self.subscribers {
            subscriber.push(&event);
        }
        let Some(table) = self.tables.get_mut(&event.resource) else {
            return;
        };
        table.log.push_back(event);
        while table.log.len() > self.log_length_max
            && let Some(oldest) = table.log.pop_front()
        {
            table.forgotten = oldest.revision;
        }
    }

    /// Whether every change after `revision` is still known.
    pub(crate) fn check_remembered(
        &self,
        resource: &Resource,
        revision: u64,
    ) -> Result<(), StatusError> {
        let forgotten = self.tables.get(resource).map_or(0, |table| table.forgotten);
        if revision < forgotten {
            return Err(StatusError::expired(revision, forgotten));
        }
        Ok(())
    }

    /// Starts a watch on changes from now on.
    pub(crate) fn watch_from_now(
        &mut self,
        resources: &[&Resource],
        selection: Selection,
    ) -> Watch {
        let resources = resources.iter().map(|r| (*r).clone()).collect();
        let (watch, subscriber) = Watch::new(resources, selection, Vec::new());
        self.subscribers.push(subscriber);
        watch
    }

    /// Starts a watch with the changes after `since`, at its head.
    pub(crate) fn watch(
        &mut self,
        resources: &[Resource],
        selection: Selection,
        since: u64,
    ) -> Result<Watch, StatusError> {
        let mut past = Vec::new();
        for resource in resources {
            self.check_remembered(resource, since)?;
            let Some(table) = self.tables.get(resource) else {
                continue;
            };
            let start = table.log.partition_point(|e| e.revision <= since);
            let newer = table.log.range(start..);
            past.extend(newer.filter_map(|e| e.seen_through(&selection)));
        }
        past.sort_by_key(|event| event.revision);
        let (watch, subscriber) = Watch::new(resources.to_vec(), selection, past);
        self.subscribers.push(subscriber);
        Ok(watch)
    }
}
