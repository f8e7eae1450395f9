//! The configuration that a binding gives to its policy: its own, or what another ConfigMap holds.
//!
//! Whether the policy can use it is for its schema and the policy itself to say.

use hooks::binding::BindingSource;
use hooks::binding::keys::{CONFIG_FROM_KEY, CONFIG_KEY};
use serde_json::Value;

use super::error::{BindingError, value};
use super::other_config_map::{is_name, other};

pub(super) const KEY_FROM: &str = "data.config-from";

/// What `config-from` names.
pub(super) struct ConfigReference<'a> {
    /// Name of the ConfigMap.
    pub(super) name: &'a str,
    /// Its key, where one is meant.
    key: Option<&'a str>,
}

/// The ConfigMap that `config-from` names.
pub(super) fn reference(source: &BindingSource) -> Option<ConfigReference<'_>> {
    let text = source.data.get(CONFIG_FROM_KEY)?.trim();
    let (name, key) = match text.split_once('/') {
        Some((name, key)) => (name, Some(key)),
        None => (text, None),
    };
    Some(ConfigReference { name, key })
}

/// The configuration as JSON; empty when there is none.
pub(super) fn config(source: &BindingSource) -> Result<String, BindingError> {
    let own = source.data.get(CONFIG_KEY).map_or("", String::as_str);
    let Some(ConfigReference { name, key }) = reference(source) else {
        return json("data.config", own);
    };
    if !own.trim().is_empty() {
        return Err(BindingError::TwoConfigs);
    }
    if !is_name(name) || key.is_some_and(str::is_empty) {
        return Err(value(
            KEY_FROM,
            source.data.get(CONFIG_FROM_KEY).map_or("", String::as_str),
            "the name of a ConfigMap beside this one, or NAME/KEY",
        ));
    }
    let other = other(source, KEY_FROM, name)?;
    if let Some(key) = key {
        let Some(text) = other.data.get(key) else {
            let keys: Vec<&str> = other.data.keys().map(String::as_str).collect();
            return Err(BindingError::NoSuchKey {
                name: name.to_owned(),
                key: key.to_owned(),
                keys: keys.join(", "),
            });
        };
        return json(KEY_FROM, text);
    }
    let settings = other.data.iter();
    let settings = settings.map(|(key, text)| (key.clone(), setting(text)));
    Ok(Value::Object(settings.collect()).to_string())
}

/// JSON as it stands; anything else is read as YAML and given on as JSON, since that is all a guest reads.
fn json(key: &'static str, text: &str) -> Result<String, BindingError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return Ok(value.to_string());
    }
    serde_saphyr::from_str::<Value>(text)
        .map(|value| value.to_string())
        .map_err(|error| BindingError::Config {
            key,
            error: error.to_string(),
        })
}

/// One key of a ConfigMap as a setting: a number, a list or whatever YAML takes it for, else the text.
fn setting(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hooks::binding::OtherConfigMap;

    use super::*;

    fn source(data: &[(&str, &str)]) -> BindingSource {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let prices = OtherConfigMap {
            data: map(&[
                ("discount", "0.2"),
                ("zones", "[a, b]"),
                ("note", "as of: today: noon"),
            ]),
            binary_data: BTreeMap::new(),
        };
        BindingSource {
            namespace: "mortise".to_owned(),
            data: map(data),
            others: BTreeMap::from([("prices".to_owned(), prices)]),
            ..BindingSource::default()
        }
    }

    #[test]
    fn the_configuration_is_ones_own_or_anothers() {
        for (data, expected) in [
            (&[][..], ""),
            (&[("config", "a: 1")], r#"{"a":1}"#),
            (&[("config-from", "prices/zones")], r#"["a","b"]"#),
            (
                &[("config-from", "prices"), ("config", " ")],
                r#"{"discount":0.2,"note":"as of: today: noon","zones":["a","b"]}"#,
            ),
        ] {
            assert_eq!(config(&source(data)).unwrap(), expected, "{data:?}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_told() {
        for (data, words) in [
            (
                &[("config", "{a: ")][..],
                "data.config: neither JSON nor YAML",
            ),
            (
                &[("config-from", "prices/note")],
                "data.config-from: neither JSON nor YAML",
            ),
            (
                &[("config-from", "price")],
                "there is no ConfigMap price in mortise",
            ),
            (
                &[("config-from", "prices/rates")],
                "has no key rates; it has discount, note, zones",
            ),
            (&[("config-from", "prices/")], "is not valid; use the name"),
            (&[("config-from", "")], "is not valid; use the name"),
            (
                &[("config-from", "other/prices/a")],
                "there is no ConfigMap other in mortise",
            ),
            (
                &[("config-from", "prices"), ("config", "{}")],
                "keep one of them",
            ),
        ] {
            let error = config(&source(data)).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
