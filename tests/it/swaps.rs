//! Policies swapped under load: a demo that applies manifests in turn while pods come and nodes go.

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tests::{run, workspace_root};

/// Manifests of one binding that is swapped, in a folder that is gone afterwards.
struct Rotation(PathBuf);

impl Rotation {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("mortise-swaps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn binding(&self, name: &str, data: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: swapped\n  namespace: mortise\n  labels: \
             {{mortise.dev/policy: rank}}\n{data}\n"
        );
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn digest(policy: &str) -> Value {
    run(["policy", "check", "-o", "json", policy]).summary()[0]["digest"].clone()
}

#[test]
fn swaps_under_load_lose_no_decision_delay_none_and_each_decision_names_who_made_it() {
    let rotation = Rotation::new();
    let broken = fs::read(workspace_root().join("host/policy/tests/guests/trap.wasm")).unwrap();
    let broken = format!("binaryData: {{policy.wasm: {}}}", STANDARD.encode(&broken));
    let files = [
        rotation.binding("one.yaml", "data: {builtin: prefer-arm64}"),
        rotation.binding("two.yaml", "data: {builtin: node-overhead}"),
        rotation.binding("broken.yaml", &broken),
    ];
    let records = rotation.0.join("records").display().to_string();
    let mut arguments = vec!["demo", "--pods", "500", "--speed", "max", "--until", "3m"];
    arguments.extend(["-o", "json", "--policy-records", &records]);
    for file in &files {
        arguments.extend(["--rotate", file.as_str()]);
    }
    let ran = run(arguments);
    assert!(ran.is_success(), "{}{}", ran.stdout(), ran.stderr());
    let summary = ran.summary();
    assert_eq!(summary["pods"]["running"], 500, "{summary}");
    assert_eq!(summary["pods"]["pending"], 0, "{summary}");

    // Every ten seconds for three minutes: a good one, another, and one that is refused.
    let swaps = &summary["swaps"];
    assert!(swaps["accepted"].as_u64() >= Some(11), "{swaps}");
    assert!(swaps["refused"].as_u64() >= Some(5), "{swaps}");
    let wait = swaps["longestWaitMicroseconds"].as_f64();
    assert!(wait.is_some_and(|it| it < 10_000.0), "{swaps}");

    // Both have decided, the broken one never did, and nothing failed.
    let all = summary["policies"].as_array().unwrap();
    assert!(all.iter().all(|it| it["failures"] == 0), "{all:?}");
    let ranked = all.iter().filter(|it| it["kind"] == "rank");
    let mut deciding: Vec<String> = ranked.map(|it| it["digest"].to_string()).collect();
    let builtins = ["builtin:prefer-arm64", "builtin:node-overhead"];
    let mut expected: Vec<String> = builtins.map(|it| digest(it).to_string()).to_vec();
    deciding.sort();
    expected.sort();
    assert_eq!(deciding, expected);

    // Each call is recorded with the digest of who answered, and that one answers the same again.
    let calls = all.iter().filter_map(|it| it["calls"].as_u64());
    let same = format!(
        "{} calls gave the same bytes, 0 gave others",
        calls.sum::<u64>()
    );
    let replayed = run(["policy", "replay", &records]);
    assert!(replayed.stdout().contains(&same), "{}", replayed.stdout());
}
