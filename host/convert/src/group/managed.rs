//! A managed node group, of `aws eks describe-nodegroup`.
//!
//! The family and the architecture are those of its AMI type.

use apis::labels;
use serde_json::{Value, json};

use super::{NodeGroup, launch_template, own_tags};
use crate::Converter;
use crate::fields::{Fields, put};
use crate::report::{Fate, ObjectOrigin};
use crate::requirements::template_labels;

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let mut fields = Fields::new(origin, "nodegroup", object["spec"].clone());
    let mut group = NodeGroup {
        name: fields.text("nodegroupName").unwrap_or_default(),
        cluster: fields.text("clusterName"),
        subnets: fields.texts("subnets"),
        ..NodeGroup::default()
    };
    let told = [
        "nodegroupArn",
        "createdAt",
        "modifiedAt",
        "status",
        "resources",
        "health",
        "version",
        "releaseVersion",
    ];
    for field in told {
        fields.take(field);
    }
    scaling(work, &mut fields, &mut group);
    if let Some(role) = fields.text("nodeRole") {
        let role = role.rsplit('/').next().unwrap_or(&role).to_owned();
        group.class.insert("role".to_owned(), role.into());
    }
    let labels = template_labels(work, origin, "nodegroup.labels", fields.map("labels"));
    group.labels = labels.as_object().cloned().unwrap_or_default();
    group.taints = fields.list("taints").iter().map(taint).collect();
    group
        .requirements
        .one_of(labels::INSTANCE_TYPE, &fields.texts("instanceTypes"));
    let capacity = capacity_type(work, &mut fields);
    group
        .requirements
        .one_of(labels::CAPACITY_TYPE, &[capacity.to_owned()]);
    images(work, &mut fields, &mut group);
    put(
        &mut group.class,
        "tags",
        own_tags(fields.map("tags").into_iter()),
    );
    let template = fields.take("launchTemplate").unwrap_or_default();
    launch_template(work, origin, "nodegroup.launchTemplate", &template);
    left_behind(work, origin, &mut fields);
    fields.finish(&mut work.report);
    group.make(work, origin);
}

/// How many nodes there may be, and how many of them may be replaced at one time.
fn scaling(work: &mut Converter<'_>, fields: &mut Fields<'_>, group: &mut NodeGroup) {
    let mut scaling = fields.inner("scalingConfig");
    group.nodes_max = scaling.number("maxSize");
    group.nodes_min = scaling.number("minSize").unwrap_or_default();
    // What the autoscaler made of the two last.
    scaling.take("desiredSize");
    scaling.finish(&mut work.report);
    let mut update = fields.inner("updateConfig");
    let share = update
        .number("maxUnavailablePercentage")
        .map(|share| format!("{share}%"));
    group.budget = share.or_else(|| update.text("maxUnavailable"));
    let why = "no matter of a pool";
    update.drop(&["updateStrategy"], why, &mut work.report);
    update.finish(&mut work.report);
}

/// How its instances are bought, in the word of v1.
fn capacity_type(work: &mut Converter<'_>, fields: &mut Fields<'_>) -> &'static str {
    let told = fields.text("capacityType").unwrap_or_default();
    let (capacity_type, fate, what, way_out) = match told.as_str() {
        "SPOT" => return labels::CAPACITY_TYPE_SPOT,
        "" | "ON_DEMAND" => return labels::CAPACITY_TYPE_ON_DEMAND,
        "CAPACITY_BLOCK" => (
            labels::CAPACITY_TYPE_RESERVED,
            Fate::ToDo,
            "a class says itself which blocks it may use",
            "name the block in capacityReservationSelectorTerms of the class (gate ReservedCapacity)",
        ),
        _ => (
            labels::CAPACITY_TYPE_ON_DEMAND,
            Fate::Lost,
            "not known, and so taken for on-demand",
            "write the requirement on karpenter.sh/capacity-type that is meant",
        ),
    };
    let what = format!("{told}: {what}");
    let line = fields.origin.note(fate, "nodegroup.capacityType", what);
    work.report.push(line.or(way_out));
    capacity_type
}

