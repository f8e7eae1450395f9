//! A schema in words: the settings that `mortise policy check` lists, and what a value that is refused must be.

use serde_json::Value;

use super::ConfigSchema;
use super::node::{Bound, CountRange, Others, SchemaNode, SchemaType, ValueSchema};

/// Values of an `enum` that are told one by one.
const LISTED_MAX: usize = 12;

/// A setting of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its key; within lists and objects `commitments[].nodes`, and `performance.*` for any key.
    pub name: String,
    /// Values that it may have, in words: `a number from 0 to 1`.
    pub must_be: String,
    /// Default that stands in for it, as JSON.
    pub default: Option<String>,
    /// Whether it must be there.
    pub is_required: bool,
    /// Purpose of the setting, from the schema; empty without a description.
    pub description: String,
}

impl ConfigSchema {
    /// The settings by name, those within another after it.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        if let SchemaNode::Shape(shape) = &self.root {
            shape.within("", &mut settings);
        }
        settings
    }
}

impl ValueSchema {
    fn within(&self, head: &str, settings: &mut Vec<Setting>) {
        let dot = if head.is_empty() { "" } else { "." };
        for (name, node) in &self.properties {
            let is_required = self.required.contains(name);
            let name = format!("{head}{dot}{name}");
            settings.push(node.setting(&name, is_required));
            node.inner(&name, settings);
        }
        if let Others::Each(node) = &self.others {
            let name = format!("{head}{dot}*");
            settings.push(node.setting(&name, false));
            node.inner(&name, settings);
        }
    }

    /// Values that are allowed, in words.
    pub(super) fn words(&self) -> String {
        if let Some(all) = &self.one_of {
            if all.is_empty() {
                return "absent".to_owned();
            }
            let listed = all.iter().take(LISTED_MAX).map(Value::to_string);
            let listed: Vec<String> = listed.collect();
            let more = match all.len().saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!(" or one of {more} more"),
            };
            return format!("{}{more}", listed.join(" or "));
        }
        if self.types.is_empty() {
            return format!("a value{}", self.limits());
        }
        let types = self.types.iter().map(|it| match it {
            SchemaType::Null => "null",
            SchemaType::Boolean => "true or false",
            SchemaType::Integer => "a whole number",
            SchemaType::Number => "a number",
            SchemaType::String => "a text",
            SchemaType::Array => "a list",
            SchemaType::Object => "an object",
        });
        let types: Vec<&str> = types.collect();
        format!("{}{}", types.join(" or "), self.limits())
    }

    fn limits(&self) -> String {
        let mut words = match (self.least, self.most) {
            (Bound::None, Bound::None) => String::new(),
            (Bound::Inclusive(least), Bound::Inclusive(most)) => {
                format!(" from {least} to {most}")
            }
            (least, most) => {
                let ends = [
                    least.words("at least", "more than"),
                    most.words("at most", "less than"),
                ];
                let ends: Vec<String> = ends.into_iter().flatten().collect();
                format!(" of {}", ends.join(" and "))
            }
        };
        words.push_str(&counted(self.length, "letters"));
        words.push_str(&counted(self.count, "items"));
        if let Some((pattern, _)) = &self.pattern {
            words.push_str(" that matches ");
            words.push_str(pattern);
        }
        words
    }

    pub(super) fn is_within(&self, number: f64) -> bool {
        let is_above = match self.least {
            Bound::None => true,
            Bound::Inclusive(least) => number >= least,
            Bound::Exclusive(least) => number > least,
        };
        is_above
            && match self.most {
                Bound::None => true,
                Bound::Inclusive(most) => number <= most,
                Bound::Exclusive(most) => number < most,
            }
    }
}

impl Bound {
    fn words(self, inclusive: &str, exclusive: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::Inclusive(end) => Some(format!("{inclusive} {end}")),
            Self::Exclusive(end) => Some(format!("{exclusive} {end}")),
        }
    }
}

impl SchemaNode {
    fn setting(&self, name: &str, is_required: bool) -> Setting {
        let (must_be, default, description) = match self {
            Self::Anything => ("a value".to_owned(), None, String::new()),
            Self::Nothing => ("absent".to_owned(), None, String::new()),
            Self::Shape(shape) => (
                shape.words(),
                shape.default.as_ref().map(Value::to_string),
                shape.description.clone(),
            ),
        };
        Setting {
            name: name.to_owned(),
            must_be,
            default,
            is_required,
            description,
        }
    }

    /// The settings within an object, or within the items of a list.
    fn inner(&self, head: &str, settings: &mut Vec<Setting>) {
        let Self::Shape(shape) = self else { return };
        shape.within(head, settings);
        let mut head = head.to_owned();
        let mut items = shape.items.as_ref();
        while let Some(node) = items {
            head.push_str("[]");
            let Self::Shape(item) = node else { return };
            if item.properties.is_empty() && item.items.is_none() {
                settings.push(node.setting(&head, false));
            }
            item.within(&head, settings);
            items = item.items.as_ref();
        }
    }
}

fn counted(range: CountRange, of: &str) -> String {
    match (range.least, range.most) {
        (None, None) => String::new(),
        (Some(least), None) => format!(" of at least {least} {of}"),
        (None, Some(most)) => format!(" of at most {most} {of}"),
        (Some(least), Some(most)) => format!(" of {least} to {most} {of}"),
    }
}
