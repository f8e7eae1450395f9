//! `mortise doctor` as people run it: dumps and clusters, what is told of either, and the exit code.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tests::served::Served;
use tests::{Finished, has_program, mortise, run};

const CLASS: &str = "
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
";
const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}
";
/// A controller's Deployment with a value that is none.
const KARPENTER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: karpenter, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app.kubernetes.io/name: karpenter}}
  template:
    metadata: {labels: {app.kubernetes.io/name: karpenter}}
    spec:
      containers:
        - name: controller
          image: example
          env: [{name: KARPENTER_SERVICE, value: karpenter}, {name: BATCH_MAX_DURATION, value: soon}]
";

fn file(name: &str, content: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("mortise-doctor-{}-{name}", std::process::id()));
    fs::write(&file, content).unwrap();
    file
}

fn examine(name: &str, dump: &str, more: &[&str]) -> Finished {
    let file = file(name, dump);
    let finished = run([&["doctor", "-f", file.to_str().unwrap()], more].concat());
    fs::remove_file(file).unwrap();
    finished
}

#[test]
fn the_exit_code_says_whether_anything_stands_in_the_way() {
    let (whole, half) = (format!("{CLASS}---{POOL}"), POOL.to_owned());
    let broken = "{cut";
    for (name, dump, code, told) in [
        ("whole", whole.as_str(), 0, ""),
        (
            "half",
            &half,
            0,
            "note: NodePool/default: whether EC2NodeClass/default is there is not known",
        ),
        ("setting", KARPENTER, 1, "BATCH_MAX_DURATION"),
        ("cut", broken, 2, "note: "),
        ("empty", "# nothing\n", 2, ""),
    ] {
        let finished = examine(name, dump, &[]);
        let said = finished.stdout() + &finished.stderr();
        assert_eq!(finished.exit_code(), Some(code), "{name}: {said}");
        assert!(finished.stdout().contains(told), "{name}: {said}");
        assert_eq!(
            finished.stdout().is_empty(),
            told.is_empty(),
            "{name}: {said}"
        );
    }
    let nothing = run(["doctor"]);
    assert_eq!(nothing.exit_code(), Some(2), "{}", nothing.stdout());
    assert!(
        nothing.stderr().contains("--kubeconfig"),
        "{}",
        nothing.stderr()
    );
}

#[test]
fn findings_are_json_for_programs() {
    let findings: Value = examine("json", POOL, &["-o", "json"]).summary();
    let findings = findings.as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0]["severity"], "note");
    assert_eq!(findings[0]["object"], "NodePool/default");
    for field in ["what", "fix"] {
        assert!(findings[0][field].is_string(), "{findings:?}");
    }
}

#[test]
fn a_dump_comes_on_standard_input_too() {
    let mut process = Command::new(mortise())
        .args(["doctor", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(POOL.as_bytes()).unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.starts_with("note: NodePool/default"), "{told}");
}

/// What a server says to a path: a code and a body.
type Answer = fn(&str) -> (u16, Value);

/// A server that says nothing else, as a kubeconfig.
fn answering(name: &str, answer: Answer) -> PathBuf {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer_one(&stream, answer);
        }
    });
    let text = format!(
        "\
apiVersion: v1
kind: Config
current-context: x
clusters: [{{name: x, cluster: {{server: 'http://{address}'}}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
users: [{{name: x, user: {{token: t}}}}]
"
    );
    file(name, &text)
}

fn answer_one(mut stream: &TcpStream, answer: Answer) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    while lines.next().is_some_and(|line| !line.is_empty()) {}
    let (code, body) = answer(&path);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {code} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes());
}

fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    (code, status)
}

fn forbids(_: &str) -> (u16, Value) {
    status(403, "Forbidden", "not for you")
}

fn knows_nothing(_: &str) -> (u16, Value) {
    status(
        404,
        "NotFound",
        "the server could not find the requested resource",
    )
}

fn list(kind: &str, version: &str, items: &Value) -> (u16, Value) {
    let list = json!({"kind": kind, "apiVersion": version, "metadata": {}, "items": items});
    (200, list)
}

/// A cluster with a NodePool, whose classes nobody may list.
fn hides_classes(path: &str) -> (u16, Value) {
    match path {
        "/apis/karpenter.k8s.aws/v1/ec2nodeclasses" => forbids(path),
        _ => has_no_class(path),
    }
}

