//! One set of watches for all controllers: what they tell goes into the cluster model, and keys into work queues.
//!
//! There is no second cache: objects are parsed into the model, which answers what changed. All watches are polled in one
//! task, which is the only one that feeds the model from outside. Answers to `pkg/controllers/state/informer`.

pub(crate) mod progress;
mod queues;
mod router;
mod routing;
mod telling;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use apis::labels::NOMINATION_MANAGER;
use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool, ObjectKey};
use futures::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use state::Event;
use state::cluster::Watched;
use state::devices::DeviceKind;
use state::workloads::{Workload, WorkloadKind};
use tracing::{debug, info, warn};

use crate::policy_binding::{POLICY_LABEL, PolicyFact};
use crate::settings::Settings;
use crate::shell::Shell;
use telling::{Devices, Ours, Plain, Pods, Policies, PolicyData, Telling, Workloads};

pub(crate) use progress::{Failure, Kind, Progress};
pub(crate) use queues::{Keys, Queues};
pub(crate) use router::Router;

/// Objects a page, on the first list of each kind and when a watch has to start over.
const PAGE_SIZE: u32 = 500;
const DEVICE_GROUP: &str = "resource.k8s.io";
/// An API server that ends a watch is asked again after this long; it bounds how long a dead connection goes
/// unnoticed.
const WATCH_TIMEOUT_SECONDS: u32 = 290;
/// First lists that take longer are spoken of.
const LONG_LIST: Duration = Duration::from_secs(30);

/// What is said of an object, or of all of a kind.
#[derive(Debug)]
enum Fact {
    /// For the model.
    Model(Event),
    /// For the policies, which the model knows nothing of.
    Policy(PolicyFact),
}

/// What a watch tells.
#[derive(Debug)]
enum Told {
    /// Something was said.
    Fact(Fact),
    /// Everything there is was told.
    Complete(Kind, Fact),
    /// The watch failed and will be tried again.
    Failed(Kind, watcher::Error),
    /// The watch starts over: everything there is will be told.
    StartsOver,
}

/// A kind and what its watch tells.
type Watch = (Kind, BoxStream<'static, Told>);

/// Feeds the model until the future is dropped.
pub(crate) async fn run(shell: Arc<Shell>, router: Router) {
    let mut watches = watches(&shell);
    if !shell.settings.ignore_dra_requests {
        watches.extend(watch_devices(&shell.client).await);
    }
    let kinds: Vec<Kind> = watches.iter().map(|(kind, _)| *kind).collect();
    shell.model.note_progress(|it| it.begin(kinds));
    let mut streams: SelectAll<_> = watches.into_iter().map(|(_, stream)| stream).collect();
    while let Some(told) = streams.next().await {
        match told {
            Told::StartsOver => {}
            Told::Fact(fact) => router.take(fact),
            Told::Complete(kind, fact) => {
                router.take(fact);
                shell.model.note_progress(|it| it.listed(kind));
            }
            Told::Failed(kind, error) => {
                if kind.is_essential() {
                    warn!(?kind, %error, "watch failed, will be tried again");
                } else {
                    debug!(?kind, %error, "watch failed, will be tried again");
                }
                let failure = failure(&error);
                shell.model.note_progress(|it| it.failed(kind, failure));
            }
        }
    }
}

/// Waits until everything that there is has been told; says what is missing where that takes long.
pub(crate) async fn first_lists(shell: &Shell) {
    let mut progress = shell.model.watch_progress();
    loop {
        let complete = progress.wait_for(Progress::is_complete);
        // The sender lives as long as the shell.
        if tokio::time::timeout(LONG_LIST, complete).await.is_ok() {
            info!("cluster state has seen every kind");
            return;
        }
        let awaited = shell.model.progress().awaited();
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

/// Each kind that is watched: one line, and what is done with its objects is its implementation of [`Watched`].
fn watches(shell: &Arc<Shell>) -> Vec<Watch> {
    let (client, settings) = (&shell.client, &shell.settings);
    let pods = Pods(Arc::clone(shell));
    let mut watches = vec![
        watch(
            all(client),
            Kind::core("NodePool"),
            Ours::<NodePool>::default(),
        ),
        watch_all::<Ec2NodeClass>(client, Kind::core("EC2NodeClass")),
        watch(
            all(client),
            Kind::core("NodeClaim"),
            Ours::<NodeClaim>::default(),
        ),
        watch_all::<Node>(client, Kind::core("Node")),
        watch_all::<Namespace>(client, Kind::core("Namespace")),
        watch_all::<DaemonSet>(client, Kind::core("DaemonSet")),
        watch_all::<PodDisruptionBudget>(client, Kind::guarding("PodDisruptionBudget")),
        watch_all::<StorageClass>(client, Kind::helpful("StorageClass")),
        watch_all::<PersistentVolume>(client, Kind::helpful("PersistentVolume")),
        watch_all::<PersistentVolumeClaim>(client, Kind::helpful("PersistentVolumeClaim")),
        watch_all::<CSINode>(client, Kind::helpful("CSINode")),
        watch_all::<VolumeAttachment>(client, Kind::guarding("VolumeAttachment")),
        watch(all(client), Kind::core("Pod"), pods),
    ];
    watches.extend(watch_workloads(client, settings));
    if settings.feature_gates.capacity_buffer {
        let kind = Kind::helpful("CapacityBuffer");
        watches.push(watch_all::<CapacityBuffer>(client, kind));
    }
    if settings.feature_gates.node_overlay {
        watches.push(watch_all::<NodeOverlay>(
            client,
            Kind::helpful("NodeOverlay"),
        ));
    }
    watches.extend(watch_policies(client, &settings.policy_namespace));
    watches
}

/// Watches workloads, of which only some facts are kept, as far as somebody asks for them.
fn watch_workloads(client: &Client, settings: &Settings) -> Vec<Watch> {
    let mut watches = Vec::new();
    let (has_spread, has_buffers) = (
        !settings.default_spread.is_empty(),
        settings.feature_gates.capacity_buffer,
    );
    if has_spread || has_buffers || settings.plans_coming_pods() {
        watches.push(watch_workload::<ReplicaSet>(
            client,
            WorkloadKind::ReplicaSet,
        ));
        watches.push(watch_workload::<StatefulSet>(
            client,
            WorkloadKind::StatefulSet,
        ));
    }
    if settings.plans_coming_pods() {
        // Those with a success are past their beginning, and thousands of them may be kept.
        let young = watcher::Config::default().fields("status.successful=0");
        let (kind, telling) = (Kind::helpful("Job"), Workloads(WorkloadKind::Job));
        watches.push(watch_some(all::<Job>(client), young, kind, telling));
    }
    if has_spread {
        let kind = WorkloadKind::ReplicationController;
        watches.push(watch_workload::<ReplicationController>(client, kind));
        watches.push(watch_all::<Service>(client, Kind::helpful("Service")));
    }
    if has_buffers {
        watches.push(watch_workload::<Deployment>(
            client,
            WorkloadKind::Deployment,
        ));
        watches.push(watch_workload::<PodTemplate>(
            client,
            WorkloadKind::PodTemplate,
        ));
    }
    watches
}

/// Watches policies, and by name alone what they may have beside them: what they name of it is read then.
fn watch_policies(client: &Client, namespace: &str) -> [Watch; 2] {
    let policies = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let labelled = watcher::Config::default().labels(POLICY_LABEL);
    // Of these the API server gives the metadata alone.
    let others = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), namespace);
    let unlabelled = watcher::Config::default().labels(&format!("!{POLICY_LABEL}"));
    [
        watch_some(policies, labelled, Kind::policy("policies"), Policies),
        watch_some(others, unlabelled, Kind::helpful("ConfigMap"), PolicyData),
    ]
}

fn all<K: Resource<DynamicType = ()>>(client: &Client) -> Api<K> {
    Api::all(client.clone())
}

fn watch_all<K>(client: &Client, kind: Kind) -> Watch
where
    K: Watched<Kind = ()> + Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    watch(all::<K>(client), kind, Plain::default())
}

