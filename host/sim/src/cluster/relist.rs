//! Looks at everything anew after a watch that was cut off.
//!
//! Takes in all that there is as changed, and what is known and no longer there as deleted. Answers to the relists of
//! client-go's reflector.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_server::{NamespacedName, Resource, Selection, WatchEvent, WatchEventType};
use serde_json::{Value, json};

use crate::cluster::{SimulatedCluster, WATCHED};

impl SimulatedCluster {
    /// What a watch tells that began before is no older than what is listed here, so nothing is missed between them.
    pub(crate) fn relist(&mut self) {
        for resource in WATCHED {
            let listed = self.api.list(resource, &Selection::everything());
            let mut gone = self.known(resource);
            for object in &listed {
                gone.remove(&NamespacedName::of(object));
            }
            for key in gone {
                let object = self.object(resource, &key).cloned();
                let object = object.unwrap_or_else(|| named(&key));
                self.take_in(resource, WatchEventType::Deleted, object);
            }
            for object in listed {
                self.take_in(resource, WatchEventType::Modified, object);
            }
        }
    }

    fn known(&self, resource: &Resource) -> BTreeSet<NamespacedName> {
        let cluster_scoped = |name: &String| NamespacedName::new("", name.as_str());
        if *resource == Resource::PODS {
            self.pods.keys().cloned().collect()
        } else if *resource == Resource::NODES {
            self.nodes.keys().map(cluster_scoped).collect()
        } else if *resource == Resource::NODE_CLAIMS {
            self.node_claims.keys().map(cluster_scoped).collect()
        } else {
            self.table(resource).map(|(key, _)| key.clone()).collect()
        }
    }

    fn take_in(&mut self, resource: &Resource, change: WatchEventType, object: Arc<Value>) {
        self.apply(WatchEvent {
            resource: resource.clone(),
            change,
            object,
            previous: None,
            revision: self.api.revision(),
        });
    }
}

/// Of what is kept parsed and is gone nothing but the name is looked at.
fn named(key: &NamespacedName) -> Arc<Value> {
    let (namespace, name) = (&key.namespace, &key.name);
    Arc::new(json!({"metadata": {"namespace": namespace, "name": name}}))
}

#[cfg(test)]
mod tests {
    use api_server::{ApiServer, DeleteOptions};

    use super::*;
    use crate::clock::SimulatedClock;
    use crate::ec2::{Ec2Config, SimulatedEc2};

    fn cluster(api: &ApiServer) -> SimulatedCluster {
        let clock = SimulatedClock::virtual_time();
        let ec2 = SimulatedEc2::new(Ec2Config::default(), clock);
        SimulatedCluster::new(api.clone(), ec2, clock, 1)
    }

    /// Names of all that is known.
    fn names(cluster: &SimulatedCluster) -> Vec<String> {
        let keys = WATCHED.iter().flat_map(|it| cluster.known(it));
        keys.map(|it| it.name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_changed_or_went_untold_is_found_and_worked_on() {
        let clock = SimulatedClock::virtual_time();
        let api = ApiServer::new(1, Arc::new(move || clock.now()));
        let node = |name: &str| json!({"metadata": {"name": name}});
        let pod = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {
                "nodeName": "stays", "containers": [{"name": "c", "image": "i"}]}})
        };
        let web = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let mut cluster = cluster(&api);
        cluster.relist();
        let empty = names(&cluster);
        for name in ["goes", "stays"] {
            api.create(&Resource::NODES, "", node(name)).unwrap();
            api.create(&Resource::PODS, "default", pod(name)).unwrap();
        }
        let deployments = &Resource::DEPLOYMENTS;
        api.create(deployments, "default", web).unwrap();
        cluster.relist();
        assert_eq!(names(&cluster).len(), empty.len() + 5);
        assert_eq!(cluster.nodes["stays"].pods.len(), 2);
        cluster.dirty.clear();
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::default()
        };
        let gone = [(&Resource::NODES, ""), (&Resource::PODS, "default")];
        for (resource, namespace) in gone {
            api.delete(resource, namespace, "goes", &options).unwrap();
        }
        api.delete(deployments, "default", "web", &options).unwrap();
        cluster.relist();
        let left = names(&cluster);
        assert_eq!(left.len(), empty.len() + 2, "{left:?}");
        assert_eq!(cluster.nodes["stays"].pods.len(), 1);
        assert!(!cluster.dirty.is_empty(), "who owned them looks at it");
    }
}
