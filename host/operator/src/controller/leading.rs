//! When this process leads, and how it ends: the election, what runs until then, and the grace of a stop.
//!
//! Who leads is decided in `leader_election.rs`.

use super::client;
use super::cloud::BackgroundTask;
use crate::api_client::{Asker, Guard};
use crate::cli::ControllerArguments;
use crate::fence::Fence;
use crate::leader_election::{Election, LeaderElector};
use crate::options::ProcessOptions;
use crate::stack::Stack;
use anyhow::bail;
use cloudprovider::Clock;
use kube::api::Api;
use prometheus_client::metrics::counter::Counter;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// How long work that was begun may take after the process was asked to stop; Kubernetes ends it after 30 s, and events
/// and the lease come after it.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Leads when it is its turn, until it is asked to stop: then what was begun is done and told, and the lease given
/// back.
pub(super) async fn live(
    election: Option<&Election>,
    stack: &Stack,
    background: &BackgroundTask,
) -> anyhow::Result<()> {
    let ended = lead_until_asked_to_stop(election, stack, background).await;
    // Held from before anything leads by it, and by who fails, too: nobody has to wait for its end.
    if let Some(election) = election {
        election.release().await;
    }
    ended
}

async fn lead_until_asked_to_stop(
    election: Option<&Election>,
    stack: &Stack,
    background: &BackgroundTask,
) -> anyhow::Result<()> {
    let mut led = pin!(lead(election, stack, background));
    tokio::select! {
        biased;
        signal = stop_signal() => signal?,
        ended = &mut led => return ended,
    }
    if !stack.controllers.leads() {
        return Ok(());
    }
    stack.controllers.stop();
    let ended = tokio::time::timeout(STOP_GRACE, led).await;
    ended.unwrap_or_else(|_| {
        tracing::warn!("what is under way takes too long; the next to lead finds it as it is");
        Ok(())
    })
}

/// Fills the model, waits for the lease, and leads for as long as it holds. Ends well once all is done after a stop.
async fn lead(
    election: Option<&Election>,
    stack: &Stack,
    background: &BackgroundTask,
) -> anyhow::Result<()> {
    if election.is_none() {
        background.resume().await?;
    }
    let leading = async {
        let Some(election) = election else {
            return std::future::pending().await;
        };
        tracing::info!(lease = election.lease_name(), "waiting for the lease");
        let until = election.acquire().await;
        let taking_over = async {
            background.resume().await?;
            stack.controllers.lead();
            tracing::info!("leading; the controllers start");
            std::future::pending().await
        };
        // To take over may take longer than the lease lasts, so that it is renewed meanwhile.
        tokio::select! {
            biased;
            lost = election.keep(until) => lost,
            failed = taking_over => failed,
        }
    };
    let background = async {
        match background {
            BackgroundTask::Nodes(nodes) => {
                stack.controllers.until_leading().await;
                nodes.run().await
            }
            BackgroundTask::Cluster(watch) => {
                watch.run().await;
                Ok(())
            }
        }
    };
    tokio::select! {
        biased;
        lost = leading => lost,
        () = stack.run() => {
            if stack.controllers.leads() {
                bail!("a controller ended by itself, which is a bug");
            }
            Ok(())
        }
        ended = background => ended,
    }
}

/// The election by a client of its own: what the controllers wait for must not keep the lease waiting.
pub(super) async fn election(
    arguments: &ControllerArguments,
    fence: &Fence,
    clock: Arc<dyn Clock>,
    slow_renewals: Counter,
) -> anyhow::Result<Option<Election>> {
    let ProcessOptions {
        // Served, logged and bound elsewhere.
        metrics_port: _,
        metrics_secure: _,
        metrics_cert_dir: _,
        health_probe_port: _,
        log_level: _,
        log_output_paths: _,
        policy_namespace: _,
        enable_profiling: _,
        disable_leader_election,
        leader_election_name,
        leader_election_namespace,
        system_namespace,
        kube_client_qps: _,
        kube_client_burst: _,
    } = &arguments.options.process;
    if *disable_leader_election {
        return Ok(None);
    }
    let namespace = if leader_election_namespace.is_empty() {
        system_namespace
    } else {
        leader_election_namespace
    };
    let kubeconfig = arguments.kubeconfig.as_deref();
    let client = client(kubeconfig, &Guard::none(), Asker::Election).await?;
    Ok(Some(Election::new(LeaderElector {
        leases: Api::namespaced(client, namespace),
        lease_name: leader_election_name.clone(),
        identity: identity(),
        clock,
        fence: fence.clone(),
        slow_renewals,
    })))
}

/// Host and a random part, as client-go's: processes in containers of one host are all number 1.
fn identity() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let (host, random) = (
        read("/proc/sys/kernel/hostname"),
        read("/proc/sys/kernel/random/uuid"),
    );
    format!("{}_{}_{}", host.trim(), std::process::id(), random.trim())
}

/// Returns when the process is asked to stop.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    tracing::info!("stopping");
    Ok(())
}

#[cfg(test)]
mod tests;
