//! PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments in the model.
//!
//! Only who takes what in stands here; what the objects say is `volumes/objects.rs`.

use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::storage::v1 as storage;

use super::Cluster;
use super::change::{Changes, Refused};
use super::watched::Watched;
use crate::snapshot::Snapshot;
use crate::volumes::{Attachment, Volumes};

impl Watched for v1::PersistentVolumeClaim {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_claim(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let claims = &mut Arc::make_mut(&mut cluster.data.volumes).claims;
        if let Some(named) = claims.get_mut(&key.namespace) {
            named.remove(&key.name);
            if named.is_empty() {
                claims.remove(&key.namespace);
            }
        }
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let claims = cluster.data.volumes.claims.iter();
        let keys = claims.flat_map(|(namespace, named)| {
            named
                .keys()
                .map(move |name| ObjectKey::new(namespace, name))
        });
        keys.collect()
    }
}

impl Watched for v1::PersistentVolume {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_volume(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .volumes
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.volumes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::StorageClass {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_class(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .classes
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.classes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::CSINode {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.volumes).apply_csi_node(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .limits
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.limits.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for storage::VolumeAttachment {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let attachment = Attachment {
            node: object.spec.node_name.clone(),
            volume: object
                .spec
                .source
                .persistent_volume_name
                .clone()
                .unwrap_or_default(),
        };
        Arc::make_mut(&mut cluster.data.volumes)
            .attachments
            .insert(name, attachment);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.volumes)
            .attachments
            .remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.volumes.attachments.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Snapshot {
    /// Volumes, their claims and classes, and limits of nodes.
    pub fn volumes(&self) -> &Volumes {
        &self.data.volumes
    }
}
