//! What people's dashboards and alerts ask is answered: every expression is asked of two scrapes of a controller at
//! work, by a small reader of our own, and by promtool where it is there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tests::served::{Served, WEB};
use tests::{has_program, workspace_root};

use crate::kubectl::workload_free;

const EXPRESSIONS: &str = "tests/dashboards/expressions.yaml";

/// A pod on every node.
const DAEMON: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log, namespace: default}
spec:
  selector: {matchLabels: {app: log}}
  template:
    metadata: {labels: {app: log}}
    spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 50m, memory: 64Mi}}}]}
";

/// A series as it was scraped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: String,
    /// As they stand between the braces.
    labels: String,
}

/// What an expression takes series by.
#[derive(Debug)]
struct Selector {
    name: String,
    /// Name, operator, value.
    matchers: Vec<[String; 3]>,
}

/// Every expression, with the matchers filled in.
fn expressions() -> Vec<String> {
    let text = fs::read_to_string(workspace_root().join(EXPRESSIONS)).unwrap();
    let file: BTreeMap<String, Value> = serde_saphyr::from_str(&text).unwrap();
    let matchers = file["matchers"].as_object().unwrap();
    let lists = file.values().filter_map(Value::as_array).flatten();
    let filled = lists.map(|expression| {
        let expression = expression.as_str().unwrap().to_owned();
        matchers.iter().fold(expression, |told, (name, matchers)| {
            told.replace(name, matchers.as_str().unwrap())
        })
    });
    filled.collect()
}

/// The body of an answer of `/metrics`.
fn series_of(answer: &str) -> BTreeMap<Series, String> {
    let lines = answer.lines().filter(|it| !it.starts_with('#'));
    let series = lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let series = Series {
            name: name.chars().all(is_name).then(|| name.to_owned())?,
            labels: labels.strip_suffix('}')?.to_owned(),
        };
        value
            .parse::<f64>()
            .ok()
            .map(|_| (series, value.to_owned()))
    });
    series.collect()
}

impl Series {
    fn label(&self, name: &str) -> Option<&str> {
        let begins = format!("{name}=\"");
        let at = self.labels.starts_with(&begins).then_some(0);
        let at = at.or_else(|| Some(self.labels.find(&format!(",{begins}"))? + 1))?;
        self.labels[at + begins.len()..].split('"').next()
    }
}

/// Names of metrics in an expression, with the matchers behind them.
fn selectors(expression: &str) -> Vec<Selector> {
    let mut selectors = Vec::new();
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut rest = expression;
    while let Some(at) = rest.find(is_name) {
        rest = &rest[at..];
        let end = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        if let Some(matchers) = behind.strip_prefix('{') {
            let (matchers, behind) = matchers.split_once('}').unwrap();
            selectors.push(Selector {
                name: word.to_owned(),
                matchers: matchers.split(", ").map(matcher).collect(),
            });
            rest = behind;
        } else if word.matches('_').count() > 1 {
            selectors.push(Selector {
                name: word.to_owned(),
                matchers: Vec::new(),
            });
        }
    }
    selectors
}

fn matcher(text: &str) -> [String; 3] {
    let (name, value) = text.split_once('"').unwrap();
    let end = name.find(['=', '!']).unwrap();
    let (name, operator) = name.split_at(end);
    [name, operator, value.trim_end_matches('"')].map(str::to_owned)
}

impl Selector {
    /// Whether a series is taken: that it has the labels is asked even where any value will do.
    fn takes(&self, series: &Series) -> bool {
        series.name == self.name
            && self.matchers.iter().all(|[name, operator, value]| {
                let told = series.label(name);
                match operator.as_str() {
                    "=" => told == Some(value),
                    "!=" => told.is_some_and(|it| it != value),
                    "=~" => told.is_some() && value == ".*",
                    other => panic!("{other} is not read here"),
                }
            })
    }
}