/// The same with no class.
fn has_no_class(path: &str) -> (u16, Value) {
    match path {
        "/apis/karpenter.sh/v1/nodepools" => {
            let reference = json!({"kind": "EC2NodeClass", "name": "gone"});
            let spec = json!({"template": {"spec": {"nodeClassRef": reference}}});
            let pool = json!({"metadata": {"name": "a"}, "spec": spec});
            list("NodePoolList", "karpenter.sh/v1", &json!([pool]))
        }
        "/apis/karpenter.k8s.aws/v1/ec2nodeclasses" => {
            list("EC2NodeClassList", "karpenter.k8s.aws/v1", &json!([]))
        }
        _ => knows_nothing(path),
    }
}

/// A cluster with a CronJob that says how pods were kept of old.
fn runs_by_the_clock(path: &str) -> (u16, Value) {
    match path {
        "/apis/batch/v1/cronjobs" => {
            let metadata = json!({"annotations": {"karpenter.sh/do-not-evict": "true"}});
            let run = json!({"template": {"metadata": metadata}});
            let spec = json!({"jobTemplate": {"spec": run}});
            let cron = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec});
            list("CronJobList", "batch/v1", &json!([cron]))
        }
        _ => knows_nothing(path),
    }
}

/// A cluster whose NodePools are of v1beta1, and whose nodes nobody may list.
fn is_of_old(path: &str) -> (u16, Value) {
    match path {
        "/apis/karpenter.sh/v1beta1/nodepools" => {
            let pool = json!({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "old"}});
            list("NodePoolList", "karpenter.sh/v1beta1", &json!([pool]))
        }
        "/apis/apps/v1/deployments" => list("DeploymentList", "apps/v1", &json!([])),
        "/api/v1/nodes" => forbids(path),
        _ => knows_nothing(path),
    }
}

/// A cluster without anything of Karpenter's.
fn has_no_karpenter(path: &str) -> (u16, Value) {
    match path {
        "/apis/apps/v1/deployments" => is_of_old(path),
        _ => knows_nothing(path),
    }
}

#[test]
fn a_cluster_that_tells_nothing_ends_with_two_and_one_that_tells_something_does_not() {
    let cases: [(&str, Answer, i32, &str); 7] = [
        ("forbids", forbids, 2, "cannot be listed (not for you"),
        (
            "nothing",
            knows_nothing,
            2,
            "no kind of Karpenter's is served here",
        ),
        (
            "old",
            is_of_old,
            1,
            "breaks: NodePool/old: karpenter.sh/v1beta1 is not read",
        ),
        (
            "hides",
            hides_classes,
            0,
            "note: NodePool/a: whether EC2NodeClass/gone is there is not known",
        ),
        (
            "no-class",
            has_no_class,
            1,
            "breaks: NodePool/a: EC2NodeClass/gone is not there",
        ),
        (
            "clock",
            runs_by_the_clock,
            1,
            "differs: CronJob/b/a: spec.jobTemplate.spec.template.metadata.annotations",
        ),
        (
            "without",
            has_no_karpenter,
            0,
            "note: the cluster: no kind of Karpenter's is served here",
        ),
    ];
    for (name, answer, code, told) in cases {
        let kubeconfig = answering(name, answer);
        let finished = run(["doctor", "--kubeconfig", kubeconfig.to_str().unwrap()]);
        let said = finished.stdout() + &finished.stderr();
        assert_eq!(finished.exit_code(), Some(code), "{name}: {said}");
        assert!(said.contains(told), "{name}: {said}");
        fs::remove_file(kubeconfig).unwrap();
    }
}

#[test]
fn a_cluster_at_work_has_nothing_that_breaks_but_what_is_put_into_it() {
    if !has_program("kubectl", "help") {
        return;
    }
    let served = Served::start(&["--no-controller"]);
    let kubeconfig = served.kubeconfig();
    let doctor = || run(["doctor", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let finished = doctor();
    let said = finished.stdout() + &finished.stderr();
    assert_eq!(finished.exit_code(), Some(0), "{said}");
    served.apply(KARPENTER);
    let finished = doctor();
    let said = finished.stdout() + &finished.stderr();
    assert_eq!(finished.exit_code(), Some(1), "{said}");
    assert!(
        said.contains("breaks: Deployment/default/karpenter: BATCH_MAX_DURATION"),
        "{said}"
    );
}
