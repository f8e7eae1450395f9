//! What every controller shares: the client, the clock, the cluster model, events, metrics, the ledger.
//!
//! Of what is decided here only the health of a pool's registrations is left (`note_registration`). All writes of
//! NodeClaims and Nodes go through here, so that the model learns of them before the watch does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use apis::conditions::{self, Conditioned, Status};
use apis::{Ec2NodeClass, NodeClaim, NodePool, labels};
use cloudprovider::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use scheduling::pod::{Pod, PodKey};
use scheduling::ranking::{LaunchRanking, RankHook, RankedLaunch, rank_for_launch};
use state::ledger::{LaunchRecord, Ledger, OutcomeId, Record};
use state::pod::PodLife;
use state::provisioning::PoolTypes;
use state::{Changes, Cluster, Event, Refused, Snapshot};
use tokio::sync::{Notify, watch};
use tracing::info;

use crate::capacity_buffer::BufferNodes;
use crate::error::ReconcileError;
use crate::feed::DecisionFeed;
use crate::launching::Launching;
use crate::managed::Managed as _;
use crate::metrics::Metrics;
use crate::node_claim::NodeClaimExt;
use crate::node_claim::events::insufficient_capacity_for_pod;
use crate::node_overlay::Overlays;
use crate::node_pool::registration_health::RegistrationHealth;
use crate::nomination::Nominations;
use crate::paging::for_each_listed;
use crate::patching::{Part, patch};
use crate::pod_ledger::PodLedger;
use crate::recorder::Recorder;
use crate::references;
use crate::settings::{Settings, SolvePlacement};
use crate::static_capacity::StaticCapacity;
use crate::watches::Progress;

/// The ledger, shared with whoever wants to read it.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// What watches tell and the model knows nothing of. Small.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// What pods say that it costs to lose them, where that is ours to say; the model does not hear of it.
    pub(crate) deletion_costs: BTreeMap<PodKey, String>,
}

/// Shared by all controllers.
pub(crate) struct Shell {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) events: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ledger: SharedLedger,
    pub(crate) feed: Arc<DecisionFeed>,
    pub(crate) rank: Arc<dyn RankHook>,
    pub(crate) cluster: RwLock<Cluster>,
    pub(crate) objects: Mutex<Objects>,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) pod_ledger: Mutex<PodLedger>,
    pub(crate) registration_health: Mutex<RegistrationHealth>,
    pub(crate) overlays: Arc<Overlays>,
    pub(crate) buffer_nodes: BufferNodes,
    /// What claims are about to become.
    pub(crate) launching: Launching,
    /// A pod left a node that stays.
    pub(crate) room_freed: Notify,
    pub(crate) static_capacity: StaticCapacity,
    pub(crate) nominations: Nominations,
}

