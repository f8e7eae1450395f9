//! The rules as templates of the chart, one for each role.
//!
//! It adds none to those of the table.

use std::fmt::Write as _;

use super::RULES;
use super::rule::{RbacRule, Role, When};

const HEAD: &str = "\
{{- /*
What the controller may do, one template for each role. Written from the rows of host/controllers/src/watches.rs and
host/controllers/src/rbac/rules.rs by
`cargo run -p controllers --example rbac -- charts/mortise/templates/_rules.tpl`; a test compares.
*/}}
";

/// The file of the chart that holds the rules of every role.
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    for role in Role::ALL {
        let _ = write!(
            text,
            "\n{{{{- define \"mortise.rules.{}\" -}}}}\n",
            role.name()
        );
        for rule in RULES.iter().filter(|it| it.role == role) {
            write_rule(&mut text, rule);
        }
        text.push_str("{{- end }}\n");
    }
    text
}

fn write_rule(text: &mut String, rule: &RbacRule) {
    let condition = condition(rule.when);
    if let Some(condition) = condition {
        let _ = writeln!(text, "{{{{- if {condition} }}}}");
    }
    let _ = writeln!(text, "# {}.", capitalized(rule.why));
    let _ = writeln!(text, "- apiGroups: {}", list(&[rule.group]));
    let _ = writeln!(text, "  resources: {}", list(rule.resources));
    if !rule.names.is_empty() {
        let _ = writeln!(text, "  resourceNames: {}", list(rule.names));
    }
    let _ = writeln!(text, "  verbs: {}", list(rule.verbs));
    if condition.is_some() {
        text.push_str("{{- end }}\n");
    }
}

/// Condition on the chart's values; none for what is always granted.
fn condition(when: When) -> Option<&'static str> {
    match when {
        When::Always => None,
        When::CapacityBuffers => {
            Some("include \"mortise.isOn\" .Values.settings.featureGates.capacityBuffer")
        }
        When::NodeOverlays => {
            Some("include \"mortise.isOn\" .Values.settings.featureGates.nodeOverlay")
        }
        When::PodDeletionCosts => {
            Some("include \"mortise.isOn\" .Values.settings.featureGates.podDeletionCostManagement")
        }
        When::DefaultSpread => Some(".Values.settings.schedulerConfig"),
        When::ComingPods => Some("include \"mortise.isOn\" .Values.settings.planComingPods"),
        When::Workloads => Some("include \"mortise.watchesWorkloads\" ."),
        When::Devices => Some("not (include \"mortise.isOn\" .Values.settings.ignoreDRARequests)"),
        When::Nominations => Some("ne (include \"mortise.nominations\" .) \"off\""),
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn list(items: &[&str]) -> String {
    let quoted: Vec<String> = items.iter().map(|it| format!("\"{it}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
