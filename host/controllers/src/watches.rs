//! One set of watches for all controllers: what they tell goes into the cluster model, and keys into work queues.
//!
//! There is no second cache: objects are parsed into the model and forgotten. All watches are polled in one task,
//! which is the only one that feeds the model from outside. Answers to `pkg/controllers/state/informer`.

mod progress;
mod routing;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use apis::labels::NOMINATION_MANAGER;
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use futures::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use scheduling::pod::PodKey;
use serde::de::DeserializeOwned;
use state::devices::{DeviceKind, DeviceObject};
use state::workloads::{Workload, WorkloadKind};
use tracing::{debug, info, warn};

use crate::policy_binding::POLICY_LABEL;
use crate::runtime::ObjectKey;
use crate::settings::Settings;
use crate::shell::Shell;

pub(crate) use progress::{Failure, Progress};
pub(crate) use routing::{Keys, Queues, Router};

/// Objects a page, on the first list of each kind and when a watch has to start over.
const PAGE_SIZE: u32 = 500;
const DEVICE_GROUP: &str = "resource.k8s.io";
/// An API server that ends a watch is asked again after this long; it bounds how long a dead connection goes
/// unnoticed.
const WATCH_TIMEOUT_SECONDS: u32 = 290;
/// First lists that take longer are spoken of.
const LONG_LIST: Duration = Duration::from_secs(30);

/// A kind that is watched, and its object when it was added or changed.
#[derive(Debug)]
pub(crate) enum Object {
    Pod(Box<Pod>),
    Node(Box<Node>),
    NodeClaim(Box<NodeClaim>),
    NodePool(Box<NodePool>),
    NodeClass(Box<Ec2NodeClass>),
    NodeOverlay(Box<NodeOverlay>),
    DaemonSet(Box<DaemonSet>),
    Pdb(Box<PodDisruptionBudget>),
    VolumeClaim(Box<PersistentVolumeClaim>),
    Volume(Box<PersistentVolume>),
    StorageClass(Box<StorageClass>),
    CsiNode(Box<CSINode>),
    VolumeAttachment(Box<VolumeAttachment>),
    Service(Box<Service>),
    Workload(WorkloadKind, Box<Workload>),
    CapacityBuffer(Box<CapacityBuffer>),
    Device(Box<DeviceObject>),
    Namespace(Box<Namespace>),
    Policy(Box<ConfigMap>),
    /// A ConfigMap beside the policies, which they may name.
    PolicyData(Box<PartialObjectMeta<ConfigMap>>),
}

/// The kinds that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Pod,
    Node,
    NodeClaim,
    NodePool,
    NodeClass,
    NodeOverlay,
    DaemonSet,
    Pdb,
    VolumeClaim,
    Volume,
    StorageClass,
    CsiNode,
    VolumeAttachment,
    Service,
    Workload(WorkloadKind),
    CapacityBuffer,
    Device(DeviceKind),
    Namespace,
    Policy,
    PolicyData,
}

/// What a watch tells.
#[derive(Debug)]
enum Told {
    /// The watch starts over: everything there is will be told.
    ListStarts(Kind),
    /// An object was told by a list.
    Listed(Object),
    /// Everything there is was told.
    ListEnds(Kind),
    /// An object was added or changed.
    Applied(Object),
    /// An object is gone.
    Deleted(Kind, ObjectKey),
    /// The watch failed and will be tried again.
    Failed(Kind, watcher::Error),
}

