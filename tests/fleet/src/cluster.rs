//! A fleet on a cluster: a controller of ours is started for it, with simulated instances, and what it did is read from
//! its metrics.
//!
//! The cluster has a scheduler, a controller manager and somebody who plays kubelets (kwok, or
//! `mortise demo --no-controller --listen`), Mortise's definitions, and no other nodes that take pods. It is looked at
//! seldom and little: lists of thousands of pods are half the load of a small control plane.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use apis::labels;
use serde_json::Value;

use crate::asked::Asked;
use crate::manifests::Fleet;
use crate::metrics::Metrics;
use crate::mortise::{Offering, prices};
use crate::row::{Full, Lived, Nodes};

/// By whose tag the simulated account is found.
const CLUSTER_NAME: &str = "mortise-demo";
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What is waited for comes within this time, or the row says that it does not.
const PATIENCE: Duration = Duration::from_mins(15);
/// What the kernel counts the time of processes in.
const TICKS_PER_SECOND: f64 = 100.0;

/// The controller; it is ended on drop.
struct Controller {
    process: Child,
    metrics_port: u16,
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Cluster<'a> {
    asked: &'a Asked,
    fleet: &'a Fleet,
    kubeconfig: &'a Path,
}

pub(crate) fn live(asked: &Asked, fleet: &Fleet, kubeconfig: &Path) -> anyhow::Result<Lived> {
    let cluster = Cluster {
        asked,
        fleet,
        kubeconfig,
    };
    let controller = cluster.start_controller()?;
    let began = Instant::now();
    cluster.apply()?;
    let all_running = cluster.wait_until_all_run(&controller, began)?;
    let watched_until = Instant::now() + asked.watched;
    thread::sleep(watched_until.saturating_duration_since(Instant::now()));
    let lived = cluster.lived(&controller, all_running);
    cluster.remove(&controller)?;
    lived
}

