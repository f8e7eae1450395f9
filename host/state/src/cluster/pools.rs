//! NodePools, EC2NodeClasses and NodeOverlays in the model.

use std::sync::Arc;

use apis::{Ec2NodeClass, NodeOverlay, NodePool, ObjectKey};
use jiff::Timestamp;

use super::Cluster;
use super::change::{Change, Changes, Refused, Versions};
use super::resource_version::resource_version;
use super::watched::Watched;
use crate::facts::NodeClassFacts;
use crate::snapshot::Snapshot;

/// An EC2NodeClass with the facts read from it.
#[derive(Debug, Clone)]
pub(crate) struct NodeClass {
    pub(crate) facts: Arc<NodeClassFacts>,
    pub(crate) object: Arc<Ec2NodeClass>,
}

impl Watched for NodePool {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let pools = Arc::make_mut(&mut cluster.data.node_pools);
        let versions = Versions {
            before: pools.insert(name.clone(), Arc::clone(&object)),
            after: Some(object),
            key: ObjectKey::cluster(name),
        };
        if versions.differ(|it| it.metadata.generation) {
            cluster.bump(now);
        }
        Ok(vec![Change::NodePool(versions)])
    }

    fn written(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        // The answer to a write may come after the watch told of what others made of the pool meanwhile, or of its end.
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let known = cluster.data.node_pools.get(name);
        let version = |of: &Self| resource_version(&of.metadata);
        if known.is_some_and(|known| version(known) <= version(&object)) {
            Self::applied(cluster, now, object)
        } else {
            Ok(Changes::new())
        }
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.node_pools).remove(&key.name);
        if before.is_some() {
            cluster.bump(now);
        }
        deleted(key, before)
            .map(Change::NodePool)
            .into_iter()
            .collect()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.node_pools.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for Ec2NodeClass {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let class = NodeClass {
            facts: Arc::new(NodeClassFacts::parse(&object)),
            object: Arc::clone(&object),
        };
        let classes = Arc::make_mut(&mut cluster.data.node_classes);
        let before = classes.insert(name.clone(), class);
        Ok(vec![Change::NodeClass(Versions {
            key: ObjectKey::cluster(name),
            before: before.map(|it| it.object),
            after: Some(object),
        })])
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.node_classes).remove(&key.name);
        let deleted = deleted(key, before.map(|it| it.object));
        deleted.map(Change::NodeClass).into_iter().collect()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.node_classes.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

impl Watched for NodeOverlay {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        _now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let overlays = Arc::make_mut(&mut cluster.data.node_overlays);
        Ok(vec![Change::NodeOverlay(Versions {
            before: overlays.insert(name.clone(), Arc::clone(&object)),
            after: Some(object),
            key: ObjectKey::cluster(name),
        })])
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.node_overlays).remove(&key.name);
        let deleted = deleted(key, before);
        deleted.map(Change::NodeOverlay).into_iter().collect()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.node_overlays.keys();
        names.map(ObjectKey::cluster).collect()
    }
}

/// Nothing where there was nothing.
pub(crate) fn deleted<K>(key: &ObjectKey, before: Option<Arc<K>>) -> Option<Versions<K>> {
    before.map(|before| Versions {
        key: key.clone(),
        before: Some(before),
        after: None,
    })
}

impl Snapshot {
    /// Every NodePool, by name.
    pub fn node_pools(&self) -> impl ExactSizeIterator<Item = &Arc<NodePool>> {
        self.data.node_pools.values()
    }

    /// The NodePool of that name.
    pub fn node_pool(&self, name: &str) -> Option<&Arc<NodePool>> {
        self.data.node_pools.get(name)
    }

    /// Facts of the EC2NodeClass of that name.
    pub fn node_class(&self, name: &str) -> Option<&Arc<NodeClassFacts>> {
        self.data.node_classes.get(name).map(|it| &it.facts)
    }

    /// An EC2NodeClass as the API has it.
    pub fn node_class_object(&self, name: &str) -> Option<&Arc<Ec2NodeClass>> {
        self.data.node_classes.get(name).map(|it| &it.object)
    }

    /// Every NodeOverlay, by name.
    pub fn node_overlays(&self) -> impl ExactSizeIterator<Item = &Arc<NodeOverlay>> {
        self.data.node_overlays.values()
    }
}
