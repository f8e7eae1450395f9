//! The program `mortise-policy` as authors run it: the verbs of `mortise policy`, whose own tests are in `tests/it`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mortise-policy"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder of one's own that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("mortise-authoring-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn a_policy_is_made_checked_and_packed_under_the_name_of_the_program() {
    let folder = Folder::new("verbs");
    let run = |arguments: &[&str]| run(&folder.0, arguments);
    let help = stdout(&run(&["--help"]));
    assert!(help.contains("Usage: mortise-policy"), "{help}");
    for verb in [
        "new", "build", "check", "test", "bench", "pack", "status", "replay", "diff",
    ] {
        assert!(help.contains(&format!("  {verb} ")), "no {verb} in {help}");
    }
    let made = stdout(&run(&["new", "mine"]));
    assert!(made.contains("mortise-policy test mine"), "{made}");
    let checked = run(&["check", "mine", "builtin:prefer-arm64", "-o", "json"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let passes = checked.as_array().unwrap().iter();
    assert_eq!(passes.filter(|it| it["passes"] == true).count(), 2);
    let packed = stdout(&run(&["pack", "mine"]));
    assert!(packed.contains("mortise.dev/policy: rank"), "{packed}");
    fs::create_dir(folder.0.join("empty")).unwrap();
    let refused = stderr(&run(&["check", "empty"]));
    assert!(refused.contains("`mortise-policy new`"), "{refused}");
}

#[test]
fn policies_of_a_cluster_are_shown_as_kubectl_prints_them() {
    let folder = Folder::new("status");
    let unreachable = stderr(&run(&folder.0, &["status"]));
    assert!(
        unreachable.contains("mortise.dev/policy -o json | mortise-policy status -f -"),
        "{unreachable}"
    );
    let config_map = |name: &str, label: &str, status: &str| {
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": "policies",
                "labels": {label: "rank"},
                "annotations": {"mortise.dev/status": status},
            },
        })
    };
    let list = serde_json::json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            config_map("good", "mortise.dev/policy", r#"{"state": "Ready", "calls": 12}"#),
            config_map("other", "app", "{}"),
        ],
    });
    let file = folder.0.join("list.json");
    fs::write(&file, list.to_string()).unwrap();
    let shown = run(&folder.0, &["status", "-f", "list.json"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    let shown = stdout(&shown);
    assert!(shown.contains("good") && shown.contains("12"), "{shown}");
    assert!(!shown.contains("other"), "{shown}");
}
