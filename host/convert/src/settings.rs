//! ConfigMap `karpenter-global-settings`: what of it are flags, variables and values of the chart, and what goes to
//! each class.
//!
//! Names only: nothing is checked but what the conversion itself needs.

use apis::flag_text::parse_switch;
use serde_json::{Map, Value, json};

use crate::Converter;
use crate::fields::Fields;
use crate::report::{ConversionReport, Fate, ObjectOrigin};

/// Settings of the ConfigMap.
#[derive(Debug, Default)]
pub(crate) struct GlobalSettings {
    pub(crate) cluster_name: Option<String>,
    pub(crate) instance_profile: Option<String>,
    tags: Map<String, Value>,
    /// Without ENI-limited pod density every node took 110 pods.
    pods_of_every_node: Option<i64>,
    values: Map<String, Value>,
}

/// Key, variable, value of the chart.
const VALUES: [(&str, &str, &str); 9] = [
    ("aws.clusterName", "CLUSTER_NAME", "clusterName"),
    ("aws.clusterEndpoint", "CLUSTER_ENDPOINT", "clusterEndpoint"),
    (
        "aws.clusterCABundle",
        "CLUSTER_CA_BUNDLE",
        "clusterCABundle",
    ),
    (
        "aws.interruptionQueueName",
        "INTERRUPTION_QUEUE",
        "interruptionQueue",
    ),
    ("aws.isolatedVPC", "ISOLATED_VPC", "isolatedVPC"),
    (
        "aws.vmMemoryOverheadPercent",
        "VM_MEMORY_OVERHEAD_PERCENT",
        "vmMemoryOverheadPercent",
    ),
    ("aws.reservedENIs", "RESERVED_ENIS", "reservedENIs"),
    ("batchMaxDuration", "BATCH_MAX_DURATION", "batchMaxDuration"),
    (
        "batchIdleDuration",
        "BATCH_IDLE_DURATION",
        "batchIdleDuration",
    ),
];

/// Keys without a successor, and why.
const GONE: [(&str, Fate, &str); 4] = [
    ("aws.enablePodENI", Fate::Dropped, "always on"),
    (
        "aws.nodeNameConvention",
        Fate::Dropped,
        "nodes have the name that EC2 gives them",
    ),
    (
        "aws.assumeRoleARN",
        Fate::Lost,
        "no role is assumed; give the ServiceAccount that role (Pod Identity, IRSA)",
    ),
    (
        "aws.assumeRoleDuration",
        Fate::Dropped,
        "no role is assumed",
    ),
];

pub(crate) fn read(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let mut data = Fields::new(origin, "data", object["data"].clone());
    for (key, variable, value_name) in VALUES {
        let Some(text) = data.text(key).filter(|text| !text.is_empty()) else {
            continue;
        };
        let value = match value_name {
            "isolatedVPC" => switch(work, &data, key, &text).map(Value::from),
            "vmMemoryOverheadPercent" => text
                .parse::<f64>()
                .map_or_else(|_| Some(json!(text)), |it| Some(it.into())),
            _ => Some(json!(text)),
        };
        let Some(value) = value else {
            continue;
        };
        let what = format!("{variable}={text}, or settings.{value_name} of the chart");
        work.report
            .push(origin.note(Fate::Changed, &data.path(key), what));
        if key == "aws.clusterName" {
            work.settings.cluster_name = Some(text);
        }
        work.settings.values.insert(value_name.to_owned(), value);
    }
    if let Some(profile) = data
        .text("aws.defaultInstanceProfile")
        .filter(|it| !it.is_empty())
    {
        let what = "spec.instanceProfile of each class that has none";
        work.report
            .push(origin.note(Fate::Changed, "data.aws.defaultInstanceProfile", what));
        work.settings.instance_profile = Some(profile);
    }
    pod_density(work, &mut data);
    tags(work, &mut data, object);
    drift(work, &mut data);
    for (key, fate, why) in GONE {
        if data.text(key).is_some_and(|text| !text.is_empty()) {
            work.report.push(origin.note(fate, &data.path(key), why));
        }
    }
    data.finish(&mut work.report);
}

