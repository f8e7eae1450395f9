//! What the flags make elsewhere: the tables of docs/settings.md, the environment that the chart gives the process, and
//! its schema of `settings`. `just tables` writes them by the test that is here, which fails where they are stale.
//!
//! A flag gets a value of the chart by its name. What cannot be told from the flag stands in [`BY_HAND`], with a schema
//! that is written by hand, and in [`NOT_IN_THE_CHART`].

use std::any::TypeId;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, Command};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cli::ControllerArguments;
use crate::options::{CloudOptions, PolicyOptions, ProcessOptions};

/// A variable that no value of the same name sets: the value, and what the template makes of it.
const BY_HAND: [(&str, &str, &str); 15] = [
    (
        "AWS_FEATURE_GATES",
        "settings.awsFeatureGates",
        r#"(include "mortise.featureGates" $settings.awsFeatureGates)"#,
    ),
    (
        "CLUSTER_ENDPOINT",
        "settings.clusterEndpoint",
        "$settings.clusterEndpoint",
    ),
    (
        "CLUSTER_NAME",
        "settings.clusterName",
        r#"(required "settings.clusterName is required: set it to the name of the EKS cluster" $settings.clusterName)"#,
    ),
    (
        "FEATURE_GATES",
        "settings.featureGates",
        r#"(include "mortise.featureGates" $settings.featureGates)"#,
    ),
    (
        "HEALTH_PROBE_PORT",
        "controller.healthProbe.port",
        ".Values.controller.healthProbe.port",
    ),
    ("LOG_LEVEL", "logLevel", ".Values.logLevel"),
    (
        "LOG_OUTPUT_PATHS",
        "logOutputPaths",
        r#"(join "," .Values.logOutputPaths)"#,
    ),
    (
        "MORTISE_METRICS_CERT_DIR",
        "controller.metrics.certSecret",
        r#"(ternary "/var/run/mortise/metrics-certificate" "" (not (empty .Values.controller.metrics.certSecret)))"#,
    ),
    (
        "MORTISE_METRICS_SECURE",
        "controller.metrics.secure",
        ".Values.controller.metrics.secure",
    ),
    (
        "METRICS_PORT",
        "controller.metrics.port",
        ".Values.controller.metrics.port",
    ),
    (
        "MORTISE_NOMINATE_PLANNED_PODS",
        "settings.nominatePlannedPods",
        r#"(include "mortise.nominations" .)"#,
    ),
    (
        "MORTISE_POLICY_NAMESPACE",
        "settings.policyNamespace",
        r#"(include "mortise.policyNamespace" .)"#,
    ),
    (
        "MORTISE_POLICY_RECORDS",
        "policyRecords",
        r#"(ternary "/var/lib/mortise/policy-records" "" $isRecorded)"#,
    ),
    (
        "MORTISE_POLICY_RECORDS_SIZE",
        "policyRecords.size",
        r#"(ternary .Values.policyRecords.size "" $isRecorded)"#,
    ),
    (
        "SCHEDULER_CONFIG",
        "settings.schedulerConfig",
        r#"(empty $settings.schedulerConfig | ternary "" (toJson $settings.schedulerConfig))"#,
    ),
];

