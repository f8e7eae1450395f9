//! An Auto Scaling group, of `aws autoscaling describe-auto-scaling-groups`.
//!
//! Labels and taints are those that Cluster Autoscaler reads from its tags.

use apis::labels;
use serde_json::{Value, json};

use super::{NodeGroup, launch_template, own_tags};
use crate::Converter;
use crate::fields::put;
use crate::report::{Fate, ObjectOrigin};
use crate::requirements::key;

const TEMPLATE_TAG: &str = "k8s.io/cluster-autoscaler/node-template/";

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let spec = &object["spec"];
    let mut group = NodeGroup {
        name: object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        nodes_max: spec["MaxSize"].as_i64(),
        nodes_min: spec["MinSize"].as_i64().unwrap_or_default(),
        expire_after: spec["MaxInstanceLifetime"]
            .as_i64()
            .map(|seconds| format!("{seconds}s")),
        ..NodeGroup::default()
    };
    let subnets = spec["VPCZoneIdentifier"]
        .as_str()
        .unwrap_or_default()
        .split(',');
    group.subnets = subnets
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    let tags = spec["Tags"].as_array().into_iter().flatten();
    let tags: Vec<(String, String)> = tags
        .filter_map(|tag| {
            Some((
                tag["Key"].as_str()?.to_owned(),
                tag["Value"].as_str().unwrap_or_default().to_owned(),
            ))
        })
        .collect();
    for (key, value) in &tags {
        tag(work, origin, &mut group, key, value);
    }
    put(&mut group.class, "tags", own_tags(tags.into_iter()));
    let policy = &spec["MixedInstancesPolicy"];
    let are_types_known = types(work, origin, &mut group, spec);
    capacity_types(work, origin, &mut group, &policy["InstancesDistribution"]);
    if !are_types_known {
        let why =
            "nothing tells the types of the group, so those that a Provisioner had by default";
        let labels = Value::from(group.labels.clone());
        group.requirements.add_defaults(work, origin, &labels, why);
    }
    for template in [
        &spec["LaunchTemplate"],
        &policy["LaunchTemplate"]["LaunchTemplateSpecification"],
    ] {
        launch_template(work, origin, "LaunchTemplate", template);
    }
    group.make(work, origin);
}

fn tag(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    group: &mut NodeGroup,
    tag: &str,
    value: &str,
) {
    if let Some(cluster) = tag.strip_prefix("kubernetes.io/cluster/") {
        group.cluster = Some(cluster.to_owned());
    }
    let Some(of_template) = tag.strip_prefix(TEMPLATE_TAG) else {
        return;
    };
    if let Some(label) = of_template.strip_prefix("label/") {
        if let Some(label) = key(work, origin, &format!("Tags.{tag}"), label) {
            group.labels.insert(label, value.into());
        }
    } else if let Some(key) = of_template.strip_prefix("taint/") {
        let (value, effect) = value.rsplit_once(':').unwrap_or(("", value));
        let mut taint = json!({"key": key, "effect": effect});
        if !value.is_empty() {
            taint["value"] = value.into();
        }
        group.taints.push(taint);
    } else {
        let what = "what nodes will have is known of their instance types";
        work.report
            .push(origin.note(Fate::Dropped, &format!("Tags.{tag}"), what));
    }
}

/// Types of the overrides, else of the instances that run. False where neither tells any.
fn types(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    group: &mut NodeGroup,
    spec: &Value,
) -> bool {
    let of = |list: &Value| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        let mut types: Vec<String> = items
            .filter_map(|it| it["InstanceType"].as_str().map(str::to_owned))
            .collect();
        types.sort();
        types.dedup();
        types
    };
    let overrides = &spec["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"];
    let mut types = of(overrides);
    let mut overrides = overrides.as_array().into_iter().flatten();
    if overrides.any(|it| it.get("InstanceRequirements").is_some()) {
        let what = "requirements on instances by attribute";
        let way_out =
            "write them as requirements on karpenter.k8s.aws/instance-cpu, -memory, -category";
        work.report.push(
            origin
                .note(
                    Fate::Lost,
                    "MixedInstancesPolicy.Overrides.InstanceRequirements",
                    what,
                )
                .or(way_out),
        );
    }
    if types.is_empty() {
        types = of(&spec["Instances"]);
        if !types.is_empty() {
            let what = format!("{}: of the instances that run", types.join(", "));
            work.report
                .push(origin.note(Fate::Added, "spec.requirements", what));
        }
    }
    if types.is_empty() {
        return false;
    }
    let what = format!(
        "a requirement on {}; more types find cheaper and likelier capacity",
        labels::INSTANCE_TYPE
    );
    work.report
        .push(origin.note(Fate::Changed, "InstanceType", what));
    group.requirements.one_of(labels::INSTANCE_TYPE, &types);
    let zones = spec["AvailabilityZones"].as_array().into_iter().flatten();
    let zones: Vec<String> = zones
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    group.requirements.one_of(labels::TOPOLOGY_ZONE, &zones);
    true
}

fn capacity_types(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    group: &mut NodeGroup,
    distribution: &Value,
) {
    if group.requirements.has(labels::CAPACITY_TYPE) {
        return;
    }
    let base = distribution["OnDemandBaseCapacity"].as_i64().unwrap_or(0);
    let share = distribution["OnDemandPercentageAboveBaseCapacity"]
        .as_i64()
        .unwrap_or(100);
    let types = match (base, share) {
        (_, 100) => vec![labels::CAPACITY_TYPE_ON_DEMAND],
        (0, 0) => vec![labels::CAPACITY_TYPE_SPOT],
        (base, share) => {
            let what = format!(
                "{base} on-demand nodes and {share} % of the others: a pool takes spot while there is some"
            );
            let way_out = "make two pools with limits, or bind the policy spot-share";
            let field = "MixedInstancesPolicy.InstancesDistribution";
            work.report
                .push(origin.note(Fate::Lost, field, what).or(way_out));
            vec![labels::CAPACITY_TYPE_ON_DEMAND, labels::CAPACITY_TYPE_SPOT]
        }
    };
    let types: Vec<String> = types.into_iter().map(str::to_owned).collect();
    group.requirements.one_of(labels::CAPACITY_TYPE, &types);
}
