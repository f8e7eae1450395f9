//! `mortise convert` as people run it: files and standard input, where objects, report and values go, and the exit
//! code.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::kubernetes::{kubectl, test_cluster};
use tests::{mortise, run, workspace_root};

const OLD: &str = "
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: default}
spec: {providerRef: {name: default}, ttlSecondsAfterEmpty: 30}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: default}
spec:
  amiFamily: Bottlerocket
  instanceProfile: nodes
  subnetSelector: {karpenter.sh/discovery: blue}
  securityGroupSelector: {karpenter.sh/discovery: blue}
";
const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: karpenter-global-settings, namespace: karpenter}
data: {aws.clusterName: blue}
";
/// v1 has no launch templates.
const LOST: &str = "
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: own}
spec:
  launchTemplate: mine
  subnetSelector: {karpenter.sh/discovery: blue}
";

/// A folder for a test that is gone when it is made anew.
fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("mortise-convert-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn objects_go_to_standard_output_and_the_report_to_standard_error() {
    let folder = folder("plain");
    fs::write(folder.join("old.yaml"), OLD).unwrap();
    let finished = run(["convert", "-f", folder.join("old.yaml").to_str().unwrap()]);
    assert_eq!(finished.exit_code(), Some(0), "{}", finished.stderr());
    let objects = finished.stdout();
    let class = objects.find("kind: EC2NodeClass").unwrap();
    let pool = objects.find("kind: NodePool").unwrap();
    assert!(class < pool, "{objects}");
    let report = finished.stderr();
    assert!(
        report.contains("changed: Provisioner/default: spec.ttlSecondsAfterEmpty"),
        "{report}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn report_and_values_go_to_files_and_json_is_one_list() {
    let folder = folder("files");
    fs::write(folder.join("old.yaml"), OLD).unwrap();
    fs::write(folder.join("settings.yml"), SETTINGS).unwrap();
    let (report, values) = (folder.join("report.txt"), folder.join("values"));
    let finished = run([
        "convert",
        "-o",
        "json",
        "-f",
        folder.to_str().unwrap(),
        "--report",
        report.to_str().unwrap(),
        "--values",
        values.to_str().unwrap(),
    ]);
    assert_eq!(finished.exit_code(), Some(0), "{}", finished.stderr());
    assert_eq!(finished.stderr(), "");
    let list: Value = finished.summary();
    assert_eq!(list["kind"], "List");
    let kinds = list["items"].as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds.map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["EC2NodeClass", "NodePool"]);
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("data.aws.clusterName"), "{report}");
    let values = fs::read_to_string(values).unwrap();
    assert!(values.contains("clusterName: blue"), "{values}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_lost_ends_with_one_and_the_rest_is_converted() {
    let mut process = Command::new(mortise())
        .args(["convert", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    write!(input, "{OLD}---{LOST}").unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    let objects = String::from_utf8(output.stdout).unwrap();
    let report = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(objects.contains("kind: NodePool"), "{objects}");
    let told = report.lines().find(|it| it.contains("launchTemplate"));
    let told = told.unwrap_or_else(|| panic!("{report}"));
    assert!(
        told.starts_with("lost: ") || told.starts_with("left out: "),
        "{told}"
    );
}

#[test]
fn input_that_cannot_be_used_ends_with_two() {
    let folder = folder("none");
    let empty = folder.join("empty.yaml");
    fs::write(&empty, "# nothing\n").unwrap();
    let missing = folder.join("missing.yaml");
    for (file, why) in [(&empty, "no object was given"), (&missing, "missing.yaml")] {
        let finished = run(["convert", "-f", file.to_str().unwrap()]);
        assert_eq!(finished.exit_code(), Some(2), "{}", finished.stderr());
        assert!(finished.stderr().contains(why), "{}", finished.stderr());
        assert_eq!(finished.stdout(), "");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_real_api_server_takes_what_comes_out() {
    let Some(kubeconfig) = test_cluster("what convert writes") else {
        return;
    };
    let apply = ["apply", "--server-side", "--force-conflicts", "-f"];
    let definitions = run(["crds"]).stdout();
    kubectl(&kubeconfig, &[&apply[..], &["-"]].concat(), &definitions).unwrap();
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    kubectl(&kubeconfig, &established, "").unwrap();
    let cases = fs::read_dir(workspace_root().join("host/convert/tests/cases")).unwrap();
    let written = cases.map(|it| it.unwrap().path().join("out.yaml"));
    let mut written: Vec<PathBuf> = written.filter(|it| it.exists()).collect();
    written.sort();
    let refused = written.iter().filter_map(|file| {
        let file = file.to_str().unwrap();
        let only_tried = [&apply[..], &[file, "--dry-run=server"]].concat();
        let refusal = kubectl(&kubeconfig, &only_tried, "").err()?;
        Some(format!("{file}: {refusal}"))
    });
    let refused: Vec<String> = refused.collect();
    assert!(written.len() >= 30, "{written:?}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