/// A kind and what its watch tells.
type Watch = (Kind, BoxStream<'static, Told>);

/// Feeds the model until the future is dropped.
pub(crate) async fn run(shell: Arc<Shell>, router: Router) {
    let mut router = router;
    let mut watches = watches(&shell.client, &shell.settings);
    if !shell.settings.ignore_dra_requests {
        watches.extend(watch_devices(&shell.client).await);
    }
    let kinds: Vec<Kind> = watches.iter().map(|(kind, _)| *kind).collect();
    shell.progress.send_modify(|it| it.begin(kinds));
    let mut streams: SelectAll<_> = watches.into_iter().map(|(_, stream)| stream).collect();
    let mut listing = Listing::default();
    while let Some(told) = streams.next().await {
        match told {
            Told::ListStarts(kind) => listing.start(kind),
            Told::Listed(object) => {
                let (kind, key) = (kind_of(&object), key_of(&object));
                listing.saw(kind, key);
                router.applied(object);
            }
            Told::ListEnds(kind) => {
                let seen = listing.end(kind);
                router.listed(kind, &seen);
                shell.progress.send_modify(|it| it.listed(kind));
            }
            Told::Applied(object) => router.applied(object),
            Told::Deleted(kind, key) => router.deleted(kind, &key),
            Told::Failed(kind, error) => {
                if progress::is_essential(kind) {
                    warn!(?kind, %error, "watch failed, will be tried again");
                } else {
                    debug!(?kind, %error, "watch failed, will be tried again");
                }
                let failure = failure(&error);
                shell.progress.send_modify(|it| it.failed(kind, failure));
            }
        }
    }
}

/// Waits until everything that there is has been told; says what is missing where that takes long.
pub(crate) async fn first_lists(shell: &Shell) {
    let mut progress = shell.progress.subscribe();
    loop {
        let complete = progress.wait_for(Progress::is_complete);
        // The sender lives as long as the shell.
        if tokio::time::timeout(LONG_LIST, complete).await.is_ok() {
            info!("cluster state has seen every kind");
            return;
        }
        let awaited = shell.progress().awaited();
        warn!(kinds = ?awaited, "still waiting for first lists; nothing is decided before they are complete");
    }
}

fn failure(error: &watcher::Error) -> Failure {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404 => {
            Failure::NotServed
        }
        _ => Failure::Passing,
    }
}

/// Keys seen by lists that are under way.
#[derive(Debug, Default)]
struct Listing(Vec<(Kind, BTreeSet<ObjectKey>)>);

impl Listing {
    fn start(&mut self, kind: Kind) {
        self.0.retain(|(known, _)| *known != kind);
        self.0.push((kind, BTreeSet::new()));
    }

    fn saw(&mut self, kind: Kind, key: ObjectKey) {
        if let Some((_, seen)) = self.0.iter_mut().find(|(known, _)| *known == kind) {
            seen.insert(key);
        }
    }

    fn end(&mut self, kind: Kind) -> BTreeSet<ObjectKey> {
        let position = self.0.iter().position(|(known, _)| *known == kind);
        position
            .map(|position| self.0.swap_remove(position).1)
            .unwrap_or_default()
    }
}

fn watches(client: &Client, settings: &Settings) -> Vec<Watch> {
    let mut watches = vec![
        watch_all(client, Kind::NodePool, Object::NodePool),
        watch_all(client, Kind::NodeClass, Object::NodeClass),
        watch_all(client, Kind::NodeClaim, Object::NodeClaim),
        watch_all(client, Kind::Node, Object::Node),
        watch_all(client, Kind::Namespace, Object::Namespace),
        watch_all(client, Kind::DaemonSet, Object::DaemonSet),
        watch_all(client, Kind::Pdb, Object::Pdb),
        watch_all(client, Kind::StorageClass, Object::StorageClass),
        watch_all(client, Kind::Volume, Object::Volume),
        watch_all(client, Kind::VolumeClaim, Object::VolumeClaim),
        watch_all(client, Kind::CsiNode, Object::CsiNode),
        watch_all(client, Kind::VolumeAttachment, Object::VolumeAttachment),
        watch_all(client, Kind::Pod, Object::Pod),
    ];
    let (has_spread, has_buffers) = (
        !settings.default_spread.is_empty(),
        settings.feature_gates.capacity_buffer,
    );
    if has_spread || has_buffers || settings.plans_coming_pods {
        watches.push(watch_workloads::<ReplicaSet>(
            client,
            WorkloadKind::ReplicaSet,
        ));
        watches.push(watch_workloads::<StatefulSet>(
            client,
            WorkloadKind::StatefulSet,
        ));
    }
    if settings.plans_coming_pods {
        // Those with a success are past their beginning, and thousands of them may be kept.
        let young = watcher::Config::default().fields("status.successful=0");
        watches.push(watch_workloads_of::<Job>(client, WorkloadKind::Job, young));
    }
    if has_spread {
        let kind = WorkloadKind::ReplicationController;
        watches.push(watch_workloads::<ReplicationController>(client, kind));
        watches.push(watch_all(client, Kind::Service, Object::Service));
    }
    if has_buffers {
        watches.push(watch_workloads::<Deployment>(
            client,
            WorkloadKind::Deployment,
        ));
        watches.push(watch_workloads::<PodTemplate>(
            client,
            WorkloadKind::PodTemplate,
        ));
        watches.push(watch_all(
            client,
            Kind::CapacityBuffer,
            Object::CapacityBuffer,
        ));
    }
    if settings.feature_gates.node_overlay {
        watches.push(watch_all(client, Kind::NodeOverlay, Object::NodeOverlay));
    }
    watches.extend(watch_policies(client, &settings.policy_namespace));
    watches
}

