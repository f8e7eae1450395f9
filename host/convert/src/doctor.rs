//! What a switch to Mortise would meet in a cluster: what breaks, what differs, what is good to know, each with its
//! fix.
//!
//! Looks at objects only, and takes what is not among them for unknown, not for absent: half a dump has fewer findings.

use std::fmt;

use apis::{crd, hash, labels};
use serde::Serialize;
use serde_json::Value;

use crate::documents::ConversionInput;
use crate::kind::{SourceKind, label};
use crate::kubelet::class_of;
use crate::workload::old_names;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It must be mended before the switch.
    Breaks,
    /// It works, and otherwise than before.
    Differs,
    /// Good to know.
    Note,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// How much it matters.
    pub severity: Severity,
    /// Kind and name, or the place of what could not be read.
    pub object: String,
    /// What it is.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for DoctorFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Breaks => "breaks",
            Severity::Differs => "differs",
            Severity::Note => "note",
        };
        write!(f, "{word}: {}: {}; {}", self.object, self.what, self.fix)
    }
}

/// Everything found, what breaks first, else in the order of the input.
pub fn examine(input: &ConversionInput) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    for unread in &input.unread {
        let fix = "what it would have told is not in this list";
        found.push(finding(
            Severity::Note,
            &unread.place.to_string(),
            &unread.message,
            fix,
        ));
    }
    for source in &input.sources {
        let object = &source.object;
        let name = label(object);
        versions(object, &name, &mut found);
        for (path, old, new) in old_names(object) {
            let what = format!("{path}: {old} means nothing any more");
            found.push(finding(
                Severity::Differs,
                &name,
                &what,
                &format!("write {new} in its place"),
            ));
        }
        match object["kind"].as_str().unwrap_or_default() {
            "CustomResourceDefinition" => definition(object, &name, &mut found),
            "NodePool" => pool(input, object, &name, &mut found),
            "NodeClaim" | "EC2NodeClass" => marks(object, &name, &mut found),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                webhook(object, &name, &mut found);
            }
            "Lease" => lease(object, &name, &mut found),
            "Deployment" => settings(object, &name, &mut found),
            _ => {}
        }
    }
    found.sort_by_key(|it| it.severity);
    found
}

fn finding(severity: Severity, object: &str, what: &str, fix: &str) -> DoctorFinding {
    DoctorFinding {
        severity,
        object: object.to_owned(),
        what: what.to_owned(),
        fix: fix.to_owned(),
    }
}

fn versions(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    match SourceKind::of(object) {
        SourceKind::Provisioner(_)
        | SourceKind::AwsNodeTemplate
        | SourceKind::Machine
        | SourceKind::NodePoolBeta
        | SourceKind::NodeClaimBeta
        | SourceKind::Ec2NodeClassBeta
        | SourceKind::GlobalSettings => {
            let what = format!("{version} is not read");
            found.push(finding(
                Severity::Breaks,
                name,
                &what,
                "run it through `mortise convert -f`",
            ));
        }
        SourceKind::Unknown => {
            let what = format!("nothing is known of {version} of this kind");
            found.push(finding(
                Severity::Breaks,
                name,
                &what,
                "write it as an object of v1",
            ));
        }
        SourceKind::NodePool
        | SourceKind::NodeClaim
        | SourceKind::NodeOverlay
        | SourceKind::Ec2NodeClass
        | SourceKind::AutoScalingGroup
        | SourceKind::Nodegroup
        | SourceKind::Other => {}
    }
}

