//! Every flag of the controller does something: the binary is started with each off its default, and what it says
//! of itself tells the difference. What it says is what it was told; that somebody obeys a row of the controllers' or
//! the cloud's settings no compiler sees, as their fields are public, so the sources are read for it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::served::Served;
use tests::{mortise, workspace_root};

/// Every flag, with a value that is not its default.
const CHANGED: [(&str, &str); 49] = [
    ("cloud", "simulated"),
    ("seed", "2"),
    ("zones", "us-east-1a"),
    ("boot", "3s"),
    ("termination", "2s"),
    ("cluster-name", "blue"),
    ("cluster-endpoint", "https://blue"),
    ("cluster-ca-bundle", "Q0E="),
    ("eks-control-plane", "true"),
    ("disable-dry-run", "true"),
    ("isolated-vpc", "true"),
    ("enable-zonal-shift", "true"),
    ("vm-memory-overhead-percent", "0.1"),
    ("reserved-enis", "1"),
    ("aws-feature-gates", "NodeClassCEL=true"),
    ("interruption-queue", "blue"),
    ("ami-refresh-interval", "2m"),
    ("subnet-refresh-interval", "3m"),
    ("batch-max-duration", "20s"),
    ("batch-idle-duration", "2s"),
    ("preference-policy", "ignore"),
    ("min-values-policy", "BestEffort"),
    ("ignore-dra-requests", "false"),
    (
        "scheduler-config",
        "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
    ),
    ("feature-gates", "StaticCapacity=true"),
    ("legacy-node-repair", "true"),
    ("cpu-requests", "3000"),
    ("packing", "karpenter"),
    ("nominate-planned-pods", "off"),
    ("plan-coming-pods", "true"),
    ("policy-max-premium", "50%"),
    ("metrics-port", "1"),
    ("metrics-secure", "true"),
    ("metrics-cert-dir", "blue"),
    ("health-probe-port", "2"),
    ("disable-leader-election", "true"),
    ("leader-election-name", "blue"),
    ("leader-election-namespace", "blue"),
    ("kube-client-qps", "100"),
    ("kube-client-burst", "150"),
    ("disable-cluster-state-observability", "true"),
    ("log-level", "debug"),
    ("log-output-paths", "stdout,stderr"),
    ("enable-profiling", "true"),
    ("system-namespace", "blue"),
    ("policy-namespace", "blue"),
    ("allow-policy-authority-replace", "true"),
    ("policy-records", "blue"),
    ("policy-records-size", "1Mi"),
];

/// Needed before there is anything to configure.
const GIVEN: [&str; 1] = ["kubeconfig"];

/// The configuration as the process logs it before it does anything.
fn configuration(served: &Served, flags: &[String]) -> Value {
    let mut process = Command::new(mortise())
        .args(["controller", "--kubeconfig"])
        .arg(served.kubeconfig())
        .args(flags)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "none")
        .env("AWS_SECRET_ACCESS_KEY", "none")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line.ok()?).ok());
    let mut told = lines.map(|mut line| {
        line["time"].take();
        line
    });
    let found = told.find(|line| line["message"] == "configuration");
    process.kill().unwrap();
    process.wait().unwrap();
    found.unwrap_or_else(|| panic!("{flags:?}: the process ended before it said its configuration"))
}

/// Names of the flags that `--help` shows.
fn shown() -> Vec<String> {
    let mut help = Command::new(mortise());
    let help = help.args(["controller", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let flags = help
        .lines()
        .filter_map(|line| line.strip_prefix("      --"));
    let names = flags.filter_map(|it| it.split([' ', '[']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_flag_changes_the_configuration_of_the_binary() {
    let served = Served::start(&["--no-controller"]);
    let with = |flag: &str, value: &str| {
        let given = [
            ("cloud", "aws"),
            ("cluster-name", "green"),
            ("cluster-endpoint", "https://green"),
        ];
        let given = given.into_iter().filter(|(name, _)| *name != flag);
        let flags = given.chain([(flag, value)]);
        let flags = flags.filter(|(name, _)| !name.is_empty());
        let flags: Vec<String> = flags
            .map(|(name, value)| format!("--{name}={value}"))
            .collect();
        configuration(&served, &flags)
    };
    let untouched = with("", "");
    let shown = shown();
    assert!(shown.len() > CHANGED.len(), "{shown:?}");
    for flag in shown.iter().filter(|it| !GIVEN.contains(&it.as_str())) {
        let row = CHANGED.iter().find(|(name, _)| name == flag);
        let (_, value) = row.unwrap_or_else(|| panic!("--{flag} has no row above"));
        assert_ne!(
            with(flag, value),
            untouched,
            "--{flag}={value} changes nothing"
        );
    }
}

/// Fields that are flags, in the source of a struct.
fn flag_fields(source: &str) -> Vec<String> {
    let source: Vec<&str> = source.split_whitespace().collect();
    let source = source.join(" ").replace("#[arg( long", "#[arg(long");
    let rows = source.split("#[arg(long").skip(1);
    let fields = rows.filter_map(|row| row.split(" pub ").nth(1)?.split(':').next());
    fields.map(str::to_owned).collect()
}

/// Code below a folder, without tests.
fn code_below(folder: &Path, code: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code_below(&path, code);
        } else if !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            code.push_str(text.split("#[cfg(test)]").next().unwrap());
        }
    }
}

/// Whether a field is read somewhere: what follows it must not make it another name, or a call.
fn is_read(field: &str, code: &str) -> bool {
    let name = format!(".{field}");
    let ends = code.match_indices(&name).map(|(at, _)| at + name.len());
    let mut ends = ends.filter_map(|end| code[end..].chars().next());
    ends.any(|it| !it.is_alphanumeric() && it != '_' && it != '(')
}

#[test]
fn every_flag_is_obeyed_by_somebody() {
    for (krate, file) in [("controllers", "settings.rs"), ("aws", "options.rs")] {
        let folder = workspace_root().join("host").join(krate).join("src");
        let fields = flag_fields(&fs::read_to_string(folder.join(file)).unwrap());
        assert!(fields.len() >= 10, "{file}: {fields:?}");
        let mut code = String::new();
        code_below(&folder, &mut code);
        // What is asked of the account before there is a provider.
        code_below(&workspace_root().join("host/operator/src"), &mut code);
        for field in fields {
            assert!(is_read(&field, &code), "{krate}: nobody reads {field}");
        }
    }
}
