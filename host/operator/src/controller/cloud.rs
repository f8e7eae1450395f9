//! The cloud of the controllers: AWS, or an account that is simulated beside a real API server.
//!
//! What is bought there is decided by nobody here.

use crate::api_client::{Asker, Guard};
use crate::cli::{Cloud, ControllerArguments};
use crate::cluster::{self, ClusterWatch};
use crate::fence::Fence;
use crate::options::{CloudOptions, ControllerOptions};
use crate::simulated_nodes::{Practice, SimulatedNodes};
use crate::stack;
use anyhow::{Context as _, bail};
use aws::sdk::SdkClients;
use aws::{AwsOptions, AwsProvider, MissingPermission, SqsInterruptionQueue};
use cloudprovider::{Clock, CloudProvider as _, InterruptionQueue};
use k8s_openapi::apimachinery::pkg::version::Info;
use scheduling::problem::MinValuesPolicy;
use std::sync::Arc;

/// The demo's API server carries this in its version.
const SIMULATED_MARK: &str = "+mortise";

pub(super) fn is_simulated(cloud: Cloud, version: &Info) -> bool {
    match cloud {
        Cloud::Simulated => true,
        Cloud::Aws => false,
        Cloud::Auto => version.git_version.contains(SIMULATED_MARK),
    }
}

/// What the controllers' cloud asks to be done for as long as they run.
pub(super) enum BackgroundTask {
    /// Makes nodes of instances where no kubelet will.
    Nodes(Box<SimulatedNodes>),
    /// Tells the provider what becomes of its cluster.
    Cluster(Box<ClusterWatch>),
}

impl BackgroundTask {
    /// Takes over from who led before, ahead of all decisions.
    pub(super) async fn resume(&self) -> anyhow::Result<()> {
        match self {
            Self::Nodes(nodes) => nodes.resume().await.context(
                "NodeClaims and Nodes, of which the simulated account is made, cannot be listed",
            ),
            Self::Cluster(_) => Ok(()),
        }
    }
}

/// A provider, and what belongs to it.
pub(super) struct CloudParts {
    pub(super) provider: Arc<AwsProvider>,
    pub(super) background: BackgroundTask,
    pub(super) interruptions: Option<Arc<dyn InterruptionQueue>>,
    /// What talks to AWS, where something does.
    pub(super) clients: Option<SdkClients>,
}

pub(super) async fn simulated_cloud(
    cluster_name: &str,
    arguments: &ControllerArguments,
    guard: &Guard,
    version: &Info,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<CloudParts> {
    let practice = Practice {
        seed: arguments.seed,
        kubernetes_version: Some(cluster::minor_precise(version)),
        zones: arguments.zones.clone(),
        boot: arguments.boot,
        termination: arguments.termination,
    };
    let kubeconfig = arguments.kubeconfig.as_deref();
    let client = super::client(kubeconfig, guard, Asker::Practice).await?;
    let nodes = SimulatedNodes::new(client, cluster_name, practice, clock.now());
    tracing::info!(
        cluster_name,
        "instances are simulated; Nodes carry kwok.x-k8s.io/node=fake"
    );
    let provider = stack::simulated_provider(nodes.ec2(), cluster_name, Arc::clone(clock));
    Ok(CloudParts {
        provider,
        background: BackgroundTask::Nodes(Box::new(nodes)),
        interruptions: None,
        clients: None,
    })
}

pub(super) async fn aws_cloud(
    arguments: &ControllerArguments,
    client: &kube::Client,
    version: &Info,
    clock: &Arc<dyn Clock>,
    fence: &Fence,
) -> anyhow::Result<CloudParts> {
    let fence = fence.clone();
    let clients = SdkClients::connect()
        .await
        .while_so(move || fence.is_open());
    let Some(region) = clients.region().map(str::to_owned) else {
        bail!("no AWS region was found; set AWS_REGION");
    };
    let mut aws_options = aws_options(&arguments.options, region);
    aws::check_connectivity(&clients).await?;
    if !aws_options.disable_dry_run {
        tell_missing_permissions(&clients).await;
    }
    aws_options.kubernetes_version = cluster::minor_precise(version);
    if aws_options.cluster_ca_bundle.is_none() {
        aws_options.cluster_ca_bundle = cluster::ca_bundle(arguments.kubeconfig.as_deref());
    }
    let sqs = Arc::new(clients.clone());
    let provider = stack::aws_provider(clients.clone(), aws_options, Arc::clone(clock));
    let watch = ClusterWatch::new(
        client.clone(),
        Arc::new(clients.clone()),
        Arc::clone(&provider),
    );
    let failure = watch.refresh().await;
    if provider.options().cluster_endpoint.is_empty() {
        let failure = failure.unwrap_or_else(|| "EKS tells none".to_owned());
        bail!(
            "nodes cannot join without the endpoint of the API server: set --cluster-endpoint (or CLUSTER_ENDPOINT); {failure}"
        );
    }
    // Who asks for it counts on nothing being launched in a zone that is shifted away from.
    let shifted = provider.shifted_zones().await;
    shifted.context("zonal shifts (ENABLE_ZONAL_SHIFT) cannot be followed; register the cluster with ARC and allow the action, or leave the setting false")?;
    let queue_name = &arguments.options.cloud.interruption_queue;
    let interruptions = (!queue_name.is_empty()).then(|| {
        let queue = SqsInterruptionQueue::new(sqs, queue_name, Arc::clone(&provider));
        Arc::new(queue) as Arc<dyn InterruptionQueue>
    });
    Ok(CloudParts {
        provider,
        background: BackgroundTask::Cluster(Box::new(watch)),
        interruptions,
        clients: Some(clients),
    })
}

/// An account that does not let the controller in ends the start; what else is missing is said, and the rest works.
async fn tell_missing_permissions(clients: &SdkClients) {
    for missing in aws::missing_permissions(clients).await {
        let MissingPermission {
            action,
            consequence,
            refusal,
        } = missing;
        tracing::error!(
            action,
            consequence,
            refusal,
            "add this action to the policy of the controller's role"
        );
    }
}

/// What the flags say of AWS; the cluster itself knows the rest.
pub(super) fn aws_options(options: &ControllerOptions, region: String) -> AwsOptions {
    let CloudOptions {
        aws,
        // Where notices come from is no matter of launches.
        interruption_queue: _,
    } = &options.cloud;
    AwsOptions {
        reserved_capacity: options.settings.feature_gates.reserved_capacity,
        min_values_best_effort: options.settings.solving.min_values_policy
            == MinValuesPolicy::BestEffort,
        ..aws.clone().given(region)
    }
}
