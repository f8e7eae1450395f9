//! The chart on a real API server, where `MORTISE_TEST_KUBECONFIG` names one that tests may change: it takes all that
//! is rendered, a release of Karpenter is taken over and given back, and the controller gets by with its roles.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tests::kubernetes::{helm, kubectl, minor_version, test_cluster};
use tests::served::{becomes_true_within, free_port};
use tests::{has_program, mortise, workspace_root};

use crate::chart::{Case, objects};

/// How long the controller may take for a node.
const PATIENCE: Duration = Duration::from_mins(2);

/// A real API server.
struct Cluster {
    kubeconfig: String,
}

impl Cluster {
    /// None, with a line that says so, where there is none or nothing to speak to it with.
    fn for_tests(what: &str) -> Option<Self> {
        let kubeconfig = test_cluster(what)?;
        let has_programs = has_program("kubectl", "help") && has_program("helm", "version");
        has_programs.then_some(Self { kubeconfig })
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&self.kubeconfig, arguments, "").unwrap()
    }

    fn apply(&self, object: &Value) {
        let apply = ["apply", "--server-side", "-f", "-"];
        kubectl(&self.kubeconfig, &apply, &object.to_string()).unwrap();
    }

    fn namespace(&self, name: &str) {
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }

    fn get(&self, namespace: &str, object: &str) -> Value {
        let told = self.kubectl(&["get", "-n", namespace, object, "-o", "json"]);
        serde_json::from_str(&told).unwrap()
    }

    fn helm(&self, arguments: &[&str]) -> String {
        let kubeconfig = ["--kubeconfig", self.kubeconfig.as_str()];
        helm(&workspace_root(), &[&kubeconfig, arguments].concat(), "").unwrap()
    }

    /// Whether an account may do that.
    fn may(&self, account: &str, request: &[&str]) -> bool {
        let arguments = [&["auth", "can-i", "--as", account], request].concat();
        kubectl(&self.kubeconfig, &arguments, "").is_ok_and(|it| it.trim() == "yes")
    }
}

/// A release, which goes with its namespace when the test is over.
struct Release<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    namespace: &'a str,
}

impl<'a> Release<'a> {
    fn install(
        cluster: &'a Cluster,
        chart: &str,
        name: &'a str,
        namespace: &'a str,
        values: &[&str],
    ) -> Self {
        let install = [
            "install",
            name,
            chart,
            "--create-namespace",
            "--namespace",
            namespace,
        ];
        let release = Self {
            cluster,
            name,
            namespace,
        };
        cluster.helm(&[&install[..], values].concat());
        release
    }

    fn deployment(&self) -> Value {
        self.cluster.get(self.namespace, "deployment/karpenter")
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        let kubeconfig = ["--kubeconfig", self.cluster.kubeconfig.as_str()];
        let uninstall = ["uninstall", self.name, "--namespace", self.namespace];
        let _ = helm(
            &workspace_root(),
            &[&kubeconfig[..], &uninstall].concat(),
            "",
        );
        let delete = ["delete", "namespace", self.namespace, "--wait=false"];
        let _ = kubectl(&self.cluster.kubeconfig, &delete, "");
    }
}

