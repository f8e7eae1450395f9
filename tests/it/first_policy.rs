//! The script of the README, from an empty folder to a policy that changed a launch, in every language whose tools
//! are here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tests::{can_build_javascript, has_program, mortise, run, workspace_root};

const FIRST_LINE: &str = "lang=expr source=policy.yaml";
/// What the script deploys, for a run without the policy.
const WEB: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: nginx, image: nginx}]}
";

/// The script as the README has it.
fn script() -> String {
    let readme = fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let mut blocks = readme.split("```sh run-by:first_policy.rs\n").skip(1);
    let block = blocks.find(|block| block.starts_with(FIRST_LINE)).unwrap();
    block.split("```").next().unwrap().to_owned()
}

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("mortise-first-{name}-{}", std::process::id()));
    fs::create_dir_all(path.join("bin")).unwrap();
    symlink(mortise(), path.join("bin/mortise")).unwrap();
    path
}

/// Runs the script; gives its last table and how long it took.
fn follow(lang: &str, source: &str) -> (String, Duration) {
    let folder = folder(lang);
    let script = script().replacen(FIRST_LINE, &format!("lang={lang} source={source}"), 1);
    // The demo that it starts ends with it.
    let script = format!("set -e\ntrap 'kill $(jobs -p)' EXIT\n{script}");
    let path = std::env::var("PATH").unwrap_or_default();
    let started = Instant::now();
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&folder)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .output()
        .unwrap();
    let took = started.elapsed();
    fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{lang}: {text}{error}");
    let table = text.rfind("NAME ").map_or("", |start| &text[start..]);
    (table.to_owned(), took)
}

fn check_changes_the_launch(lang: &str, source: &str) -> Duration {
    let (table, took) = follow(lang, source);
    let launches: Vec<&str> = table.lines().skip(1).collect();
    assert!(!launches.is_empty(), "{lang}: {table}");
    for launch in launches {
        assert!(launch.ends_with("amd64"), "{lang}: {table}");
    }
    took
}

#[test]
fn without_a_policy_the_launch_is_another() {
    let file = std::env::temp_dir().join(format!("mortise-web-{}.yaml", std::process::id()));
    fs::write(&file, WEB).unwrap();
    let arguments = ["demo", "--until", "settled", "-o", "json", "-f"];
    let ran = run(arguments.into_iter().chain([file.to_str().unwrap()]));
    fs::remove_file(&file).unwrap();
    let nodes = ran.summary()["nodes"].clone();
    for node in nodes.as_array().unwrap() {
        let instance_type = node["instanceType"].as_str().unwrap();
        let family = instance_type.split('.').next().unwrap();
        assert!(family.contains('g'), "no Graviton: {nodes}");
    }
}

#[test]
fn a_new_expression_changes_a_launch_within_two_minutes() {
    if !has_program("kubectl", "help") {
        return;
    }
    let took = check_changes_the_launch("expr", "policy.yaml");
    // A minute of it watches consolidation; half of the rest is enough on a machine that has nothing else to do.
    assert!(took < Duration::from_mins(2), "{took:?}");
}

#[test]
fn a_new_module_in_rust_changes_a_launch() {
    let prints = |rustc: &str| {
        let mut command = Command::new(rustc);
        command.args([
            "--print",
            "target-libdir",
            "--target",
            "wasm32-unknown-unknown",
        ]);
        command.output().is_ok_and(|output| {
            let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success() && PathBuf::from(folder).is_dir()
        })
    };
    // Debian's compiler builds the standard library of the target from its sources.
    let from_sources = PathBuf::from("/usr/lib/rustlib/src/rust/library/std").is_dir()
        || PathBuf::from("/usr/lib/rust-web").is_dir();
    let has_compiler = prints("rustc") || (from_sources && has_program("wasm-ld", "--version"));
    if !has_compiler {
        eprintln!("skipped: no compiler for wasm32-unknown-unknown");
        return;
    }
    if has_program("kubectl", "help") {
        check_changes_the_launch("rust", "src/lib.rs");
    }
}

#[test]
fn a_new_module_in_javascript_changes_a_launch() {
    if has_program("kubectl", "help") && can_build_javascript() {
        check_changes_the_launch("js", "policy.js");
    }
}

#[test]
fn a_new_module_in_go_changes_a_launch() {
    if has_program("kubectl", "help") && has_program("go", "version") {
        check_changes_the_launch("go", "policy.go");
    }
}