/// Watches policies, and by name alone what they may have beside them: what they name of it is read then.
fn watch_policies(client: &Client, namespace: &str) -> [Watch; 2] {
    let policies = Api::namespaced(client.clone(), namespace);
    let labelled = watcher::Config::default().labels(POLICY_LABEL);
    // Of these the API server gives the metadata alone.
    let others = Api::namespaced(client.clone(), namespace);
    let unlabelled = watcher::Config::default().labels(&format!("!{POLICY_LABEL}"));
    [
        watch(policies, Kind::Policy, labelled, Object::Policy),
        watch(others, Kind::PolicyData, unlabelled, Object::PolicyData),
    ]
}

/// Watches a kind of workload, of which only some facts are kept.
fn watch_workloads<K>(client: &Client, kind: WorkloadKind) -> Watch
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    Workload: From<K>,
{
    watch_workloads_of::<K>(client, kind, watcher::Config::default())
}

fn watch_workloads_of<K>(client: &Client, kind: WorkloadKind, config: watcher::Config) -> Watch
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    Workload: From<K>,
{
    #[expect(clippy::boxed_local, reason = "watches hand objects over in boxes")]
    fn wrap<K>(object: Box<K>) -> Object
    where
        Workload: From<K>,
    {
        let workload = Box::new(Workload::from(*object));
        Object::Workload(workload.kind, workload)
    }
    let api = Api::all(client.clone());
    watch(api, Kind::Workload(kind), config, wrap::<K>)
}

fn watch_all<K>(client: &Client, kind: Kind, wrap: fn(Box<K>) -> Object) -> Watch
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watch(
        Api::all(client.clone()),
        kind,
        watcher::Config::default(),
        wrap,
    )
}

fn watch<K>(api: Api<K>, kind: Kind, config: watcher::Config, wrap: fn(Box<K>) -> Object) -> Watch
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let config = config.page_size(PAGE_SIZE).timeout(WATCH_TIMEOUT_SECONDS);
    let trim = move |mut object: K| {
        // Who else wrote fields is of no interest, and takes more room than the rest of most objects.
        let is_plan = |manager: &Option<String>| manager.as_deref() == Some(NOMINATION_MANAGER);
        object
            .managed_fields_mut()
            .retain(|it| is_plan(&it.manager));
        wrap(Box::new(object))
    };
    let told = watcher(api, config)
        .backoff(Steady::default())
        .map(move |event| match event {
            Ok(watcher::Event::Init) => Told::ListStarts(kind),
            Ok(watcher::Event::InitApply(object)) => Told::Listed(trim(object)),
            Ok(watcher::Event::InitDone) => Told::ListEnds(kind),
            Ok(watcher::Event::Apply(object)) => Told::Applied(trim(object)),
            Ok(watcher::Event::Delete(object)) => Told::Deleted(
                kind,
                ObjectKey {
                    namespace: object.namespace().unwrap_or_default(),
                    name: object.name_any(),
                },
            ),
            Err(error) => Told::Failed(kind, error),
        });
    (kind, told.boxed())
}

/// Doubling delays without jitter: equal runs stay equal.
#[derive(Debug)]
struct Steady {
    next: Duration,
}

impl Steady {
    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);
}

impl Default for Steady {
    fn default() -> Self {
        Self { next: Self::FIRST }
    }
}

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.next;
        self.next = (delay * 2).min(Self::LONGEST);
        Some(delay)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {
        self.next = Self::FIRST;
    }
}

fn kind_of(object: &Object) -> Kind {
    match object {
        Object::Pod(_) => Kind::Pod,
        Object::Node(_) => Kind::Node,
        Object::NodeClaim(_) => Kind::NodeClaim,
        Object::NodePool(_) => Kind::NodePool,
        Object::NodeClass(_) => Kind::NodeClass,
        Object::NodeOverlay(_) => Kind::NodeOverlay,
        Object::DaemonSet(_) => Kind::DaemonSet,
        Object::Pdb(_) => Kind::Pdb,
        Object::VolumeClaim(_) => Kind::VolumeClaim,
        Object::Volume(_) => Kind::Volume,
        Object::StorageClass(_) => Kind::StorageClass,
        Object::CsiNode(_) => Kind::CsiNode,
        Object::VolumeAttachment(_) => Kind::VolumeAttachment,
        Object::Service(_) => Kind::Service,
        Object::Workload(kind, _) => Kind::Workload(*kind),
        Object::CapacityBuffer(_) => Kind::CapacityBuffer,
        Object::Device(it) => Kind::Device(it.kind),
        Object::Namespace(_) => Kind::Namespace,
        Object::Policy(_) => Kind::Policy,
        Object::PolicyData(_) => Kind::PolicyData,
    }
}

