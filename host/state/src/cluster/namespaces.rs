//! Namespaces in the model: their labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::Cluster;
use super::change::{Changes, Refused};
use super::watched::Watched;
use crate::snapshot::Snapshot;

impl Watched for v1::Namespace {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let meta = &object.metadata;
        Arc::make_mut(&mut cluster.data.namespaces).insert(
            meta.name.clone().unwrap_or_default(),
            meta.labels.clone().unwrap_or_default(),
        );
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.namespaces).remove(&key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.namespaces.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Snapshot {
    /// Labels of the namespaces.
    pub fn namespaces(&self) -> &BTreeMap<String, BTreeMap<String, String>> {
        &self.data.namespaces
    }
}