impl Cluster<'_> {
    fn start_controller(&self) -> anyhow::Result<Controller> {
        // The port is free as soon as the listener is dropped.
        let metrics_port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let process = Command::new(&self.asked.mortise)
            .args([
                "controller",
                "--cloud",
                "simulated",
                "--disable-leader-election",
            ])
            .args(["--cluster-name", CLUSTER_NAME, "--health-probe-port", "0"])
            .args(["--metrics-port", &metrics_port.to_string()])
            .args(["--seed", &self.fleet.seed.to_string(), "--kubeconfig"])
            .arg(self.kubeconfig)
            .args(&self.asked.more)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut controller = Controller {
            process,
            metrics_port,
        };
        let answers = becomes_true(|| match controller.process.try_wait()? {
            Some(status) => bail!("the controller ended: {status}"),
            None => Ok(Metrics::of(metrics_port).answers()),
        });
        if !answers? {
            bail!("the controller does not serve its metrics");
        }
        Ok(controller)
    }

    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.kubeconfig).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = self.kubectl(words).output().context("kubectl")?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {}: {told}", words.join(" "));
        }
        Ok(output.stdout)
    }

    fn list(&self, words: &[&str]) -> anyhow::Result<Vec<Value>> {
        let answer = self.run(&[&["get", "-o", "json"], words].concat())?;
        let answer: Value = serde_json::from_slice(&answer)?;
        Ok(answer["items"].as_array().cloned().unwrap_or_default())
    }

    fn apply(&self) -> anyhow::Result<()> {
        let manifests = std::fs::read_to_string(&self.fleet.file)?;
        let manifests = manifests.replace("${CLUSTER_NAME}", CLUSTER_NAME);
        let mut kubectl = self
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("kubectl")?;
        if let Some(mut stdin) = kubectl.stdin.take() {
            stdin.write_all(manifests.as_bytes())?;
        }
        let status = kubectl.wait()?;
        if !status.success() {
            bail!("kubectl apply: {status}");
        }
        Ok(())
    }

    /// Pods that run, as their Deployments tell.
    fn ready_pods(&self) -> anyhow::Result<u64> {
        let ready = "-o=jsonpath={range .items[*]}{.status.readyReplicas}{\"\\n\"}{end}";
        let text = self.run(&["get", "deployments", "-A", ready])?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(text.lines().filter_map(|it| it.parse::<u64>().ok()).sum())
    }

    fn wait_until_all_run(
        &self,
        controller: &Controller,
        began: Instant,
    ) -> anyhow::Result<Option<Full>> {
        if !becomes_true(|| Ok(self.ready_pods()? >= self.fleet.pods))? {
            return Ok(None);
        }
        let seconds = began.elapsed().as_secs_f64();
        let counted = Metrics::of(controller.metrics_port);
        let nodes = self.nodes()?;
        let (slowest_pod, slowest_pod_seconds) = self.slowest_pod()?;
        Ok(Some(Full {
            seconds,
            nodes,
            launches: whole(counted.sum("karpenter_nodeclaims_created_total", "")),
            evictions: evictions(&counted),
            slowest_pod: Some(slowest_pod),
            slowest_pod_seconds,
            slowest_boot_seconds: self.slowest_boot_seconds()?,
        }))
    }

    fn nodes(&self) -> anyhow::Result<Nodes> {
        let mut counts = BTreeMap::<Offering, u64>::new();
        for node in self.list(&["nodes", "-l", labels::NODEPOOL])? {
            let label = |key: &str| {
                let label = node["metadata"]["labels"][key].as_str();
                label.unwrap_or_default().to_owned()
            };
            let offering = Offering {
                instance_type: label(labels::INSTANCE_TYPE),
                zone: label(labels::TOPOLOGY_ZONE),
                capacity_type: label(labels::CAPACITY_TYPE),
            };
            *counts.entry(offering).or_default() += 1;
        }
        let prices = prices(self.asked, self.fleet, counts.keys().cloned())?;
        let price = |(offering, count): (&Offering, &u64)| {
            prices.get(offering).copied().unwrap_or(f64::NAN) * *count as f64
        };
        Ok(Nodes {
            nodes: counts.values().sum(),
            price_per_hour: counts.iter().map(price).sum(),
        })
    }

    /// The pod that waited longest from its creation until it was ready.
    fn slowest_pod(&self) -> anyhow::Result<(String, f64)> {
        let mut slowest = (String::new(), 0.0);
        for namespace in &self.fleet.namespaces {
            for pod in self.list(&["pods", "-n", namespace])? {
                let Some(seconds) = ready_after(&pod).filter(|it| *it > slowest.1) else {
                    continue;
                };
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                slowest = (format!("{namespace}/{name}"), seconds);
            }
        }
        Ok(slowest)
    }

    /// The longest that a claim took from its launch until its Node was ready.
    fn slowest_boot_seconds(&self) -> anyhow::Result<f64> {
        let launched = self.list(&["nodeclaims"])?.into_iter().filter_map(|claim| {
            let node = claim["status"]["nodeName"].as_str()?.to_owned();
            Some((node, condition_seconds(&claim, "Launched")?))
        });
        let launched: BTreeMap<String, f64> = launched.collect();
        let boots = self.list(&["nodes"])?.into_iter().filter_map(|node| {
            let name = node["metadata"]["name"].as_str()?;
            Some(condition_seconds(&node, "Ready")? - launched.get(name)?)
        });
        Ok(boots.fold(0.0, f64::max))
    }

    fn lived(&self, controller: &Controller, all_running: Option<Full>) -> anyhow::Result<Lived> {
        let counted = Metrics::of(controller.metrics_port);
        let total = |name: &str| whole(counted.sum(name, ""));
        Ok(Lived {
            all_running,
            end: self.nodes()?,
            launches: total("karpenter_nodeclaims_created_total"),
            terminations: total("karpenter_nodeclaims_terminated_total"),
            evictions: evictions(&counted),
            pods_off_plan: total("mortise_pods_off_plan_total"),
            claims_off_plan: total("mortise_nodeclaims_off_plan_total"),
            cpu_seconds: cpu_seconds(controller.process.id()),
        })
    }

    /// Leaves the cluster as it was found, for the next fleet.
    fn remove(&self, controller: &Controller) -> anyhow::Result<()> {
        for namespace in &self.fleet.namespaces {
            let all = ["delete", "deployments", "--all", "-n", namespace];
            self.run(&[&all[..], &["--wait=false"]].concat())?;
        }
        let gone = becomes_true(|| {
            if !Metrics::of(controller.metrics_port).answers() {
                bail!("the controller ended before the nodes of a fleet went");
            }
            Ok(self.list(&["nodeclaims"])?.is_empty())
        });
        if !gone? {
            bail!("the nodes of a fleet did not go within a quarter of an hour");
        }
        Ok(())
    }
}

/// Looks until it holds; false where that takes longer than anybody waits.
fn becomes_true(mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<bool> {
    let began = Instant::now();
    while !holds()? {
        if began.elapsed() > PATIENCE {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(true)
}

fn evictions(counted: &Metrics) -> u64 {
    // The API server says 201, a library that hides it 200.
    whole(counted.sum("karpenter_pods_eviction_requests_total", "code=\"20"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are small and not negative"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

fn ready_after(pod: &Value) -> Option<f64> {
    let created_at = seconds(pod["metadata"]["creationTimestamp"].as_str()?)?;
    Some(condition_seconds(pod, "Ready")? - created_at)
}

/// When a condition came true, in seconds of an epoch.
fn condition_seconds(object: &Value, name: &str) -> Option<f64> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    let condition = conditions.find(|it| it["type"] == name && it["status"] == "True")?;
    seconds(condition["lastTransitionTime"].as_str()?)
}

/// A moment of Kubernetes, in seconds since 1970.
fn seconds(time: &str) -> Option<f64> {
    let at = time.parse::<jiff::Timestamp>().ok()?;
    Some(at.as_second() as f64)
}

/// The time that all threads of a process worked; 0 where the kernel does not tell.
fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|it| it.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_waits_until_it_is_ready() {
        let condition = |name: &str, at: &str| json!({"type": name, "status": "True", "lastTransitionTime": at});
        let mut pod = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:10Z"},
            "status": {"conditions": [
                condition("PodScheduled", "2026-01-01T00:00:50Z"),
                condition("Ready", "2026-01-01T00:01:15Z"),
            ]},
        });
        assert_eq!(ready_after(&pod), Some(65.0));
        pod["status"]["conditions"][1]["status"] = json!("False");
        assert_eq!(ready_after(&pod), None);
    }
}