/// Variables of Karpenter's chart that change nothing, with what the template makes of them.
const ACCEPTED: [(&str, &str); 2] = [
    ("KARPENTER_SERVICE", r#"(include "mortise.fullname" .)"#),
    (
        "LOG_ERROR_OUTPUT_PATHS",
        r#"(join "," .Values.logErrorOutputPaths)"#,
    ),
];

/// Variables that no value sets; `controller.env` can.
const NOT_IN_THE_CHART: [&str; 9] = [
    "CPU_REQUESTS",
    "DISABLE_LEADER_ELECTION",
    "KUBE_CLIENT_BURST",
    "KUBE_CLIENT_QPS",
    "LEADER_ELECTION_NAME",
    "LEADER_ELECTION_NAMESPACE",
    "MORTISE_PACKING",
    "MORTISE_POLICY_MAX_PREMIUM",
    "SYSTEM_NAMESPACE",
];

/// Words of flags that values spell otherwise than with one capital.
const SPELLED: [(&str, &str); 4] = [
    ("ca", "CA"),
    ("dra", "DRA"),
    ("enis", "ENIs"),
    ("vpc", "VPC"),
];

const DURATION: &str = r"^(\{\{.*\}\}|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)?$";

/// Where derived settings begin in the schema, and the first that is not.
const SCHEMA: [&str; 2] = [
    "\n    \"settings\": {\n      \"type\": \"object\",\n      \"additionalProperties\": false,\n      \"properties\": {\n",
    "        \"clusterName\": {",
];

fn flags<A: Args>() -> Vec<Arg> {
    let command = A::augment_args(Command::new("mortise"));
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    shown.cloned().collect()
}

/// Flags by the heading under which the page has them.
fn sections() -> [(&'static str, Vec<Arg>); 5] {
    let mut own = flags::<ControllerArguments>();
    own.retain(|it| it.get_env().is_none());
    [
        ("## The cluster and AWS", flags::<CloudOptions>()),
        ("## Decisions", flags::<controllers::Settings>()),
        ("## The process", flags::<ProcessOptions>()),
        ("## Policies", flags::<PolicyOptions>()),
        ("## Where it runs", own),
    ]
}

fn variable(flag: &Arg) -> &str {
    flag.get_env()
        .and_then(|it| it.to_str())
        .unwrap_or_default()
}

/// Name of the value below `settings`: that of the flag.
fn setting(flag: &Arg) -> String {
    let words = flag.get_long().unwrap().split('-').enumerate();
    let spelled = words.map(|(at, word)| {
        let own = SPELLED.iter().find(|(it, _)| *it == word && at > 0);
        match (own, at) {
            (Some((_, spelled)), _) => (*spelled).to_owned(),
            (None, 0) => word.to_owned(),
            (None, _) => word[..1].to_uppercase() + &word[1..],
        }
    });
    spelled.collect()
}

fn by_hand(flag: &Arg) -> Option<(&'static str, &'static str)> {
    let found = BY_HAND.iter().find(|(it, ..)| *it == variable(flag));
    found.map(|(_, value, expression)| (*value, *expression))
}

fn is_in_the_chart(flag: &Arg) -> bool {
    !variable(flag).is_empty() && !NOT_IN_THE_CHART.contains(&variable(flag))
}

/// Flags whose value of the chart is told by their name.
fn derived() -> impl Iterator<Item = Arg> {
    let flags = sections().into_iter().flat_map(|(_, flags)| flags);
    flags.filter(|it| is_in_the_chart(it) && by_hand(it).is_none())
}

fn words(flag: &Arg) -> Vec<String> {
    if is_a::<bool>(flag) {
        return Vec::new();
    }
    let values = flag.get_possible_values().into_iter();
    values.map(|it| it.get_name().to_owned()).collect()
}

fn is_a<T: 'static>(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == TypeId::of::<T>()
}

fn help(flag: &Arg) -> String {
    flag.get_help().unwrap().to_string()
}

fn row(flag: &Arg) -> String {
    let quoted = |text: &str| match text {
        "" => String::new(),
        text => format!("`{text}` "),
    };
    let default = match flag.get_default_values() {
        [default] if !flag.is_hide_default_value_set() => default.to_str().unwrap(),
        _ => "",
    };
    let value = match by_hand(flag) {
        _ if !is_in_the_chart(flag) => String::new(),
        Some((value, _)) => value.to_owned(),
        None => format!("settings.{}", setting(flag)),
    };
    let words: Vec<String> = words(flag).iter().map(|it| format!("`{it}`")).collect();
    let words = match words.as_slice() {
        [] => String::new(),
        words => format!("{}: ", words.join(", ")),
    };
    format!(
        "| `--{}` | {}| {}| {}| {words}{} |\n",
        flag.get_long().unwrap(),
        quoted(variable(flag)),
        quoted(default),
        quoted(&value),
        help(flag).replace('|', "\\|"),
    )
}

/// The page with its tables made anew.
fn page(text: &str) -> String {
    let mut page = text.to_owned();
    for (heading, flags) in sections() {
        let section = page.find(&format!("\n{heading}\n")).unwrap();
        let start = section + page[section..].find("\n| flag ").unwrap() + 1;
        let end = start + page[start..].find("\n\n").unwrap() + 1;
        let rows: String = flags.iter().map(row).collect();
        let head = "| flag | variable | default | value of the chart | |\n|---|---|---|---|---|\n";
        page.replace_range(start..end, &format!("{head}{rows}"));
    }
    page
}

/// The template of the environment.
fn template() -> String {
    let own = derived().map(|it| {
        (
            variable(&it).to_owned(),
            format!("$settings.{}", setting(&it)),
        )
    });
    let by_hand = BY_HAND.map(|(variable, _, expression)| (variable, expression));
    let written = by_hand.into_iter().chain(ACCEPTED);
    let written =
        written.map(|(variable, expression)| (variable.to_owned(), expression.to_owned()));
    let mut rows: Vec<(String, String)> = own.chain(written).collect();
    rows.sort();
    let mut text = r#"{{/* Environment variables from the settings; what is empty is left out. Written by `just tables`. */}}
{{- define "mortise.settingsEnv" -}}
{{- $settings := .Values.settings }}
{{- $isRecorded := eq "on" (include "mortise.isOn" .Values.policyRecords.enabled) }}
{{- $env := dict
"#
    .to_owned();
    for (variable, expression) in rows {
        writeln!(text, "  \"{variable}\" {expression}").unwrap();
    }
    text + r#"}}
{{- range $name, $value := $env }}
{{- if not (has (toString $value) (list "" "<nil>")) }}
- name: {{ $name }}
  value: {{ tpl (toString $value) $ | quote }}
{{- end }}
{{- end }}
{{- end }}
"#
}

/// What a value may be. Those of Karpenter's chart may be templates, and empty.
fn kind(flag: &Arg) -> Value {
    let words = words(flag);
    if !words.is_empty() {
        let words = words.into_iter().map(Value::from);
        let words: Vec<Value> = words.chain([json!(""), Value::Null]).collect();
        json!({"enum": words})
    } else if is_a::<bool>(flag) && variable(flag).starts_with("MORTISE_") {
        json!({"type": ["boolean", "string"], "enum": [true, false, "true", "false"]})
    } else if is_a::<bool>(flag) {
        json!({"type": ["boolean", "string", "null"]})
    } else if is_a::<Duration>(flag) || is_a::<SignedDuration>(flag) {
        json!({"type": ["string", "null"], "pattern": DURATION})
    } else if is_a::<String>(flag) {
        json!({"type": ["string", "null"]})
    } else {
        json!({"type": ["string", "number", "null"]})
    }
}

/// The schema with the derived settings made anew.
fn schema(text: &str) -> String {
    let start = text.find(SCHEMA[0]).unwrap() + SCHEMA[0].len();
    let end = start + text[start..].find(SCHEMA[1]).unwrap();
    let mut made = String::new();
    for flag in derived() {
        let mut kind = kind(&flag);
        kind["description"] = Value::from(help(&flag) + ".");
        let node = serde_json::to_string_pretty(&kind).unwrap();
        let node = node.replace('\n', "\n        ");
        writeln!(made, "        \"{}\": {node},", setting(&flag)).unwrap();
    }
    [&text[..start], &made, &text[end..]].concat()
}

type Make = fn(&str) -> String;

/// Files with what is made of the flags, below the root of the project.
const MADE: [(&str, Make); 3] = [
    ("docs/settings.md", page),
    ("charts/mortise/templates/_settings.tpl", |_| template()),
    ("charts/mortise/values.schema.json", schema),
];

/// Set, the files are written instead of compared.
const WRITES: &str = "MORTISE_WRITES_TABLES";

fn path(file: &str) -> PathBuf {
    tests::workspace_root().join(file)
}

#[test]
fn what_is_made_of_the_flags_is_fresh() {
    for (file, make) in MADE {
        let text = fs::read_to_string(path(file)).unwrap_or_default();
        let made = make(&text);
        if std::env::var_os(WRITES).is_some() {
            fs::write(path(file), &made).unwrap();
        } else {
            assert_eq!(text, made, "{file} is stale: `just tables` writes it");
        }
    }
}

#[test]
fn values_are_spelled_as_in_the_chart_of_karpenter() {
    let names: Vec<String> = derived().map(|it| setting(&it)).collect();
    for name in [
        "clusterCABundle",
        "isolatedVPC",
        "reservedENIs",
        "ignoreDRARequests",
        "batchMaxDuration",
    ] {
        assert!(names.iter().any(|it| it == name), "{name}: {names:?}");
    }
}

#[test]
fn what_stands_apart_is_a_flag() {
    let flags: Vec<Arg> = sections()
        .into_iter()
        .flat_map(|(_, flags)| flags)
        .collect();
    let apart = BY_HAND.iter().map(|it| it.0).chain(NOT_IN_THE_CHART);
    for name in apart {
        assert!(flags.iter().any(|it| variable(it) == name), "{name}");
    }
}
