//! A definition of the cluster beside ours: versions that are served and stored, the webhook that converts, fields of
//! the spec.
//!
//! Knows the rule by which the API server refuses a definition: a version that is stored must be in it, and ours have
//! one.

use apis::{crd, labels};
use serde_json::{Value, json};

use super::{DoctorFinding, Severity, finding};

const APPLY: &str =
    "`mortise crds | kubectl apply --server-side --force-conflicts -f -`, or the chart mortise-crd";
/// Where the present version is not served, nobody can write the objects anew in it.
const FIRST_TO_1_0: &str = "Mortise's definition is refused until none is: upgrade to Karpenter 1.0, which stores them as \
     v1, or back them up, convert them, and delete them with the definition (docs/migrate.md)";

/// What differs between a definition and ours of the same kind.
pub(super) fn compare(object: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default();
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    let ours = crd::all()
        .into_iter()
        .find(|it| it.spec.names.kind == kind && it.spec.group == group);
    let Some(ours) = ours.and_then(|it| serde_json::to_value(it).ok()) else {
        if [labels::GROUP, labels::AWS_GROUP].contains(&group) {
            let what = "a kind that Mortise does not have";
            let fix = "delete it once nothing of the kind is there";
            found.push(finding(Severity::Note, name, what, fix));
        }
        return;
    };
    let present = &ours["spec"]["versions"][0];
    let stored = others_stored(object, &present["name"]);
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let mut served = versions.filter(|it| it["served"] != json!(false));
    let Some(theirs) = served.find(|it| it["name"] == present["name"]) else {
        let (what, fix) = match stored.as_slice() {
            [] => (format!("{} is not served", present["name"]), APPLY),
            stored => (
                format!(
                    "{} is not served, and objects are stored as {}",
                    present["name"],
                    stored.join(", ")
                ),
                FIRST_TO_1_0,
            ),
        };
        found.push(finding(Severity::Breaks, name, &what, fix));
        return;
    };
    conversion(object, name, &stored, found);
    fields(theirs, present, name, found);
}

/// Versions besides the present one in which objects may be stored.
fn others_stored<'a>(object: &'a Value, present: &Value) -> Vec<&'a str> {
    let stored = object["status"]["storedVersions"].as_array();
    let others = stored.into_iter().flatten().filter(|it| *it != present);
    others.filter_map(Value::as_str).collect()
}

fn conversion(object: &Value, name: &str, stored: &[&str], found: &mut Vec<DoctorFinding>) {
    if object["spec"]["conversion"]["strategy"] == "Webhook" {
        let what = "objects are converted by a webhook, which goes with Karpenter";
        let fix = "store every object as v1 (kubectl get -o yaml | kubectl replace -f -), set the strategy to None";
        found.push(finding(Severity::Breaks, name, what, fix));
    }
    let plural = object["metadata"]["name"].as_str().unwrap_or_default();
    for version in stored {
        let what = format!(
            "objects may still be stored as {version}, and Mortise's definition is refused until none is"
        );
        let fix = format!(
            "write every object anew (kubectl get {plural} -o yaml | kubectl replace -f -), then take the version out: \
             kubectl patch crd {plural} --subresource status --type merge -p '{{\"status\": {{\"storedVersions\": \
             [\"v1\"]}}}}'"
        );
        found.push(finding(Severity::Breaks, name, &what, &fix));
    }
}

fn fields(theirs: &Value, present: &Value, name: &str, found: &mut Vec<DoctorFinding>) {
    let fields = |version: &Value| -> Vec<String> {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let fields = spec.as_object().into_iter().flatten();
        fields.map(|(field, _)| field.clone()).collect()
    };
    let (theirs, ours) = (fields(theirs), fields(present));
    for field in ours
        .iter()
        .filter(|it| !theirs.is_empty() && !theirs.contains(it))
    {
        let what = format!("older than Mortise's: it has no spec.{field}");
        found.push(finding(Severity::Differs, name, &what, APPLY));
    }
    for field in theirs.iter().filter(|it| !ours.contains(it)) {
        let what = format!("newer than Mortise's: spec.{field} is read by nobody");
        let fix = "do without the field, or stay with Karpenter";
        found.push(finding(Severity::Differs, name, &what, fix));
    }
}
