//! The rules of what says where a pod may go: tolerations, topology spread, affinity.

use crate::builtin::metadata::qualified_name_problem;
use crate::builtin::pod_template::choice::validate_choice;
use crate::status::FieldError;
use serde_json::Value;

pub(super) fn validate_tolerations(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (at, toleration) in spec["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.tolerations[{at}]");
        let key = toleration["key"].as_str().unwrap_or_default();
        if !key.is_empty()
            && let Some(problem) = qualified_name_problem(key)
        {
            errors.push(FieldError::invalid(
                format!("{path}.key"),
                &toleration["key"],
                problem,
            ));
        }
        if key.is_empty() && toleration["operator"].as_str() != Some("Exists") {
            errors.push(FieldError::invalid(
                format!("{path}.operator"),
                &toleration["operator"],
                "operator must be Exists when `key` is empty, which means \"match all values and \
                 all keys\"",
            ));
        }
        validate_choice(toleration, "operator", &["Equal", "Exists"], &path, errors);
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if toleration["effect"].as_str() != Some("") {
            validate_choice(toleration, "effect", &effects, &path, errors);
        }
    }
}

pub(super) fn validate_spread(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let constraints = spec["topologySpreadConstraints"]
        .as_array()
        .into_iter()
        .flatten();
    for (at, constraint) in constraints.enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        if constraint["maxSkew"].as_i64().is_none_or(|skew| skew <= 0) {
            let problem = "must be greater than zero";
            errors.push(FieldError::invalid(
                format!("{path}.maxSkew"),
                &constraint["maxSkew"],
                problem,
            ));
        }
        if constraint["topologyKey"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(
                format!("{path}.topologyKey"),
                "can not be empty",
            ));
        }
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        validate_choice(constraint, "whenUnsatisfiable", &choices, &path, errors);
    }
}

pub(super) fn validate_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array();
    for (at, term) in terms.into_iter().flatten().enumerate() {
        let expressions = term["matchExpressions"].as_array().into_iter().flatten();
        for (expression_at, expression) in expressions.enumerate() {
            let path = format!(
                "{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                 nodeSelectorTerms[{at}].matchExpressions[{expression_at}]"
            );
            validate_choice(expression, "operator", &OPERATORS, &path, errors);
            let needs_values = matches!(expression["operator"].as_str(), Some("In" | "NotIn"));
            if needs_values && expression["values"].as_array().is_none_or(Vec::is_empty) {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), detail));
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"].as_array();
        for (at, term) in terms.into_iter().flatten().enumerate() {
            if term["topologyKey"].as_str().is_none_or(str::is_empty) {
                let field = format!(
                    "{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{at}].topologyKey"
                );
                errors.push(FieldError::required(field, "can not be empty"));
            }
        }
    }
}
