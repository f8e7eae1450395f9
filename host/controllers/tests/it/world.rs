//! The world around the controllers: API server, kubelets and a scheduler of a few lines, virtual time.

mod machines;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{ApiServer, DeleteOptions, NamespacedName, ObjectPart, Resource, Selection};
use cloudprovider::Clock;
use controllers::{
    Controllers, ControllersConfig, ControllersHooks, Metrics, Settings, SharedLedger,
    SolvePlacement,
};
use hooks::binding::PolicyRegistry;
use hooks::disruption::{DeclaredBudgets, DefaultConsolidation};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use scheduling::ranking::{PriceRank, RankHook};
use serde_json::{Value, json};
use sim::SimulatedClock;
use state::ledger::{Ledger, Subject, Why};
use tokio::task::JoinHandle;

use crate::cloud::Cloud;
use crate::no_policies::NoPolicies;
use crate::process::{Door, Judged, Process};
use machines::machines;

/// How many pods are kept running, and what each asks for.
type Kept = Arc<Mutex<(usize, String)>>;

struct WallClock(SimulatedClock, Process);

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        self.0.now() + self.1.clock_off_by()
    }
}

/// Everything, with the controllers running.
pub(crate) struct World {
    pub(crate) api: ApiServer,
    pub(crate) cloud: Cloud,
    pub(crate) clock: SimulatedClock,
    pub(crate) ledger: SharedLedger,
    pub(crate) controllers: Controllers,
    policies: Arc<dyn PolicyRegistry>,
    rank: Arc<dyn RankHook>,
    /// Of the controllers that run now.
    pub(crate) metrics: Arc<Metrics>,
    running: JoinHandle<()>,
    machines: JoinHandle<()>,
    settings: Settings,
    /// Pods that a ReplicaSet of a few lines keeps running, and what each asks for.
    kept: Kept,
    /// The process that the controllers run in.
    pub(crate) process: Process,
    judged: Judged,
    /// Whether instances come up as nodes.
    pub(crate) boots: Arc<Mutex<bool>>,
}

impl World {
    /// A world with a NodePool and its NodeClass, both named `default`.
    pub(crate) fn new() -> Self {
        Self::with_policies(Arc::new(NoPolicies))
    }

    /// The same with pods that are kept running, once they run.
    pub(crate) async fn with_pods(pods: usize, cpu: &str) -> Self {
        let mut world = Self::new();
        world.pass(5).await;
        world.keep(pods, cpu);
        world.settle(90).await;
        assert_eq!(world.bound_pods(), pods);
        world
    }

