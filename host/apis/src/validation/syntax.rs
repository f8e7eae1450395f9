//! Syntax of label keys and values.
//!
//! Answers to `k8s.io/apimachinery/pkg/util/validation`.

/// Longest name part of a key, and longest value.
const NAME_LENGTH_MAX: usize = 63;
/// Longest DNS prefix of a key.
const PREFIX_LENGTH_MAX: usize = 253;

/// Whether the text is a qualified name: an optional DNS prefix with a slash, then a name.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Whether the text is a label value; the empty one is.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_outer = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= NAME_LENGTH_MAX
        && is_outer(bytes.first())
        && is_outer(bytes.last())
        && bytes.iter().copied().all(is_inner)
}

fn is_dns_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_outer =
            |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = label.as_bytes();
        is_outer(bytes.first())
            && is_outer(bytes.last())
            && bytes
                .iter()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    text.len() <= PREFIX_LENGTH_MAX && text.split('.').all(is_label)
}