fn key_of(object: &Object) -> ObjectKey {
    let meta = match object {
        Object::Pod(it) => &it.metadata,
        Object::Node(it) => &it.metadata,
        Object::NodeClaim(it) => &it.metadata,
        Object::NodePool(it) => &it.metadata,
        Object::NodeClass(it) => &it.metadata,
        Object::NodeOverlay(it) => &it.metadata,
        Object::DaemonSet(it) => &it.metadata,
        Object::Pdb(it) => &it.metadata,
        Object::VolumeClaim(it) => &it.metadata,
        Object::Volume(it) => &it.metadata,
        Object::StorageClass(it) => &it.metadata,
        Object::CsiNode(it) => &it.metadata,
        Object::VolumeAttachment(it) => &it.metadata,
        Object::Service(it) => &it.metadata,
        Object::Workload(_, it) => return of_pod_key(&it.key),
        Object::Device(it) => return of_pod_key(&it.key),
        Object::CapacityBuffer(it) => &it.metadata,
        Object::Namespace(it) => &it.metadata,
        Object::Policy(it) => &it.metadata,
        Object::PolicyData(it) => &it.metadata,
    };
    ObjectKey {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
    }
}

fn of_pod_key(key: &PodKey) -> ObjectKey {
    let PodKey { namespace, name } = key.clone();
    ObjectKey { namespace, name }
}

/// Watches what tells of devices, in the version that the cluster prefers. An object that cannot be read counts as
/// absent.
async fn watch_devices(client: &Client) -> Vec<Watch> {
    let group = kube::discovery::group(client, DEVICE_GROUP).await;
    let version = match &group {
        Ok(group) => group.preferred_version_or_latest().to_owned(),
        Err(error) => {
            warn!(%error, "no version of {DEVICE_GROUP} is known; trying v1");
            "v1".to_owned()
        }
    };
    let kinds = [
        (DeviceKind::Slice, "ResourceSlice", "resourceslices"),
        (DeviceKind::Class, "DeviceClass", "deviceclasses"),
        (DeviceKind::Claim, "ResourceClaim", "resourceclaims"),
        (
            DeviceKind::Template,
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
        ),
    ];
    let watch_kind = |(kind, name, plural): (DeviceKind, &str, &str)| {
        let resource = ApiResource {
            group: DEVICE_GROUP.to_owned(),
            version: version.clone(),
            api_version: format!("{DEVICE_GROUP}/{version}"),
            kind: name.to_owned(),
            plural: plural.to_owned(),
        };
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        watch_dynamic(api, kind)
    };
    kinds.into_iter().map(watch_kind).collect()
}

fn watch_dynamic(api: Api<DynamicObject>, kind: DeviceKind) -> Watch {
    let config = watcher::Config::default();
    let config = config.page_size(PAGE_SIZE).timeout(WATCH_TIMEOUT_SECONDS);
    let gone = move |object: &DynamicObject| {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        Told::Deleted(Kind::Device(kind), ObjectKey { namespace, name })
    };
    let read = move |object: &DynamicObject| {
        let value = serde_json::to_value(object).unwrap_or_default();
        DeviceObject::read(kind, &value).map(|it| Object::Device(Box::new(it)))
    };
    let told = move |object: &DynamicObject, tell: fn(Object) -> Told| match read(object) {
        Ok(read) => tell(read),
        Err(error) => {
            warn!(name = object.name_any(), %error, "object left out of cluster state");
            gone(object)
        }
    };
    let all_told = watcher(api, config)
        .backoff(Steady::default())
        .map(move |event| match event {
            Ok(watcher::Event::Init) => Told::ListStarts(Kind::Device(kind)),
            Ok(watcher::Event::InitApply(object)) => told(&object, Told::Listed),
            Ok(watcher::Event::InitDone) => Told::ListEnds(Kind::Device(kind)),
            Ok(watcher::Event::Apply(object)) => told(&object, Told::Applied),
            Ok(watcher::Event::Delete(object)) => gone(&object),
            Err(error) => Told::Failed(Kind::Device(kind), error),
        });
    (Kind::Device(kind), all_told.boxed())
}