    /// The same with other settings.
    pub(crate) fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        Self::with(Arc::new(NoPolicies), settings)
    }

    /// The same with a ranking policy.
    pub(crate) fn with_rank(rank: Arc<dyn RankHook>) -> Self {
        Self::with_hooks(Arc::new(NoPolicies), rank, settings())
    }

    /// The same with one that is asked away from the controllers' thread, as in a cluster.
    pub(crate) fn with_rank_elsewhere(rank: Arc<dyn RankHook>) -> Self {
        let settings = Settings {
            solve_placement: SolvePlacement::Blocking,
            ..settings()
        };
        Self::with_hooks(Arc::new(NoPolicies), rank, settings)
    }

    pub(crate) fn with_policies(policies: Arc<dyn PolicyRegistry>) -> Self {
        Self::with(policies, settings())
    }

    /// A world with both.
    pub(crate) fn with(policies: Arc<dyn PolicyRegistry>, settings: Settings) -> Self {
        Self::with_hooks(policies, Arc::new(PriceRank), settings)
    }

    /// One of several replicas, whose turn has not come.
    pub(crate) fn standing_by() -> Self {
        Self::begin(Arc::new(NoPolicies), Arc::new(PriceRank), settings(), true)
    }

    fn with_hooks(
        policies: Arc<dyn PolicyRegistry>,
        rank: Arc<dyn RankHook>,
        settings: Settings,
    ) -> Self {
        Self::begin(policies, rank, settings, false)
    }

    fn begin(
        policies: Arc<dyn PolicyRegistry>,
        rank: Arc<dyn RankHook>,
        settings: Settings,
        stands_by: bool,
    ) -> Self {
        let clock = SimulatedClock::virtual_time();
        let api = ApiServer::new(7, Arc::new(move || clock.now()));
        for definition in apis::crd::all() {
            api.install_crd(&definition).unwrap();
        }
        api.create(&Resource::EC2_NODE_CLASSES, "", node_class())
            .unwrap();
        api.create(&Resource::NODE_POOLS, "", node_pool(&json!({})))
            .unwrap();
        let process = Process::default();
        let cloud = Cloud::new(clock, process.clone());
        let kept = Arc::new(Mutex::new((0, String::new())));
        let boots = Arc::new(Mutex::new(true));
        let machines = tokio::spawn(machines(
            api.clone(),
            cloud.clone(),
            clock,
            Arc::clone(&boots),
            Arc::clone(&kept),
        ));
        let ledger: SharedLedger = Arc::new(Mutex::new(Ledger::default()));
        let judged = Judged::default();
        let door = Door {
            api: api.clone(),
            process: process.clone(),
            clock,
            ledger: Arc::clone(&ledger),
            judged: judged.clone(),
            settings: Arc::new(settings.clone()),
        };
        let how = HowToRun {
            policies: &policies,
            rank: &rank,
            settings: &settings,
            stands_by,
        };
        let (metrics, controllers, running) = start(&door, &cloud, &ledger, &how);
        Self {
            api,
            cloud,
            clock,
            ledger,
            controllers,
            policies,
            rank,
            metrics,
            running,
            machines,
            settings,
            kept,
            process,
            judged,
            boots,
        }
    }

    /// Kills the controllers and starts new ones that know nothing.
    pub(crate) fn restart(&mut self) {
        self.running.abort();
        self.process.restarts();
        let door = self.door();
        let how = HowToRun {
            policies: &self.policies,
            rank: &self.rank,
            settings: &self.settings,
            stands_by: false,
        };
        (self.metrics, self.controllers, self.running) =
            start(&door, &self.cloud, &self.ledger, &how);
    }

    /// Keeps so many pods running, as a ReplicaSet would.
    pub(crate) fn keep(&self, pods: usize, cpu: &str) {
        *self.kept.lock().unwrap() = (pods, cpu.to_owned());
    }

    /// Lets time pass, starts the controllers again when they die, and checks on the way what must always hold.
    pub(crate) async fn settle(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.pass(1).await;
            if self.process.is_dead() {
                self.restart();
            }
        }
    }

    /// The API server as the controllers reach it.
    pub(crate) fn door(&self) -> Door {
        Door {
            api: self.api.clone(),
            process: self.process.clone(),
            clock: self.clock,
            ledger: Arc::clone(&self.ledger),
            judged: self.judged.clone(),
            settings: Arc::new(self.settings.clone()),
        }
    }

    /// What is wrong now, and what was wrong about writes since the last look.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut judge = self.judged.judge.lock().unwrap();
        let mut found = std::mem::take(&mut *self.judged.found.lock().unwrap());
        found.extend(judge.look(&self.api, &self.cloud, &self.ledger));
        found
    }

    /// Nothing is wrong.
    pub(crate) fn check(&self) {
        let found = self.violations();
        assert!(found.is_empty(), "{found:#?}");
    }

    /// The condition's reason.
    pub(crate) fn reason(
        &self,
        resource: &Resource,
        name: &str,
        condition_type: &str,
    ) -> Option<String> {
        self.in_condition(resource, name, condition_type, "reason")
    }

    /// A field of the condition of an object, by the names of both.
    pub(crate) fn in_condition(
        &self,
        resource: &Resource,
        name: &str,
        condition_type: &str,
        field: &str,
    ) -> Option<String> {
        let object = self.api.get(resource, "", name).ok()?;
        let mut conditions = object["status"]["conditions"].as_array()?.iter();
        let found = conditions.find(|it| it["type"] == condition_type)?;
        found[field].as_str().map(str::to_owned)
    }

    /// Changes the pool.
    pub(crate) fn change_pool(&self, change: Value) {
        let pools = Resource::NODE_POOLS;
        self.api.patch_merge(&pools, "", "default", change).unwrap();
    }

    /// Nodes of one capacity type only.
    pub(crate) fn buy_only(&self, capacity_type: &str) {
        let requirements = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]}]);
        self.change_pool(json!({"spec": {"template": {"spec": {"requirements": requirements}}}}));
    }

    /// Gives a node a condition that began so long ago.
    pub(crate) fn be_sick(&self, node: &str, condition_type: &str, status: &str) {
        let since = self.clock.now().to_string();
        let key = NamespacedName::new("", node);
        self.api
            .modify_part(&Resource::NODES, &key, ObjectPart::Status, |node| {
                let conditions = node["status"]["conditions"].as_array_mut().unwrap();
                conditions.retain(|it| it["type"] != condition_type);
                conditions.push(json!({"type": condition_type, "status": status, "reason": "Test", "lastTransitionTime": since}));
            })
            .unwrap();
    }

    /// Whether a node bears the taint.
    pub(crate) fn is_tainted(&self, node: &str, key: &str) -> bool {
        let Ok(node) = self.api.get(&Resource::NODES, "", node) else {
            return false;
        };
        let taints = node["spec"]["taints"].as_array().cloned();
        taints.unwrap_or_default().iter().any(|it| it["key"] == key)
    }

    pub(crate) fn delete(&self, resource: &Resource, name: &str) {
        self.api
            .delete(resource, "", name, &DeleteOptions::default())
            .unwrap();
    }

    pub(crate) fn create_pod(&self, name: &str, cpu: &str, extra: &Value) {
        let pod = pod(name, cpu, extra);
        self.api.create(&Resource::PODS, "default", pod).unwrap();
    }

    pub(crate) fn delete_pod(&self, name: &str) {
        self.api
            .delete(&Resource::PODS, "default", name, &DeleteOptions::default())
            .unwrap();
    }

    pub(crate) fn list(&self, resource: &Resource) -> Vec<Arc<Value>> {
        self.api.list(resource, &Selection::everything())
    }

    pub(crate) fn names(&self, resource: &Resource) -> Vec<String> {
        let name = |object: &Arc<Value>| object["metadata"]["name"].as_str().unwrap().to_owned();
        self.list(resource).iter().map(name).collect()
    }

    /// Pods bound to a node, by name.
    pub(crate) fn bound_pods(&self) -> usize {
        self.list(&Resource::PODS)
            .iter()
            .filter(|pod| pod["spec"]["nodeName"].is_string())
            .count()
    }

    pub(crate) fn condition(
        &self,
        resource: &Resource,
        name: &str,
        condition_type: &str,
    ) -> Option<String> {
        self.in_condition(resource, name, condition_type, "status")
    }

    /// Reasons of the events about objects of a kind.
    pub(crate) fn event_reasons(&self, kind: &str) -> Vec<String> {
        self.list(&Resource::EVENTS)
            .iter()
            .filter(|event| event["involvedObject"]["kind"] == kind)
            .map(|event| event["reason"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The value of a series that `/metrics` would show, by its name and labels.
    pub(crate) fn series(&self, name: &str) -> Option<f64> {
        let text = self.scrape();
        let value = text
            .lines()
            .find_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
        value.map(|it| it.parse().unwrap())
    }

    /// What `/metrics` would show.
    fn scrape(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        registry.register_collector(Box::new(self.controllers.state_metrics()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    /// The values of all series of a name that bear all of the labels, each as `name="value"`.
    pub(crate) fn values(&self, name: &str, labels: &[&str]) -> Vec<f64> {
        let text = self.scrape();
        let series = text.lines().filter_map(|line| {
            let (told, value) = line.rsplit_once(' ')?;
            let (told, of) = told.split_once('{').unwrap_or((told, "}"));
            let of = format!(",{},", of.strip_suffix('}')?);
            let bears = |label: &str| of.contains(&format!(",{label},"));
            (told == name && labels.iter().all(|it| bears(it))).then(|| value.parse().unwrap())
        });
        series.collect()
    }

    /// Messages of the events about objects of a kind with a reason.
    pub(crate) fn event_messages(&self, kind: &str, reason: &str) -> Vec<String> {
        let events = self.list(&Resource::EVENTS);
        let is_about = |event: &&Arc<Value>| {
            event["involvedObject"]["kind"] == kind && event["reason"] == reason
        };
        let found = events.iter().filter(is_about);
        let messages = found.map(|event| event["message"].as_str().unwrap().to_owned());
        messages.collect()
    }

    /// Lets time pass and checks on the way what must always hold.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.check();
        }
    }

    /// `mortise why` says all of that of an object.
    pub(crate) fn tells(&self, kind: &str, name: &str, words: &[&str]) {
        let told = self.why(kind, name);
        for word in words {
            assert!(told.contains(word), "{word:?} in {told}");
        }
    }

    /// A node comes for a pod `a`, a volume is attached to it, and its claim is deleted.
    pub(crate) async fn delete_node_with_volume(&mut self) {
        self.pass(5).await;
        self.create_pod("a", "900m", &json!({}));
        self.settle(60).await;
        let node = self.names(&Resource::NODES)[0].clone();
        self.attach_volume(&node);
        let claim = self.names(&Resource::NODE_CLAIMS)[0].clone();
        self.delete(&Resource::NODE_CLAIMS, &claim);
    }

    /// A volume is attached to the node, as the VolumeAttachment `va` tells.
    fn attach_volume(&self, node: &str) {
        let attachment = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "va"},
            "spec": {"attacher": "ebs.csi.aws.com", "nodeName": node, "source": {"persistentVolumeName": "pv-1"}},
            "status": {"attached": true},
        });
        let attachments = Resource::VOLUME_ATTACHMENTS;
        self.api.create(&attachments, "", attachment).unwrap();
    }

    /// Somebody puts do-not-disrupt on a pod.
    pub(crate) fn protect(&self, pod: &str) {
        self.protect_object(&Resource::PODS, "default", pod);
    }

    /// Somebody puts do-not-disrupt on a node.
    pub(crate) fn protect_node(&self, node: &str) {
        self.protect_object(&Resource::NODES, "", node);
    }

    fn protect_object(&self, resource: &Resource, namespace: &str, name: &str) {
        let protected =
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        self.api
            .patch_merge(resource, namespace, name, protected)
            .unwrap();
    }

    /// What `mortise why` prints.
    pub(crate) fn why(&self, kind: &str, name: &str) -> String {
        let subject = Subject::parse(kind, name).unwrap();
        Why::of(&self.ledger.lock().unwrap(), &subject).to_string()
    }

    /// Waits until `done`, and fails with what there is when that takes too long.
    pub(crate) async fn until(
        &self,
        what: &str,
        seconds: u64,
        done: impl Fn(&Self) -> bool,
    ) -> u64 {
        let start = tokio::time::Instant::now();
        while !done(self) {
            if start.elapsed().as_secs() >= seconds {
                let feed = self.controllers.feed().since(0);
                let lines: Vec<String> = feed.into_iter().map(|line| line.text).collect();
                panic!(
                    "{what}: not within {seconds} s\n{:?}\nclaims {:?}\nnodes {:?}\npods {:?}\n{}",
                    self.controllers.activity(),
                    self.names(&Resource::NODE_CLAIMS),
                    self.names(&Resource::NODES),
                    self.names(&Resource::PODS),
                    lines.join("\n"),
                );
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.check();
        }
        start.elapsed().as_secs()
    }

    /// How often the ledger has an outcome.
    pub(crate) fn times_recorded(&self, outcome: &str) -> usize {
        let word = format!("\"{outcome}\"");
        self.ledger_json().matches(&word).count()
    }

    pub(crate) fn ledger_json(&self) -> String {
        let ledger = self.ledger.lock().unwrap();
        ledger
            .entries()
            .map(|entry| serde_json::to_string(entry).unwrap())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
        self.machines.abort();
    }
}

fn settings() -> Settings {
    Settings {
        policy_namespace: "kube-system".to_owned(),
        plan_coming_pods: true,
        ..Settings::default()
    }
}

/// What the tests choose of controllers.
struct HowToRun<'a> {
    policies: &'a Arc<dyn PolicyRegistry>,
    rank: &'a Arc<dyn RankHook>,
    settings: &'a Settings,
    stands_by: bool,
}

