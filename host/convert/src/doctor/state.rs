//! What a takeover finds half done: hashes of another version, drift, commands and drains under way.
//!
//! None of it stands in the way; it is told beforehand, so that it is not taken for the work of the switch.

use apis::{hash, labels};
use serde_json::Value;

use super::{DoctorFinding, Severity, finding};

/// A NodeClaim: as others, and whether it has drifted.
pub(super) fn claim(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    marks(object, name, found);
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    if let Some(drifted) = conditions.find(|it| it["type"] == "Drifted" && it["status"] == "True") {
        let reason = drifted["reason"].as_str().unwrap_or("no reason is given");
        let what = format!("has drifted already ({reason})");
        let fix = "nothing: whoever runs replaces it within budgets; it is not the switch that makes it drift";
        found.push(finding(Severity::Note, name, &what, fix));
    }
}

/// A Node: whether a command has it, or it is on its way out. Others' nodes are nobody's business.
pub(super) fn node(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let has = |list: &Value, wanted: &dyn Fn(&Value) -> bool| {
        let mut items = list.as_array().into_iter().flatten();
        items.any(wanted)
    };
    if has(&object["spec"]["taints"], &|it| {
        it["key"] == labels::DISRUPTED_TAINT_KEY
    }) {
        let what = format!(
            "is tainted {}: a command or a drain is under way",
            labels::DISRUPTED_TAINT_KEY
        );
        let fix = "nothing: a drain goes on, and what is left of a command that goes no further is taken off";
        found.push(finding(Severity::Note, name, &what, fix));
    }
    if has(&object["metadata"]["finalizers"], &|it| {
        *it == labels::TERMINATION_FINALIZER
    }) {
        leaving(object, name, found);
    }
}

/// Hashes of another version, and objects on their way out.
pub(super) fn marks(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
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
            let fix = "nothing; look for Drifted NodeClaims before the switch";
            found.push(finding(Severity::Note, name, &what, fix));
        }
    }
    leaving(object, name, found);
}

fn leaving(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        let what = format!(
            "is on its way out, held by {}",
            object["metadata"]["finalizers"]
        );
        let fix = "nothing: the drain goes on";
        found.push(finding(Severity::Note, name, &what, fix));
    }
}
