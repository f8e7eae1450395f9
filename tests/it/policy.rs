//! `mortise policy` as people use it: from an empty folder to a manifest, and what is refused on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{Finished, can_build_javascript, has_program, run, workspace_root};

const KINDS: [&str; 3] = ["rank", "consolidation", "budgets"];

fn policy(arguments: &[&str]) -> Finished {
    run(["policy"].iter().chain(arguments))
}

/// A folder of one's own that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("mortise-policy-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn new(folder: &Folder, name: &str, lang: &str, kind: &str) -> String {
    let path = folder.path(name);
    let made = policy(&["new", &path, "--lang", lang, "--kind", kind]);
    assert!(made.is_success(), "{}", made.stderr());
    path
}

fn passes(finished: &Finished) {
    assert!(
        finished.is_success(),
        "{}{}",
        finished.stdout(),
        finished.stderr()
    );
}

#[test]
fn a_new_rule_of_each_kind_passes_its_cases_and_the_check_and_is_packed() {
    let folder = Folder::new("expr");
    for kind in KINDS {
        let path = new(&folder, kind, "expr", kind);
        passes(&policy(&["build", &path]));
        let tested = policy(&["test", &path]);
        passes(&tested);
        assert!(tested.stdout().contains("2 of 2 cases passed"));
        passes(&policy(&["check", &path]));
        let packed = policy(&["pack", &path, "--mode", "shadow", "-n", "karpenter"]);
        passes(&packed);
        for words in ["kind: ConfigMap", "shadow", "namespace: karpenter", "rule:"] {
            assert!(packed.stdout().contains(words), "{}", packed.stdout());
        }
        let default = format!("builtin:default-{kind}");
        let differs = policy(&["diff", &default, &path, "--rounds", "300"]);
        // Moves that save less than a cent are rare among made-up ones.
        let expected = i32::from(kind != "consolidation");
        assert_eq!(differs.exit_code(), Some(expected), "{}", differs.stderr());
        assert!(differs.stdout().contains("answers differ"));
        let same = policy(&["diff", &path, &path]);
        assert!(same.is_success(), "{}", same.stdout());
        let again = policy(&["new", &path]);
        assert!(again.stderr().contains("not empty"), "{}", again.stderr());
    }
}

