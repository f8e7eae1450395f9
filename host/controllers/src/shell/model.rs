//! Reads of the controllers: the model of the cluster that the watches feed, and single objects as they are right now.
//!
//! Facts come in by [`Model::apply`] only, from the watches and from the [`crate::shell::writer`]. Answers to
//! `pkg/controllers/state/cluster.go` and to the reading half of controller-runtime's client.

pub(crate) mod first_lists;
pub(crate) mod managed;
pub(crate) mod paging;

use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use std::time::Duration;

use apis::{Ec2NodeClass, NodeClaim, NodePool, NodeRef, ProviderId};
use cloudprovider::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::Api;
use locks::{lock, read, write};
use scheduling::pod::{Pod, PodKey};
use state::facts::{ClaimFacts, NodeFacts};
use state::{Changes, Cluster, Event, Refused, Snapshot};
use tokio::sync::watch;
use tracing::warn;

use crate::settings::Settings;
use crate::shell::error::ReconcileError;
use crate::shell::model::first_lists::FirstLists;
use crate::shell::model::managed::Managed as _;
use crate::shell::model::paging::for_each_listed;

/// The nomination of a pending pod holds its node for two batches, and for so long at least.
const NOMINATION_WINDOW_MIN: Duration = Duration::from_secs(10);

/// Shared by all that read, by the watches and by the writer.
pub(crate) struct Model {
    client: Client,
    clock: Arc<dyn Clock>,
    /// For how long a node is not taken for empty while pods are on their way to it.
    nomination_window: Duration,
    cluster: RwLock<Cluster>,
    progress: watch::Sender<FirstLists>,
    /// Since when the model cannot be relied on, as far as a loop looked.
    unsynced_since: Mutex<Option<Timestamp>>,
}

impl Model {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, settings: &Settings) -> Self {
        let cluster = if settings.plans_coming_pods() {
            Cluster::planning_untried_pods()
        } else {
            Cluster::new()
        };
        Self {
            client,
            clock,
            nomination_window: (settings.batch_max_duration * 2).max(NOMINATION_WINDOW_MIN),
            cluster: RwLock::new(cluster),
            progress: watch::Sender::new(FirstLists::default()),
            unsynced_since: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The cluster as it is now. Drop it before the next fact comes in, or that one has to copy.
    pub(crate) fn snapshot(&self) -> Snapshot {
        read(&self.cluster).snapshot()
    }

    /// Takes in something that happened; answers what changed by it.
    pub(crate) fn apply(&self, event: Event) -> Result<Changes, Refused> {
        self.cluster_mut().apply(self.now(), event)
    }

    /// Takes in what this process did or decided. An object that the model cannot read is left out and warned of.
    pub(crate) fn note(&self, event: Event) {
        if let Err(refused) = self.apply(event) {
            warn!(error = %refused, "object left out of cluster state");
        }
    }

    fn cluster_mut(&self) -> RwLockWriteGuard<'_, Cluster> {
        write(&self.cluster)
    }

