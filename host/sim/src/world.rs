//! The world: API server, EC2, clock, and the one loop in which everything else of a cluster lives.
//!
//! The loop takes changes in, lets due timers fire, reconciles what is noted, schedules, and sleeps. It never
//! looks at the machine's clock and has one order for everything, so a seed repeats a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use api_server::{ApiServer, KUBERNETES_MINOR, Resource, StatusError, Watch};
use jiff::Timestamp;
use locks::lock;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::clock::SimulatedClock;
use crate::cluster::timers::Timer;
use crate::cluster::work::{SchedulerWake, Work};
use crate::cluster::{SimulatedCluster, WATCHED};
use crate::ec2::{Ec2Config, InstanceEvent, SimulatedEc2};
use crate::machine::{HEARTBEAT, later};
use crate::statistics::{Pulse, Statistics};
use crate::volumes::gp3;
use crate::workload::pace::Pace;

/// Rounds without a pause, after which the loop lets the others run.
const ROUNDS_MAX: usize = 64;

/// How often shapes that no pod has any more are forgotten, in rounds.
const SWEEP_ROUNDS: u64 = 1_024;

/// Where the world's time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Starts at 2026-01-01T00:00:00Z and follows tokio's clock, which the caller pauses.
    Virtual,
    /// Starts at the moment given and runs with the real clock.
    Real(Timestamp),
}

/// Configuration of a world.
#[derive(Debug, Clone)]
pub struct WorldConfig {
    /// Source of all chance, also for EC2.
    pub seed: u64,
    /// Where time comes from.
    pub time: Time,
    /// Minor version of Kubernetes: what the API server says it is, whose images EC2 has, and how its scheduler is.
    pub kubernetes_minor: u32,
    /// How many pods a second ReplicaSets come to together; all at once without it.
    pub pods_per_second: Option<u32>,
    /// The account and its region.
    pub ec2: Ec2Config,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            time: Time::Virtual,
            kubernetes_minor: KUBERNETES_MINOR,
            pods_per_second: None,
            ec2: Ec2Config::default(),
        }
    }
}

/// A simulated cluster in a simulated region.
#[derive(Debug)]
pub struct SimulatedWorld {
    api: ApiServer,
    clock: SimulatedClock,
    ec2: SimulatedEc2,
    cluster: Mutex<SimulatedCluster>,
    inputs: Mutex<Inputs>,
    /// Somebody runs the loop.
    runs: AtomicBool,
    /// Woken when the loop has nothing left to do but wait.
    idle: Notify,
}

#[derive(Debug)]
struct Inputs {
    watch: Watch,
    instances: UnboundedReceiver<InstanceEvent>,
}

impl SimulatedWorld {
    /// A world with an empty cluster. Nothing moves until `run` is polled.
    pub fn new(config: WorldConfig) -> Arc<Self> {
        let clock = match config.time {
            Time::Virtual => SimulatedClock::virtual_time(),
            Time::Real(start) => SimulatedClock::starting_at(start),
        };
        let api = ApiServer::new(config.seed, Arc::new(move || clock.now()));
        api.claim_minor_version(config.kubernetes_minor);
        let ec2 = SimulatedEc2::new(
            Ec2Config {
                seed: config.seed,
                kubernetes_version: format!("1.{}", config.kubernetes_minor),
                ..config.ec2
            },
            clock,
        );
        let inputs = Inputs {
            watch: api.watch(&WATCHED),
            instances: ec2.subscribe(),
        };
        let mut cluster = SimulatedCluster::new(api.clone(), ec2.clone(), clock, config.seed);
        cluster.pace = config.pods_per_second.map(|it| Pace::new(it, clock.now()));
        cluster
            .timers
            .set(later(clock.now(), HEARTBEAT), Timer::Heartbeat);
        let world = Self {
            api,
            clock,
            ec2,
            cluster: Mutex::new(cluster),
            inputs: Mutex::new(inputs),
            runs: AtomicBool::new(false),
            idle: Notify::new(),
        };
        let class = world.api.create(&Resource::STORAGE_CLASSES, "", gp3());
        world.cluster().note_refusal(class);
        Arc::new(world)
    }

