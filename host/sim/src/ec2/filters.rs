//! EC2's filters and pages, alike for every Describe call.
//!
//! Knows no resource: whoever describes one says what its attributes are. A filter that nobody knows lets nothing pass.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::types::{Filter, Tag};

/// Whether a resource passes every filter; `attribute` gives its values for one that is not about tags.
///
/// As in EC2, filters are joined by "and", the values of one by "or", with `*` and `?` as wildcards.
pub(super) fn matches(
    filters: &[Filter],
    tags: &BTreeMap<String, String>,
    attribute: impl Fn(&str) -> Vec<String>,
) -> bool {
    filters.iter().all(|filter| {
        let name = filter.name().unwrap_or_default();
        let actual = if name == "tag-key" {
            tags.keys().cloned().collect()
        } else if let Some(key) = name.strip_prefix("tag:") {
            tags.get(key).cloned().into_iter().collect()
        } else {
            attribute(name)
        };
        filter
            .values()
            .iter()
            .any(|pattern| actual.iter().any(|value| wildcard(pattern, value)))
    })
}

fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    // reach[i]: the pattern so far matches the first i bytes.
    let text = text.as_bytes();
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    for symbol in pattern.bytes() {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match symbol {
                b'*' => reach[at] || (at > 0 && next[at - 1]),
                b'?' => at > 0 && reach[at - 1],
                byte => at > 0 && reach[at - 1] && text[at - 1] == byte,
            };
        }
        reach = next;
    }
    reach[text.len()]
}

/// One page of `items` and the token of the next.
pub(super) fn page<T>(
    items: Vec<T>,
    max_results: Option<i32>,
    token: Option<&str>,
) -> ApiResult<(Vec<T>, Option<String>)> {
    let offset: usize = match token.filter(|token| !token.is_empty()) {
        None => 0,
        Some(token) => token
            .strip_prefix("page-")
            .and_then(|n| n.parse().ok())
            .ok_or_else(|| {
                ApiError::client(
                    "InvalidNextToken",
                    format!("The token '{token}' is invalid"),
                )
            })?,
    };
    let size = max_results
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n > 0);
    let end = size.map_or(items.len(), |size| (offset + size).min(items.len()));
    let next = (end < items.len()).then(|| format!("page-{end}"));
    let page = items.into_iter().take(end).skip(offset).collect();
    Ok((page, next))
}

/// Tags in EC2's form.
pub(super) fn tag_list(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    tags.iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect()
}

/// Tags out of EC2's form.
pub(super) fn tag_map(tags: &[Tag]) -> BTreeMap<String, String> {
    let pair = |tag: &Tag| {
        (
            tag.key().unwrap_or_default().to_owned(),
            tag.value().unwrap_or_default().to_owned(),
        )
    };
    tags.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_as_in_ec2() {
        for (pattern, text, expected) in [
            ("a*c", "abbc", true),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("amazon-eks-node-*", "amazon-eks-node-1.33", true),
            ("x*", "yx", false),
        ] {
            assert_eq!(wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }
}