fn watch_workload<K>(client: &Client, kind: WorkloadKind) -> Watch
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    Workload: From<K>,
{
    watch(
        all::<K>(client),
        Kind::helpful(kind.name()),
        Workloads(kind),
    )
}

fn watch<K>(api: Api<K>, kind: Kind, telling: impl Telling<K>) -> Watch
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    K::DynamicType: Clone + Default + Debug,
{
    watch_some(api, watcher::Config::default(), kind, telling)
}

fn watch_some<K>(
    api: Api<K>,
    config: watcher::Config,
    kind: Kind,
    telling: impl Telling<K>,
) -> Watch
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let config = config.page_size(PAGE_SIZE).timeout(WATCH_TIMEOUT_SECONDS);
    let mut listed = BTreeSet::new();
    let told = watcher(api, config)
        .backoff(Steady::default())
        .map(move |event| match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                Told::StartsOver
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.insert(key_of(&object));
                Told::Fact(telling.applied(trimmed(object)))
            }
            Ok(watcher::Event::InitDone) => {
                Told::Complete(kind, telling.listed(std::mem::take(&mut listed)))
            }
            Ok(watcher::Event::Apply(object)) => Told::Fact(telling.applied(trimmed(object))),
            Ok(watcher::Event::Delete(object)) => Told::Fact(telling.deleted(key_of(&object))),
            Err(error) => Told::Failed(kind, error),
        });
    (kind, told.boxed())
}

fn key_of(object: &impl ResourceExt) -> ObjectKey {
    ObjectKey {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}

/// Who else wrote fields is of no interest, and takes more room than the rest of most objects.
fn trimmed<K: ResourceExt>(mut object: K) -> K {
    let is_plan = |manager: &Option<String>| manager.as_deref() == Some(NOMINATION_MANAGER);
    object
        .managed_fields_mut()
        .retain(|it| is_plan(&it.manager));
    object
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
    let watch_kind = |(kind, name, plural): (DeviceKind, &'static str, &str)| {
        let resource = ApiResource {
            group: DEVICE_GROUP.to_owned(),
            version: version.clone(),
            api_version: format!("{DEVICE_GROUP}/{version}"),
            kind: name.to_owned(),
            plural: plural.to_owned(),
        };
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        watch_some(
            api,
            watcher::Config::default(),
            Kind::helpful(name),
            Devices(kind),
        )
    };
    kinds.into_iter().map(watch_kind).collect()
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