    /// API server of the world.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The wall clock of the world.
    pub fn clock(&self) -> SimulatedClock {
        self.clock
    }

    /// EC2, SSM, Pricing and IAM.
    pub fn ec2(&self) -> &SimulatedEc2 {
        &self.ec2
    }

    /// Serves Karpenter's CustomResourceDefinitions.
    pub fn install_crds(&self) -> Result<(), StatusError> {
        for definition in apis::crd::all() {
            self.api.install_crd(&definition)?;
        }
        Ok(())
    }

    /// Creates objects as `kubectl apply` would in an empty cluster: an object that exists is left as it is.
    pub fn install(&self, resource: &Resource, object: Value) -> Result<Arc<Value>, StatusError> {
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match self.api.create(resource, &namespace, object) {
            Err(status) if status.is_already_exists() => self.api.get(resource, &namespace, &name),
            other => other,
        }
    }

    /// The world's life: scheduler, controllers, kubelets. Runs until dropped; only the first call does.
    pub async fn run(self: Arc<Self>) {
        if self.runs.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut rounds = 0_u64;
        loop {
            let mut busy = true;
            for _ in 0..ROUNDS_MAX {
                busy = self.round();
                rounds += 1;
                if rounds.is_multiple_of(SWEEP_ROUNDS) {
                    self.cluster().shapes.sweep();
                }
                if !busy {
                    break;
                }
            }
            if busy {
                tokio::task::yield_now().await;
                continue;
            }
            self.idle.notify_waiters();
            self.wait().await;
        }
    }

    /// Takes in what happened and does what follows. False when there was nothing to do.
    fn round(&self) -> bool {
        let mut cluster = self.cluster();
        let mut busy = self.read(&mut cluster);
        cluster.start_ready_nodes();
        let now = cluster.clock.now();
        while let Some(timer) = cluster.timers.pop_due(now) {
            cluster.fire(timer);
            busy = true;
        }
        if let Some(work) = cluster.dirty.first().map(|(work, _)| *work) {
            // One kind at a time: what it writes is seen before the next kind, or it again, acts on it.
            let due: Vec<_> = cluster
                .dirty
                .iter()
                .take_while(|(next, _)| *next == work)
                .cloned()
                .collect();
            for entry in due {
                cluster.dirty.remove(&entry);
                cluster.reconcile(work, &entry.1);
            }
            return true;
        }
        cluster.await_scheduler();
        if cluster.is_scheduling_due() {
            return cluster.schedule() > 0 || busy;
        }
        busy
    }

    /// Takes in everything that waits to be read.
    fn read(&self, cluster: &mut SimulatedCluster) -> bool {
        let mut inputs = self.inputs();
        let mut busy = false;
        // Who waits for changes asks once more, with a waker of its own.
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(event) = inputs.watch.poll_event(&mut context) {
            if let Some(event) = event {
                cluster.apply(event);
            } else {
                // More was written at once than a watch holds, and nothing would ever be told again.
                inputs.watch = self.api.watch(&WATCHED);
                cluster.relist();
            }
            busy = true;
        }
        while let Ok(event) = inputs.instances.try_recv() {
            cluster.apply_instance(&event);
            busy = true;
        }
        busy
    }

    /// Sleeps until a change or the next timer.
    async fn wait(&self) {
        let next = self.cluster().timers.next();
        let until = next.map_or_else(
            || tokio::time::Instant::now() + Duration::from_hours(1),
            |at| self.clock.instant_at(at),
        );
        // The inputs stay shared, so that `is_settled` sees what the loop has not read yet.
        let object = std::future::poll_fn(|cx| self.inputs().watch.poll_event(cx));
        let instance = std::future::poll_fn(|cx| self.inputs().instances.poll_recv(cx));
        let event = tokio::select! {
            biased;
            event = object => event.map(WorldInput::Object),
            event = instance => event.map(WorldInput::Instance),
            () = tokio::time::sleep_until(until) => None,
        };
        let mut cluster = self.cluster();
        match event {
            Some(WorldInput::Object(event)) => cluster.apply(event),
            Some(WorldInput::Instance(event)) => cluster.apply_instance(&event),
            // Time is over, or the watch is, which the next round notices.
            None => {}
        }
    }