/// A definition of the cluster beside ours: versions, the webhook that converts, fields of the spec.
fn definition(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default();
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let ours = crd::all()
        .into_iter()
        .find(|it| it.spec.names.kind == kind && it.spec.group == group);
    let Some(ours) = ours.and_then(|it| serde_json::to_value(it).ok()) else {
        if [labels::GROUP, labels::AWS_GROUP].contains(&group) {
            let what = "a kind that Mortise does not have";
            found.push(finding(
                Severity::Note,
                name,
                what,
                "delete it once nothing of the kind is there",
            ));
        }
        return;
    };
    let apply = "`mortise crds | kubectl apply --server-side --force-conflicts -f -`, or the chart mortise-crd";
    let present = &ours["spec"]["versions"][0];
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let theirs = versions.clone().find(|it| it["name"] == present["name"]);
    let Some(theirs) = theirs else {
        let what = format!("{} is not served", present["name"]);
        found.push(finding(Severity::Breaks, name, &what, apply));
        return;
    };
    if object["spec"]["conversion"]["strategy"] == "Webhook" {
        let what = "objects are converted by a webhook, which goes with Karpenter";
        let fix = "store every object as v1 (kubectl get -o yaml | kubectl replace -f -), set the strategy to None";
        found.push(finding(Severity::Breaks, name, what, fix));
    }
    let stored = object["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten();
    for version in stored.filter(|it| **it != present["name"]) {
        let what = format!("objects may still be stored as {version}");
        let fix = "write every object anew, then take the version out of status.storedVersions";
        found.push(finding(Severity::Breaks, name, &what, fix));
    }
    let fields = |version: &Value| -> Vec<String> {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        spec.as_object()
            .into_iter()
            .flatten()
            .map(|(field, _)| field.clone())
            .collect()
    };
    let (theirs, ours) = (fields(theirs), fields(present));
    for field in ours
        .iter()
        .filter(|it| !theirs.is_empty() && !theirs.contains(it))
    {
        let what = format!("older than Mortise's: it has no spec.{field}");
        found.push(finding(Severity::Differs, name, &what, apply));
    }
    for field in theirs.iter().filter(|it| !ours.contains(it)) {
        let what = format!("newer than Mortise's: spec.{field} is read by nobody");
        found.push(finding(
            Severity::Differs,
            name,
            &what,
            "do without the field, or stay with Karpenter",
        ));
    }
}

fn pool(input: &ConversionInput, object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    marks(object, name, found);
    let template = &object["spec"]["template"]["spec"];
    if !template["kubelet"].is_null() {
        let what = "spec.template.spec.kubelet is read by nobody";
        found.push(finding(
            Severity::Differs,
            name,
            what,
            "move it to spec.kubelet of the EC2NodeClass",
        ));
    }
    let class = class_of(object);
    let reference = &template["nodeClassRef"];
    if reference["kind"] != "EC2NodeClass" {
        let what = format!(
            "its class is of kind {}, and such pools are left alone",
            reference["kind"]
        );
        found.push(finding(
            Severity::Note,
            name,
            &what,
            "nothing, where another provider has it",
        ));
        return;
    }
    let mut classes = input
        .sources
        .iter()
        .map(|it| &it.object)
        .filter(|it| it["kind"] == "EC2NodeClass");
    if !classes.any(|it| it["metadata"]["name"] == class) {
        let what = format!("EC2NodeClass/{class} is not there");
        found.push(finding(
            Severity::Breaks,
            name,
            &what,
            "write the class, or name another",
        ));
    }
}

/// Hashes of another version, and objects on their way out.
fn marks(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let annotations = &object["metadata"]["annotations"];
    for (key, ours) in [
        (
            labels::NODEPOOL_HASH_VERSION_ANNOTATION,
            hash::NODE_POOL_HASH_VERSION,
        ),
        (
            labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
            hash::EC2_NODE_CLASS_HASH_VERSION,
        ),
    ] {
        if let Some(theirs) = annotations[key].as_str().filter(|it| *it != ours) {
            let what = format!(
                "{key} is {theirs}, Mortise's is {ours}: hashes are written anew, and nothing drifts by that"
            );
            found.push(finding(
                Severity::Note,
                name,
                &what,
                "nothing; look for Drifted NodeClaims before the switch",
            ));
        }
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        let what = format!(
            "is on its way out, held by {}",
            object["metadata"]["finalizers"]
        );
        found.push(finding(
            Severity::Note,
            name,
            &what,
            "nothing: the drain goes on",
        ));
    }
}

fn webhook(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let is_karpenters = object["metadata"]["name"]
        .as_str()
        .is_some_and(|it| it.contains("karpenter"));
    if is_karpenters {
        let what = "a webhook of Karpenter, which refuses every write once its service is gone";
        found.push(finding(
            Severity::Breaks,
            name,
            what,
            "delete it with the Deployment",
        ));
    }
}

fn lease(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let holder = object["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default();
    if object["metadata"]["name"] == "karpenter-leader-election" && !holder.is_empty() {
        let what = format!("{holder} leads; Mortise waits for the same lease");
        let fix = "scale that Deployment to 0, and install Mortise into the namespace of the lease";
        found.push(finding(Severity::Note, name, &what, fix));
    }
}

/// Settings of Karpenter's Deployment under which Mortise does other than Karpenter.
fn settings(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let containers = object["spec"]["template"]["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten();
    for variable in containers.flat_map(|it| it["env"].as_array().into_iter().flatten()) {
        if variable["name"] == "DISABLE_CLUSTER_STATE_OBSERVABILITY" && variable["value"] == "true"
        {
            let what = "DISABLE_CLUSTER_STATE_OBSERVABILITY changes nothing";
            found.push(finding(Severity::Note, name, what, "nothing"));
        }
    }
}

#[cfg(test)]
mod tests;
