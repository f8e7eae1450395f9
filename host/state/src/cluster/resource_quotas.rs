//! ResourceQuotas in the model: how many pods each still lets into its namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{ObjectKey, quantity};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Cluster;
use super::change::{Changes, Refused};
use super::watched::Watched;
use crate::snapshot::Snapshot;

/// What a quota calls pods: those that have not ended, and all.
const PODS: [&str; 2] = ["pods", "count/pods"];

impl Watched for v1::ResourceQuota {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let key = ObjectKey::of(&object.metadata);
        let quotas = Arc::make_mut(&mut cluster.data.pods_left);
        if let Some(left) = pods_left(&object) {
            quotas.insert(key, left);
        } else {
            quotas.remove(&key);
        }
        Ok(Changes::new())
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.pods_left).remove(key);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.pods_left.keys().cloned().collect()
    }
}

/// Pods that a quota lets in beside those that are there; none where it bounds none, or those of some scope alone.
fn pods_left(object: &v1::ResourceQuota) -> Option<i64> {
    let (spec, status) = (object.spec.as_ref()?, object.status.as_ref()?);
    if spec.scopes.is_some() || spec.scope_selector.is_some() {
        return None;
    }
    let whole = |amounts: &Option<BTreeMap<String, Quantity>>, name: &str| {
        let amount = amounts.as_ref()?.get(name)?;
        Some(quantity::millis(amount).ok()? / 1000)
    };
    let left = PODS.into_iter().filter_map(|name| {
        let (hard, used) = (whole(&status.hard, name)?, whole(&status.used, name)?);
        Some((hard - used).max(0))
    });
    left.min()
}

impl Snapshot {
    /// How many pods the quotas of a namespace let in beside those that are there; `None` where none bounds them.
    pub fn pods_left(&self, namespace: &str) -> Option<i64> {
        let quotas = self.data.pods_left.iter();
        let quotas = quotas.filter(|(key, _)| key.namespace == namespace);
        quotas.map(|(_, left)| *left).min()
    }
}
