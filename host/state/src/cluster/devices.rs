//! Objects of the group `resource.k8s.io` in the model.

use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;

use super::Cluster;
use super::change::{Changes, Refused};
use super::watched::Watched;
use crate::devices::{DeviceKind, DeviceObject, DeviceWorld};
use crate::snapshot::Snapshot;

impl Watched for DeviceObject {
    type Kind = DeviceKind;

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.devices).apply(&object);
        Ok(Changes::new())
    }

    fn deleted(
        cluster: &mut Cluster,
        _now: Timestamp,
        kind: DeviceKind,
        key: &ObjectKey,
    ) -> Changes {
        Arc::make_mut(&mut cluster.data.devices).remove(kind, key);
        Changes::new()
    }

    fn known(cluster: &Cluster, kind: DeviceKind) -> Vec<ObjectKey> {
        cluster.data.devices.keys(kind)
    }
}

impl Snapshot {
    /// Devices, their classes, and claims on them.
    pub fn devices(&self) -> &DeviceWorld {
        &self.data.devices
    }
}