#[test]
fn a_case_that_does_not_hold_fails_with_what_came_instead() {
    let folder = Folder::new("cases");
    let path = new(&folder, "mine", "expr", "rank");
    let cases = folder.file(
        "wrong.yaml",
        "
- name: amd64 always wins
  offerings:
    - {instanceType: m7i.large, price: 0.10}
    - {instanceType: m7g.large, arch: arm64, price: 0.10}
  expect: {cheapest: m7i.large, costs: {m7g.large: 0.1}}
- name: a typo in the settings is refused
  config: [1]
  offerings: [{price: 0.1}]
  expect: {refused: config}
",
    );
    let tested = policy(&["test", &path, "--cases", &cases]);
    assert_eq!(tested.exit_code(), Some(1));
    let text = tested.stdout();
    for words in [
        "FAILED amd64 always wins",
        "expected \"m7i.large\", got \"m7g.large\"",
        "cost of m7g.large: expected 0.1, got 0.08333",
        "was let in, and should have been refused",
        "0 of 2 cases passed",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    for (cases, words) in [
        ("[]", "holds no case"),
        ("- {name: x, expect: {}}", "give it `offerings`"),
        ("- {name: x, offerings: [{}], expect: {}}", "holds nothing"),
        ("- {name: x, oferings: [], expect: {}}", "oferings"),
    ] {
        let file = folder.file("bad.yaml", cases);
        let tested = policy(&["test", &path, "--cases", &file]);
        assert!(tested.stderr().contains(words), "{}", tested.stderr());
    }
}

#[test]
fn the_whole_shelf_passes_the_check() {
    let names: Vec<String> = fs::read_dir(workspace_root().join("policies"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        // A guest of the tests, which repeats whatever it is told.
        .filter(|name| name != "everything")
        .map(|name| format!("builtin:{name}"))
        .collect();
    let mut arguments = vec!["check", "-o", "json"];
    arguments.extend(names.iter().map(String::as_str));
    let checked = policy(&arguments);
    passes(&checked);
    let checked = checked.summary();
    assert_eq!(checked.as_array().unwrap().len(), names.len());
    for it in checked.as_array().unwrap() {
        assert_eq!(it["passes"], true, "{it}");
        assert_eq!(it["conformance"][0]["rounds"], 60, "{it}");
    }
}

#[test]
fn every_guest_that_misbehaves_is_refused_with_its_reason_and_soon() {
    let guests = workspace_root().join("host/policy/tests/guests");
    let mut names: Vec<PathBuf> = fs::read_dir(&guests)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    for path in names {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = file.split('.').next().unwrap().to_owned();
        let started = Instant::now();
        let checked = policy(&["check", "-o", "json", &path.display().to_string()]);
        let took = started.elapsed();
        let answer = &checked.summary()[0];
        let good = [
            "everything",
            "proper",
            "log-flood",
            "flood-in-a-cluster",
            "long-texts",
        ];
        let is_good = good.contains(&name.as_str());
        // Five on a machine that has nothing else to do; a runaway is stopped by fuel, not by time.
        assert!(
            is_good || took < Duration::from_secs(20),
            "{name}: {took:?}"
        );
        assert_eq!(answer["passes"], is_good, "{name}: {answer}");
        let expected = match name.as_str() {
            "endless-loop" | "endless-start" => "OutOfFuel",
            "memory-bomb" | "table-bomb" => "OutOfMemory",
            "error-result" => "Refused",
            "state-between-calls" | "non-determinism" => "NotDeterministic",
            "trapping-start" => "NotStarted",
            "short-result" | "score-nan" | "score-infinite" | "score-negative" | "unknown-row" => {
                "InvalidAnswer"
            }
            "compile-bomb" => "FunctionTooLarge",
            "nested-bomb" => "NestedTooDeep",
            "sixteen-memories" => "TooManyMemories",
            "core-module" => "InvalidComponent",
            "nothing" => "WrongWorld",
            "other-world" | "other-version" => "ForbiddenImport",
            _ if is_good => continue,
            it if it.ends_with("-in-a-cluster") => "NotConformant",
            _ => "Trapped",
        };
        assert_eq!(answer["reason"], expected, "{name}: {answer}");
        assert!(!answer["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn what_is_no_policy_is_told_apart() {
    let folder = Folder::new("not");
    let config_map = |data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: it, labels: {{mortise.dev/policy: rank}}}}\n{data}"
        )
    };
    for (name, content, words) in [
        ("core.wasm", "\0asm\u{1}\0\0\0", "InvalidComponent"),
        ("text.wasm", "(component)", "InvalidComponent"),
        (
            "digest.yaml",
            &config_map("data: {builtin: default-rank, sha256: \"00\"}"),
            "64 hexadecimal",
        ),
        (
            "config.yaml",
            &config_map("data: {builtin: prefer-arm64, config: '{\"discount\": 7}'}"),
            "/discount",
        ),
        (
            "rule.yaml",
            &config_map("data: {rule: prise * 2.0}"),
            "price",
        ),
        (
            "world.yaml",
            &config_map("data: {builtin: default-budgets}"),
            "WrongWorld",
        ),
    ] {
        let file = folder.file(name, content);
        let checked = policy(&["check", &file]);
        assert_eq!(checked.exit_code(), Some(1), "{name}");
        assert!(
            checked.stdout().contains(words),
            "{name}: {}",
            checked.stdout()
        );
    }
    let missing = policy(&["check", "builtin:nothing"]);
    assert!(
        missing.stderr().contains("default-rank"),
        "{}",
        missing.stderr()
    );
}

#[test]
fn a_component_is_packed_with_its_digest_and_bound_again() {
    let folder = Folder::new("pack");
    let component = workspace_root().join("host/policy/builtin/perf-price.wasm");
    let manifest = folder.path("perf.yaml");
    let packed = policy(&[
        "pack",
        &component.display().to_string(),
        "--order",
        "-5",
        "-O",
        &manifest,
    ]);
    passes(&packed);
    assert!(
        packed.stdout().contains("kubectl apply -f"),
        "{}",
        packed.stdout()
    );
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(
        text.contains("policy.wasm.zst") && text.contains("sha256"),
        "{text}"
    );
    passes(&policy(&["check", &manifest]));
    let tampered = text
        .replacen("sha256: ", "sha256: 0", 1)
        .replacen("'0", "'", 1);
    let bad = folder.file("bad.yaml", &tampered);
    assert!(!policy(&["check", &bad]).is_success());
}

#[test]
fn a_recorded_run_gives_the_same_bytes_again_and_shows_what_another_policy_would_change() {
    let folder = Folder::new("replay");
    let records = folder.path("records");
    let ran = run([
        "demo",
        "--speed",
        "max",
        "--until",
        "settled",
        "-o",
        "json",
        "--policy-records",
        &records,
    ]);
    passes(&ran);
    let replayed = policy(&["replay", &records]);
    passes(&replayed);
    let text = replayed.stdout();
    assert!(
        text.contains(" calls gave the same bytes, 0 gave others"),
        "{text}"
    );
    assert!(!text.starts_with("0 calls"), "{text}");
    let rule = folder.file(
        "rule.yaml",
        "
apiVersion: v1
kind: ConfigMap
metadata: {name: dear, labels: {mortise.dev/policy: rank}}
data: {rule: 'capacity_type == \"spot\" ? price * 9.0 : price'}
",
    );
    let differs = policy(&["diff", "builtin:default-rank", &rule, "--records", &records]);
    assert_eq!(differs.exit_code(), Some(1), "{}", differs.stderr());
    assert!(
        differs.stdout().contains("USD/h more"),
        "{}",
        differs.stdout()
    );
    let same = policy(&[
        "diff",
        "builtin:default-budgets",
        "builtin:default-budgets",
        "--records",
        &records,
    ]);
    passes(&same);
    shows_tables_of(&records, &rule);
    makes_cases_of(&records, &rule, &folder);
}

/// Cases of recorded decisions hold for who answered, and not for another policy.
fn makes_cases_of(records: &str, rule: &str, folder: &Folder) {
    for kind in KINDS {
        let name = format!("default-{kind}");
        let file = folder.path(&format!("{kind}.yaml"));
        let head = ["cases", "--from", records, "--name", &name, "--last", "4"];
        let made = policy(&[&head[..], &["-O", &file]].concat());
        passes(&made);
        assert!(
            made.stdout().contains(" cases are in "),
            "{}",
            made.stdout()
        );
        let tested = policy(&["test", &format!("builtin:{name}"), "--cases", &file]);
        passes(&tested);
        assert!(!tested.stdout().contains("0 of 0"), "{}", tested.stdout());
        let again = policy(&[&head[..], &["-O", &file]].concat());
        assert!(again.stderr().contains("exists"), "{}", again.stderr());
    }
    let file = folder.path("rank.yaml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(" further offerings are left out"), "{text}");
    let other = policy(&["test", rule, "--cases", &file]);
    assert_eq!(other.exit_code(), Some(1), "{}", other.stdout());
    let several = policy(&["cases", "--from", records]);
    assert!(
        several.stderr().contains("--name NAME"),
        "{}",
        several.stderr()
    );
}

/// What a policy makes of the recorded decisions, as tables and as data.
fn shows_tables_of(records: &str, rule: &str) {
    let asked = |policy_name: &str, more: &[&str]| {
        let head = ["run", policy_name, "--records", records];
        policy(&[&head, more].concat())
    };
    let told = asked(rule, &["--last", "1", "--rows", "2"]);
    passes(&told);
    for words in [
        "NodePool default, ",
        "score     prior      list  offering",
        " more\n",
    ] {
        assert!(told.stdout().contains(words), "{}", told.stdout());
    }
    let rows = asked(rule, &["--last", "2", "-o", "json"]).summary();
    let rounds = rows.as_array().unwrap();
    assert_eq!(rounds.len(), 2, "{rows}");
    let all = rounds
        .iter()
        .flat_map(|it| it["claims"].as_array().unwrap());
    let offerings = all.flat_map(|it| it["offerings"].as_array().unwrap());
    let mut spot = 0;
    for it in offerings {
        let (score, price) = (it["score"].as_f64().unwrap(), it["price"].as_f64().unwrap());
        let is_spot = it["capacityType"] == "spot";
        spot += i32::from(is_spot);
        let expected = if is_spot { price * 9.0 } else { price };
        assert!((score - expected).abs() < 1e-9, "{it}");
    }
    assert!(spot > 0);
    let pools = asked("builtin:default-budgets", &["--last", "1"]);
    assert!(pools.stdout().contains("declared"), "{}", pools.stdout());
    let moves = asked("builtin:default-consolidation", &["--last", "99"]);
    assert!(
        moves.stdout().contains("USD/h (effective"),
        "{}",
        moves.stdout()
    );
    let none = asked(rule, &["--nodepool", "nobody"]);
    assert!(
        none.stderr().contains("nothing there is a question"),
        "{}",
        none.stderr()
    );
}

#[test]
fn figures_are_printed_beside_the_goals() {
    let measured = policy(&["bench"]);
    passes(&measured);
    for words in ["default", "rank", "6000", "(400)", "(4.7)"] {
        assert!(measured.stdout().contains(words), "{}", measured.stdout());
    }
}

/// Builds, tests and checks a new policy of each kind.
fn from_sources(lang: &str, environment: &[(&str, &str)]) {
    let folder = Folder::new(lang);
    for kind in KINDS {
        let path = new(&folder, &format!("my-{kind}"), lang, kind);
        let mut build = Command::new(tests::mortise());
        build.args(["policy", "build", &path]);
        build.envs(environment.iter().copied());
        let built = build.output().unwrap();
        assert!(
            built.status.success(),
            "{}{}",
            String::from_utf8_lossy(&built.stdout),
            String::from_utf8_lossy(&built.stderr)
        );
        passes(&policy(&["test", &path]));
        passes(&policy(&["check", &path]));
        passes(&policy(&["pack", &path]));
    }
}

#[test]
fn a_policy_in_go_is_built_and_answers() {
    if has_program("go", "version") {
        from_sources("go", &[]);
    }
}

#[test]
fn a_policy_in_c_is_built_and_answers() {
    let compilers = ["clang", "clang-19", "clang-16", "clang-14"];
    let Some(clang) = compilers.iter().find(|it| has_program(it, "--version")) else {
        return;
    };
    if has_program("wasm-ld", "--version") {
        from_sources("c", &[("CLANG", clang)]);
    }
}

#[test]
fn a_policy_in_javascript_is_built_and_answers() {
    if can_build_javascript() {
        from_sources("js", &[]);
    }
}

/// Names of all files below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(self::names(&path));
        } else {
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

#[test]
fn the_files_of_the_sdk_are_those_that_new_writes() {
    let folder = Folder::new("sdk");
    let path = new(&folder, "mine", "rust", "rank");
    let root = workspace_root();
    let mut written = names(&Path::new(&path).join("sdk/src"));
    written.retain(|name| !name.ends_with("-policy"));
    assert_eq!(written, names(&root.join("guest-sdk/src")));
    let wit = new(&folder, "other", "js", "rank");
    assert_eq!(
        names(&Path::new(&wit).join("wit")),
        names(&root.join("wit"))
    );
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(Path::new(&wit).join("package.json")).unwrap())
            .unwrap();
    assert_eq!(manifest["name"], "other");
}

/// A component with so many bytes beside it that nothing can compress.
fn padded(name: &str, bytes: usize) -> Vec<u8> {
    let component = workspace_root().join(format!("host/policy/builtin/{name}.wasm"));
    let mut component = fs::read(component).unwrap();
    let mut state = 1_u64;
    let noise = (0..bytes).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    });
    // A custom section, which nobody reads: its id, its length in base 128, its name, and what it holds.
    let content: Vec<u8> = [1, b'x'].into_iter().chain(noise).collect();
    component.push(0);
    let mut length = content.len();
    while length > 0x7f {
        component.push((length & 0x7f).to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    component.push(length.to_le_bytes()[0]);
    component.extend(content);
    component
}

#[test]
fn a_component_larger_than_a_config_map_is_packed_into_several_and_decides() {
    let folder = Folder::new("parts");
    let component = folder.path("large.wasm");
    fs::write(&component, padded("prefer-arm64", 2_000_000)).unwrap();
    let manifest = folder.path("large.yaml");
    let packed = policy(&["pack", &component, "-O", &manifest]);
    passes(&packed);
    let command = "kubectl apply --server-side -f";
    assert!(packed.stdout().contains(command), "{}", packed.stdout());
    let text = fs::read_to_string(&manifest).unwrap();
    assert_eq!(
        text.matches("kind: ConfigMap").count(),
        4,
        "three parts and the binding"
    );
    let (parts, binding) = text.rsplit_once("\n---\n").unwrap();
    for words in ["mortise.dev/parts", "sha256:", "mortise.dev/policy: rank"] {
        assert!(binding.contains(words), "{words}: {binding}");
    }
    passes(&policy(&["check", &manifest]));
    // Packed again it is the same.
    let again = folder.path("again.yaml");
    passes(&policy(&["pack", &manifest, "-O", &again]));
    let contents = |text: &str| text.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(
        contents(&fs::read_to_string(&again).unwrap()),
        contents(&text)
    );

    let pods = workspace_root().join("tests/scale-down/500-pods.yaml");
    let pods = pods.display().to_string();
    let demo = ["demo", "-o", "json", "--until", "settled", "--speed", "max"];
    let files = ["-f", &manifest, "-f", &pods];
    let ran = run(demo.into_iter().chain(files));
    let policies = ran.summary()["policies"].to_string();
    assert!(policies.contains("\"name\":\"large\""), "{policies}");

    let (_, without_first) = parts.split_once("\n---\n").unwrap();
    let gap = folder.file("gap.yaml", &format!("{without_first}\n---\n{binding}"));
    let checked = policy(&["check", &gap]);
    let words = "mortise.dev/parts: there is no ConfigMap large-";
    assert!(checked.stdout().contains(words), "{}", checked.stdout());
}

#[test]
fn every_annotation_has_a_flag_and_what_means_nothing_is_refused_before_it_is_applied() {
    let packed = policy(&[
        "pack",
        "builtin:default-budgets",
        "--mode",
        "canary:50%",
        "--nodepools",
        "web-*,!web-gpu",
        "--nodepool-selector",
        "team in (a,b)",
        "--order",
        "3",
        "--on-failure",
        "hold",
        "--authority",
        "replace",
    ]);
    passes(&packed);
    for line in [
        "mortise.dev/mode: canary:50%",
        "mortise.dev/nodepools: web-*,!web-gpu",
        "mortise.dev/nodepool-selector: team in (a,b)",
        "mortise.dev/on-failure: hold",
        "mortise.dev/authority: replace",
    ] {
        assert!(
            packed.stdout().contains(line),
            "{line}: {}",
            packed.stdout()
        );
    }
    for (arguments, words) in [
        (
            ["--on-failure", "hold"],
            "mortise.dev/on-failure: hold means nothing",
        ),
        (
            ["--authority", "replace"],
            "mortise.dev/authority: replace means nothing",
        ),
        (
            ["--nodepools", "Web"],
            "names of NodePools, separated by commas",
        ),
        (
            ["--nodepool-selector", "team in a"],
            "a label selector such as",
        ),
    ] {
        let packed = policy(&[&["pack", "builtin:default-rank"][..], &arguments].concat());
        assert!(packed.stderr().contains(words), "{}", packed.stderr());
    }
}

#[test]
fn settings_may_lie_in_another_config_map() {
    let folder = Folder::new("from");
    let manifest = |discount: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: prices}}\ndata: {{discount: '{discount}'}}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: it, labels: {{mortise.dev/policy: rank}}}}\n\
             data: {{builtin: prefer-arm64, config-from: prices}}\n"
        )
    };
    let good = folder.file("good.yaml", &manifest("0.3"));
    passes(&policy(&["check", &good]));
    let bad = folder.file("bad.yaml", &manifest("7"));
    let checked = policy(&["check", &bad]);
    assert!(
        checked.stdout().contains("/discount"),
        "{}",
        checked.stdout()
    );
    let packed = policy(&["pack", "builtin:prefer-arm64", "--config-from", "prices/a"]);
    passes(&packed);
    assert!(
        packed.stdout().contains("config-from: prices/a"),
        "{}",
        packed.stdout()
    );
    assert!(
        packed.stderr().contains("prices is not at hand"),
        "{}",
        packed.stderr()
    );
}
