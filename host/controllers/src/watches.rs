//! One set of watches for all controllers: what they tell goes into the cluster model, and keys into work queues.
//!
//! There is no second cache: objects are parsed into the model, which answers what changed. All watches are polled in one
//! task, which is the only one that feeds the model from outside. Answers to `pkg/controllers/state/informer`.

mod fact;
pub(crate) mod progress;
mod queues;
mod router;
mod routing;
mod stream;
mod telling;

use std::sync::Arc;
use std::time::Duration;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use futures::stream::{SelectAll, StreamExt};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client};
use state::devices::DeviceKind;
use state::workloads::WorkloadKind;
use tracing::{debug, info, warn};

use crate::policy_binding::POLICY_LABEL;
use crate::settings::Settings;
use crate::shell::Shell;
use stream::{KindWatch, WatchMessage, all, watch, watch_all, watch_some, watch_workload};
use telling::{Ours, Pods, Policies, PolicyData, WatchedDevices, WatchedWorkloads};

pub(crate) use progress::{Failure, FirstLists, WatchedKind};
pub(crate) use queues::{Keys, QueueName, QueueProfile, Queues};
pub(crate) use router::Router;

const DEVICE_GROUP: &str = "resource.k8s.io";
/// First lists that take longer are spoken of.
const LONG_LIST: Duration = Duration::from_secs(30);

/// Feeds the model until the future is dropped.
pub(crate) async fn run(shell: Arc<Shell>, router: Router) {
    let mut watches = watches(&shell);
    if !shell.settings.ignore_dra_requests {
        watches.extend(watch_devices(&shell.client).await);
    }
    let kinds: Vec<WatchedKind> = watches.iter().map(|(kind, _)| *kind).collect();
    shell.model.note_progress(|it| it.begin(kinds));
    let mut streams: SelectAll<_> = watches.into_iter().map(|(_, stream)| stream).collect();
    while let Some(told) = streams.next().await {
        match told {
            WatchMessage::StartsOver => {}
            WatchMessage::Fact(fact) => router.take(fact),
            WatchMessage::Complete(kind, fact) => {
                router.take(fact);
                shell.model.note_progress(|it| it.listed(kind));
            }
            WatchMessage::Failed(kind, error) => {
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
        let complete = progress.wait_for(FirstLists::is_complete);
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

/// Each kind that is watched: one line, and what is done with its objects is its implementation of [`state::cluster::Watched`].
fn watches(shell: &Arc<Shell>) -> Vec<KindWatch> {
    let (client, settings) = (&shell.client, &shell.settings);
    let pods = Pods(Arc::clone(shell));
    let mut watches = vec![
        watch(
            all(client),
            WatchedKind::core("NodePool"),
            Ours::<NodePool>::default(),
        ),
        watch_all::<Ec2NodeClass>(client, WatchedKind::core("EC2NodeClass")),
        watch(
            all(client),
            WatchedKind::core("NodeClaim"),
            Ours::<NodeClaim>::default(),
        ),
        watch_all::<Node>(client, WatchedKind::core("Node")),
        watch_all::<Namespace>(client, WatchedKind::core("Namespace")),
        watch_all::<DaemonSet>(client, WatchedKind::core("DaemonSet")),
        watch_all::<PodDisruptionBudget>(client, WatchedKind::guarding("PodDisruptionBudget")),
        watch_all::<StorageClass>(client, WatchedKind::helpful("StorageClass")),
        watch_all::<PersistentVolume>(client, WatchedKind::helpful("PersistentVolume")),
        watch_all::<PersistentVolumeClaim>(client, WatchedKind::helpful("PersistentVolumeClaim")),
        watch_all::<CSINode>(client, WatchedKind::helpful("CSINode")),
        watch_all::<VolumeAttachment>(client, WatchedKind::guarding("VolumeAttachment")),
        watch(all(client), WatchedKind::core("Pod"), pods),
    ];
    watches.extend(watch_workloads(client, settings));
    if settings.feature_gates.capacity_buffer {
        let kind = WatchedKind::helpful("CapacityBuffer");
        watches.push(watch_all::<CapacityBuffer>(client, kind));
    }
    if settings.feature_gates.node_overlay {
        watches.push(watch_all::<NodeOverlay>(
            client,
            WatchedKind::helpful("NodeOverlay"),
        ));
    }
    watches.extend(watch_policies(client, &settings.policy_namespace));
    watches
}

/// Watches workloads, of which only some facts are kept, as far as somebody asks for them.
fn watch_workloads(client: &Client, settings: &Settings) -> Vec<KindWatch> {
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
        let (kind, telling) = (
            WatchedKind::helpful("Job"),
            WatchedWorkloads(WorkloadKind::Job),
        );
        watches.push(watch_some(all::<Job>(client), young, kind, telling));
    }
    if has_spread {
        let kind = WorkloadKind::ReplicationController;
        watches.push(watch_workload::<ReplicationController>(client, kind));
        watches.push(watch_all::<Service>(
            client,
            WatchedKind::helpful("Service"),
        ));
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
fn watch_policies(client: &Client, namespace: &str) -> [KindWatch; 2] {
    let policies = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let labelled = watcher::Config::default().labels(POLICY_LABEL);
    // Of these the API server gives the metadata alone.
    let others = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), namespace);
    let unlabelled = watcher::Config::default().labels(&format!("!{POLICY_LABEL}"));
    [
        watch_some(
            policies,
            labelled,
            WatchedKind::policy("policies"),
            Policies,
        ),
        watch_some(
            others,
            unlabelled,
            WatchedKind::helpful("ConfigMap"),
            PolicyData,
        ),
    ]
}

/// Watches what tells of devices, in the version that the cluster prefers. An object that cannot be read counts as
/// absent.
async fn watch_devices(client: &Client) -> Vec<KindWatch> {
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
            WatchedKind::helpful(name),
            WatchedDevices(kind),
        )
    };
    kinds.into_iter().map(watch_kind).collect()
}