/// What of an expression takes no series.
fn unanswered(expression: &str, series: &BTreeMap<Series, String>) -> Vec<String> {
    let selectors = selectors(expression).into_iter();
    // A cluster without a node of Spot has an answer too.
    let is_optional = |it: &Selector| {
        let is_spot = it.matchers.iter().any(|it| it[2] == "spot");
        is_spot && expression.contains("or vector(0)")
    };
    let dead = selectors.filter(|it| !is_optional(it) && !series.keys().any(|told| it.takes(told)));
    dead.map(|it| format!("{it:?} in {expression}")).collect()
}

/// Prometheus itself: each expression has an answer over both scrapes.
fn ask_promtool(scrapes: [&BTreeMap<Series, String>; 2], expressions: &[String]) {
    let folder = std::env::temp_dir().join(format!("mortise-dashboards-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut text =
        "evaluation_interval: 30s\ntests:\n- interval: 30s\n  input_series:\n".to_owned();
    let quoted = |it: &str| format!("'{}'", it.replace('\'', "''"));
    for (series, later) in scrapes[1] {
        let earlier = scrapes[0].get(series).unwrap_or(later);
        let Series { name, labels } = series;
        let told = quoted(&format!("{name}{{{labels}}}"));
        writeln!(text, "  - series: {told}\n    values: '{earlier} {later}'").unwrap();
    }
    text.push_str("  promql_expr_test:\n");
    for expression in expressions {
        let asked = quoted(&format!("count({expression}) > bool 0"));
        writeln!(text, "  - expr: {asked}\n    eval_time: 30s").unwrap();
        text.push_str("    exp_samples: [{labels: '{}', value: 1}]\n");
    }
    let file = folder.join("expressions.yaml");
    fs::write(&file, text).unwrap();
    let asked = Command::new("promtool")
        .args(["test", "rules"])
        .arg(&file)
        .output()
        .unwrap();
    let told = [asked.stdout, asked.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(asked.status.success(), "{}: {told}", file.display());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_expression_has_an_answer() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let served = Served::with_metrics(&["-f", empty.to_str().unwrap()]);
    let limits = r#"{"spec": {"limits": {"cpu": "100", "memory": "1000Gi"}, "disruption": {"consolidateAfter": "1s"}}}"#;
    served.kubectl(&["patch", "nodepool/default", "--type=merge", "-p", limits]);
    served.apply(DAEMON);
    served.apply(WEB);
    served.eventually("the pods run", || served.running("web-") == 6);
    served.kubectl(&["delete", "deployment/web"]);
    served.eventually("a node goes", || {
        served
            .metrics()
            .contains("karpenter_nodes_terminated_total{")
    });
    served.apply(WEB);
    served.eventually("they run again", || {
        served.running("web-") == 6 && served.metrics().contains("karpenter_nodes_allocatable{")
    });
    let earlier = series_of(&served.metrics());
    let expressions = expressions();
    assert!(expressions.len() >= 50, "{}", expressions.len());
    let missing = |series: &BTreeMap<Series, String>| -> Vec<String> {
        let unanswered = expressions.iter().flat_map(|it| unanswered(it, series));
        unanswered.collect()
    };
    let mut later = earlier.clone();
    // Some series come with the next round of their loop, and rates are asked of counts that went on.
    served.becomes_true(|| {
        later = series_of(&served.metrics());
        later != earlier && missing(&later).is_empty()
    });
    let missing = missing(&later);
    assert!(missing.is_empty(), "{missing:#?}");
    if has_program("promtool", "--version") {
        ask_promtool([&earlier, &later], &expressions);
    }
}

#[test]
fn selectors_are_read_with_their_matchers() {
    let asked = r#"sum by (a) (rate(karpenter_nodes_x{a=~".*", b="c"}[5m])) / workqueue_a_depth"#;
    let read = selectors(asked);
    let names: Vec<&str> = read.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["karpenter_nodes_x", "workqueue_a_depth"]);
    assert_eq!(read[0].matchers[1], ["b", "=", "c"]);
    let series = series_of("karpenter_nodes_x{ab=\"d\",b=\"c\",a=\"\"} 1\n");
    let series = series.into_keys().next().unwrap();
    assert!(read[0].takes(&series));
    assert_eq!(series.label("c"), None);
}
