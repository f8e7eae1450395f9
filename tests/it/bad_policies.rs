//! Policies that misbehave, bound as users bind them: ConfigMaps in a simulated cluster. Whatever they do, the
//! next decision is the default's or the previous version's, in time, and status, events and metrics say why.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::served::{Served, WEB};
use tests::{has_program, metric, run, workspace_root};

/// A ConfigMap that nothing should come of, and the words of its status.
struct Bad {
    name: String,
    content: Value,
    reasons: Vec<&'static str>,
}

/// What each committed guest is refused for when it is loaded.
const REFUSED: [(&str, &[&str]); 27] = [
    ("endless-loop.wasm", &["OutOfFuel", "DeadlineExceeded"]),
    ("endless-start.wasm", &["OutOfFuel", "DeadlineExceeded"]),
    ("trapping-start.wasm", &["NotStarted"]),
    ("trap.wasm", &["Trapped"]),
    ("memory-bomb.wasm", &["OutOfMemory"]),
    ("table-bomb.wasm", &["OutOfMemory"]),
    ("stack-overflow.wasm", &["Trapped"]),
    ("error-result.wasm", &["Refused"]),
    ("short-result.wasm", &["InvalidAnswer"]),
    ("huge-result.wasm", &["Trapped"]),
    ("out-of-bounds.wasm", &["Trapped"]),
    ("invalid-utf8.wasm", &["Trapped"]),
    ("score-nan.wasm", &["InvalidAnswer"]),
    ("score-infinite.wasm", &["InvalidAnswer"]),
    ("score-negative.wasm", &["InvalidAnswer"]),
    ("unknown-row.wasm", &["InvalidAnswer"]),
    ("state-between-calls.wasm", &["NotDeterministic"]),
    ("non-determinism.wasm", &["NotDeterministic"]),
    ("core-module.wasm", &["InvalidComponent"]),
    ("nothing.wasm", &["WrongWorld"]),
    ("other-world.wasm", &["ForbiddenImport"]),
    ("other-version.wasm", &["ForbiddenImport"]),
    ("compile-bomb.wasm.zst", &["FunctionTooLarge"]),
    ("nested-bomb.wasm.zst", &["NestedTooDeep"]),
    ("sixteen-memories.wasm", &["TooManyMemories"]),
    // Not there: cut and flipped when the test runs.
    ("truncated", &["InvalidComponent"]),
    ("flipped", &["InvalidComponent"]),
];

/// Guests that are let in, and what they do when a cluster asks.
const AT_WORK: [(&str, &[&str]); 5] = [
    ("trap-in-a-cluster.wasm", &["Trapped"]),
    (
        "endless-in-a-cluster.wasm",
        &["OutOfFuel", "DeadlineExceeded"],
    ),
    ("nan-in-a-cluster.wasm", &["InvalidAnswer"]),
    ("negative-in-a-cluster.wasm", &["InvalidAnswer"]),
    ("short-in-a-cluster.wasm", &["InvalidAnswer"]),
];

const NOTHING: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n";

fn guest(file: &str) -> Vec<u8> {
    let whole =
        || fs::read(workspace_root().join("host/policy/builtin/prefer-arm64.wasm")).unwrap();
    match file {
        "truncated" => whole()[..20_000].to_vec(),
        "flipped" => {
            let mut bytes = whole();
            // The version of the binary format.
            bytes[4] ^= 0x10;
            bytes
        }
        _ => {
            let guests = workspace_root().join("host/policy/tests/guests");
            fs::read(guests.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
        }
    }
}

fn carried(file: &str) -> Value {
    let is_packed = Path::new(file).extension().is_some_and(|it| it == "zst");
    let key = if is_packed {
        "policy.wasm.zst"
    } else {
        "policy.wasm"
    };
    json!({"binaryData": {key: STANDARD.encode(guest(file))}})
}

fn bad() -> Vec<Bad> {
    let one = |name: &str, content: Value, reasons: &[&'static str]| Bad {
        name: name.to_owned(),
        content,
        reasons: reasons.to_vec(),
    };
    let guests = REFUSED.map(|(file, reasons)| {
        let name = file.split('.').next().unwrap_or(file);
        one(name, carried(file), reasons)
    });
    let digest = "0".repeat(64);
    let of_bindings = [
        one(
            "wrong-digest",
            json!({"data": {"builtin": "default-rank", "sha256": digest}}),
            &["DigestMismatch"],
        ),
        one(
            "bad-config",
            json!({"data": {"builtin": "prefer-arm64", "config": "{\"discount\": 7}"}}),
            &["InvalidConfig"],
        ),
        one(
            "bad-rule",
            json!({"data": {"rule": "prise * 0.9"}}),
            &["InvalidRule"],
        ),
        one(
            "other-kind",
            json!({"data": {"builtin": "default-budgets"}}),
            &["WrongWorld"],
        ),
    ];
    guests.into_iter().chain(of_bindings).collect()
}

fn config_map(name: &str, content: &Value) -> Value {
    let mut map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "mortise", "labels": {"mortise.dev/policy": "rank"}},
    });
    let fields = map.as_object_mut().unwrap();
    fields.extend(content.as_object().unwrap().clone());
    map
}

