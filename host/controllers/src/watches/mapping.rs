//! Makes facts of objects that a watch hands over: most go to the model as they are.
//!
//! It keeps nothing of them.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use apis::{ObjectKey, labels};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::core::{DynamicObject, PartialObjectMeta};
use state::Event;
use state::cluster::Watched;
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::{Workload, WorkloadKind};
use tracing::warn;

use super::fact::{WatchFact, key_of};
use crate::policy_binding::PolicyFact;
use crate::shell::model::managed::Managed;
use crate::voluntary_disruption::deletion_cost::written::WrittenCosts;

/// Makes a fact of an object that a watch hands over.
pub(super) trait ObjectMapper<K>: Send + 'static {
    /// An object was added or changed.
    fn applied(&self, object: K) -> WatchFact;
    /// An object is gone.
    fn deleted(&self, key: ObjectKey) -> WatchFact;
    /// These are all there are.
    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact;
}

/// Hands the object to the model as it is.
#[derive(Debug)]
pub(super) struct Plain<K>(PhantomData<fn(K)>);

impl<K> Default for Plain<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: Watched<Kind = ()>> ObjectMapper<K> for Plain<K> {
    fn applied(&self, object: K) -> WatchFact {
        WatchFact::Model(Event::applied(Arc::new(object)))
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        WatchFact::Model(Event::deleted::<K>(key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        WatchFact::Model(Event::listed::<K>((), keys))
    }
}

/// Leaves out what another provider manages; one of ours may have borne the name before.
#[derive(Debug)]
pub(super) struct Ours<K>(Plain<K>);

impl<K> Default for Ours<K> {
    fn default() -> Self {
        Self(Plain::default())
    }
}

impl<K: Watched<Kind = ()> + Managed + ResourceExt> ObjectMapper<K> for Ours<K> {
    fn applied(&self, object: K) -> WatchFact {
        if object.is_managed() {
            self.0.applied(object)
        } else {
            self.0.deleted(key_of(&object))
        }
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        self.0.deleted(key)
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        self.0.listed(keys)
    }
}

/// Pods without what we write on them ourselves, where we do: that must not decide anything, nor make equal pods
/// differ.
pub(super) struct Pods(pub(super) Option<Arc<WrittenCosts>>);

impl ObjectMapper<Pod> for Pods {
    fn applied(&self, mut object: Pod) -> WatchFact {
        if let Some(written_costs) = &self.0 {
            let annotations = object.metadata.annotations.as_mut();
            let cost = annotations.and_then(|it| it.remove(labels::POD_DELETION_COST_ANNOTATION));
            written_costs.set(&key_of(&object), cost);
        }
        WatchFact::Model(Event::applied(Arc::new(object)))
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        if let Some(written_costs) = &self.0 {
            written_costs.set(&key, None);
        }
        WatchFact::Model(Event::deleted::<Pod>(key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        if let Some(written_costs) = &self.0 {
            written_costs.retain(&keys);
        }
        WatchFact::Model(Event::listed::<Pod>((), keys))
    }
}

/// Makes the same fact of every kind of workload.
#[derive(Debug)]
pub(super) struct WatchedWorkloads(pub(super) WorkloadKind);

impl<K> ObjectMapper<K> for WatchedWorkloads
where
    Workload: From<K>,
{
    fn applied(&self, object: K) -> WatchFact {
        WatchFact::Model(Event::applied(Arc::new(Workload::from(object))))
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        WatchFact::Model(Event::deleted_of::<Workload>(self.0, key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        WatchFact::Model(Event::listed::<Workload>(self.0, keys))
    }
}

/// Reads objects that tell of devices. An object that cannot be read counts as absent.
#[derive(Debug)]
pub(super) struct WatchedDevices(pub(super) DeviceKind);

impl ObjectMapper<DynamicObject> for WatchedDevices {
    fn applied(&self, object: DynamicObject) -> WatchFact {
        let key = key_of(&object);
        let value = serde_json::to_value(object).unwrap_or_default();
        match DeviceObject::read(self.0, &value) {
            Ok(device) => WatchFact::Model(Event::applied(Arc::new(device))),
            Err(error) => {
                warn!(name = key.name, %error, "object left out of cluster state");
                self.deleted(key)
            }
        }
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        WatchFact::Model(Event::deleted_of::<DeviceObject>(self.0, key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        WatchFact::Model(Event::listed::<DeviceObject>(self.0, keys))
    }
}

/// Hands the ConfigMaps of policies to their controller.
#[derive(Debug)]
pub(super) struct Policies;

impl ObjectMapper<ConfigMap> for Policies {
    fn applied(&self, object: ConfigMap) -> WatchFact {
        WatchFact::Policy(PolicyFact::Applied(key_of(&object), Arc::new(object)))
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        WatchFact::Policy(PolicyFact::Deleted(key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        WatchFact::Policy(PolicyFact::Listed(keys))
    }
}

/// Tells the controller of policies that another ConfigMap changed, by its name alone.
#[derive(Debug)]
pub(super) struct PolicyData;

impl ObjectMapper<PartialObjectMeta<ConfigMap>> for PolicyData {
    fn applied(&self, object: PartialObjectMeta<ConfigMap>) -> WatchFact {
        self.deleted(key_of(&object))
    }

    fn deleted(&self, key: ObjectKey) -> WatchFact {
        WatchFact::Policy(PolicyFact::DataTouched(key))
    }

    fn listed(&self, keys: BTreeSet<ObjectKey>) -> WatchFact {
        WatchFact::Policy(PolicyFact::DataListed(keys))
    }
}
