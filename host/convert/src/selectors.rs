//! Selectors of Karpenter 0.x, one map that is ANDed with comma lists inside, as terms of v1, which are ORed.
//!
//! Nothing is looked up in AWS: wildcards stay wildcards.

use serde_json::{Map, Value, json};

use crate::Converter;
use crate::report::{Fate, ObjectOrigin};

/// As many terms as v1 takes.
const TERMS_MAX: usize = 30;

/// Kind of AWS object that a selector finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    Subnets,
    SecurityGroups,
    Images,
}

/// Terms of v1 for a map.
pub(crate) fn terms(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    path: &str,
    selector: Vec<(String, String)>,
    finds: Finds,
) -> Vec<Value> {
    let (mut ids, mut names, mut owners, mut tags) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (key, value) in selector {
        match key.as_str() {
            "aws-ids" | "aws::ids" => ids = split(&value),
            "aws::name" if finds == Finds::Images => names = split(&value),
            "aws::owners" if finds == Finds::Images => owners = split(&value),
            _ => tags.push((key, tag_values(&value))),
        }
    }
    let several =
        tags.iter().any(|(_, values)| values.len() > 1) || names.len() > 1 || owners.len() > 1;
    if !ids.is_empty() {
        if !(tags.is_empty() && names.is_empty() && owners.is_empty()) {
            let what = "ids stand alone in v1: what else the selector asked of them is left out";
            work.report.push(origin.note(Fate::Lost, path, what));
        }
        return at_most(
            work,
            origin,
            path,
            ids.into_iter().map(|id| json!({"id": id})).collect(),
        );
    }
    let mut terms = vec![Map::new()];
    for (key, values) in tags {
        terms = crossed(&terms, &values, |term, value| {
            let tags = term.entry("tags").or_insert_with(|| json!({}));
            tags[&key] = value.into();
        });
    }
    for (field, values) in [("name", names), ("owner", owners)] {
        if !values.is_empty() {
            terms = crossed(&terms, &values, |term, value| {
                term.insert(field.to_owned(), value.into());
            });
        }
    }
    if several {
        let what = format!(
            "values that were listed with commas are {} terms",
            terms.len()
        );
        work.report.push(origin.note(Fate::Changed, path, what));
    }
    terms.retain(|term| !term.is_empty());
    at_most(
        work,
        origin,
        path,
        terms.into_iter().map(Value::Object).collect(),
    )
}

/// Every term with every value.
fn crossed(
    terms: &[Map<String, Value>],
    values: &[String],
    set: impl Fn(&mut Map<String, Value>, &str),
) -> Vec<Map<String, Value>> {
    terms
        .iter()
        .flat_map(|term| values.iter().map(move |value| (term, value)))
        .map(|(term, value)| {
            let mut term = term.clone();
            set(&mut term, value);
            term
        })
        .collect()
}

fn at_most(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    path: &str,
    mut terms: Vec<Value>,
) -> Vec<Value> {
    if terms.len() > TERMS_MAX {
        let what = format!(
            "{} terms, of which v1 takes {TERMS_MAX}: the rest is left out",
            terms.len()
        );
        let way_out = "tag what is meant and select by that tag";
        work.report
            .push(origin.note(Fate::Lost, path, what).or(way_out));
        terms.truncate(TERMS_MAX);
    }
    terms
}

/// Values of a tag; no value was any value, as `*` is.
fn tag_values(list: &str) -> Vec<String> {
    match split(list) {
        values if values.is_empty() => vec!["*".to_owned()],
        values => values,
    }
}

fn split(list: &str) -> Vec<String> {
    let parts = list
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}