#[test]
fn a_real_api_server_takes_what_the_chart_renders() {
    let Some(cluster) = Cluster::for_tests("what the chart renders") else {
        return;
    };
    let mut faults = Vec::new();
    let minor = minor_version(&cluster.kubeconfig);
    // Kinds of Prometheus' operator need not be served, nor that of admission policies before Kubernetes 1.30.
    let is_served = |it: &Value| match it["apiVersion"].as_str() {
        Some("monitoring.coreos.com/v1") => false,
        Some("admissionregistration.k8s.io/v1") => minor >= 30,
        _ => true,
    };
    let is_to_take = |it: &&Case| it.refused.is_none() && it.since <= minor;
    for case in Case::all().iter().filter(is_to_take) {
        for name in [case.namespace.as_str(), "mortise-policies"] {
            cluster.namespace(name);
        }
        let objects = objects(&case.render().unwrap()).into_iter();
        let objects: Vec<Value> = objects.filter(is_served).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            "-",
        ];
        if let Err(told) = kubectl(&cluster.kubeconfig, &apply, &list.to_string()) {
            faults.push(format!("{}: {told}", case.case));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_release_of_karpenter_is_taken_over_and_given_back() {
    let Some(cluster) = Cluster::for_tests("a takeover") else {
        return;
    };
    // The values of its documentation's first installation.
    let values = [
        "--set",
        "settings.clusterName=blue",
        "--set",
        "settings.interruptionQueue=blue",
        "--set",
        "controller.resources.requests.cpu=1",
    ];
    taken_over_and_given_back(&cluster, "tests/chart/karpenter", &[]);
    for chart in karpenter_charts() {
        taken_over_and_given_back(&cluster, &chart, &values);
    }
}

/// Karpenter's own charts, by version, in the folder that `MORTISE_TEST_KARPENTER_CHARTS` names.
fn karpenter_charts() -> Vec<String> {
    let Ok(folder) = std::env::var("MORTISE_TEST_KARPENTER_CHARTS") else {
        eprintln!("skipped: charts of Karpenter; MORTISE_TEST_KARPENTER_CHARTS names no folder");
        return Vec::new();
    };
    let versions = fs::read_dir(&folder).unwrap();
    let mut charts: Vec<String> = versions
        .map(|it| it.unwrap().path().join("karpenter"))
        .map(|it| it.to_str().unwrap().to_owned())
        .collect();
    charts.sort();
    assert!(!charts.is_empty(), "{folder} is empty");
    charts
}

/// The release keeps its Deployment, selector, account and values, on the way there and back.
fn taken_over_and_given_back(cluster: &Cluster, chart: &str, values: &[&str]) {
    // Each its own, as a namespace goes slowly.
    let version = chart.trim_end_matches("/karpenter").rsplit('/').next();
    let namespace = format!("takeover-{}", version.unwrap_or_default().replace('.', "-"));
    let (name, namespace) = ("karpenter", namespace.as_str());
    let release = Release::install(cluster, chart, name, namespace, values);
    let before = release.deployment();
    let account = cluster.get(namespace, "serviceaccount/karpenter");
    let container = |it: &Value| it["spec"]["template"]["spec"]["containers"][0].clone();
    let image = |it: &Value| container(it)["image"].to_string();

    // With `--reuse-values` Helm takes the defaults of the old chart along, which are not ours.
    let upgrade = ["upgrade", name, "charts/mortise", "--namespace", namespace];
    let kept = [
        "--reset-then-reuse-values",
        "--set",
        "settings.clusterName=blue",
    ];
    cluster.helm(&[&upgrade[..], &kept].concat());
    let taken = release.deployment();
    assert!(image(&taken).contains("mortise"), "{chart}: {taken}");
    for field in ["/metadata/uid", "/spec/selector"] {
        assert_eq!(
            taken.pointer(field),
            before.pointer(field),
            "{chart}: {field}"
        );
    }
    if !values.is_empty() {
        let asked = &container(&taken)["resources"]["requests"]["cpu"];
        assert_eq!(asked, "1", "{chart}: {taken}");
        let queue = json!({"name": "INTERRUPTION_QUEUE", "value": "blue"});
        let env = container(&taken)["env"].clone();
        assert!(env.as_array().unwrap().contains(&queue), "{chart}: {env}");
    }
    let kept = cluster.get(namespace, "serviceaccount/karpenter");
    assert_eq!(kept["metadata"]["uid"], account["metadata"]["uid"]);
    assert_eq!(
        taken["spec"]["template"]["spec"]["serviceAccountName"],
        "karpenter"
    );

    cluster.helm(&["rollback", name, "1", "--namespace", namespace]);
    let back = release.deployment();
    assert_eq!(back["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(image(&back), image(&before), "{chart}");
}

#[test]
fn the_controller_gets_by_with_the_roles_of_the_chart() {
    let Some(cluster) = Cluster::for_tests("the roles of the chart") else {
        return;
    };
    let (name, namespace) = ("mortise-roles", "mortise-roles");
    let values = [
        "--set",
        "settings.clusterName=mortise-demo",
        "--set",
        "practice.enabled=true",
        "--set",
        "controller.metrics.secure=true",
        "--set",
        "replicas=0",
    ];
    let _release = Release::install(&cluster, "charts/mortise", name, namespace, &values);
    let account = format!("system:serviceaccount:{namespace}:{name}");
    // kubectl asks for something else where there are none.
    let has_cidrs = minor_version(&cluster.kubeconfig) >= 33;
    let others: [(&[&str], bool); 6] = [
        (&["get", "servicecidrs/kubernetes"], has_cidrs),
        (&["patch", "pods", "-A"], false),
        (&["patch", "configmaps", "-n", "kube-system"], false),
        (&["patch", "configmaps", "-n", namespace], true),
        (&["get", "secrets", "-A"], false),
        (&["update", "nodes"], false),
    ];
    for (request, expected) in others {
        assert_eq!(cluster.may(&account, request), expected, "{request:?}");
    }

    let running = Running::start(&cluster, namespace);
    for object in practice() {
        cluster.apply(&object);
    }
    let claims = [
        "get",
        "nodeclaims",
        "-l",
        "karpenter.sh/nodepool=roles",
        "-o",
        "name",
    ];
    let initialized = [
        "wait",
        "--for=condition=Initialized",
        "nodeclaims",
        "-l",
        "karpenter.sh/nodepool=roles",
        "--timeout=100s",
    ];
    check_who_reads_metrics(&cluster, &running, namespace);
    running.until("a claim", || !cluster.kubectl(&claims).is_empty());
    cluster.kubectl(&initialized);
    cluster.kubectl(&["delete", "deployment", "-n", namespace, "web"]);
    cluster.kubectl(&["delete", "nodepool", "roles", "--wait=false"]);
    running.until("the claims are gone", || {
        cluster.kubectl(&claims).is_empty()
    });
    cluster.kubectl(&["delete", "ec2nodeclass", "roles", "--timeout=60s"]);
    let log = running.log().to_lowercase();
    assert!(log.contains("created nodeclaim"), "{log}");
    assert!(!log.contains("forbidden"), "{log}");
}

/// An account that the chart's role is bound to, and nobody else.
fn check_who_reads_metrics(cluster: &Cluster, running: &Running, namespace: &str) {
    if !has_program("curl", "--version") {
        return;
    }
    for account in ["reader", "stranger"] {
        cluster.kubectl(&["create", "serviceaccount", account, "-n", namespace]);
    }
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "mortise-roles-reader"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mortise-roles-metrics-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    });
    cluster.apply(&binding);
    let token = |account: &str| cluster.kubectl(&["create", "token", account, "-n", namespace]);
    let (reader, stranger) = (token("reader"), token("stranger"));
    let answer = |token: &str, path: &str| running.ask_metrics_port(token.trim(), path);
    running.until("metrics are told", || {
        answer(&reader, "/metrics").contains("karpenter_build_info")
    });
    for (token, path, expected) in [
        ("", "/metrics", "401"),
        ("made up", "/metrics", "401"),
        (&stranger, "/metrics", "403"),
        (&reader, "/debug/log-level", "403"),
        (&reader, "/metrics", "200"),
    ] {
        let answer = answer(token, path);
        assert!(answer.ends_with(expected), "{path}: {answer}");
    }
    cluster.kubectl(&["delete", "clusterrolebinding", "mortise-roles-reader"]);
}

/// A NodePool, its class and two pods for it.
fn practice() -> [Value; 3] {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": "mortise-demo"}}]);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "roles"},
        "spec": {
            "role": "KarpenterNodeRole-mortise-demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "roles"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "roles"},
            "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
        }}},
    });
    let pods = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "nodeSelector": {"karpenter.sh/nodepool": "roles"},
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example", "resources": {"requests": {"cpu": "500m"}}}],
        },
    });
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "mortise-roles"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pods},
    });
    [class, pool, web]
}

