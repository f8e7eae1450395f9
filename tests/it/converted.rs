//! What Karpenter 0.8 and 0.31 document, after `mortise convert`, in `mortise simulate`: each case of `tests/converted`
//! is an example of that documentation in our words, and what it says comes of it.
//!
//! A case is a document: `old` objects with its `workloads` (each a Deployment of that name) are converted, and what
//! comes out is simulated with the workloads and `objects`. Where it has `running` nodes, what disruption does to them
//! counts. Whatever a case does not mention is as usual: nothing is left without a place, no node is bought.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tests::{Finished, run, workspace_root};

/// A version whose images there are of all families.
const KUBERNETES: &str = "--kubernetes-version=1.32";
const CASES: [(&str, Template); 2] = [
    ("karpenter-0.8.yaml", Template::Inline),
    ("karpenter-0.31.yaml", Template::Object),
];
/// How many cases a version has at least.
const CASES_MIN: usize = 12;

/// How Provisioners of a version say what instances are like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Template {
    /// By their field `provider`.
    Inline,
    /// By an AWSNodeTemplate; one of the name `default` is there in any case.
    Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Case {
    case: String,
    /// Where it stands in the documentation, and what is said there.
    page: String,
    says: String,
    /// Why something else comes of it here.
    #[serde(default)]
    differs: String,
    old: Vec<Value>,
    #[serde(default)]
    workloads: Vec<Workload>,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    running: Vec<Running>,
    /// The exit code of `convert`.
    #[serde(default)]
    exit: i32,
    /// What stands in lines of the report.
    #[serde(default)]
    report: Vec<String>,
    /// What stands in objects, by kind and name.
    #[serde(default)]
    written: BTreeMap<String, Value>,
    /// What stands in the values of the chart.
    #[serde(default)]
    values: Value,
    #[serde(default)]
    nodes: Vec<Bought>,
    /// How many pods of which workload get no place.
    #[serde(default)]
    unplaced: BTreeMap<String, usize>,
    /// Nodes that go, and why.
    #[serde(default)]
    gone: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    name: String,
    replicas: u32,
    requests: Map<String, Value>,
    #[serde(default)]
    spec: Map<String, Value>,
}

/// A node that is there, with pods of half a CPU and one of a DaemonSet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Running {
    name: String,
    pool: String,
    r#type: String,
    cpu: String,
    memory: String,
    pods: usize,
    #[serde(default)]
    annotations: Map<String, Value>,
}

/// Nodes that are bought. Texts are names with `*` for anything, or several of them between `|`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Bought {
    /// At least one where it is not said.
    count: Option<usize>,
    pool: Option<String>,
    r#type: Option<String>,
    zone: Option<String>,
    arch: Option<String>,
    capacity_type: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// How many pods each has.
    pods: Option<usize>,
    /// A workload of which each has a pod.
    holds: Option<String>,
}

impl Workload {
    fn object(&self) -> Value {
        let labels = json!({"app": self.name});
        // Extended resources, as those of accelerators, are requested by limits.
        let is_extended = |name: &String| name.contains('/');
        let limits: Map<String, Value> = self.requests.clone().into_iter().collect();
        let limits: Map<_, _> = limits
            .into_iter()
            .filter(|(name, _)| is_extended(name))
            .collect();
        let resources = json!({"requests": self.requests, "limits": limits});
        let container =
            json!({"name": self.name, "image": "example.com/app", "resources": resources});
        let mut spec = self.spec.clone();
        spec.insert("containers".to_owned(), json!([container]));
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "replicas": self.replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        })
    }
}

impl Running {
    fn pod(&self, number: usize, owner: &str) -> Value {
        let requests = json!({"cpu": "500m", "memory": "1Gi"});
        let name = format!("{}-{number}", self.name);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "annotations": self.annotations,
                "creationTimestamp": "2020-01-01T00:00:00Z",
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": owner, "name": "app", "uid": "app", "controller": true,
                }],
            },
            "spec": {
                "nodeName": self.name,
                "containers": [{"name": "app", "image": "example.com/app", "resources": {"requests": requests}}],
            },
            "status": {"phase": "Running"},
        })
    }

    fn objects(&self) -> Vec<Value> {
        let labels = json!({
            "karpenter.sh/nodepool": self.pool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
            "node.kubernetes.io/instance-type": self.r#type, "karpenter.sh/capacity-type": "on-demand",
            "topology.kubernetes.io/zone": "us-east-1a", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self.name,
        });
        let amounts = json!({"cpu": self.cpu, "memory": self.memory, "pods": "29"});
        let id = format!("aws:///us-east-1a/{}", self.name);
        let then = "2020-01-01T00:00:00Z";
        let conditions = ["Launched", "Registered", "Initialized", "Consolidatable"].map(|it| {
            json!({"type": it, "status": "True", "reason": it, "message": "", "lastTransitionTime": then})
        });
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "creationTimestamp": then},
            "spec": {"providerID": id},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": then}],
            },
        });
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": format!("{}-claim", self.name), "labels": labels, "creationTimestamp": then},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
            },
            "status": {
                "nodeName": self.name, "providerID": id, "capacity": amounts, "allocatable": amounts,
                "conditions": conditions,
            },
        });
        let pods = (0..self.pods).map(|number| self.pod(number, "ReplicaSet"));
        let daemon = self.pod(self.pods, "DaemonSet");
        [node, claim, daemon].into_iter().chain(pods).collect()
    }
}

