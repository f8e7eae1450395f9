//! CapacityBuffers in the model.
//!
//! What a buffer comes to is not worked out here.

use std::sync::Arc;

use apis::{CapacityBuffer, ObjectKey};
use jiff::Timestamp;

use super::Cluster;
use super::change::{Change, Changes, Refused, Versions};
use super::watched::Watched;
use crate::snapshot::Snapshot;

impl Watched for CapacityBuffer {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let key = ObjectKey::of(&object.metadata);
        let buffers = Arc::make_mut(&mut cluster.data.capacity_buffers);
        let before = buffers.insert(key.clone(), Arc::clone(&object));
        let versions = Versions::applied(key, before, object);
        if versions.differ(|it| it.spec.clone()) {
            cluster.bump(now);
        }
        Ok(vec![Change::CapacityBuffer(versions)])
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.capacity_buffers).remove(key);
        if before.is_some() {
            cluster.bump(now);
        }
        let gone = Versions::gone(key, before);
        gone.map(Change::CapacityBuffer).into_iter().collect()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.capacity_buffers.keys().cloned().collect()
    }
}

impl Snapshot {
    /// Every CapacityBuffer, by namespace and name.
    pub fn capacity_buffers(&self) -> impl ExactSizeIterator<Item = &Arc<CapacityBuffer>> {
        self.data.capacity_buffers.values()
    }
}