/// A controller that is the service account of the chart.
struct Running {
    controller: Child,
    folder: PathBuf,
    port: u16,
}

impl Running {
    fn start(cluster: &Cluster, namespace: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mortise-roles-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let kubeconfig = folder.join("kubeconfig");
        fs::write(&kubeconfig, as_account(cluster, namespace).to_string()).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let port = free_port();
        let controller = Command::new(mortise())
            .args([
                "controller",
                "--cloud",
                "simulated",
                "--metrics-secure",
                "--health-probe-port",
                "0",
                "--metrics-port",
            ])
            .arg(port.to_string())
            .args([
                "--cluster-name",
                "mortise-demo",
                "--system-namespace",
                namespace,
                "--kubeconfig",
            ])
            .arg(&kubeconfig)
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            controller,
            folder,
            port,
        }
    }

    /// What is answered to who has that token, and the number of the status behind it.
    fn ask_metrics_port(&self, token: &str, path: &str) -> String {
        let address = format!("https://127.0.0.1:{}{path}", self.port);
        let output = Command::new("curl")
            .args(["--silent", "--insecure", "--write-out", "%{http_code}"])
            .args([
                "--header",
                &format!("Authorization: Bearer {token}"),
                &address,
            ])
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    fn until(&self, what: &str, holds: impl FnMut() -> bool) {
        let came_true = becomes_true_within(PATIENCE, holds);
        assert!(came_true, "never came true: {what}\n{}", self.log());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.controller.kill();
        let _ = self.controller.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The kubeconfig of the cluster with the token of the chart's service account.
fn as_account(cluster: &Cluster, namespace: &str) -> Value {
    let token = cluster.kubectl(&["create", "token", "mortise-roles", "-n", namespace]);
    let view = [
        "config",
        "view",
        "--raw",
        "--minify",
        "--flatten",
        "-o",
        "json",
    ];
    let mut config: Value = serde_json::from_str(&cluster.kubectl(&view)).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    config
}
