//! One set of watches for all controllers: what they tell goes into the cluster model, and keys into work queues.
//!
//! There is no second cache: objects are parsed into the model, which answers what changed. All watches are polled in
//! one task, which is the only one that feeds the model from outside. Answers to `pkg/controllers/state/informer`.

mod backoff;
mod fact;
mod mapping;
pub(crate) mod pod_starts;
mod queues;
mod router;
mod routing;
mod row;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use futures::stream::{SelectAll, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate,
    ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use state::devices::DeviceKind;
use state::workloads::WorkloadKind;
use tracing::{debug, error, info, warn};

use crate::policy_binding::POLICY_LABEL;
use crate::rbac::denied::DeniedRequest;
use crate::rbac::rule::{RbacRule, Role, When};
use crate::shell::Shell;
use crate::shell::error::api_code;
use crate::shell::model::first_lists::{Failure, FirstLists, WatchedKind};
use crate::voluntary_disruption::deletion_cost::written::WrittenCosts;
use mapping::{Pods, Policies, PolicyData, WatchedWorkloads};
use row::{DEVICE_GROUP, WatchRow, all, device, mapped, ours, plain, workload};
use stream::{KindWatch, WatchMessage, watch_some};

pub use backoff::WatchBackoff;
pub use stream::WATCH_TIMEOUT_SECONDS;

pub(crate) use queues::{Keys, QueueName, QueueRow, Queues};
pub(crate) use router::Router;

/// Time after which a cause that keeps first lists from being complete is told if somebody has to mend it, so that one
/// that passes by itself within the first tries is not.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// First lists that take longer are spoken of.
const LONG_LIST: Duration = Duration::from_secs(30);

/// Everything that watches are begun with.
pub(crate) struct WatchSource {
    pub(crate) shell: Arc<Shell>,
    pub(crate) written_costs: Arc<WrittenCosts>,
}

/// Feeds the model until the future is dropped.
pub(crate) async fn run(source: WatchSource, router: Router) {
    let watches = watches(&source).await;
    let shell = source.shell;
    let kinds: Vec<WatchedKind> = watches.iter().map(|(kind, _)| *kind).collect();
    shell.model.note_progress(|it| it.begin(kinds));
    let mut streams: SelectAll<_> = watches.into_iter().map(|(_, stream)| stream).collect();
    while let Some(message) = streams.next().await {
        match message {
            WatchMessage::StartsOver => {}
            WatchMessage::Fact(fact) => router.take(fact),
            WatchMessage::Complete(kind, fact) => {
                router.take(fact);
                shell.model.note_progress(|it| it.note_listed(kind));
            }
            WatchMessage::Failed(kind, error) => {
                if kind.is_essential() {
                    warn!(?kind, %error, "watch failed, will be tried again");
                } else {
                    debug!(?kind, %error, "watch failed, will be tried again");
                }
                let failure = failure(&error);
                shell
                    .model
                    .note_progress(|it| it.note_failure(kind, failure));
            }
        }
    }
}

/// Waits until everything that there is has been told; says what is missing where that takes long.
pub(crate) async fn first_lists(shell: &Shell) {
    let mut progress = shell.model.watch_progress();
    let mut wait = FIRST_WORD;
    loop {
        let complete = progress.wait_for(FirstLists::is_complete);
        // The sender lives as long as the shell.
        if tokio::time::timeout(wait, complete).await.is_ok() {
            info!("cluster state has seen every kind");
            return;
        }
        let lists = shell.model.progress();
        let obstacles = lists.obstacles();
        if wait == LONG_LIST || !obstacles.is_empty() {
            let awaited = lists.awaited();
            warn!(kinds = ?awaited, "still waiting for first lists; nothing is decided before they are complete");
        }
        for obstacle in obstacles {
            error!("{obstacle}");
        }
        wait = LONG_LIST;
    }
}

fn failure(error: &watcher::Error) -> Failure {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))) = error
    else {
        return Failure::Passing;
    };
    match (status.code, DeniedRequest::parse(&status.message)) {
        (404, _) => Failure::NotServed,
        (403, Some(denied)) => Failure::Denied(denied.to_string()),
        _ => Failure::Passing,
    }
}

