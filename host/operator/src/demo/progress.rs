//! Watches a demo run: draws or prints what happens, and tells when it is over.
//!
//! Looks only: a run that nobody watches goes the same way.

mod view;

use super::node_load::{Requested, millis, node_status, share};
use super::quiet::Quiet;
use crate::process_facts::{cpu_seconds, peak_rss_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Resource, Selection};
use apis::{ProviderId, labels};
use controllers::ControllerActivity;
use locks::lock;
use serde_json::Value;
use sim::SimulatedWorld;
use state::ledger::Ledger;

use super::LOOK_EVERY;
use super::frame::{Frame, NodeLine, round};
use super::problems;
use super::summary::of_ledger;
use super::summary::of_policies::{policy_lines, swap_line};
use super::summary::{AllRunning, PodTotals, StageLine, Summary};
use super::waits;
use crate::cli::Until;
use crate::stack::Stack;
pub(crate) use view::DemoView;

/// A world that is still busy after this long never settles.
const SETTLING_MAX: Duration = Duration::from_mins(30);

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Settled,
    TimeUp,
    Interrupted,
    NeverSettled,
}

/// How a stage of a run went.
#[derive(Debug, Clone)]
pub(crate) struct StageOutcome {
    pub(crate) ended: Ended,
    /// From its beginning to the last change of the world or end of a disruption command, in the world's time.
    pub(crate) changed_for: Duration,
    /// When the last node was launched or ended, in the world's time.
    pub(crate) last_turnover: Duration,
    /// The first moment at which no pod waited.
    pub(crate) all_running: Option<AllRunning>,
}

