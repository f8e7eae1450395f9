//! Every flag of the controller does something: the binary is started with each off its default, and what it says
//! of itself tells the difference.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::mortise;
use tests::served::Served;

/// Every flag, with a value that is not its default.
const CHANGED: [(&str, &str); 43] = [
    ("cloud", "simulated"),
    ("seed", "2"),
    ("boot", "3s"),
    ("termination", "2s"),
    ("cluster-name", "blue"),
    ("cluster-endpoint", "https://blue"),
    ("cluster-ca-bundle", "Q0E="),
    ("eks-control-plane", "true"),
    ("disable-dry-run", "true"),
    ("isolated-vpc", "true"),
    ("vm-memory-overhead-percent", "0.1"),
    ("reserved-enis", "1"),
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
    ("health-probe-port", "2"),
    ("disable-leader-election", "true"),
    ("leader-election-name", "blue"),
    ("leader-election-namespace", "blue"),
    ("kube-client-qps", "100"),
    ("kube-client-burst", "150"),
    ("disable-cluster-state-observability", "true"),
    ("log-level", "debug"),
    ("log-output-paths", "stdout,stderr"),
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