fn start(
    door: &Door,
    cloud: &Cloud,
    ledger: &SharedLedger,
    how: &HowToRun<'_>,
) -> (Arc<Metrics>, Controllers, JoinHandle<()>) {
    let metrics = Arc::new(Metrics::new());
    let controllers = Controllers::new(ControllersConfig {
        client: kube::Client::new(door.clone(), "default"),
        provider: Arc::new(cloud.clone()),
        hooks: ControllersHooks {
            rank: Arc::clone(how.rank),
            consolidation: Arc::new(DefaultConsolidation),
            budgets: Arc::new(DeclaredBudgets),
        },
        clock: Arc::new(WallClock(cloud.clock, door.process.clone())),
        settings: how.settings.clone(),
        ledger: Arc::clone(ledger),
        metrics: Arc::clone(&metrics),
        policies: Arc::clone(how.policies),
        interruptions: Some(Arc::new(cloud.clone())),
        stands_by: how.stands_by,
    })
    .unwrap();
    let task = controllers.clone();
    let running = tokio::spawn(async move { task.run().await });
    (metrics, controllers, running)
}

fn pod(name: &str, cpu: &str, extra: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}],
        },
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            "terminationGracePeriodSeconds": 2,
        },
    });
    merge(&mut pod, extra);
    pod
}

pub(crate) fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}],
            "securityGroupSelectorTerms": [{"tags": {"a": "b"}}],
        },
    })
}

pub(crate) fn node_pool(extra: &Value) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {
            "template": {"spec": {
                "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "720h",
            }},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        },
    });
    merge(&mut pool, extra);
    pool
}

pub(crate) fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().unwrap() {
        match (&mut into[name], value) {
            (known @ Value::Object(_), Value::Object(_)) => merge(known, value),
            (slot, value) => *slot = value.clone(),
        }
    }
}