fn apply(served: &Served, maps: &[Value]) {
    served.apply(&json!({"apiVersion": "v1", "kind": "List", "items": maps}).to_string());
}

/// The statuses of all bindings by name.
fn statuses(served: &Served) -> BTreeMap<String, Value> {
    let maps = served.items("configmaps");
    maps.iter()
        .filter_map(|map| {
            let text = map["metadata"]["annotations"]["mortise.dev/status"].as_str()?;
            let name = map["metadata"]["name"].as_str()?.to_owned();
            Some((name, serde_json::from_str(text).ok()?))
        })
        .collect()
}

/// Waits until all are in a state, and says which are not.
fn become_all(served: &Served, names: &[String], state: &str) {
    let mut others = Vec::new();
    let is_reached = served.becomes_true(|| {
        let statuses = statuses(served);
        others = names
            .iter()
            .filter(|name| statuses.get(*name).is_none_or(|it| it["state"] != state))
            .map(|name| (name.clone(), statuses.get(name).cloned()))
            .collect();
        others.is_empty()
    });
    assert!(is_reached, "not {state}: {others:#?}");
}

/// What events of a reason are about, and what they say.
fn said(served: &Served, reason: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = served.items("events");
    events
        .iter()
        .filter(|event| event["reason"] == reason)
        .map(|event| {
            (
                text(&event["involvedObject"]["name"]),
                text(&event["message"]),
            )
        })
        .collect()
}

/// Pods that need a new node get one.
fn decisions_go_on(served: &Served, name: &str) {
    served.apply(&WEB.replace("web", name));
    served.eventually("decisions go on", || served.running(name) == 6);
}

fn start(name: &str) -> Option<Served> {
    if !has_program("kubectl", "help") {
        return None;
    }
    let file = std::env::temp_dir().join(format!("mortise-{name}-{}.yaml", std::process::id()));
    fs::write(&file, NOTHING).unwrap();
    let served = Served::with_metrics(&["-f", &file.display().to_string()]);
    served.eventually("the controller counts", || !served.metrics().is_empty());
    Some(served)
}

fn calls(metrics: &str, policy: &str) -> f64 {
    let labels = [("policy", policy)];
    metric(metrics, "mortise_policy_calls_total", &labels).unwrap_or(0.0)
}

#[test]
fn what_is_refused_leaves_the_default_or_the_previous_version_in_charge() {
    let Some(served) = start("refused") else {
        return;
    };
    // Each is bound anew, and over something that decides already.
    let good = json!({"data": {"builtin": "node-overhead"}});
    let bad = bad();
    let (fresh, over): (Vec<String>, Vec<String>) = bad
        .iter()
        .map(|it| (format!("new-{}", it.name), format!("over-{}", it.name)))
        .unzip();
    let maps: Vec<Value> = over.iter().map(|name| config_map(name, &good)).collect();
    apply(&served, &maps);
    become_all(&served, &over, "Ready");
    let digest = statuses(&served)[&over[0]]["digest"].clone();
    let maps: Vec<Value> = bad
        .iter()
        .zip(fresh.iter().zip(&over))
        .flat_map(|(it, (fresh, over))| {
            [
                config_map(fresh, &it.content),
                config_map(over, &it.content),
            ]
        })
        .collect();
    apply(&served, &maps);
    become_all(&served, &fresh, "Degraded");
    become_all(&served, &over, "Degraded");
    let statuses = statuses(&served);
    let mut rejections = Vec::new();
    for (it, (fresh, over)) in bad.iter().zip(fresh.iter().zip(&over)) {
        for (name, who_decides, decides) in [
            (fresh, "the built-in default decides", &Value::Null),
            (over, "stays in charge", &digest),
        ] {
            let status = &statuses[name];
            let reason = status["reason"].as_str().unwrap_or_default();
            assert!(it.reasons.contains(&reason), "{name}: {status}");
            let message = status["message"].as_str().unwrap_or_default();
            assert!(message.contains(who_decides), "{name}: {status}");
            assert_eq!(&status["digest"], decides, "{name}: {status}");
            rejections.push((name.as_str(), message));
        }
    }
    served.eventually("events say so", || {
        let said = said(&served, "PolicyRejected");
        rejections.iter().all(|(name, message)| {
            said.iter()
                .any(|(about, text)| about == name && text == message)
        })
    });
    let before = served.metrics();
    decisions_go_on(&served, "web");
    let after = served.metrics();
    for (fresh, over) in fresh.iter().zip(&over) {
        // What was there before has decided again, and what was refused has never been asked.
        assert!(calls(&after, over) > calls(&before, over), "{over}");
        let digest = [
            ("policy", over.as_str()),
            ("digest", digest.as_str().unwrap()),
        ];
        let decided = metric(&after, "mortise_policy_calls_total", &digest);
        assert_eq!(decided, Some(calls(&after, over)), "{over}");
        assert!(calls(&after, fresh) < 1.0, "{fresh}");
    }
    let refused = metric(
        &after,
        "mortise_policy_swaps_total",
        &[("result", "refused")],
    );
    assert!(refused >= Some(2.0 * f64::from(u32::try_from(bad.len()).unwrap())));
}

