//! The NodePools that a binding is for: names, globs and exclusions, and a selector on their labels.
//!
//! Names are matched when a round asks; labels are told by whoever watches NodePools. Answers to the syntax of
//! `kubectl get -l` for selectors.

use std::collections::BTreeSet;

use apis::selector::{LabelSelector, SelectorOperator};
use hooks::binding::NodePoolLabels;
use hooks::binding::keys::{NODE_POOL_SELECTOR_ANNOTATION, NODE_POOLS_ANNOTATION};

use super::error::{BindingError, value};
use crate::typo::{NEAR, distance};

/// Which NodePools a binding is for; by default all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePools {
    /// Names and globs; empty means all.
    included: Vec<String>,
    /// Names and globs; empty excludes none.
    excluded: Vec<String>,
    selector: Option<LabelSelector>,
}

impl NodePools {
    /// Reads the two annotations.
    pub(super) fn parse(names: Option<&str>, selector: Option<&str>) -> Result<Self, BindingError> {
        let mut parsed = Self::default();
        for name in names.into_iter().flat_map(|it| it.split(',')) {
            let name = name.trim();
            let (list, pattern) = match name.strip_prefix('!') {
                Some(rest) => (&mut parsed.excluded, rest.trim()),
                None => (&mut parsed.included, name),
            };
            if !is_pattern(pattern) {
                return Err(value(
                    NODE_POOLS_ANNOTATION,
                    names.unwrap_or_default(),
                    "names of NodePools, separated by commas; * stands for any letters, a ! before a name excludes \
                     it; leave it out for all NodePools",
                ));
            }
            list.push(pattern.to_owned());
        }
        parsed.selector = selector.map(parse_selector).transpose()?;
        Ok(parsed)
    }

    /// Whether nothing limits it.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the name is among those meant; labels are another matter.
    pub(super) fn names(&self, pool: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|it| is_match(it, pool));
        (self.included.is_empty() || is_in(&self.included)) && !is_in(&self.excluded)
    }

    /// The NodePools whose labels are those meant; `None` when labels do not matter.
    fn selected(&self, pools: &NodePoolLabels) -> Option<BTreeSet<String>> {
        let selector = self.selector.as_ref()?;
        let selected = pools.iter().filter(|(_, labels)| selector.matches(labels));
        Some(selected.map(|(name, _)| name.clone()).collect())
    }

    /// Names and patterns of it that match no NodePool: mistyped, or of a pool that is yet to come.
    pub(crate) fn unmatched(&self, pools: &NodePoolLabels) -> Vec<String> {
        let patterns = self.included.iter().map(|it| ("", it));
        let patterns = patterns.chain(self.excluded.iter().map(|it| ("!", it)));
        let mut unmatched: Vec<String> = patterns
            .filter(|(_, pattern)| !pools.keys().any(|pool| is_match(pattern, pool)))
            .map(|(sign, pattern)| format!("{sign}{pattern}{}", guess(pattern, pools)))
            .collect();
        if self.selected(pools).is_some_and(|it| it.is_empty()) {
            unmatched.push(NODE_POOL_SELECTOR_ANNOTATION.to_owned());
        }
        unmatched
    }
}

/// The NodePools of a policy in charge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scope {
    pub(crate) wanted: NodePools,
    /// Those with the labels that are meant; `None` where labels do not matter or nobody told of them.
    selected: Option<BTreeSet<String>>,
}

impl Scope {
    pub(crate) fn new(wanted: NodePools) -> Self {
        Self {
            wanted,
            selected: None,
        }
    }

    /// Takes in what NodePools there are.
    pub(crate) fn resolve(&mut self, pools: &NodePoolLabels) {
        self.selected = self.wanted.selected(pools);
    }

    pub(crate) fn contains(&self, pool: &str) -> bool {
        self.wanted.names(pool) && self.selected.as_ref().is_none_or(|it| it.contains(pool))
    }
}

fn guess(pattern: &str, pools: &NodePoolLabels) -> String {
    let near = pools
        .keys()
        .map(|name| (distance(pattern, name), name))
        .min();
    near.filter(|(apart, _)| *apart <= NEAR && *apart < pattern.len())
        .map_or_else(String::new, |(_, name)| format!(" (did you mean {name}?)"))
}

fn is_pattern(text: &str) -> bool {
    let is_known = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.*".contains(&it);
    !text.is_empty() && text.bytes().all(is_known)
}

/// Whether a glob, in which only `*` is special, matches the whole name.
fn is_match(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn parse_selector(text: &str) -> Result<LabelSelector, BindingError> {
    let mut selector = LabelSelector::default();
    for term in terms(text) {
        let parsed = parse_term(term.trim()).ok_or_else(|| {
            value(
                NODE_POOL_SELECTOR_ANNOTATION,
                text,
                "a label selector such as `team=web,tier in (a,b),!legacy`",
            )
        })?;
        let SelectorTerm {
            key,
            operator,
            values,
        } = parsed;
        selector.require(key, operator, values);
    }
    Ok(selector)
}

/// The terms between commas that are in no parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let is_comma = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(is_comma).collect()
}