impl Shell {
    /// The model as it is now. Drop it before the next fact comes in, or that one has to copy.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.cluster
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .snapshot()
    }

    /// Tells the model of something that happened.
    pub(crate) fn tell(&self, event: Event) -> Result<Changes, Refused> {
        let now = self.now();
        self.cluster().apply(now, event)
    }

    pub(crate) fn cluster(&self) -> RwLockWriteGuard<'_, Cluster> {
        self.cluster.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn progress(&self) -> watch::Ref<'_, Progress> {
        self.progress.borrow()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether the model may be relied on: everything was listed once, and every claim has its instance.
    pub(crate) fn is_synced(&self) -> bool {
        let gate = self
            .cluster
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .sync_gate();
        self.progress().is_complete() && gate == state::SyncGate::Synced
    }

    /// Keeps a node or claim from being taken for empty while pods are on their way to it.
    pub(crate) fn nominate(&self, name: &str) {
        let window = self.settings.nomination_window();
        let until = self.now().saturating_add(window).unwrap_or(Timestamp::MAX);
        let name = name.to_owned();
        self.tell(Event::Nominated { name, until }).ok();
    }

    /// Puts a line into the decision feed.
    pub(crate) fn say(&self, text: String) {
        self.feed.say(self.now(), text);
    }

    /// Writes a record into the ledger.
    pub(crate) fn record(&self, record: Record) {
        self.ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record);
    }

    /// Records a step in a claim's life.
    pub(crate) fn record_claim(&self, claim: &NodeClaim, outcome: OutcomeId, reason: &str) {
        self.record_launch(claim, outcome, reason, &RankedLaunch::default());
    }

    /// Records what came of a launch.
    pub(crate) fn record_launch(
        &self,
        claim: &NodeClaim,
        outcome: OutcomeId,
        reason: &str,
        ranked: &RankedLaunch,
    ) {
        let bought = ranked.offerings.iter().find(|offering| {
            offering.instance_type == claim.label(labels::INSTANCE_TYPE)
                && offering.zone == claim.label(labels::TOPOLOGY_ZONE)
                && offering.capacity_type == claim.label(labels::CAPACITY_TYPE)
        });
        let node = claim
            .status
            .as_ref()
            .and_then(|status| status.node_name.clone());
        self.record(Record::Launch(LaunchRecord {
            at: self.now(),
            claim: claim.name_any(),
            pool: claim.pool_name().to_owned(),
            node: node.unwrap_or_default(),
            outcome,
            instance_type: claim.label(labels::INSTANCE_TYPE).to_owned(),
            zone: claim.label(labels::TOPOLOGY_ZONE).to_owned(),
            capacity_type: claim.label(labels::CAPACITY_TYPE).to_owned(),
            price_per_hour: bought.map_or(0.0, |offering| offering.price_per_hour),
            reason: reason.to_owned(),
            policies: ranked.uses.clone(),
        }));
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
        self.snapshot()
            .bound_to(node_name)
            .pods()
            .cloned()
            .collect()
    }

    pub(crate) fn claim_name_of_node(&self, node_name: &str) -> Option<String> {
        self.snapshot()
            .node(node_name)?
            .claim_name()
            .map(str::to_owned)
    }

    /// VolumeAttachments of the node that will go once the drained pods are gone; those of pods that stay with
    /// the node are not waited for.
    pub(crate) fn attachments_to_await(&self, node_name: &str, pods: &[Arc<Pod>]) -> Vec<String> {
        let (snapshot, now) = (self.snapshot(), self.now());
        let staying: BTreeSet<&str> = pods
            .iter()
            .filter(|pod| !pod.is_drainable(now))
            .flat_map(|pod| snapshot.volumes().names_of(pod))
            .collect();
        let attached = snapshot.volumes().attached_to(node_name);
        let awaited =
            attached.filter(|(_, volume)| !volume.is_empty() && !staying.contains(volume));
        awaited.map(|(name, _)| name.to_owned()).collect()
    }

    /// Asks the ranking policy in which order the offerings of a claim are to be tried.
    pub(crate) async fn rank_for_launch(
        &self,
        claim: &Arc<NodeClaim>,
        pool: &PoolTypes,
    ) -> RankedLaunch {
        let (claim, pool) = (Arc::clone(claim), pool.clone());
        let snapshot = self.snapshot();
        let keys = self.pod_ledger().pods_for(&claim.name_any());
        let pods: Vec<Arc<Pod>> = keys
            .iter()
            .filter_map(|it| snapshot.pod(it).cloned())
            .collect();
        let owners = snapshot.owners(pods.iter());
        let mut usage = snapshot.usage();
        drop(snapshot);
        self.launching.add_to(&mut usage, &claim.name_any());
        let (now, cluster) = (self.now(), self.settings.cluster_name.clone());
        let seed = self.seed_for(&claim.name_any());
        let premium_max = self.settings.policy_premium_max;
        let rank = Arc::clone(&self.rank);
        let name = claim.name_any();
        let pool_name = claim.pool_name().to_owned();
        let ranked = self
            .compute(move || {
                let launch = LaunchRanking {
                    node_claim: &claim,
                    node_pool: &pool.node_pool,
                    instance_types: &pool.instance_types,
                    pods: &pods,
                    owners: &owners,
                    usage: &usage,
                    free_addresses: &pool.free_addresses,
                    now,
                    cluster: &cluster,
                    seed,
                    premium_max,
                };
                rank_for_launch(&launch, rank.as_ref())
            })
            .await;
        if let Some(best) = ranked.offerings.first() {
            self.launching.chose(&name, &pool_name, best);
        }
        ranked
    }

    /// Runs a computation where the settings want it.
    pub(crate) async fn compute<T: Send + Default + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match self.settings.solve_placement {
            SolvePlacement::Inline => work(),
            SolvePlacement::Blocking => match tokio::task::spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => {
                    tracing::error!(%error, "computation panicked");
                    T::default()
                }
            },
        }
    }

    /// A seed that depends on the run's seed and the decision, and on nothing else.
    pub(crate) fn seed_for(&self, decision_id: &str) -> u64 {
        decision_id
            .bytes()
            .fold(self.settings.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
    }

    /// A pod bears this deletion cost, or none.
    pub(crate) fn told_cost(&self, pod: &PodKey, cost: Option<String>) {
        let costs = &mut self.objects().deletion_costs;
        match cost {
            Some(cost) => costs.insert(pod.clone(), cost),
            None => costs.remove(pod),
        };
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
        let claim = self.cluster_api::<NodeClaim>().get_opt(name).await?;
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
        for_each_listed(&self.cluster_api(), labels, ours).await
    }

    /// The claim, if it changed lately.
    pub(crate) fn recent_node_claim(&self, name: &str) -> Option<Arc<NodeClaim>> {
        self.cluster
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .recent_claim(name)
    }

    /// The node as it is now.
    pub(crate) async fn node(&self, name: &str) -> Result<Option<Arc<Node>>, ReconcileError> {
        Ok(self
            .cluster_api::<Node>()
            .get_opt(name)
            .await?
            .map(Arc::new))
    }

    /// The nodes with that provider id, as they are now.
    pub(crate) async fn nodes_of(
        &self,
        provider_id: &str,
    ) -> Result<Vec<Arc<Node>>, ReconcileError> {
        let names: Vec<String> = {
            let snapshot = self.snapshot();
            let names = snapshot.node_names_of(provider_id);
            names.map(str::to_owned).collect()
        };
        let mut nodes = Vec::new();
        for name in names {
            nodes.extend(self.node(&name).await?);
        }
        Ok(nodes)
    }

    /// The API of a cluster-scoped kind.
    pub(crate) fn cluster_api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Api::all(self.client.clone())
    }

    /// Writes metadata of a claim; answers what the API server made of it.
    pub(crate) async fn write_claim(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        self.write_claim_part(before, after, Part::Main).await
    }

    /// Writes the status of a claim; answers what the API server made of it.
    pub(crate) async fn write_claim_status(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        self.write_claim_part(before, after, Part::Status).await
    }

    async fn write_claim_part(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
        part: Part,
    ) -> Result<NodeClaim, ReconcileError> {
        let written = match patch(&self.cluster_api(), before, after, part).await {
            Ok(Some(written)) => written,
            Ok(None) => return Ok(before.clone()),
            Err(error) => {
                self.cluster().forget_recent_claim(&before.name_any());
                return Err(error);
            }
        };
        let is_gone =
            written.metadata.deletion_timestamp.is_some() && written.finalizers().is_empty();
        if is_gone {
            self.cluster().forget_recent_claim(&written.name_any());
        } else {
            self.claim_written(&written);
        }
        Ok(written)
    }

    /// Creates a claim; the model learns of it at once, as the watch may tell only after the next pass.
    pub(crate) async fn create_claim(
        &self,
        claim: &NodeClaim,
        reason: &str,
    ) -> Result<NodeClaim, kube::Error> {
        let params = PostParams::default();
        let created: NodeClaim = self.cluster_api().create(&params, claim).await?;
        self.claim_written(&created);
        let pool = created.labels().get(labels::NODEPOOL);
        let pool = pool.cloned().unwrap_or_default();
        info!(NodePool = %pool, NodeClaim = %created.name_any(), reason, "created nodeclaim");
        let relaxed = created
            .annotations()
            .get(labels::NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION);
        let labels = vec![
            ("reason", reason.to_owned()),
            ("nodepool", pool),
            (
                "min_values_relaxed",
                relaxed.map_or_else(|| "false".to_owned(), Clone::clone),
            ),
        ];
        self.metrics
            .node_claims_created
            .get_or_create(&labels)
            .inc();
        Ok(created)
    }

    fn claim_written(&self, claim: &NodeClaim) {
        let mut claim = claim.clone();
        claim.metadata.managed_fields = None;
        self.tell(Event::written(Arc::new(claim))).ok();
    }

    /// Writes metadata and spec of a node.
    pub(crate) async fn write_node(
        &self,
        before: &Node,
        after: &Node,
    ) -> Result<Node, ReconcileError> {
        let Some(written) = patch(&self.cluster_api(), before, after, Part::Main).await? else {
            return Ok(before.clone());
        };
        let is_gone =
            written.metadata.deletion_timestamp.is_some() && written.finalizers().is_empty();
        if !is_gone {
            self.tell(Event::written(Arc::new(written.clone()))).ok();
        }
        Ok(written)
    }

    /// Deletes this very object, not a later one of the same name.
    pub(crate) async fn delete<K>(&self, object: &K) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let preconditions = Preconditions {
            uid: object.uid(),
            resource_version: None,
        };
        self.delete_if(object, preconditions).await
    }

    /// Deletes the object unless it has changed since; what was seen of a claim is then asked for anew.
    pub(crate) async fn delete_unchanged(&self, claim: &NodeClaim) -> Result<(), kube::Error> {
        let preconditions = Preconditions {
            uid: claim.uid(),
            resource_version: claim.resource_version(),
        };
        let result = self.delete_if(claim, preconditions).await;
        if result.is_err() {
            self.cluster().forget_recent_claim(&claim.name_any());
        }
        result
    }

    async fn delete_if<K>(
        &self,
        object: &K,
        preconditions: Preconditions,
    ) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        self.cluster_api::<K>()
            .delete(&object.name_any(), &params)
            .await
            .map(|_| ())
    }
}

