//! Rules of object metadata: names, labels, annotations, finalizers, owner references.
//!
//! Answers to apimachinery's `api/validation/objectmeta.go`.

use serde_json::Value;

use crate::served::kinds::ServedKind;
use crate::status::FieldError;

const LABEL_NAME: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
     validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Whether the text is an RFC 1123 label of at most 63 letters.
pub(crate) fn is_label_name(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    text.len() <= 63
        && bytes.first().is_some_and(|&b| is_letter(b))
        && bytes.last().is_some_and(|&b| is_letter(b))
        && bytes.iter().all(|&b| is_letter(b) || b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.len() <= 253
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|&b| is_letter(b))
                && bytes.last().is_some_and(|&b| is_letter(b))
                && bytes.iter().all(|&b| is_letter(b) || b == b'-')
        })
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// What is wrong with a qualified name such as `example.com/role`, if anything.
pub(crate) fn qualified_name_problem(text: &str) -> Option<&'static str> {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) => {
            if !is_subdomain(prefix) {
                return Some(SUBDOMAIN);
            }
            name
        }
    };
    if name.is_empty() {
        Some("name part must be non-empty")
    } else if name.len() > 63 {
        Some("name part must be no more than 63 bytes")
    } else if is_name_part(name) {
        None
    } else {
        Some(QUALIFIED)
    }
}

/// What is wrong with the value of a label, if anything.
pub(crate) fn label_value_problem(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        Some("must be no more than 63 bytes")
    } else if text.is_empty() || is_name_part(text) {
        None
    } else {
        Some(LABEL_VALUE)
    }
}

/// Rules for labels under `path`.
pub(crate) fn validate_labels(labels: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        if let Some(problem) = qualified_name_problem(key) {
            errors.push(FieldError::invalid(path, &key.as_str().into(), problem));
        }
        if let Some(problem) = label_value_problem(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(path, value, problem));
        }
    }
    errors
}

fn validate_name(kind: &ServedKind, name: &Value) -> Option<FieldError> {
    let text = name.as_str().unwrap_or_default();
    let rbac = kind.group == "rbac.authorization.k8s.io";
    let problem = match kind.resource.plural.as_ref() {
        // These allow any name that fits into a path.
        _ if rbac => (text.contains('/') || text == "." || text == "..")
            .then_some("may not contain '/', and may not be '.' or '..'"),
        "namespaces" | "services" => (!is_label_name(text)).then_some(LABEL_NAME),
        _ if text.len() > 253 => Some("must be no more than 253 bytes"),
        _ => (!is_subdomain(text)).then_some(SUBDOMAIN),
    };
    problem.map(|problem| FieldError::invalid("metadata.name", name, problem))
}

/// Rules for the metadata of any object.
pub(crate) fn validate(kind: &ServedKind, object: &Value) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors: Vec<FieldError> = validate_name(kind, &metadata["name"]).into_iter().collect();
    errors.extend(validate_labels(&metadata["labels"], "metadata.labels"));
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        if let Some(problem) = qualified_name_problem(&key.to_ascii_lowercase()) {
            errors.push(FieldError::invalid(
                "metadata.annotations",
                &key.as_str().into(),
                problem,
            ));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: "metadata.annotations".to_owned(),
            message: format!("Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes"),
        });
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let text = finalizer.as_str().unwrap_or_default();
        let problem = qualified_name_problem(text);
        if let Some(problem) = problem {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                finalizer,
                problem,
            ));
        }
    }
    for (at, owner) in metadata["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences[{at}].{field}");
                errors.push(FieldError::required(path, ""));
            }
        }
    }
    errors
}

/// Rules for a change of metadata.
pub(crate) fn validate_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if new["metadata"]["deletionTimestamp"].is_string() {
        let none = Vec::new();
        let before = old["metadata"]["finalizers"].as_array().unwrap_or(&none);
        let after = new["metadata"]["finalizers"].as_array().unwrap_or(&none);
        let added: Vec<&str> = after
            .iter()
            .filter(|f| !before.contains(f))
            .filter_map(Value::as_str)
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    added
                        .iter()
                        .map(|f| format!("{f:?}"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            ));
        }
    }
    errors
}