/// One term of a selector.
struct SelectorTerm<'a> {
    key: &'a str,
    operator: SelectorOperator,
    values: Vec<String>,
}

fn parse_term(term: &str) -> Option<SelectorTerm<'_>> {
    let one = |text: &str| is_label_value(text.trim()).then(|| vec![text.trim().to_owned()]);
    let (key, operator, values) = if let Some(key) = term.strip_prefix('!') {
        (key, SelectorOperator::DoesNotExist, Vec::new())
    } else if let Some((head, list)) = term.split_once('(') {
        let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
        let operator = match word {
            "in" => SelectorOperator::In,
            "notin" => SelectorOperator::NotIn,
            _ => return None,
        };
        let values = list.strip_suffix(')')?.split(',').map(str::trim);
        let values: Vec<String> = values.map(str::to_owned).collect();
        let is_good = values.iter().all(|it| is_label_value(it));
        (key, operator, is_good.then_some(values)?)
    } else if let Some((key, text)) = term.split_once("!=") {
        (key, SelectorOperator::NotIn, one(text)?)
    } else if let Some((key, text)) = term.split_once('=') {
        let text = text.strip_prefix('=').unwrap_or(text);
        (key, SelectorOperator::In, one(text)?)
    } else {
        (term, SelectorOperator::Exists, Vec::new())
    };
    let key = key.trim();
    is_label_key(key).then_some(SelectorTerm {
        key,
        operator,
        values,
    })
}

fn is_label_key(key: &str) -> bool {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let is_known = |it: u8| it.is_ascii_alphanumeric() || b"-_./".contains(&it);
    !name.is_empty() && key.bytes().all(is_known)
}

fn is_label_value(text: &str) -> bool {
    let is_known = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    text.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn cluster() -> NodePoolLabels {
        let pool = |name: &str, team: &str| {
            let labels = [("team".to_owned(), team.to_owned())];
            (name.to_owned(), BTreeMap::from(labels))
        };
        BTreeMap::from([
            pool("web", "shop"),
            pool("web-canary", "shop"),
            pool("batch", "data"),
            pool("gpu", "data"),
        ])
    }

    fn matched(names: Option<&str>, selector: Option<&str>) -> String {
        let wanted = NodePools::parse(names, selector).unwrap();
        let cluster = cluster();
        let selected = wanted.selected(&cluster);
        let is_for = |pool: &&String| {
            wanted.names(pool) && selected.as_ref().is_none_or(|it| it.contains(*pool))
        };
        let names: Vec<&str> = cluster.keys().filter(is_for).map(String::as_str).collect();
        names.join(" ")
    }

    #[test]
    fn names_globs_exclusions_and_selectors_pick_pools() {
        for (names, selector, expected) in [
            (None, None, "batch gpu web web-canary"),
            (Some("web"), None, "web"),
            (Some("web*"), None, "web web-canary"),
            (Some("*a*"), None, "batch web-canary"),
            (Some("!gpu"), None, "batch web web-canary"),
            (Some("web*, !*-canary ,batch"), None, "batch web"),
            (Some("*"), Some("team=data"), "batch gpu"),
            (Some("!gpu"), Some("team==data"), "batch"),
            (None, Some("team!=data"), "web web-canary"),
            (
                None,
                Some("team in (shop, data),!spare"),
                "batch gpu web web-canary",
            ),
            (None, Some("team notin (shop)"), "batch gpu"),
            (None, Some("spare"), ""),
        ] {
            assert_eq!(matched(names, selector), expected, "{names:?} {selector:?}");
        }
    }

    #[test]
    fn what_names_no_pool_is_refused_with_the_way_out() {
        for (names, selector) in [
            (Some(""), None),
            (Some("web,"), None),
            (Some("Web"), None),
            (Some("web batch"), None),
            (Some("!"), None),
            (None, Some("")),
            (None, Some("team in shop")),
            (None, Some("team like (shop)")),
            (None, Some("team=a b")),
            (None, Some("team=a,")),
        ] {
            let error = NodePools::parse(names, selector).unwrap_err();
            assert!(error.to_string().contains("; use "), "{error}");
        }
    }

    #[test]
    fn what_matches_nothing_is_told_with_a_guess() {
        let unmatched = |names, selector| {
            NodePools::parse(names, selector)
                .unwrap()
                .unmatched(&cluster())
        };
        assert_eq!(
            unmatched(Some("wbe,bat*,!gpus,none-such"), Some("team=none")),
            [
                "wbe (did you mean web?)",
                "none-such",
                "!gpus (did you mean gpu?)",
                NODE_POOL_SELECTOR_ANNOTATION
            ]
        );
        assert_eq!(unmatched(Some("web,!gpu"), None), [""; 0]);
    }
}
