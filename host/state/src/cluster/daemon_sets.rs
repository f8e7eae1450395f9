//! DaemonSets in the model: the pod that each would start.

use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet as ApiDaemonSet;
use scheduling::pod::{Pod, PodKey, PodShape};

use super::Cluster;
use super::change::{Changes, Refused, StateError};
use super::watched::Watched;

/// A DaemonSet as the pod that its template would start.
#[derive(Debug, Clone)]
pub(crate) struct DaemonSet {
    pub(crate) uid: String,
    pub(crate) template: Arc<PodShape>,
    /// The live pod that tells best what the next one asks for.
    pub(crate) newest_pod: Option<PodKey>,
}

impl Watched for ApiDaemonSet {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let applied = cluster.daemon_set_applied(&object);
        applied.map(|()| Changes::new()).map_err(|error| Refused {
            error: Box::new(error),
            changes: Changes::new(),
        })
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        Arc::make_mut(&mut cluster.data.daemon_sets).remove(key);
        Changes::new()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.daemon_sets.keys().cloned().collect()
    }
}

impl Cluster {
    fn daemon_set_applied(&mut self, object: &ApiDaemonSet) -> Result<(), StateError> {
        let meta = &object.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or("default");
        let name = meta.name.as_deref().unwrap_or_default();
        let key = ObjectKey::new(namespace, name);
        let template = object
            .spec
            .as_ref()
            .map(|it| it.template.clone())
            .unwrap_or_default();
        let shape = PodShape::parse_template(&template, namespace, name).map_err(|source| {
            StateError::DaemonSet {
                key: key.clone(),
                source: Box::new(source),
            }
        })?;
        let daemon_set = DaemonSet {
            uid: meta.uid.clone().unwrap_or_default(),
            template: self.shapes.intern(shape),
            newest_pod: None,
        };
        let uid = daemon_set.uid.clone();
        Arc::make_mut(&mut self.data.daemon_sets).insert(key, daemon_set);
        self.refresh_newest(&uid);
        Ok(())
    }

    pub(super) fn refresh_daemon(&mut self, pod: &Pod) {
        if let Some(owner) = pod
            .shape
            .owner
            .as_ref()
            .filter(|_| pod.is_owned_by_daemon_set())
        {
            self.refresh_newest(&owner.uid);
        }
    }

    fn refresh_newest(&mut self, uid: &str) {
        let newest = self
            .daemon_pods
            .get(uid)
            .and_then(|pods| pods.last())
            .map(|(_, key)| key.clone());
        let stale = self
            .data
            .daemon_sets
            .iter()
            .find(|(_, it)| it.uid == uid && it.newest_pod != newest)
            .map(|(key, _)| key.clone());
        if let Some(daemon_set) =
            stale.and_then(|key| Arc::make_mut(&mut self.data.daemon_sets).get_mut(&key))
        {
            daemon_set.newest_pod = newest;
        }
    }
}