    /// Numbers of the present moment.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.cluster())
    }

    /// The few numbers by which a watcher sees that something happened.
    pub fn pulse(&self) -> Pulse {
        Pulse::of(&self.cluster())
    }

    /// Whether nothing is under way: no object to reconcile, no pod starting or stopping, no instance booting
    /// or ending, no pod that the scheduler has not judged. Pods that nothing fits may remain.
    pub fn is_settled(&self) -> bool {
        let cluster = self.cluster();
        let unread = {
            let inputs = self.inputs();
            !inputs.watch.is_empty() || !inputs.instances.is_empty()
        };
        !unread && cluster.is_idle() && !crate::statistics::has_moving_instances(&cluster)
    }

    /// Waits until the loop next runs dry.
    pub async fn idle(&self) {
        self.idle.notified().await;
    }

    fn inputs(&self) -> MutexGuard<'_, Inputs> {
        lock(&self.inputs)
    }

    pub(crate) fn cluster(&self) -> MutexGuard<'_, SimulatedCluster> {
        // As in EC2: a panic elsewhere must not end the world.
        lock(&self.cluster)
    }
}

enum WorldInput {
    Object(api_server::WatchEvent),
    Instance(InstanceEvent),
}

impl SimulatedCluster {
    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Register(id) => self.register_node(&id),
            Timer::Ready(id) => self.ready_node(&id),
            Timer::Rebooted(id) => self.node_is_back(&id),
            Timer::NodeLost(id) => self.lose_node(&id),
            Timer::NodeGone(id) => self.remove_node(&id),
            Timer::PodStarts(key, uid) => self.pod_starts(&key, &uid),
            Timer::PodCompletes(key, uid) => self.pod_completes(&key, &uid),
            Timer::PodStops(key, uid) => self.pod_stops(&key, &uid),
            Timer::TaintsAgain(node) => self.reconcile_taints(&node),
            Timer::CollectPods(node) => self.collect_pods(&node),
            Timer::CronJob(key) => drop(self.dirty.insert((Work::CronJob, key))),
            Timer::JobExpires(key) => self.expire_job(&key),
            Timer::Again(work, key) => drop(self.dirty.insert((work, key))),
            Timer::Wake if self.wakes_pods() => self.wake = SchedulerWake::Due,
            Timer::Wake => self.wake = SchedulerWake::Unset,
            Timer::Heartbeat => self.heartbeat(),
            Timer::Ec2 => self.ec2_is_due(),
        }
    }

    fn is_idle(&self) -> bool {
        self.dirty.is_empty()
            && !self.is_scheduling_due()
            && self.ready.is_empty()
            && !self.timers.work().any(|timer| self.has_effect(timer))
    }

    /// Whether a timer will find what it was set for.
    fn has_effect(&self, timer: &Timer) -> bool {
        match timer {
            Timer::NodeLost(id) | Timer::NodeGone(id) => self.node_of(id).is_some(),
            Timer::Register(_)
            | Timer::Ready(_)
            | Timer::Rebooted(_)
            | Timer::PodStarts(..)
            | Timer::PodCompletes(..)
            | Timer::PodStops(..)
            | Timer::TaintsAgain(_)
            | Timer::CollectPods(_)
            | Timer::CronJob(_)
            | Timer::JobExpires(_)
            | Timer::Again(..)
            | Timer::Wake
            | Timer::Heartbeat
            | Timer::Ec2 => true,
        }
    }
}
