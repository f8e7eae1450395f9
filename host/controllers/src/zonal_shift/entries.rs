//! Journal entries about zonal shifts.
//!
//! Events answer to `NodePoolZonalShiftDetected` and `NodePoolZonalShiftCleared` of the AWS provider.

use apis::NodePool;
use kube::ResourceExt;
use tracing::info;

use super::decision::Transition;
use crate::shell::journal::JournalEntry;
use crate::shell::journal::recorder::{EventType, KubernetesEvent};

impl JournalEntry for Transition<'_> {
    type Subject = NodePool;

    fn log(&self, pool: &NodePool) {
        let (name, zone, zone_id) = (pool.name_any(), self.zone, self.zone_id);
        if self.is_shifted {
            info!(NodePool = %name, zone, zone_id, "traffic is shifted away from a zone");
        } else {
            info!(NodePool = %name, zone, zone_id, "traffic is back in a zone");
        }
    }

    fn events(&self, pool: &NodePool) -> Vec<KubernetesEvent> {
        let (zone, zone_id) = (self.zone, self.zone_id);
        let (event_type, reason, message) = if self.is_shifted {
            let message = format!(
                "Traffic is shifted away from zone {zone} ({zone_id}): nothing is launched or ended there"
            );
            (EventType::Warning, "ZonalShiftActive", message)
        } else {
            let message = format!("The zonal shift away from zone {zone} ({zone_id}) is over");
            (EventType::Normal, "ZonalShiftCleared", message)
        };
        let notice = KubernetesEvent::about(pool, event_type, reason, message);
        vec![notice.distinct_by(zone_id)]
    }
}
