//! Pods in the model.

use std::sync::Arc;

use apis::{NodeRef, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::pod::{Pod, PodKey};

use super::Cluster;
use super::change::{Change, Changes, PodEnd, Refused};
use super::watched::Watched;
use crate::missing_pods::is_coming;

impl Watched for v1::Pod {
    type Kind = ();

    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        let pod = match Pod::parse(&object, &mut cluster.shapes) {
            Ok(pod) => pod,
            Err(error) => {
                let meta = &object.metadata;
                let namespace = meta.namespace.as_deref().unwrap_or("default");
                let key = PodKey::new(namespace, meta.name.as_deref().unwrap_or_default());
                return Err(Refused {
                    error: Box::new(error.into()),
                    changes: cluster.pod_gone(now, &key, PodEnd::Over),
                });
            }
        };
        if pod.is_terminal() {
            return Ok(cluster.pod_gone(now, &pod.key, PodEnd::Over));
        }
        Ok(cluster.pod_seen(now, pod))
    }

    fn deleted(cluster: &mut Cluster, now: Timestamp, (): (), key: &ObjectKey) -> Changes {
        cluster.pod_gone(now, key, PodEnd::Deleted)
    }

    fn known(cluster: &Cluster, (): ()) -> Vec<ObjectKey> {
        cluster.data.pods.keys().cloned().collect()
    }
}

impl Cluster {
    fn pod_seen(&mut self, now: Timestamp, mut pod: Pod) -> Changes {
        let before = self.data.pods.get(&pod.key).cloned();
        if before.as_ref().is_some_and(|it| it.uid != pod.uid) {
            // Another of the same name: the end of the one before went by unseen.
            let mut changes = self.pod_gone(now, &pod.key, PodEnd::Deleted);
            changes.extend(self.pod_seen(now, pod));
            return changes;
        }
        if let Some(before) = &before {
            pod.first_version = before.first_version;
        }
        let is_untried = pod.is_untried && !pod.has_own_scheduler;
        pod.awaits_node |= is_untried && self.plans_untried_pods;
        if before.as_ref().is_some_and(|it| **it == pod) {
            return Changes::new();
        }
        let pod = Arc::new(pod);
        if let Some(before) = &before {
            self.forget(before);
        }
        let (mut planned, mut displaced) = (None, None);
        if before.as_ref().map(|it| &it.node_name) != Some(&pod.node_name)
            && pod.node_name.is_some()
        {
            self.bump(now);
            planned = self.data.places.get(&pod.key).cloned();
            if planned.is_some() {
                self.data.last_placed_bound_at = Some(now);
            }
            displaced = self.data.trade_places(&pod);
            self.unplace(&pod.key);
        }
        self.remember(&pod);
        let adopted = before.as_ref();
        if let Some(before) = adopted.filter(|it| it.shape.owner != pod.shape.owner) {
            self.data.forget_owner(before);
        }
        if before.is_none() && !pod.is_owned_by_daemon_set() {
            self.data.note_birth(now, &pod);
        }
        Arc::make_mut(&mut self.data.pods).insert(pod.key.clone(), Arc::clone(&pod));
        let seen = Change::Pod {
            before,
            after: pod,
            planned,
        };
        let displaced = displaced.map(Change::PodDisplaced);
        [seen].into_iter().chain(displaced).collect()
    }

    fn pod_gone(&mut self, now: Timestamp, key: &PodKey, end: PodEnd) -> Changes {
        let Some(before) = self.data.pods.get(key).cloned() else {
            return Changes::new();
        };
        self.forget(&before);
        self.data.forget_owner(&before);
        self.unplace(key);
        Arc::make_mut(&mut self.data.pods).remove(key);
        self.bump(now);
        vec![Change::PodGone { before, end }]
    }

    pub(super) fn pod_moved(&mut self, now: Timestamp, key: &PodKey, node: Option<String>) {
        let Some(before) = self.data.pods.get(key).cloned() else {
            return;
        };
        let after = Arc::new(Pod {
            awaits_node: node.is_none(),
            node_name: node,
            ..(*before).clone()
        });
        self.forget(&before);
        self.unplace(key);
        self.remember(&after);
        Arc::make_mut(&mut self.data.pods).insert(key.clone(), after);
        self.bump(now);
    }

    fn remember(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = &pod.node_name {
            let bound = Arc::make_mut(&mut self.data.bound)
                .entry(node.clone())
                .or_default();
            Arc::make_mut(bound).insert(Arc::clone(pod));
        }
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        if pod.is_owned_by_daemon_set() {
            self.daemon_pods
                .entry(owner.uid.clone())
                .or_default()
                .insert((pod.created_at, pod.key.clone()));
        } else {
            let all = Arc::make_mut(&mut self.data.owned);
            all.entry(owner.uid.clone()).or_default().pods += 1;
        }
        self.refresh_daemon(pod);
    }

    fn forget(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = &pod.node_name {
            let all = Arc::make_mut(&mut self.data.bound);
            if let Some(bound) = all.get_mut(node) {
                Arc::make_mut(bound).remove(&pod.key);
                if bound.is_empty() {
                    all.remove(node);
                }
            }
        }
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        if pod.is_owned_by_daemon_set() {
            if let Some(pods) = self.daemon_pods.get_mut(&owner.uid) {
                pods.remove(&(pod.created_at, pod.key.clone()));
                if pods.is_empty() {
                    self.daemon_pods.remove(&owner.uid);
                }
            }
        } else {
            let all = Arc::make_mut(&mut self.data.owned);
            if let Some(owned) = all.get_mut(&owner.uid) {
                owned.pods = owned.pods.saturating_sub(1);
            }
        }
        self.refresh_daemon(pod);
    }

    pub(super) fn place(&mut self, node: &NodeRef, pods: Vec<PodKey>) {
        let places = Arc::make_mut(&mut self.data.places);
        // What was planned is told once its node is being made; a pod that went meanwhile needs none, and nothing would
        // take its place away.
        let is_awaited = |pod: &PodKey| is_coming(pod) || self.data.pods.contains_key(pod);
        for pod in pods.into_iter().filter(is_awaited) {
            places.insert(pod, node.clone());
        }
    }

    fn unplace(&mut self, pod: &PodKey) {
        if self.data.places.get(pod).is_some() {
            Arc::make_mut(&mut self.data.places).remove(pod);
        }
    }
}
