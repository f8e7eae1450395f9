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
        let before = pools.insert(name.clone(), Arc::clone(&object));
        let versions = Versions::applied(ObjectKey::cluster(name), before, object);
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
        let gone = Versions::gone(key, before);
        gone.map(Change::NodePool).into_iter().collect()
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
        let before = classes.insert(name.clone(), class).map(|it| it.object);
        let versions = Versions::applied(ObjectKey::cluster(name), before, object);
        Ok(vec![Change::NodeClass(versions)])
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.node_classes).remove(&key.name);
        let gone = Versions::gone(key, before.map(|it| it.object));
        gone.map(Change::NodeClass).into_iter().collect()
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
        let before = overlays.insert(name.clone(), Arc::clone(&object));
        let versions = Versions::applied(ObjectKey::cluster(name), before, object);
        Ok(vec![Change::NodeOverlay(versions)])
    }

    fn deleted(cluster: &mut Cluster, _now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        let before = Arc::make_mut(&mut cluster.data.node_overlays).remove(&key.name);
        let gone = Versions::gone(key, before);
        gone.map(Change::NodeOverlay).into_iter().collect()
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        let names = cluster.data.node_overlays.keys();
        names.map(ObjectKey::cluster).collect()
    }
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

    /// The EC2NodeClass that a pool refers to.
    pub fn class_of(&self, node_pool: &NodePool) -> Option<&Arc<Ec2NodeClass>> {
        self.node_class_object(&node_pool.spec.template.spec.node_class_ref.name)
    }

    /// Every NodeOverlay, by name.
    pub fn node_overlays(&self) -> impl ExactSizeIterator<Item = &Arc<NodeOverlay>> {
        self.data.node_overlays.values()
    }
}
