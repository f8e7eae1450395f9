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
        "new", "build", "upgrade", "check", "test", "bench", "pack", "status", "replay", "diff",
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

/// The project's root; cargo runs a test in its package's folder.
fn root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// A folder in JavaScript as the version 0.1.0 of the SDK left it.
fn folder_of_0_1(folder: &Path) -> PathBuf {
    let path = folder.join("old");
    assert!(
        run(folder, &["new", "old", "--lang", "js"])
            .status
            .success()
    );
    fs::remove_file(path.join("sdk.lock")).unwrap();
    for entry in fs::read_dir(root().join("host/policy/wit-0.1")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), path.join("wit").join(entry.file_name())).unwrap();
    }
    let lifecycle = root().join("host/authoring/tests/released/lifecycle-0.1.0.js");
    fs::copy(lifecycle, path.join("lifecycle.js")).unwrap();
    fs::write(path.join("policy.js"), "// mine\n").unwrap();
    path
}

#[test]
fn a_folder_of_the_first_interface_is_upgraded_and_told_what_its_source_must_say() {
    let folder = Folder::new("upgrade");
    let old = folder_of_0_1(&folder.0);
    let upgraded = run(&folder.0, &["upgrade", "old"]);
    assert!(upgraded.status.success(), "{}", stderr(&upgraded));
    let told = stdout(&upgraded);
    for words in [
        "old: SDK 0.1.0 -> 0.2.0",
        "replaced  lifecycle.js",
        "wit/rank.wit",
        "table.inUse",
        "mortise-policy build old",
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    assert_eq!(
        fs::read_to_string(old.join("policy.js")).unwrap(),
        "// mine\n"
    );
    for entry in fs::read_dir(root().join("wit")).unwrap() {
        let entry = entry.unwrap();
        let now = fs::read(old.join("wit").join(entry.file_name())).unwrap();
        assert_eq!(now, fs::read(entry.path()).unwrap(), "{entry:?}");
    }
    let again = run(&folder.0, &["upgrade", "old"]);
    assert_eq!(stdout(&again).trim(), "old carries SDK 0.2.0 already.");
}

#[test]
fn files_of_the_sdk_that_were_changed_by_hand_are_not_lost_unasked() {
    let folder = Folder::new("by-hand");
    for lang in ["rust", "js", "c", "go"] {
        assert!(
            run(&folder.0, &["new", lang, "--lang", lang])
                .status
                .success()
        );
        let fresh = run(&folder.0, &["upgrade", lang]);
        assert!(stdout(&fresh).contains("already"), "{}", stdout(&fresh));
    }
    let header = folder.0.join("c/mortise_policy.h");
    let text = fs::read_to_string(&header).unwrap();
    fs::write(&header, format!("{text}\n#define MINE 1\n")).unwrap();
    fs::remove_file(folder.0.join("c/wit/rank.wit")).unwrap();
    let refused = run(&folder.0, &["upgrade", "c"]);
    assert!(!refused.status.success());
    let told = stderr(&refused);
    assert!(
        told.contains("changed by hand in c: mortise_policy.h;") && told.contains("--force"),
        "{told}"
    );
    assert!(fs::read_to_string(&header).unwrap().contains("MINE"));
    let forced = stdout(&run(&folder.0, &["upgrade", "c", "--force"]));
    assert!(forced.contains("replaced  mortise_policy.h"), "{forced}");
    assert!(forced.contains("added     wit/rank.wit"), "{forced}");
    assert_eq!(fs::read_to_string(&header).unwrap(), text);
    let stamp = folder.0.join("c/sdk.lock");
    let newer = fs::read_to_string(&stamp).unwrap();
    fs::write(&stamp, newer.replace("sdk 0.2.0", "sdk 9.0.0")).unwrap();
    let newer = stderr(&run(&folder.0, &["upgrade", "c"]));
    assert!(newer.contains("upgrade the program"), "{newer}");
}

#[test]
fn a_component_of_an_older_sdk_passes_with_a_note() {
    let folder = Folder::new("note");
    let notes = |name: &str| {
        let component = root().join("host/policy").join(name);
        let component = component.display().to_string();
        let checked = run(&folder.0, &["check", "-o", "json", &component]);
        let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(checked[0]["passes"], true, "{checked}");
        checked[0]["notes"].clone()
    };
    let old = notes("tests/released/0.1.0/rank.wasm").to_string();
    assert!(old.contains("built with SDK 0.1.0"), "{old}");
    assert_eq!(
        notes("tests/released/0.2.0/rank.wasm"),
        serde_json::json!([])
    );
}

#[test]
fn what_answers_gos_runtime_is_made_of_its_text() {
    let folder = root().join("guest-sdk/templates/go");
    let made = wat::parse_file(folder.join("wasi.wat")).unwrap();
    let path = folder.join("wasi.wasm");
    let kept = fs::read(&path).unwrap();
    if kept != made {
        fs::write(&path, made).unwrap();
        panic!("{} was out of date and has been refreshed", path.display());
    }
}

#[test]
fn templates_in_go_are_vetted_and_built() {
    let has_go = Command::new("go").arg("version").output();
    if !has_go.is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: `go` is not installed");
        return;
    }
    let folder = Folder::new("go");
    for kind in ["rank", "consolidation", "budgets"] {
        let made = run(&folder.0, &["new", kind, "--lang", "go", "--kind", kind]);
        assert!(made.status.success(), "{}", stderr(&made));
        let vet = Command::new("go")
            .args(["vet", ".", "mortise.dev/policy/..."])
            .current_dir(folder.0.join(kind))
            .envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOPROXY", "off")])
            .output()
            .unwrap();
        assert!(vet.status.success(), "{}", stderr(&vet));
        let built = run(&folder.0, &["build", kind]);
        assert!(built.status.success(), "{}", stderr(&built));
        assert!(folder.0.join(kind).join("policy.wasm").exists());
    }
}