impl Shell {
    pub(crate) fn pod_ledger(&self) -> MutexGuard<'_, PodLedger> {
        self.pod_ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registration_health(&self) -> MutexGuard<'_, RegistrationHealth> {
        self.registration_health
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pod_decided_or_gone(&self, key: &PodKey) {
        self.pod_ledger().decided(key);
    }
}

impl Shell {
    /// The pool as it is now.
    pub(crate) async fn fresh_node_pool(
        &self,
        name: &str,
    ) -> Result<Option<NodePool>, ReconcileError> {
        let pool = self.cluster_api::<NodePool>().get_opt(name).await?;
        Ok(pool.filter(NodePool::is_managed))
    }

    /// Writes the status of a pool.
    pub(crate) async fn write_pool_status(
        &self,
        before: &NodePool,
        after: &NodePool,
    ) -> Result<(), ReconcileError> {
        self.write_pool(before, after, Part::Status).await
    }

    /// Writes one part of a pool.
    pub(crate) async fn write_pool(
        &self,
        before: &NodePool,
        after: &NodePool,
        part: Part,
    ) -> Result<(), ReconcileError> {
        if let Some(written) = patch(&self.cluster_api(), before, after, part).await? {
            self.tell(Event::written(Arc::new(written))).ok();
        }
        Ok(())
    }