#[test]
fn what_misbehaves_at_work_is_answered_for_at_once_and_quarantined() {
    let Some(served) = start("at-work") else {
        return;
    };
    let bindings = AT_WORK.map(|(file, _)| {
        let name = file.trim_end_matches(".wasm").to_owned();
        (config_map(&name, &carried(file)), name)
    });
    let (mut maps, mut names): (Vec<Value>, Vec<String>) = bindings.into_iter().unzip();
    let flood = "flood".to_owned();
    maps.push(config_map(&flood, &carried("flood-in-a-cluster.wasm")));
    apply(&served, &maps);
    names.push(flood.clone());
    become_all(&served, &names, "Ready");
    names.pop();
    for name in ["first", "second", "third", "fourth"] {
        decisions_go_on(&served, name);
    }
    become_all(&served, &names, "Quarantined");
    let metrics = served.metrics();
    for (name, (_, reasons)) in names.iter().zip(AT_WORK) {
        served.eventually("an event says who decided instead", || {
            said(&served, "PolicyFailed").iter().any(|(about, text)| {
                about == name
                    && reasons.iter().any(|it| text.starts_with(it))
                    && text.contains("the built-in default decided")
            })
        });
        let failed = reasons.iter().filter_map(|reason| {
            let labels = [("policy", name.as_str()), ("reason", reason)];
            metric(&metrics, "mortise_policy_failures_total", &labels)
        });
        // Three are one too many.
        assert!((failed.sum::<f64>() - 3.0).abs() < 0.5, "{name}: {metrics}");
        let seconds = metric(
            &metrics,
            "mortise_policy_seconds_total",
            &[("policy", name)],
        );
        // The deadline of a ranking is 50 ms; the machine that runs the tests has other things to do.
        assert!(
            seconds.is_some_and(|it| it < 3.0 * 0.5),
            "{name}: {seconds:?}"
        );
    }
    // Who talks too much is cut short and goes on deciding.
    let labels = [("policy", flood.as_str())];
    let dropped = metric(&metrics, "mortise_policy_log_lines_dropped_total", &labels);
    assert!(dropped > Some(10_000.0), "{dropped:?}: {metrics}");
    assert_eq!(statuses(&served)[&flood]["state"], "Ready");
    // Deleted while decisions are made.
    served.apply(&WEB.replace("web", "last"));
    let mut delete = vec!["delete", "configmap", "-n", "mortise", "flood"];
    delete.extend(names.iter().map(String::as_str));
    served.kubectl(&delete);
    served.eventually("decisions go on without them", || {
        served.running("last") == 6
    });
}

#[test]
fn a_hundred_updates_in_ten_seconds_are_few_swaps_and_the_last_one_stays() {
    let Some(served) = start("updates") else {
        return;
    };
    let rule = |update: u32| format!("price * 1.{update:03}");
    let map = |update| config_map("restless", &json!({"data": {"rule": rule(update)}}));
    apply(&served, &[map(0)]);
    become_all(&served, &["restless".to_owned()], "Ready");
    let first = statuses(&served)["restless"]["digest"].clone();
    // One run of kubectl, which applies one document after the other.
    let updates = (1..=100).map(|update| map(update).to_string());
    let mut documents: Vec<String> = updates.collect();
    documents.insert(50, WEB.replace("web", "meanwhile"));
    let started = Instant::now();
    // A file that opens with an object is read as JSON to its end.
    served.apply(&format!("---\n{}", documents.join("\n---\n")));
    assert!(started.elapsed() < Duration::from_secs(30));
    served.eventually("decisions went on", || served.running("meanwhile") == 6);
    let manifest = std::env::temp_dir().join(format!("mortise-last-{}.yaml", std::process::id()));
    fs::write(&manifest, map(100).to_string()).unwrap();
    let last = run(["policy", "check", "-o", "json"]
        .into_iter()
        .chain([manifest.to_str().unwrap()]))
    .summary()[0]["digest"]
        .clone();
    assert_ne!(first, last);
    served.eventually("the last update decides", || {
        statuses(&served)["restless"]["digest"] == last
    });
    let metrics = served.metrics();
    let swaps = metric(
        &metrics,
        "mortise_policy_swaps_total",
        &[("result", "accepted")],
    );
    // One at once, one after ten seconds, one after twenty more where kubectl took its time.
    assert!(swaps >= Some(2.0) && swaps <= Some(4.0), "{swaps:?}");
}