/// Looks at the world and the controllers; changes neither.
pub(crate) struct Watcher<'a> {
    world: Arc<SimulatedWorld>,
    stack: Option<&'a Stack>,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(world: Arc<SimulatedWorld>, stack: Option<&'a Stack>) -> Self {
        Self { world, stack }
    }

    /// Returns when the run, or this stage of it, is over, and meanwhile shows it.
    pub(crate) async fn watch(
        &self,
        until: Until,
        view: &mut DemoView,
    ) -> anyhow::Result<StageOutcome> {
        let began = self.world.clock().elapsed();
        let (mut quiet, mut changed) = (Quiet::default(), began);
        let (mut nodes, mut last_turnover) = (self.turnover(), began);
        let mut all_running = None;
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        let ended = loop {
            tokio::select! {
                biased;
                _ = &mut interrupted => break Ended::Interrupted,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let elapsed = self.world.clock().elapsed();
            view.show(self, elapsed)?;
            let turnover = self.turnover();
            if std::mem::replace(&mut nodes, turnover) != turnover {
                last_turnover = elapsed;
            }
            let pulse = self.world.pulse();
            if all_running.is_none() && pulse.pods_pending == 0 && pulse.pods_running > 0 {
                all_running = Some(self.all_running());
            }
            if self.is_changing() || quiet.last != Some(pulse) {
                changed = elapsed;
            }
            let is_quiet = quiet.observe(elapsed, self.is_busy(), pulse);
            match until {
                Until::Settled if is_quiet => break Ended::Settled,
                Until::Settled if elapsed.saturating_sub(began) > SETTLING_MAX => {
                    break Ended::NeverSettled;
                }
                Until::After(span) if elapsed >= span => break Ended::TimeUp,
                Until::Settled | Until::After(_) | Until::Forever => {}
            }
        };
        Ok(StageOutcome {
            ended,
            changed_for: changed.saturating_sub(began),
            last_turnover,
            all_running,
        })
    }

    fn all_running(&self) -> AllRunning {
        let frame = self.frame();
        AllRunning {
            seconds: frame.virtual_seconds,
            pods: frame.pods_running,
            nodes: frame.nodes.len(),
            launches: frame.launches,
            price_per_hour: frame.price_per_hour(),
            evictions: self.evictions(),
            slowest_pod: waits::slowest_pod(self.world.api()),
            slowest_boot_seconds: waits::slowest_boot_seconds(self.world.ec2()),
        }
    }

    /// Evictions that the API server granted so far.
    fn evictions(&self) -> u64 {
        self.stack.map_or(0, |it| it.metrics.evictions_granted())
    }

    /// Launches and terminations so far.
    fn turnover(&self) -> (u64, u64) {
        let ec2 = self.world.ec2();
        (ec2.launches(), ec2.terminations())
    }

    /// What the world looks like now.
    pub(crate) fn frame(&self) -> Frame {
        let server = self.world.api();
        let statistics = self.world.statistics();
        let mut requested = BTreeMap::<String, Requested>::new();
        let mut frame = Frame {
            virtual_seconds: round(self.world.clock().elapsed().as_secs_f64(), 3),
            launches: statistics.launches,
            terminations: statistics.terminations,
            ..Frame::default()
        };
        for pod in server.list(&Resource::PODS, &Selection::everything()) {
            match pod["status"]["phase"].as_str() {
                Some("Running") => frame.pods_running += 1,
                Some("Succeeded" | "Failed") => continue,
                _ => frame.pods_pending += 1,
            }
            if let Some(node) = pod["spec"]["nodeName"].as_str() {
                requested.entry(node.to_owned()).or_default().add(&pod);
            }
        }
        let nodes = server.list(&Resource::NODES, &Selection::everything());
        frame.nodes = nodes
            .iter()
            .map(|node| self.node_line(node, &requested))
            .collect();
        frame.nodes_starting = statistics
            .instances
            .get("pending")
            .copied()
            .unwrap_or_default();
        frame
    }

    /// What is wrong with the world as it stands: capacity that cannot be used, and pods that wait for some.
    pub(crate) fn problems(&self) -> Vec<String> {
        let reasons = self.of_ledger(of_ledger::pod_reasons).unwrap_or_default();
        problems::of(self.world.api(), &reasons)
    }

    /// What a stage of a run came to.
    pub(crate) fn stage(&self, begun_by: String, changed_for: Duration) -> StageLine {
        let frame = self.frame();
        StageLine {
            begun_by,
            settled_seconds: round(changed_for.as_secs_f64(), 3),
            pods: PodTotals::of(&frame),
            nodes: frame.nodes.len(),
            price_per_hour: frame.price_per_hour(),
        }
    }

    /// The end of a run.
    pub(crate) fn summary(
        &self,
        watched: StageOutcome,
        wall: Duration,
        stages: Vec<StageLine>,
        mut problems: Vec<String>,
    ) -> Summary {
        let frame = self.frame();
        let statistics = self.world.statistics();
        let violations = match watched.ended {
            Ended::Settled => self.world.check_settled(),
            Ended::TimeUp | Ended::Interrupted | Ended::NeverSettled => self.world.check_midway(),
        };
        problems.extend(violations.iter().map(ToString::to_string));
        let policies = self.stack.map(Stack::policies);
        Summary {
            pods: PodTotals::of(&frame),
            first_plan: self.of_ledger(of_ledger::first_plan).flatten(),
            all_running: watched.all_running,
            price_per_hour: frame.price_per_hour(),
            virtual_seconds: frame.virtual_seconds,
            wall_seconds: round(wall.as_secs_f64(), 3),
            cpu_seconds: round(cpu_seconds(), 2),
            peak_rss_bytes: peak_rss_bytes(),
            launches: frame.launches,
            terminations: frame.terminations,
            last_turnover_seconds: round(watched.last_turnover.as_secs_f64(), 3),
            evictions: self.evictions(),
            launches_without_capacity: self
                .of_ledger(of_ledger::launches_without_capacity)
                .unwrap_or_default(),
            pods_off_plan: self.stack.map_or(0, |it| it.metrics.pods_off_plan.get()),
            claims_off_plan: self
                .stack
                .map_or(0, |it| it.metrics.node_claims_off_plan.get()),
            leaked_instances: statistics.leaked_instances.len(),
            stages,
            nodes: frame.nodes,
            policies: policies.map(policy_lines).unwrap_or_default(),
            swaps: policies.map(swap_line).unwrap_or_default(),
            ledger_hash: self.stack.map(Stack::ledger_hash).unwrap_or_default(),
            problems,
        }
    }

    /// What is read from the ledger, where the controllers of the run are this process's.
    fn of_ledger<T>(&self, read: impl FnOnce(&Ledger) -> T) -> Option<T> {
        let ledger = self.stack?.controllers.ledger();
        let answer = read(&lock(&ledger));
        Some(answer)
    }

    /// What EC2 bills for the instance of a node.
    fn price_per_hour(&self, provider_id: &ProviderId) -> f64 {
        let instance = self.world.ec2().instance(provider_id.instance_id());
        instance.map_or(0.0, |instance| instance.price_per_hour)
    }

    /// What keeps the run from settling.
    pub(crate) fn what_is_busy(&self) -> String {
        let activity = self.activity();
        let mut busy = Vec::new();
        for (count, what) in [
            (activity.queued, "objects being worked on"),
            (activity.failing, "objects whose work failed and is retried"),
            (activity.commands, "disruption commands under way"),
        ] {
            if count > 0 {
                busy.push(format!("{count} {what}"));
            }
        }
        if !activity.is_synced {
            busy.push("the controllers' view is not complete".to_owned());
        }
        if !self.world.is_settled() {
            busy.push(
                "instances or pods of the simulated world are starting or stopping".to_owned(),
            );
        }
        if busy.is_empty() {
            busy.push("pods, launches or terminations changed within the last minute".to_owned());
        }
        busy.join(", ")
    }

    fn is_changing(&self) -> bool {
        self.activity().commands > 0 || !self.world.is_settled()
    }

    fn is_busy(&self) -> bool {
        // Chores that come back by themselves are no reason to wait, nor are pods that are tried again and
        // again: what comes of either shows in the world.
        let activity = ControllerActivity {
            due_soon: 0,
            is_provisioning: false,
            ..self.activity()
        };
        !activity.is_idle() || !self.world.is_settled()
    }

    fn activity(&self) -> ControllerActivity {
        let idle = ControllerActivity {
            is_synced: true,
            ..ControllerActivity::default()
        };
        self.stack
            .map_or(idle, |stack| stack.controllers.activity())
    }

    fn node_line(&self, node: &Value, requested: &BTreeMap<String, Requested>) -> NodeLine {
        let name = node["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let label = |key: &str| {
            node["metadata"]["labels"][key]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let used = requested.get(&name).copied().unwrap_or_default();
        let allocatable = |resource: &str| millis(&node["status"]["allocatable"][resource]);
        let provider_id = ProviderId::parse(node["spec"]["providerID"].as_str());
        let price_per_hour = provider_id.map_or(0.0, |it| self.price_per_hour(&it));
        NodeLine {
            instance_type: label(labels::INSTANCE_TYPE),
            zone: label(labels::TOPOLOGY_ZONE),
            capacity_type: label(labels::CAPACITY_TYPE),
            price_per_hour: round(price_per_hour, 6),
            pods: used.pods,
            cpu_utilization: round(share(used.cpu, allocatable("cpu")), 4),
            memory_utilization: round(share(used.memory, allocatable("memory")), 4),
            status: node_status(node),
            name,
        }
    }
}
