//! Settings of the controller's Deployment with which Mortise would not start.
//!
//! What a value may be is the controller's to say: who calls hands its word in.

use serde_json::Value;

use super::{DoctorFinding, Severity, finding};

/// Names by which the charts call their Deployment.
const APPS: [&str; 2] = ["karpenter", "mortise"];
/// A variable that both charts give to the controller, and nobody else.
const OF_THE_CONTROLLER: &str = "KARPENTER_SERVICE";

/// Each value that is refused. One that comes of elsewhere (`valueFrom`, `$(NAME)`) is not known.
pub(super) fn check(
    object: &Value,
    name: &str,
    refusal: &dyn Fn(&str, &str) -> Option<String>,
    found: &mut Vec<DoctorFinding>,
) {
    for variable in variables(object) {
        let word = |field: &str| variable[field].as_str();
        let (Some(variable), Some(value)) = (word("name"), word("value")) else {
            continue;
        };
        if value.contains("$(") {
            continue;
        }
        if let Some(message) = refusal(variable, value) {
            let what = format!("{variable}: {message}: the controller does not start");
            let fix = "change what sets it, or take it out";
            found.push(finding(Severity::Breaks, name, &what, fix));
        }
    }
}

/// The environment of the controller; nothing where the Deployment is another's.
fn variables(object: &Value) -> &[Value] {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array();
    let containers = containers.map_or(&[][..], Vec::as_slice);
    let marked = containers.iter().map(environment).find(|variables| {
        let mut names = variables.iter().map(|it| &it["name"]);
        names.any(|it| it == OF_THE_CONTROLLER)
    });
    let app = object["metadata"]["labels"]["app.kubernetes.io/name"].as_str();
    let is_ours = app.is_some_and(|it| APPS.contains(&it));
    // The charts put what stands beside the controller behind it.
    let first = containers.first().filter(|_| is_ours).map(environment);
    marked.or(first).unwrap_or_default()
}

fn environment(container: &Value) -> &[Value] {
    container["env"].as_array().map_or(&[][..], Vec::as_slice)
}