/// Whether a name is one of those of a pattern.
fn is_like(name: &str, pattern: &str) -> bool {
    let is_one = |pattern: &str| match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    };
    pattern.split('|').any(is_one)
}

/// The one value that a claim is to have of a label.
fn label<'a>(claim: &'a Value, key: &str) -> Option<&'a str> {
    let requirements = claim["requirements"].as_array()?;
    let requirement = requirements.iter().find(|it| it["key"] == key)?;
    match requirement["values"].as_array()?.as_slice() {
        [value] => value.as_str(),
        _ => None,
    }
}

impl Bought {
    fn fits(&self, claim: &Value) -> bool {
        let pods = claim["pods"].as_array().unwrap();
        let holds = |workload: &String| pods.iter().any(|it| workload_of(it) == *workload);
        let texts = [
            (&self.pool, claim["nodePool"].as_str()),
            (&self.r#type, claim["instanceType"].as_str()),
            (&self.zone, claim["zone"].as_str()),
            (&self.capacity_type, claim["capacityType"].as_str()),
            (&self.arch, label(claim, "kubernetes.io/arch")),
        ];
        let is_as_told = |(told, is): &(&Option<String>, Option<&str>)| {
            told.as_ref()
                .is_none_or(|told| is.is_some_and(|is| is_like(is, told)))
        };
        let has_label = |(key, told): (&String, &String)| label(claim, key) == Some(told);
        texts.iter().all(is_as_told)
            && self.labels.iter().all(has_label)
            && self.pods.is_none_or(|it| it == pods.len())
            && self.holds.as_ref().is_none_or(holds)
    }
}

/// `web` of `default/web-5d9c7b-x2x4z`.
fn workload_of(pod: &Value) -> String {
    let name = pod.as_str().unwrap_or_default();
    let name = name.split('/').next_back().unwrap_or_default();
    let parts: Vec<&str> = name.split('-').collect();
    parts[..parts.len().saturating_sub(2)].join("-")
}

/// Whether everything that is told is so; fields that are not told may be there.
fn has(is: &Value, told: &Value) -> bool {
    match told {
        Value::Object(fields) => fields.iter().all(|(key, told)| has(&is[key], told)),
        told => is == told,
    }
}

/// A list of objects as one document.
fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// A case at work: its folder, and what is wrong so far.
struct Trial<'a> {
    case: &'a Case,
    folder: PathBuf,
    faults: Vec<String>,
}