    /// Notes how a launch or a registration went, and says so in the pool's status where that changes something.
    pub(crate) async fn note_registration(
        &self,
        claim: &NodeClaim,
        outcome: Registration<'_>,
    ) -> Result<(), ReconcileError> {
        let name = claim.pool_name();
        let is_success = matches!(outcome, Registration::Succeeded);
        let Some(pool) = self.node_pool(name) else {
            return Ok(());
        };
        let uid = pool.uid().unwrap_or_default();
        let is_healthy = {
            let told = pool.condition(conditions::NODE_REGISTRATION_HEALTHY);
            let told = told.and_then(|it| match it.status.as_str() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            });
            let mut health = self.registration_health();
            health.seed(&uid, told);
            health.note(&uid, is_success)
        };
        let status = if is_healthy {
            Status::True
        } else {
            Status::False
        };
        let is_told = pool
            .condition(conditions::NODE_REGISTRATION_HEALTHY)
            .is_some_and(|told| told.status == status.as_str());
        // A failure does not make a pool healthy, nor a success unhealthy.
        if is_told || is_healthy != is_success || !self.registration_health().tells(&uid) {
            return Ok(());
        }
        let result = self.tell_registration(name, status, outcome).await;
        self.registration_health().told(&uid);
        result
    }

    async fn tell_registration(
        &self,
        pool: &str,
        status: Status,
        outcome: Registration<'_>,
    ) -> Result<(), ReconcileError> {
        let Some(pool) = self.fresh_node_pool(pool).await? else {
            return Ok(());
        };
        let (reason, message) = match outcome {
            Registration::Succeeded => (conditions::NODE_REGISTRATION_HEALTHY, ""),
            Registration::Failed { reason, message } => (reason, message),
        };
        let mut after = pool.clone();
        after.edit_conditions(self.now(), |editor| {
            editor.set(
                conditions::NODE_REGISTRATION_HEALTHY,
                status,
                reason,
                message,
            );
        });
        self.write_pool_status(&pool, &after).await
    }

    /// Tells the pods that a failed claim was made for and that still wait for a node.
    pub(crate) fn tell_pods_of(&self, claim: &NodeClaim, error: &str) {
        let name = claim.name_any();
        let keys = self.pod_ledger().settle_claim(&name);
        let snapshot = self.snapshot();
        let pods = keys.iter().filter_map(|key| snapshot.pod(key));
        for pod in pods.filter(|it| it.node_name.is_none() && !it.is_terminating()) {
            let regarding = references::pod(&pod.key, &pod.uid);
            self.events
                .publish(insufficient_capacity_for_pod(regarding, &name, error));
        }
    }
}

/// How a launch or a registration went.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Registration<'a> {
    /// The node joined.
    Succeeded,
    /// It did not.
    Failed {
        /// Reason for the pool's condition.
        reason: &'a str,
        /// Message for it.
        message: &'a str,
    },
}
