//! The chart: what Helm makes of values, and what there is to watch it by. What is expected of which values is data:
//! `tests/chart/cases.yaml`. What a real API server says of it is beside this in `chart_on_a_cluster.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tests::kubernetes::helm;
use tests::{has_program, workspace_root};

const CHART: &str = "charts/mortise";
/// Helm on its own assumes the version that it was built with, and that nobody serves anything beside it.
const CLUSTER: [&str; 6] = [
    "--kube-version",
    "1.33.0",
    "--api-versions",
    "monitoring.coreos.com/v1",
    "--api-versions",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) case: String,
    #[serde(default = "mortise")]
    release: String,
    #[serde(default = "mortise")]
    pub(crate) namespace: String,
    #[serde(default)]
    values: Value,
    values_file: Option<PathBuf>,
    #[serde(default)]
    objects: BTreeSet<String>,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
    pub(crate) refused: Option<String>,
    /// The first minor version of Kubernetes that knows every field of it, where it is not the chart's own oldest.
    #[serde(default)]
    pub(crate) since: u32,
}

fn mortise() -> String {
    "mortise".to_owned()
}

impl Case {
    /// Every case of the file.
    pub(crate) fn all() -> Vec<Self> {
        let cases = fs::read_to_string(workspace_root().join("tests/chart/cases.yaml")).unwrap();
        serde_saphyr::from_str(&cases).unwrap()
    }

    /// Its values, as a document; JSON is YAML.
    fn values(&self) -> String {
        match (&self.values_file, &self.values) {
            (Some(file), _) => fs::read_to_string(workspace_root().join(file)).unwrap(),
            (None, Value::Null) => "{}".to_owned(),
            (None, values) => values.to_string(),
        }
    }

    /// What Helm makes of it, or says.
    pub(crate) fn render(&self) -> Result<String, String> {
        let mut arguments = vec!["template", &self.release, CHART, "--values", "-"];
        arguments.extend(["--namespace", &self.namespace]);
        arguments.extend(CLUSTER);
        helm(&workspace_root(), &arguments, &self.values())
    }

    fn lint(&self) -> Result<String, String> {
        let mut arguments = vec!["lint", "--strict", CHART, "--values", "-"];
        arguments.extend(&CLUSTER[..2]);
        helm(&workspace_root(), &arguments, &self.values())
    }

    /// What is wrong with what Helm makes of the values.
    fn faults(&self) -> Vec<String> {
        let told = match (self.render(), &self.refused) {
            (Ok(_), Some(refused)) => return vec![format!("is not refused: {refused}")],
            (Err(told), Some(refused)) if told.contains(refused) => return Vec::new(),
            (Err(told), _) => return vec![told],
            (Ok(told), None) => told,
        };
        let mut faults: Vec<String> = self.lint().err().into_iter().collect();
        let found = objects(&told).iter().map(name).collect();
        for missing in self.objects.difference(&found) {
            faults.push(format!("there is no {missing} in {found:?}"));
        }
        let lacking = self.has.iter().filter(|piece| !told.contains(*piece));
        faults.extend(lacking.map(|piece| format!("does not say {piece}")));
        let unwanted = self.lacks.iter().filter(|piece| told.contains(*piece));
        faults.extend(unwanted.map(|piece| format!("says {piece}")));
        faults
    }
}

/// The objects of a manifest.
pub(crate) fn objects(manifest: &str) -> Vec<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
    objects.into_iter().filter(Value::is_object).collect()
}

fn name(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{}/{}",
        word(&object["kind"]),
        word(&object["metadata"]["name"])
    )
}

#[test]
fn values_come_to_what_they_should() {
    if !has_program("helm", "version") {
        return;
    }
    let mut faults = Vec::new();
    for case in Case::all() {
        let found = case.faults().into_iter();
        faults.extend(found.map(|it| format!("{}: {it}", case.case)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// `values.yaml` is where people look for what there is to set.
#[test]
fn every_setting_of_the_schema_is_among_the_values() {
    let read = |file: &str| fs::read_to_string(workspace_root().join(CHART).join(file)).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let settings = schema["properties"]["settings"]["properties"].as_object();
    let settings: Vec<&String> = settings.into_iter().flatten().map(|it| it.0).collect();
    assert!(settings.len() > 20, "{settings:?}");
    let is_absent = |it: &&&String| values["settings"].get(it.as_str()).is_none();
    let absent: Vec<_> = settings.iter().filter(is_absent).collect();
    assert!(absent.is_empty(), "values.yaml does not name {absent:?}");
}

#[test]
fn the_chart_of_the_definitions_renders() {
    if !has_program("helm", "version") {
        return;
    }
    let arguments = ["template", "crds", "charts/mortise-crd"];
    let told = helm(&workspace_root(), &arguments, "").unwrap();
    assert_eq!(objects(&told).len(), 5, "{told}");
}

/// Names of metrics in the sources that register them; the encoder adds `_total` to counters.
pub(crate) fn registered() -> BTreeSet<String> {
    let files = [
        "host/controllers/src/shell/metrics.rs",
        "host/controllers/src/observability.rs",
        "host/aws/src/metrics.rs",
        "host/operator/src/policies/metrics.rs",
        "host/operator/src/process_metrics.rs",
    ];
    let sources = files.map(|file| fs::read_to_string(workspace_root().join(file)).unwrap());
    let sources = sources.concat();
    let texts = sources.split('"').skip(1).step_by(2);
    texts.map(str::to_owned).collect()
}

/// Names of metrics in expressions of Prometheus.
pub(crate) fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let prefixes = [
        "karpenter_",
        "mortise_",
        "controller_runtime_",
        "leader_election_",
        "process_",
    ];
    let metrics = words.filter(|word| prefixes.iter().any(|it| word.starts_with(it)));
    let endings = ["_total", "_bucket", "_count", "_sum"];
    let plain = metrics.map(|name| {
        let known = registered();
        let ending = endings.iter().find_map(|it| name.strip_suffix(it));
        ending
            .filter(|it| known.contains(*it))
            .unwrap_or(name)
            .to_owned()
    });
    plain.collect()
}

#[test]
fn alerts_and_dashboards_ask_for_metrics_that_there_are() {
    let known = registered();
    for file in ["alerts.yaml", "capacity.json", "performance.json"] {
        let path = workspace_root().join(CHART).join("monitoring").join(file);
        let asked = named(&fs::read_to_string(path).unwrap());
        assert!(asked.len() > 5, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
    }
}