/// What a node group has and a pool has not.
fn left_behind(work: &mut Converter<'_>, origin: &ObjectOrigin, fields: &mut Fields<'_>) {
    if let Some(way_in) = fields
        .take("remoteAccess")
        .filter(|it| it["ec2SshKey"].is_string())
    {
        let what = format!("SSH key {}", way_in["ec2SshKey"]);
        let way_out = "use Session Manager, or write the key by userData";
        work.report.push(
            origin
                .note(Fate::Lost, "nodegroup.remoteAccess", what)
                .or(way_out),
        );
    }
    if fields
        .take("nodeRepairConfig")
        .is_some_and(|it| it["enabled"] == true)
    {
        let what = "a setting of the controller";
        let way_out = "set the gate NodeRepair=true";
        work.report.push(
            origin
                .note(Fate::ToDo, "nodegroup.nodeRepairConfig", what)
                .or(way_out),
        );
    }
}

/// The AMI type tells architecture, family and with it the device of the disk.
fn images(work: &mut Converter<'_>, fields: &mut Fields<'_>, group: &mut NodeGroup) {
    let kind = fields.text("amiType").unwrap_or_default();
    let disk = fields.number("diskSize");
    let (alias, device) = match kind.as_str() {
        kind if kind.starts_with("AL2023") => ("al2023@latest", "/dev/xvda"),
        kind if kind.starts_with("AL2_") => ("al2@latest", "/dev/xvda"),
        kind if kind.starts_with("BOTTLEROCKET") => ("bottlerocket@latest", "/dev/xvdb"),
        kind if kind.starts_with("WINDOWS") && kind.contains("2019") => {
            ("windows2019@latest", "/dev/sda1")
        }
        kind if kind.starts_with("WINDOWS") && kind.contains("2025") => {
            ("windows2025@latest", "/dev/sda1")
        }
        kind if kind.starts_with("WINDOWS") => ("windows2022@latest", "/dev/sda1"),
        _ => return,
    };
    let what = format!("amiSelectorTerms: [{{alias: {alias}}}]");
    work.report.push(fields.origin.note(
        Fate::Changed,
        "nodegroup.amiType",
        format!("{kind} is {what}"),
    ));
    group.images = vec![json!({"alias": alias})];
    let arch = if kind.contains("ARM_64") {
        labels::ARCH_ARM64
    } else {
        labels::ARCH_AMD64
    };
    group.requirements.one_of(labels::ARCH, &[arch.to_owned()]);
    let os = if kind.starts_with("WINDOWS") {
        labels::OS_WINDOWS
    } else {
        labels::OS_LINUX
    };
    group.requirements.one_of(labels::OS, &[os.to_owned()]);
    if let Some(disk) = disk {
        let ebs =
            json!({"volumeSize": format!("{disk}Gi"), "volumeType": "gp3", "encrypted": true});
        let mapping = json!([{"deviceName": device, "ebs": ebs}]);
        group
            .class
            .insert("blockDeviceMappings".to_owned(), mapping);
        let what = format!("spec.blockDeviceMappings: {device} of {disk}Gi, encrypted");
        work.report.push(
            fields
                .origin
                .note(Fate::Changed, "nodegroup.diskSize", what),
        );
    }
}

/// EKS spells effects in its own way.
fn taint(taint: &Value) -> Value {
    let effect = match taint["effect"].as_str().unwrap_or_default() {
        "NO_SCHEDULE" => labels::NO_SCHEDULE,
        "NO_EXECUTE" => labels::NO_EXECUTE,
        "PREFER_NO_SCHEDULE" => labels::PREFER_NO_SCHEDULE,
        other => other,
    };
    let mut made = json!({"key": taint["key"], "effect": effect});
    if taint["value"].as_str().is_some_and(|it| !it.is_empty()) {
        made["value"] = taint["value"].clone();
    }
    made
}
