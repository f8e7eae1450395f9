//! Workloads, PodTemplates and Services in the model.

use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use super::Cluster;
use super::change::{Change, Changes, Refused};
use super::watched::Watched;
use crate::snapshot::Snapshot;
use crate::workloads::{Workload, WorkloadKind, Workloads};

impl Watched for Workload {
    type Kind = WorkloadKind;

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let workloads = Arc::make_mut(&mut cluster.data.workloads);
        workloads.apply(now, &object, &mut cluster.shapes);
        cluster.data.forget_surplus(object.kind, &object.key);
        Ok(vec![Change::Workload(object.key.clone())])
    }

    fn deleted(
        cluster: &mut Cluster,
        _now: Timestamp,
        kind: WorkloadKind,
        key: &ObjectKey,
    ) -> Changes {
        let workloads = Arc::make_mut(&mut cluster.data.workloads);
        workloads.all.remove(&(kind, key.clone()));
        cluster.data.forget_surplus(kind, key);
        vec![Change::Workload(key.clone())]
    }

    fn known(cluster: &Cluster, kind: WorkloadKind) -> Vec<ObjectKey> {
        let all = cluster.data.workloads.all.keys();
        let own = all.filter(|(it, _)| *it == kind);
        own.map(|(_, key)| key.clone()).collect()
    }
}

impl Watched for v1::Service {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.workloads).apply_service(&object);
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.workloads)
            .services
            .remove(key);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.workloads.services.keys().cloned().collect()
    }
}

impl Snapshot {
    /// Services and workloads of the cluster.
    pub fn workloads(&self) -> &Workloads {
        &self.data.workloads
    }
}