/// The kinds that are watched: what is done with the objects of each is its implementation of
/// [`state::cluster::Watched`], and what may be watched follows from these rows.
fn rows() -> Vec<WatchRow> {
    let mut rows = cluster();
    rows.extend(workloads());
    rows.extend([
        plain::<CapacityBuffer>(WatchedKind::helpful, "room that is kept")
            .read_with_get()
            .when(When::CapacityBuffers),
        plain::<NodeOverlay>(
            WatchedKind::helpful,
            "prices and capacity that are other than the cloud says",
        )
        .when(When::NodeOverlays),
    ]);
    rows.extend(policies());
    rows.extend(devices());
    rows
}

/// The rights to watch them. Of two watches of one kind, the first has the right.
pub(crate) fn rules() -> Vec<RbacRule> {
    let mut rules: Vec<RbacRule> = Vec::new();
    for rule in rows().into_iter().map(WatchRow::rule) {
        let is_same = |it: &RbacRule| (it.group, it.resources) == (rule.group, rule.resources);
        if !rules.iter().any(is_same) {
            rules.push(rule);
        }
    }
    rules
}

fn cluster() -> Vec<WatchRow> {
    vec![
        ours::<NodePool>(WatchedKind::core, "what may be bought").read_with_get(),
        plain::<Ec2NodeClass>(WatchedKind::core, "what instances are made of")
            .read_with_get()
            .role(Role::Aws),
        ours::<NodeClaim>(WatchedKind::core, "what was bought").read_with_get(),
        plain::<Node>(WatchedKind::core, "what pods can run on").read_with_get(),
        plain::<Namespace>(
            WatchedKind::core,
            "the labels by which affinity selects namespaces",
        ),
        plain::<DaemonSet>(WatchedKind::core, "what comes onto every new node"),
        plain::<PodDisruptionBudget>(WatchedKind::guarding, "whom a drain may not evict"),
        plain::<StorageClass>(WatchedKind::helpful, "where volumes can be made"),
        plain::<PersistentVolume>(WatchedKind::helpful, "where volumes bind pods to a zone"),
        plain::<PersistentVolumeClaim>(WatchedKind::helpful, "which volumes pods have"),
        plain::<CSINode>(WatchedKind::helpful, "how many volumes a node takes"),
        plain::<VolumeAttachment>(
            WatchedKind::guarding,
            "which volume a node that goes has yet to let go of",
        ),
        mapped::<Pod, _>(WatchedKind::core, "what runs and what waits", |source| {
            let gates = &source.shell.settings.feature_gates;
            let writes_costs = gates.pod_deletion_cost_management;
            Pods(writes_costs.then(|| Arc::clone(&source.written_costs)))
        }),
    ]
}

/// Workloads, of which only some facts are kept, as far as somebody asks for them.
fn workloads() -> Vec<WatchRow> {
    vec![
        workload::<ReplicaSet>(
            WorkloadKind::ReplicaSet,
            "how many pods are wanted, and how they are selected",
        )
        .when(When::Workloads),
        workload::<StatefulSet>(
            WorkloadKind::StatefulSet,
            "the same, of pods with a name of their own",
        )
        .when(When::Workloads),
        WatchRow::new::<Job>(
            WatchedKind::helpful,
            "how many pods are about to come",
            |source, kind| {
                // Those with a success are past their beginning, and thousands of them may be kept.
                let young = watcher::Config::default().fields("status.successful=0");
                let mapper = WatchedWorkloads(WorkloadKind::Job);
                watch_some(all::<Job>(&source.shell.client), young, kind, mapper)
            },
        )
        .when(When::ComingPods),
        workload::<ReplicationController>(
            WorkloadKind::ReplicationController,
            "which pods the scheduler's default constraints count together",
        )
        .when(When::DefaultSpread),
        plain::<Service>(
            WatchedKind::helpful,
            "the same, of pods that serve together",
        )
        .when(When::DefaultSpread),
        workload::<Deployment>(
            WorkloadKind::Deployment,
            "the pods for which a buffer keeps room",
        )
        .when(When::CapacityBuffers),
        workload::<PodTemplate>(WorkloadKind::PodTemplate, "the same, as templates")
            .when(When::CapacityBuffers),
    ]
}

