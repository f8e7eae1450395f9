//! Findings about a cluster before it switches to Mortise: what breaks, what differs, what is good to know, each with
//! its fix.
//!
//! Looks at objects only, and takes what is not among them for unknown, not for absent, unless it is told that all of a
//! kind are there: half a dump has fewer findings.

mod definition;
mod settings;
mod state;

use std::collections::BTreeSet;
use std::fmt;

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
    /// Nothing has to be done; it is good to know.
    Note,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// How much it matters.
    pub severity: Severity,
    /// Kind and name, or the place of what could not be read.
    pub object: String,
    /// Finding in words.
    pub what: String,
    /// Advice what to do about it.
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

/// Everything found, what breaks first, else in the order of the input. `whole` names the resources, such as
/// `ec2nodeclasses`, of which the input has every object that there is. `refusal` says why the controller would not
/// start with such a value of an environment variable, if so.
pub fn examine(
    input: &ConversionInput,
    whole: &BTreeSet<String>,
    refusal: &dyn Fn(&str, &str) -> Option<String>,
) -> Vec<DoctorFinding> {
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
        // A CronJob's Jobs have its names, and it is there to be told of itself.
        let names = if is_of_cron_job(object) {
            Vec::new()
        } else {
            old_names(object)
        };
        for (path, old, new) in names {
            let what = format!("{path}: {old} means nothing any more");
            found.push(finding(
                Severity::Differs,
                &name,
                &what,
                &format!("write {new} in its place"),
            ));
        }
        match object["kind"].as_str().unwrap_or_default() {
            "CustomResourceDefinition" => definition::compare(object, &name, &mut found),
            "NodePool" => {
                state::marks(object, &name, &mut found);
                // Of one that is older the conversion tells all else.
                if SourceKind::of(object) == SourceKind::NodePool {
                    pool(input, whole, object, &name, &mut found);
                }
            }
            "NodeClaim" => state::claim(object, &name, &mut found),
            "EC2NodeClass" => state::marks(object, &name, &mut found),
            "Node" => state::node(object, &name, &mut found),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                webhook(object, &name, &mut found);
            }
            "Lease" => lease(object, &name, &mut found),
            "Deployment" => settings::check(object, &name, refusal, &mut found),
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

fn is_of_cron_job(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|it| it["kind"] == "CronJob" && it["controller"] == true)
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

fn pool(
    input: &ConversionInput,
    whole: &BTreeSet<String>,
    object: &Value,
    name: &str,
    found: &mut Vec<DoctorFinding>,
) {
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
    if classes.any(|it| it["metadata"]["name"] == class) {
        return;
    }
    found.push(if whole.contains("ec2nodeclasses") {
        let what = format!("EC2NodeClass/{class} is not there");
        let fix = "write the class, or name another";
        finding(Severity::Breaks, name, &what, fix)
    } else {
        let what = format!("whether EC2NodeClass/{class} is there is not known");
        let fix = "look for it among the cluster's classes";
        finding(Severity::Note, name, &what, fix)
    });
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
        let fix = "upgrade its release in place, or scale its Deployment to 0 before Mortise is installed elsewhere";
        found.push(finding(Severity::Note, name, &what, fix));
    }
}

#[cfg(test)]
mod tests;