/// What a switch says; one that says nothing is told of. Karpenter read them as Go does.
fn switch(work: &mut Converter<'_>, data: &Fields<'_>, key: &str, text: &str) -> Option<bool> {
    let is_on = parse_switch(text);
    if is_on.is_none() {
        let what = format!("`{text}` is neither true nor false, and so not taken");
        let way_out = "convert again with what was meant";
        work.report.push(
            data.origin
                .note(Fate::ToDo, &data.path(key), what)
                .or(way_out),
        );
    }
    is_on
}

fn pod_density(work: &mut Converter<'_>, data: &mut Fields<'_>) {
    let key = "aws.enableENILimitedPodDensity";
    let text = data.text(key).filter(|it| !it.is_empty());
    match text.and_then(|it| switch(work, data, key, &it)) {
        Some(false) => {
            let what = "spec.kubelet.maxPods: 110 of each class that does not say it";
            work.report
                .push(data.origin.note(Fate::Changed, &data.path(key), what));
            work.settings.pods_of_every_node = Some(110);
        }
        Some(true) => work.report.push(data.origin.note(
            Fate::Dropped,
            &data.path(key),
            "so by default",
        )),
        None => {}
    }
}

fn tags(work: &mut Converter<'_>, data: &mut Fields<'_>, object: &Value) {
    let keys = object["data"].as_object().into_iter().flatten();
    for (key, _) in keys {
        let tags = match key.strip_prefix("aws.tags") {
            Some("") => data.json_map(key),
            Some(name) => {
                let name = name.trim_start_matches('.').to_owned();
                let tag = data.text(key).map(|value| (name, Value::from(value)));
                tag.into_iter().collect()
            }
            None => continue,
        };
        if !tags.is_empty() {
            let what = "spec.tags of each class that has no tag of that key";
            work.report
                .push(data.origin.note(Fate::Changed, &data.path(key), what));
            work.settings.tags.extend(tags);
        }
    }
}

fn drift(work: &mut Converter<'_>, data: &mut Fields<'_>) {
    let key = "featureGates.driftEnabled";
    let text = data.text(key).filter(|it| !it.is_empty());
    match text.and_then(|it| switch(work, data, key, &it)) {
        Some(false) => {
            let what = "nodes that no longer are as their pool and class say are always replaced";
            let way_out = "give pools a budget {nodes: \"0\", reasons: [Drifted]} for as long as they are to stay";
            work.report.push(
                data.origin
                    .note(Fate::ToDo, &data.path(key), what)
                    .or(way_out),
            );
        }
        Some(true) => work.report.push(data.origin.note(
            Fate::Dropped,
            &data.path(key),
            "always on",
        )),
        None => {}
    }
}

impl GlobalSettings {
    /// Puts into a class what the settings said for all.
    pub(crate) fn apply(
        &self,
        report: &mut ConversionReport,
        origin: &ObjectOrigin,
        spec: &mut Map<String, Value>,
    ) {
        let mut added = Vec::new();
        if !self.tags.is_empty() {
            let tags = spec.entry("tags").or_insert_with(|| json!({}));
            for (key, value) in &self.tags {
                if tags.get(key).is_none() {
                    tags[key] = value.clone();
                    added.push(key.as_str());
                }
            }
        }
        if !added.is_empty() {
            let what = format!("{}: of the settings", added.join(", "));
            report.push(origin.note(Fate::Added, "spec.tags", what));
        }
        if let Some(pods) = self.pods_of_every_node {
            let kubelet = spec.entry("kubelet").or_insert_with(|| json!({}));
            if kubelet.get("maxPods").is_none() {
                kubelet["maxPods"] = pods.into();
                report.push(origin.note(
                    Fate::Added,
                    "spec.kubelet.maxPods",
                    "110: of the settings",
                ));
            }
        }
    }

    /// Values for the chart; null without any.
    pub(crate) fn into_values(self) -> Value {
        if self.values.is_empty() {
            Value::Null
        } else {
            json!({"settings": self.values})
        }
    }
}

impl Converter<'_> {
    /// The cluster's name, from the caller or the settings.
    pub(crate) fn cluster_name(&self) -> Option<String> {
        let given = self.options.cluster_name.clone();
        given.or_else(|| self.settings.cluster_name.clone())
    }
}