/// Policies, and by name alone what they may have beside them: what they name of it is read then.
fn policies() -> [WatchRow; 2] {
    [
        WatchRow::new::<ConfigMap>(
            WatchedKind::policy,
            "policies, and what they name",
            |source, kind| {
                let labelled = watcher::Config::default().labels(POLICY_LABEL);
                let bindings = of_policies::<ConfigMap>(&source.shell);
                watch_some(bindings, labelled, kind, Policies)
            },
        )
        .display_name("policies")
        .read_with_get()
        .role(Role::Policies),
        WatchRow::new::<ConfigMap>(
            WatchedKind::helpful,
            "what policies name",
            |source, kind| {
                // Of these the API server gives the metadata alone.
                let others = of_policies::<PartialObjectMeta<ConfigMap>>(&source.shell);
                let unlabelled = watcher::Config::default().labels(&format!("!{POLICY_LABEL}"));
                watch_some(others, unlabelled, kind, PolicyData)
            },
        )
        .role(Role::Policies),
    ]
}

fn of_policies<K>(shell: &Shell) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(shell.client.clone(), &shell.settings.policy_namespace)
}

/// Watches of devices, in the version that the cluster prefers. An object that cannot be read counts as absent.
fn devices() -> [WatchRow; 4] {
    [
        device(
            DeviceKind::Slice,
            "ResourceSlice",
            "resourceslices",
            "the devices of nodes",
        ),
        device(
            DeviceKind::Class,
            "DeviceClass",
            "deviceclasses",
            "what devices there are to ask for",
        ),
        device(
            DeviceKind::Claim,
            "ResourceClaim",
            "resourceclaims",
            "devices that pods claim",
        ),
        device(
            DeviceKind::Template,
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
            "the same, as templates",
        ),
    ]
}

/// Asks until the API server says: a version that is guessed while it does not answer would stay until the next start.
async fn device_version(client: &Client) -> String {
    let mut delays = WatchBackoff::default();
    loop {
        let error = match kube::discovery::group(client, DEVICE_GROUP).await {
            Ok(group) => return group.preferred_version_or_latest().to_owned(),
            Err(error) => error,
        };
        let delay = delays.next().filter(|_| !is_group_unknown(&error));
        let Some(delay) = delay else {
            warn!(%error, "no version of {DEVICE_GROUP} is known; trying v1");
            return "v1".to_owned();
        };
        warn!(%error, "asking for the versions of {DEVICE_GROUP}, will be tried again");
        tokio::time::sleep(delay).await;
    }
}

/// Whether the API server says that there is no such group, or that it tells nobody like this process.
fn is_group_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Discovery(_) => true,
        error => matches!(api_code(error), Some(403 | 404)),
    }
}

/// The watches that the settings ask for.
async fn watches(source: &WatchSource) -> Vec<KindWatch> {
    let (shell, mut rows) = (&source.shell, rows());
    rows.retain(|it| it.when.holds(&shell.settings));
    let version = if rows.iter().any(WatchRow::is_device) {
        device_version(&shell.client).await
    } else {
        String::new()
    };
    let rows = rows.into_iter();
    rows.map(|it| it.begin(source, &version)).collect()
}

#[cfg(test)]
mod tests;