impl Trial<'_> {
    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn check(&mut self, is_so: bool, fault: impl FnOnce() -> String) {
        if !is_so {
            self.faults.push(fault());
        }
    }

    /// Converts what is old, and tells what came of it apart.
    fn convert(&mut self, template: Template) {
        let is_default =
            |it: &Value| it["kind"] == "AWSNodeTemplate" && it["metadata"]["name"] == "default";
        let mut old = self.case.old.clone();
        if template == Template::Object && !old.iter().any(is_default) {
            old.push(json!({
                "apiVersion": "karpenter.k8s.aws/v1alpha1", "kind": "AWSNodeTemplate", "metadata": {"name": "default"},
                "spec": {
                    "subnetSelector": {"karpenter.sh/discovery": "${CLUSTER_NAME}"},
                    "securityGroupSelector": {"karpenter.sh/discovery": "${CLUSTER_NAME}"},
                },
            }));
        }
        old.extend(self.case.workloads.iter().map(Workload::object));
        fs::write(self.folder.join("old.json"), list(&old)).unwrap();
        let (old, values) = (self.file("old.json"), self.file("values.yaml"));
        let profile = "--instance-profile=nodes";
        let converted = run([
            "convert",
            "-f",
            &old,
            "--cluster-name=simulated",
            profile,
            "--values",
            &values,
        ]);
        let report = converted.stderr();
        let exit = self.case.exit;
        self.check(converted.exit_code() == Some(exit), || {
            format!("convert does not end with {exit}: {report}")
        });
        for told in &self.case.report {
            self.check(report.contains(told), || {
                format!("not in the report: {told}\n{report}")
            });
        }
        fs::write(self.folder.join("new.yaml"), converted.stdout()).unwrap();
        self.compare(&converted.stdout());
    }

    /// Holds objects and values against what the case says of them.
    fn compare(&mut self, objects: &str) {
        let objects: Vec<Value> = serde_saphyr::from_multiple(objects).unwrap();
        for (name, told) in &self.case.written {
            let (kind, name) = name.split_once('/').unwrap();
            let mut found = objects
                .iter()
                .filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
            let is_so = found.next().is_some_and(|it| has(it, told));
            self.check(is_so, || {
                format!("{kind}/{name} is not {told} among {objects:#?}")
            });
        }
        let values = fs::read_to_string(self.folder.join("values.yaml")).unwrap_or_default();
        let is: Value = serde_saphyr::from_str(&values).unwrap_or_default();
        let told = &self.case.values;
        self.check(told.is_null() || has(&is, told), || {
            format!("the values are {is}, not {told}")
        });
    }

    /// What `simulate` says of what came out with these objects beside it.
    fn simulate(&self, more: &[Value], arguments: &[&str]) -> Finished {
        let (new, beside) = (self.file("new.yaml"), self.file("beside.json"));
        fs::write(&beside, list(more)).unwrap();
        let fixed = [
            "simulate", "-o", "json", KUBERNETES, "-f", &new, "-f", &beside,
        ];
        run(fixed.iter().chain(arguments))
    }

    /// Buys nodes for the workloads.
    fn provision(&mut self) {
        let workloads = self.case.workloads.iter().map(Workload::object);
        let objects: Vec<Value> = self.case.objects.iter().cloned().chain(workloads).collect();
        let answer: Value = self.simulate(&objects, &[]).summary();
        let claims = answer["claims"].as_array().unwrap().clone();
        for claim in &claims {
            let is_told = self.case.nodes.iter().any(|it| it.fits(claim));
            self.check(is_told, || format!("nobody told of {claim}"));
        }
        for (index, told) in self.case.nodes.iter().enumerate() {
            let found = claims.iter().filter(|it| told.fits(it)).count();
            let is_so = told.count.map_or(found > 0, |it| it == found);
            self.check(is_so, || {
                format!("{found} nodes are like number {index}: {claims:?}")
            });
        }
        let mut unplaced = BTreeMap::new();
        let without = answer["podErrors"].as_object().unwrap().keys();
        for pod in without {
            *unplaced.entry(workload_of(&json!(pod))).or_insert(0) += 1;
        }
        let told = &self.case.unplaced;
        self.check(unplaced == *told, || {
            format!(
                "without a place are {unplaced:?}: {} {}",
                answer["podErrors"], answer["poolErrors"]
            )
        });
    }

    /// Disrupts the nodes that run.
    fn disrupt(&mut self) {
        let objects: Vec<Value> = self
            .case
            .running
            .iter()
            .flat_map(Running::objects)
            .collect();
        let answer: Value = self
            .simulate(&objects, &["--disruption", "--until-stable"])
            .summary();
        let mut gone = BTreeMap::new();
        for command in answer["commands"].as_array().unwrap() {
            let removed = command["remove"].as_array().unwrap().iter();
            // What came on the way may go again.
            let removed =
                removed.filter(|it| self.case.running.iter().any(|node| node.name == **it));
            let reason = command["reason"].as_str().unwrap();
            gone.extend(removed.map(|it| (it.as_str().unwrap().to_owned(), reason.to_owned())));
        }
        let told = &self.case.gone;
        self.check(gone == *told, || format!("gone are {gone:?}: {answer:#}"));
    }
}

/// What is wrong with a case.
fn faults_of(case: &Case, template: Template, folder: &Path) -> Vec<String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    let mut trial = Trial {
        case,
        folder: folder.to_owned(),
        faults: Vec::new(),
    };
    trial.convert(template);
    if !case.workloads.is_empty() {
        trial.provision();
    }
    if !case.running.is_empty() {
        trial.disrupt();
    }
    fs::remove_dir_all(folder).unwrap();
    let place = format!("{} ({})", case.case, case.page);
    let faults = trial.faults.into_iter();
    faults.map(|it| format!("{place}: {it}")).collect()
}

#[test]
fn what_was_documented_comes_of_what_is_converted() {
    let mut faults = Vec::new();
    for (file, template) in CASES {
        let text = fs::read_to_string(workspace_root().join("tests/converted").join(file)).unwrap();
        let cases: Vec<Case> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|it| panic!("{file}: {it}"));
        assert!(cases.len() >= CASES_MIN, "{file}: {} cases", cases.len());
        let folder = std::env::temp_dir().join(format!("mortise-converted-{}", std::process::id()));
        for case in &cases {
            assert!(!case.says.is_empty(), "{file}: {}", case.case);
            let found = faults_of(case, template, &folder).into_iter();
            let told = if case.differs.is_empty() {
                &case.says
            } else {
                &case.differs
            };
            faults.extend(found.map(|it| format!("{file}: {it}\n(told: {told})")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn names_are_told_by_patterns() {
    let cases = [
        ("m5.large", "c*|m*", true),
        ("m5.large", "*.xlarge", false),
        ("us-east-1a", "us-east-1b", false),
    ];
    for (name, pattern, expected) in cases {
        assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
    }
}
