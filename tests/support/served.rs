//! A demo that serves its API in real time, and kubectl against it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::mortise;

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_mins(2);

/// A Deployment of six pods of half a core.
pub const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 500m, memory: 512Mi}}}]}
";

/// A running demo; it is ended on drop.
pub struct Served {
    demo: Child,
    others: Vec<Child>,
    folder: PathBuf,
    metrics_port: Option<u16>,
}

impl Served {
    /// Starts `mortise demo --until forever` with a kubeconfig and the arguments given.
    pub fn start(arguments: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("mortise-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let demo = Command::new(mortise())
            .args([
                "demo",
                "--until",
                "forever",
                "--listen",
                "127.0.0.1:0",
                "--kubeconfig-out",
            ])
            .arg(folder.join("kubeconfig"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("the demo does not start: {error}"));
        let served = Self {
            demo,
            others: Vec::new(),
            folder,
            metrics_port: None,
        };
        served.eventually("the API answers", || {
            served.kubeconfig().exists() && served.try_kubectl(&["get", "nodepools"]).is_some()
        });
        served
    }

    /// Starts a world whose controller is a process of its own, so that its metrics can be read.
    pub fn with_metrics(arguments: &[&str]) -> Self {
        Self::with_metrics_of(arguments, &[], &[])
    }

    /// The same of a controller with these flags and variables.
    pub fn with_metrics_of(arguments: &[&str], flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut served = Self::start(&[&["--no-controller"], arguments].concat());
        let port = free_port();
        let ports = format!("--metrics-port={port}");
        let controller = ["controller", &ports, "--health-probe-port=0"];
        served.also_run_with(&[&controller, flags].concat(), variables);
        served.metrics_port = Some(port);
        served
    }

    /// Where the controller is asked.
    pub fn metrics_address(&self) -> String {
        format!("127.0.0.1:{}", self.metrics_port.unwrap_or_default())
    }

    /// What `/metrics` says; nothing while nobody listens.
    pub fn metrics(&self) -> String {
        let answer = self.metrics_port.and_then(|port| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        });
        answer.unwrap_or_default()
    }

    /// Starts another `mortise` beside the demo, told where the API is.
    pub fn also_run(&mut self, arguments: &[&str]) {
        self.also_run_with(arguments, &[]);
    }

    /// The same with these variables in its environment.
    pub fn also_run_with(&mut self, arguments: &[&str], variables: &[(&str, &str)]) {
        let child = Command::new(mortise())
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.others
            .push(child.unwrap_or_else(|error| panic!("the process does not start: {error}")));
    }

    /// Ends what was started beside the demo, without letting it say goodbye.
    pub fn kill_others(&mut self) {
        for mut child in self.others.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The kubeconfig that the demo wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Runs kubectl and panics with its words where it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("kubectl does not run: {error}"));
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs kubectl; `None` where it fails.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The items of a list.
    pub fn items(&self, resource: &str) -> Vec<Value> {
        let text = self.kubectl(&["get", resource, "-A", "-o", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// How many pods run whose names begin so.
    pub fn running(&self, prefix: &str) -> usize {
        let is_running = |pod: &&Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with(prefix) && pod["status"]["phase"] == "Running"
        };
        self.items("pods").iter().filter(is_running).count()
    }

    /// Applies a manifest server-side.
    pub fn apply(&self, manifest: &str) {
        let file = self.folder.join("manifest.yaml");
        std::fs::write(&file, manifest)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.kubectl(&["apply", "--server-side", "-f", &file.display().to_string()]);
    }

    /// Waits until a condition holds, and panics with its name where it never does.
    pub fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        assert!(self.becomes_true(holds), "never came true: {what}");
    }

    /// Whether a condition holds before patience ends.
    pub fn becomes_true(&self, holds: impl FnMut() -> bool) -> bool {
        becomes_true_within(PATIENCE, holds)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments);
        command
    }
}

/// Whether a condition holds before so long is over; it is looked at a few times a second.
pub fn becomes_true_within(patience: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > patience {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(250));
    }
    true
}

/// A port that nobody listens on, for now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_or(0, |address| address.port())
}

impl Drop for Served {
    fn drop(&mut self) {
        for child in self.others.iter_mut().chain([&mut self.demo]) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
