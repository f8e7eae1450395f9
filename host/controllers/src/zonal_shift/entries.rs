//! What is told of zonal shifts.

use apis::NodePool;
use kube::{Resource, ResourceExt};
use tracing::info;

use super::decision::Transition;
use crate::shell::journal::JournalEntry;
use crate::shell::recorder::{EventType, Notice};

/// A zone of the pool went, or came back.
pub(super) struct ZonalShiftEntry<'a>(pub(super) &'a Transition<'a>);

impl JournalEntry for ZonalShiftEntry<'_> {
    type Subject = NodePool;

    fn log(&self, pool: &NodePool) {
        let Transition {
            node_pool: _,
            zone,
            zone_id,
            is_shifted,
        } = self.0;
        let name = pool.name_any();
        if *is_shifted {
            info!(NodePool = %name, zone, zone_id, "traffic is shifted away from a zone");
        } else {
            info!(NodePool = %name, zone, zone_id, "traffic is back in a zone");
        }
    }

    fn events(&self, pool: &NodePool) -> Vec<Notice> {
        let Transition {
            node_pool: _,
            zone,
            zone_id,
            is_shifted,
        } = self.0;
        let (event_type, reason, message) = if *is_shifted {
            let message = format!(
                "Traffic is shifted away from zone {zone} ({zone_id}): nothing is launched or ended there"
            );
            (EventType::Warning, "ZonalShiftActive", message)
        } else {
            let message = format!("The zonal shift away from zone {zone} ({zone_id}) is over");
            (EventType::Normal, "ZonalShiftCleared", message)
        };
        let regarding = pool.object_ref(&());
        let notice = Notice::new(regarding, event_type, reason, message);
        vec![notice.distinct_by(zone_id)]
    }
}