    /// Which kinds were listed once.
    pub(crate) fn progress(&self) -> watch::Ref<'_, FirstLists> {
        self.progress.borrow()
    }

    /// Which kinds were listed once, with a notice of each further one.
    pub(crate) fn watch_progress(&self) -> watch::Receiver<FirstLists> {
        self.progress.subscribe()
    }

    pub(crate) fn note_progress(&self, note: impl FnOnce(&mut FirstLists)) {
        self.progress.send_modify(note);
    }

    /// Whether the model may be relied on: everything was listed once, and every claim has its instance.
    pub(crate) fn is_synced(&self) -> bool {
        let is_launched = read(&self.cluster).is_every_claim_launched();
        self.progress().is_complete() && is_launched
    }

    /// Claims whose instances are waited for until then.
    pub(crate) fn unlaunched_claims(&self) -> Vec<String> {
        let cluster = read(&self.cluster);
        cluster.unlaunched_claims().map(str::to_owned).collect()
    }

    /// Notes since when the model may not be relied on: nothing tells of the moment at which that changes, so the loops
    /// that wait for it find out when they look. Answers whether it may be relied on.
    pub(crate) fn note_sync(&self) -> bool {
        let is_synced = self.is_synced();
        let mut since = self.lock_unsynced_since();
        if is_synced {
            *since = None;
        } else {
            since.get_or_insert_with(|| self.clock.now());
        }
        is_synced
    }

    /// Since when the model cannot be relied on, as far as it was noted.
    pub(crate) fn unsynced_since(&self) -> Option<Timestamp> {
        self.lock_unsynced_since().filter(|_| !self.is_synced())
    }

    fn lock_unsynced_since(&self) -> MutexGuard<'_, Option<Timestamp>> {
        lock(&self.unsynced_since)
    }

    /// Keeps a node from being taken for empty while pods are on their way to it.
    pub(crate) fn nominate(&self, node: NodeRef) {
        let until = self.nominated_until(self.now());
        self.note(Event::Nominated { node, until });
    }

    /// Until when a node that is nominated at this moment is.
    pub(crate) fn nominated_until(&self, at: Timestamp) -> Timestamp {
        let until = at.saturating_add(self.nomination_window);
        until.unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn node_class(&self, name: &str) -> Option<Arc<Ec2NodeClass>> {
        self.snapshot().node_class_object(name).cloned()
    }

    pub(crate) fn node_pool(&self, name: &str) -> Option<Arc<NodePool>> {
        self.snapshot().node_pool(name).cloned()
    }

    pub(crate) fn pod(&self, key: &PodKey) -> Option<Arc<Pod>> {
        self.snapshot().pod(key).cloned()
    }

    /// Pods bound to a node that have not ended.
    pub(crate) fn pods_on(&self, node_name: &str) -> Vec<Arc<Pod>> {
        let snapshot = self.snapshot();
        snapshot.bound_to(node_name).pods().cloned().collect()
    }

    pub(crate) fn claim_name_of_node(&self, node_name: &str) -> Option<String> {
        let snapshot = self.snapshot();
        snapshot.node(node_name)?.claim_name().map(str::to_owned)
    }

    /// Facts that the model keeps of a claim that has its instance.
    pub(crate) fn claim_facts(&self, name: &str) -> Option<Arc<ClaimFacts>> {
        let snapshot = self.snapshot();
        snapshot.node_of_claim(name)?.claim().cloned()
    }

    /// The claim, if it changed lately.
    pub(crate) fn recent_node_claim(&self, name: &str) -> Option<Arc<NodeClaim>> {
        read(&self.cluster).recent_claim(name)
    }

    /// The claim is asked for anew when it is wanted next: what was seen of it lately is out of date.
    pub(crate) fn forget_recent_claim(&self, name: &str) {
        self.cluster_mut().forget_recent_claim(name);
    }

    /// Claims that nothing has happened to for a while are asked for anew.
    pub(crate) fn forget_claims_at_rest(&self) {
        self.cluster_mut().forget_claims_at_rest();
    }

    /// The claim as it is now, as far as watches and our own writes tell.
    pub(crate) async fn node_claim(
        &self,
        name: &str,
    ) -> Result<Option<Arc<NodeClaim>>, ReconcileError> {
        let recent = self.recent_node_claim(name);
        if recent.is_some() {
            return Ok(recent);
        }
        let claims: Api<NodeClaim> = Api::all(self.client.clone());
        let claim = claims.get_opt(name).await?;
        Ok(claim.filter(NodeClaim::is_managed).map(Arc::new))
    }

    /// Hands every claim of ours that bears the labels to `each`, as [`for_each_listed`] does.
    pub(crate) async fn for_each_claim(
        &self,
        labels: &str,
        mut each: impl FnMut(NodeClaim),
    ) -> kube::Result<()> {
        let ours = |claim: NodeClaim| {
            if claim.is_managed() {
                each(claim);
            }
        };
        for_each_listed(&Api::all(self.client.clone()), labels, ours).await
    }

    fn node_names_of(&self, provider_id: &ProviderId) -> Vec<String> {
        let snapshot = self.snapshot();
        let names = snapshot.node_names_of(provider_id);
        names.map(str::to_owned).collect()
    }

    /// The node as it is now.
    pub(crate) async fn node(&self, name: &str) -> Result<Option<Arc<Node>>, ReconcileError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        Ok(nodes.get_opt(name).await?.map(Arc::new))
    }

    /// The nodes with that provider id, as they are now.
    pub(crate) async fn nodes_of(
        &self,
        provider_id: &ProviderId,
    ) -> Result<Vec<Arc<Node>>, ReconcileError> {
        let mut nodes = Vec::new();
        for name in self.node_names_of(provider_id) {
            nodes.extend(self.node(&name).await?);
        }
        Ok(nodes)
    }

    /// The node, as watches and our own writes tell; the API server is asked only where the model has nothing of it
    /// yet.
    pub(crate) async fn node_facts(
        &self,
        name: &str,
    ) -> Result<Option<Arc<NodeFacts>>, ReconcileError> {
        let known = self.snapshot().node(name).and_then(|it| it.node().cloned());
        if let Some(facts) = known.filter(|it| it.name == name) {
            return Ok(Some(facts));
        }
        let node = self.node(name).await?;
        Ok(node.map(|it| Arc::new(NodeFacts::parse(&it))))
    }

    /// The node as it is now, unless another bears its name by now.
    pub(crate) async fn node_seen(
        &self,
        seen: &NodeFacts,
    ) -> Result<Option<Arc<Node>>, ReconcileError> {
        let node = self.node(&seen.name).await?;
        Ok(node.filter(|it| it.metadata.uid.as_ref() == Some(&seen.uid)))
    }

    /// The nodes with that provider id, as [`Self::node_facts`] tells of them.
    pub(crate) async fn node_facts_of(
        &self,
        provider_id: &ProviderId,
    ) -> Result<Vec<Arc<NodeFacts>>, ReconcileError> {
        let mut nodes = Vec::new();
        for name in self.node_names_of(provider_id) {
            nodes.extend(self.node_facts(&name).await?);
        }
        Ok(nodes)
    }

    /// The nodes of the claim's instance, of which there is one, or none yet.
    pub(crate) async fn nodes_of_claim(
        &self,
        claim: &NodeClaim,
    ) -> Result<Vec<Arc<NodeFacts>>, ReconcileError> {
        match claim.provider_id() {
            Some(id) => self.node_facts_of(&id).await,
            None => Ok(Vec::new()),
        }
    }

    /// The pool as it is now.
    pub(crate) async fn fresh_node_pool(
        &self,
        name: &str,
    ) -> Result<Option<NodePool>, ReconcileError> {
        let pools: Api<NodePool> = Api::all(self.client.clone());
        let pool = pools.get_opt(name).await?;
        Ok(pool.filter(NodePool::is_managed))
    }
}
