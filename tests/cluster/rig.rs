//! A cluster for a test: its own namespace, NodePool and class, and controllers that have the rights of the chart.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use locks::lock;
use serde_json::{Value, json};
use tests::has_program;
use tests::kubernetes::{helm, kubectl};
use tests::served::becomes_true_within;
use tests::wire::Wire;

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_mins(3);

/// A cluster with what one test owns in it; all of that goes when it is dropped.
pub(crate) struct Cluster {
    kubeconfig: String,
    /// Namespace, NodePool, class and release of the test.
    pub(crate) name: &'static str,
    folder: PathBuf,
    has_roles: bool,
    /// A controller minds every NodePool, so that one test has the cluster for itself.
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    /// None, with a line that says so, where `KUBECONFIG` names none.
    pub(crate) fn start(name: &'static str) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let Some(kubeconfig) = std::env::var("KUBECONFIG").ok() else {
            eprintln!("skipped: KUBECONFIG names no cluster");
            return None;
        };
        if !has_program("kubectl", "help") {
            return None;
        }
        let alone = lock(&ALONE);
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let cluster = Self {
            kubeconfig,
            name,
            folder,
            has_roles: has_program("helm", "version"),
            _alone: alone,
        };
        let crds = Command::new(mortise()).arg("crds").output().unwrap();
        cluster.apply_text(&String::from_utf8(crds.stdout).unwrap());
        cluster
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        if cluster.has_roles {
            cluster.install_roles();
        }
        cluster.apply(&class(name));
        cluster.apply(&pool(name));
        Some(cluster)
    }

    fn install_roles(&self) {
        let values = "settings.clusterName=mortise-demo,settings.featureGates.nodeRepair=true,\
            practice.enabled=true,replicas=0";
        let install = ["upgrade", "--install", self.name, "charts/mortise"];
        let rest = ["--skip-crds", "--namespace", self.name, "--set", values];
        let kubeconfig = ["--kubeconfig", self.kubeconfig.as_str()];
        helm(
            Path::new(".."),
            &[&kubeconfig[..], &install, &rest].concat(),
            "",
        )
        .unwrap();
    }

    /// Runs kubectl and panics with its words where it fails.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&self.kubeconfig, arguments, "").unwrap()
    }

    /// Applies an object server-side.
    pub(crate) fn apply(&self, object: &Value) {
        self.apply_text(&object.to_string());
    }

    fn apply_text(&self, manifest: &str) {
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        kubectl(&self.kubeconfig, &apply, manifest).unwrap();
    }

    /// Changes the NodePool.
    pub(crate) fn patch_pool(&self, patch: &Value) {
        let patch = patch.to_string();
        self.kubectl(&["patch", "nodepool", self.name, "--type=merge", "-p", &patch]);
    }

    /// Says of a node what its kubelet would: a condition as a strategic merge patch has it.
    pub(crate) fn patch_condition(&self, node: &str, condition: &Value) {
        let patch = json!({"status": {"conditions": [condition]}}).to_string();
        self.kubectl(&["patch", "node", node, "--subresource=status", "-p", &patch]);
    }

    /// Objects of a kind that the NodePool of the test owns.
    pub(crate) fn owned(&self, resource: &str) -> Vec<Value> {
        let label = format!("karpenter.sh/nodepool={}", self.name);
        self.listed(&["get", resource, "-l", &label, "-o", "json"])
    }

    /// Pods of the test that are not on their way out.
    pub(crate) fn pods(&self) -> Vec<Value> {
        let mut pods = self.listed(&["get", "pods", "-n", self.name, "-o", "json"]);
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    fn listed(&self, get: &[&str]) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.kubectl(get)).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Pods of the test that run.
    pub(crate) fn running(&self) -> usize {
        let pods = self.pods();
        pods.iter()
            .filter(|it| it["status"]["phase"] == "Running")
            .count()
    }

    /// Asks for so many pods of half a core, and changes their template as told.
    pub(crate) fn deploy(&self, replicas: u32, annotations: &Value) {
        self.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": self.name},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": annotations},
                    "spec": {
                        "nodeSelector": {"karpenter.sh/nodepool": self.name},
                        "terminationGracePeriodSeconds": 0,
                        "containers": [{
                            "name": "main", "image": "example",
                            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                        }],
                    },
                },
            },
        }));
    }

    /// Asks for so many pods of half a core, and waits until they run and their nodes are initialized.
    pub(crate) fn run(&self, replicas: u32) {
        self.deploy(replicas, &json!({}));
        self.until("the pods run", || {
            u32::try_from(self.running()) == Ok(replicas)
        });
        self.until("the nodes are initialized", || {
            let claims = self.owned("nodeclaims");
            claims.iter().all(|it| is_true(it, "Initialized"))
        });
    }

    /// Starts a controller; several wait for each other's lease.
    pub(crate) fn controller(&self, name: &str) -> Controller {
        self.controller_by(name, &self.config())
    }

    /// The same over a wire that can be cut.
    pub(crate) fn controller_over_wire(&self, name: &str) -> (Controller, Wire) {
        let mut config = self.config();
        let cluster = &mut config["clusters"][0]["cluster"];
        let url = cluster["server"].as_str().unwrap();
        let (scheme, server) = url.trim_end_matches('/').split_once("://").unwrap();
        let (host, port) = server.rsplit_once(':').unwrap_or((server, "443"));
        let wire = Wire::to(&format!("{host}:{port}"));
        let leads_here = format!("{scheme}://{}", wire.address());
        // The certificate is of the server that is behind the wire.
        cluster["tls-server-name"] = host.into();
        cluster["server"] = leads_here.into();
        (self.controller_by(name, &config), wire)
    }

    fn controller_by(&self, name: &str, config: &Value) -> Controller {
        let kubeconfig = self.folder.join(format!("{name}.kubeconfig"));
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let log = self.folder.join(format!("{name}.log"));
        let process = Command::new(mortise())
            .args(["controller", "--cloud=simulated"])
            .args([
                "--boot=3s",
                "--termination=3s",
                "--feature-gates=NodeRepair=true",
            ])
            .args(["--metrics-port=0", "--health-probe-port=0"])
            .args(["--cluster-name=mortise-demo", "--batch-idle-duration=1s"])
            .args(["--system-namespace", self.name, "--kubeconfig"])
            .arg(kubeconfig)
            .stdout(File::create(&log).unwrap())
            .stderr(Stdio::null())
            .spawn();
        Controller {
            process: process.unwrap(),
            log,
        }
    }

    /// The kubeconfig of a controller: with the token of the chart's service account, where there is one.
    fn config(&self) -> Value {
        let view = ["config", "view", "--raw", "--minify", "--flatten"];
        let told = self.kubectl(&[&view[..], &["-o", "json"]].concat());
        let mut config: Value = serde_json::from_str(&told).unwrap();
        if self.has_roles {
            let token = self.kubectl(&["create", "token", self.name, "-n", self.name]);
            config["users"][0]["user"] = json!({"token": token.trim()});
        } else {
            eprintln!("the controller has the rights of KUBECONFIG: helm is not there");
        }
        config
    }

    /// Waits until a condition holds; where it never does, panics with its name and what there is.
    pub(crate) fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        if !becomes_true_within(PATIENCE, holds) {
            let there = self.kubectl(&["get", "nodeclaims,nodes,pods", "-A", "-o", "wide"]);
            panic!(
                "never came true: {what}\n{there}\n{}{}",
                self.lacks(),
                self.log_ends()
            );
        }
    }

    /// For so long nothing happens to a condition that holds; panics with its name as soon as it does not.
    pub(crate) fn stays(&self, what: &str, watched: Duration, mut holds: impl FnMut() -> bool) {
        let is_over = becomes_true_within(watched, || !holds());
        let told = || self.lacks() + &self.log_ends();
        assert!(!is_over, "did not stay so: {what}\n{}", told());
    }

    /// What claims say of themselves that is not so, and the taints of nodes.
    fn lacks(&self) -> String {
        let mut told = String::new();
        for claim in self.owned("nodeclaims") {
            let conditions = claim["status"]["conditions"].as_array();
            for it in conditions.into_iter().flatten() {
                if it["status"] != "True" {
                    let _ = writeln!(told, "{} {it}", claim["metadata"]["name"]);
                }
            }
        }
        for node in self.owned("nodes") {
            let (name, taints) = (&node["metadata"]["name"], &node["spec"]["taints"]);
            let _ = writeln!(told, "{name} {taints}");
        }
        told
    }

    /// The last words of each controller.
    fn log_ends(&self) -> String {
        const LINES: usize = 60;
        let mut told = String::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|it| it == "log") {
                let log = fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<_> = log.lines().collect();
                let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
                let _ = writeln!(told, "{}\n{end}", path.display());
            }
        }
        told
    }

    /// Every claim has its own instance and a node of its own that takes pods, and no node is without a claim.
    pub(crate) fn assert_one_node_a_claim(&self) {
        let ids = |of: &[Value], pointer: &str| -> BTreeSet<String> {
            let ids = of.iter().filter_map(|it| it.pointer(pointer)?.as_str());
            ids.map(ToOwned::to_owned).collect()
        };
        let (claims, nodes) = (self.owned("nodeclaims"), self.owned("nodes"));
        let launched = ids(&claims, "/status/providerID");
        assert_eq!(launched.len(), claims.len(), "{claims:?}");
        assert_eq!(launched, ids(&nodes, "/spec/providerID"));
        assert_eq!(claims.len(), nodes.len());
        let tainted = nodes.iter().filter(|it| {
            let taints = it["spec"]["taints"].as_array().into_iter().flatten();
            taints.into_iter().any(|taint| {
                let key = taint["key"].as_str().unwrap_or_default();
                key.starts_with("karpenter.sh/")
            })
        });
        assert_eq!(tainted.count(), 0, "{nodes:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let may_fail = |arguments: &[&str]| {
            let _ = kubectl(&self.kubeconfig, arguments, "");
        };
        may_fail(&["delete", "namespace", self.name, "--wait=false"]);
        // What a test that failed left has nobody who ends it.
        let selector = format!("karpenter.sh/nodepool={}", self.name);
        for kind in ["nodeclaims", "nodes"] {
            for object in self.owned(kind) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let no_finalizers = r#"{"metadata":{"finalizers":null}}"#;
                may_fail(&["patch", kind, name, "--type=merge", "-p", no_finalizers]);
            }
            may_fail(&["delete", kind, "-l", &selector, "--wait=false"]);
        }
        for kind in ["nodepool", "ec2nodeclass"] {
            may_fail(&["delete", kind, self.name, "--wait=false"]);
            let no_finalizers = r#"{"metadata":{"finalizers":null}}"#;
            may_fail(&[
                "patch",
                kind,
                self.name,
                "--type=merge",
                "-p",
                no_finalizers,
            ]);
        }
        if self.has_roles {
            let uninstall = ["--kubeconfig", &self.kubeconfig, "uninstall", self.name];
            let rest = ["--namespace", self.name];
            let _ = helm(Path::new(".."), &[&uninstall[..], &rest].concat(), "");
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A controller as a process of its own, killed on drop.
pub(crate) struct Controller {
    process: Child,
    log: PathBuf,
}

impl Controller {
    /// What it wrote.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it got the lease.
    pub(crate) fn leads(&self) -> bool {
        self.log().contains("leading; the controllers start")
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Sends it a signal, such as `-KILL`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// It was refused nothing, and found no fault with itself.
    pub(crate) fn assert_content(&self) {
        let log = self.log();
        let is_bad = |line: &&str| {
            line.contains(r#""level":"ERROR""#) || line.to_lowercase().contains("forbidden")
        };
        let bad: Vec<_> = log.lines().filter(is_bad).collect();
        assert!(bad.is_empty(), "{}", bad.join("\n"));
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The binary that `MORTISE_BINARY` names, or the one that cargo builds of this tree.
fn mortise() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--release", "-p", "operator", "--bin", "mortise"])
            .args(["--message-format", "json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output();
        let told = String::from_utf8(output.unwrap().stdout).unwrap();
        let messages = told
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut programs = messages.filter_map(|it| Some(it["executable"].as_str()?.to_owned()));
        PathBuf::from(programs.next().expect("cargo builds the binary"))
    };
    let given = || std::env::var_os("MORTISE_BINARY").map(PathBuf::from);
    BUILT.get_or_init(|| given().unwrap_or_else(build)).clone()
}

fn class(name: &str) -> Value {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": "mortise-demo"}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "role": "KarpenterNodeRole-mortise-demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    })
}

/// Nodes of at most four cores, so that there are several.
fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s", "budgets": [{"nodes": "100%"}],
            },
            "template": {
                "metadata": {"labels": {"round": "first"}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Lt", "values": ["5"]},
                    ],
                },
            },
        },
    })
}

/// Whether a condition of an object is True.
pub(crate) fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

/// The names of objects.
pub(crate) fn names(objects: &[Value]) -> BTreeSet<String> {
    let names = objects
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str());
    names.map(ToOwned::to_owned).collect()
}
