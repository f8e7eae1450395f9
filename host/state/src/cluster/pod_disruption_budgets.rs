//! PodDisruptionBudgets in the model.
//!
//! Whether one lets a pod go is not asked here.

use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::policy::v1;

use super::Cluster;
use super::change::{Changes, Refused};
use super::watched::Watched;
use crate::pod_disruption_budget::{Pdb, Pdbs};
use crate::snapshot::Snapshot;

impl Watched for v1::PodDisruptionBudget {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Arc::make_mut(&mut cluster.data.pdbs).insert(Pdb::parse(&object));
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.pdbs).remove(&key.namespace, &key.name);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let pdbs = cluster.data.pdbs.all();
        pdbs.map(|it| ObjectKey::new(&it.namespace, &it.name))
            .collect()
    }
}

impl Snapshot {
    /// PodDisruptionBudgets of the cluster.
    pub fn pdbs(&self) -> &Pdbs {
        &self.data.pdbs
    }
}
