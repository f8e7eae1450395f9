//! Reading a policy's configuration: a small JSON reader and the settings on top of it.
//!
//! Written out here because a component should stay below 70 kB and a general JSON library takes more
//! than that alone.

mod json;

use std::ops::RangeInclusive;

use crate::policy::{ConfigIssue, Policy};

pub use json::Json;

/// The configuration while it is read. Every getter names a key, so that keys nobody asked for can be
/// reported as misspelt.
#[derive(Debug)]
pub struct Settings {
    fields: Vec<(String, Json)>,
    known: Vec<&'static str>,
    errors: Vec<ConfigIssue>,
}

impl Settings {
    /// Configures a policy from JSON text (empty text: no settings). Gives the policy and warnings, or
    /// the errors.
    pub fn read<P: Policy>(config: &str) -> Result<(P, Vec<ConfigIssue>), Vec<ConfigIssue>> {
        let mut settings = Self::parse(config)?;
        let policy = P::configure(&mut settings);
        let Self {
            fields,
            known,
            errors,
        } = settings;
        if !errors.is_empty() {
            return Err(errors);
        }
        let warnings = fields
            .iter()
            .filter(|(key, _)| !known.contains(&key.as_str()))
            .map(|(key, _)| issue(key, unknown_key(&known)))
            .collect();
        Ok((policy, warnings))
    }

    fn parse(config: &str) -> Result<Self, Vec<ConfigIssue>> {
        let fields = if config.trim().is_empty() {
            Vec::new()
        } else {
            match Json::parse(config) {
                Ok(Json::Object(fields)) => fields,
                Ok(Json::Null) => Vec::new(),
                Ok(_) => return Err(vec![whole("the configuration must be an object")]),
                Err(message) => return Err(vec![whole(&message)]),
            }
        };
        Ok(Self {
            fields,
            known: Vec::new(),
            errors: Vec::new(),
        })
    }

    /// A number within a range.
    pub fn number(&mut self, key: &'static str, default: f64, range: RangeInclusive<f64>) -> f64 {
        match self.get(key) {
            None => default,
            Some(Json::Number(value)) if range.contains(&value) => value,
            Some(Json::Number(_)) => {
                let (low, high) = (range.start(), range.end());
                self.error(
                    key,
                    [
                        "must be between ",
                        &decimal(*low, 3),
                        " and ",
                        &decimal(*high, 3),
                    ]
                    .concat(),
                );
                default
            }
            Some(_) => self.wrong(key, "a number", default),
        }
    }

    /// A whole number that is not negative.
    pub fn integer(&mut self, key: &'static str, default: u32) -> u32 {
        match self.get(key) {
            None => default,
            Some(Json::Number(value))
                if value >= 0.0 && value <= f64::from(u32::MAX) && value % 1.0 == 0.0 =>
            {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the guard holds it within range"
                )]
                let whole = value as u32;
                whole
            }
            Some(_) => self.wrong(key, "a whole number that is not negative", default),
        }
    }

    /// Yes or no.
    pub fn flag(&mut self, key: &'static str, default: bool) -> bool {
        match self.get(key) {
            None => default,
            Some(Json::Bool(value)) => value,
            Some(_) => self.wrong(key, "true or false", default),
        }
    }

    /// A text.
    pub fn text(&mut self, key: &'static str, default: &str) -> String {
        match self.get(key) {
            None => default.to_owned(),
            Some(Json::Text(value)) => value,
            Some(_) => self.wrong(key, "a text", default.to_owned()),
        }
    }

    /// A list of texts; empty when absent.
    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let Json::List(items) = value else {
            return self.wrong(key, "a list of texts", Vec::new());
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Json::Text(text) => texts.push(text),
                _ => self.errors.push(ConfigIssue {
                    path: pointer(key) + &pointer(&index.to_string()),
                    message: "must be a text".to_owned(),
                }),
            }
        }
        texts
    }

    /// Numbers within a range by name, in the order written; empty when absent.
    pub fn numbers(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Vec<(String, f64)> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let Json::Object(fields) = value else {
            return self.wrong(key, "an object of names and numbers", Vec::new());
        };
        let mut numbers = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            match value {
                Json::Number(value) if range.contains(&value) => numbers.push((name, value)),
                _ => {
                    let (low, high) = (decimal(*range.start(), 3), decimal(*range.end(), 3));
                    let message = ["must be a number between ", &low, " and ", &high].concat();
                    self.errors.push(ConfigIssue {
                        path: pointer(key) + &pointer(&name),
                        message,
                    });
                }
            }
        }
        numbers
    }

    /// Any value, for settings with a shape of their own.
    pub fn get(&mut self, key: &'static str) -> Option<Json> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.fields
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    }

    /// Notes that a setting is wrong: the host then refuses the binding and shows the message.
    pub fn error(&mut self, key: &str, message: impl Into<String>) {
        self.errors.push(issue(key, message.into()));
    }

    fn wrong<T>(&mut self, key: &str, expected: &str, default: T) -> T {
        self.error(key, ["must be ", expected].concat());
        default
    }
}

/// A number with so many places at most (no more than nine), without trailing zeros: small code for
/// messages, where the standard library's exact one takes ten kilobytes.
pub fn decimal(value: f64, places: u32) -> String {
    let text = fixed(value, places);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with exactly so many places (no more than nine), ties to even.
pub fn fixed(value: f64, places: u32) -> String {
    let scale = 10_u64.pow(places.min(9));
    let scaled = (value.abs() * scale as f64).round_ties_even();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and messages need no more"
    )]
    let scaled = scaled as u64;
    let sign = if value < 0.0 && scaled > 0 { "-" } else { "" };
    let whole = (scaled / scale).to_string();
    if scale == 1 {
        return [sign, &whole].concat();
    }
    // The leading 1 keeps the zeros of the fraction.
    let fraction = (scaled % scale + scale).to_string();
    [sign, &whole, ".", fraction.get(1..).unwrap_or_default()].concat()
}

fn unknown_key(known: &[&'static str]) -> String {
    if known.is_empty() {
        "unknown: this policy takes no settings".to_owned()
    } else {
        ["unknown; the settings are ", &known.join(", ")].concat()
    }
}

fn whole(message: &str) -> ConfigIssue {
    ConfigIssue {
        path: String::new(),
        message: message.to_owned(),
    }
}

fn issue(key: &str, message: String) -> ConfigIssue {
    ConfigIssue {
        path: pointer(key),
        message,
    }
}

/// One step of a JSON pointer (RFC 6901).
fn pointer(key: &str) -> String {
    ["/", &key.replace('~', "~0").replace('/', "~1")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Sample {
        discount: f64,
        zones: Vec<String>,
        count: u32,
        shares: Vec<(String, f64)>,
        units: Vec<String>,
    }

    impl Policy for Sample {
        const NAME: &'static str = "sample";
        const SUMMARY: &'static str = "for tests";
        fn configure(settings: &mut Settings) -> Self {
            // Asked for twice: an object of numbers, or one for all.
            let _ = settings.get("shares");
            Self {
                discount: settings.number("discount", 0.2, 0.0..=1.0),
                zones: settings.texts("zones"),
                count: settings.integer("count", 3),
                shares: settings.numbers("shares", 0.0..=1.0),
                units: settings.texts("per/hour"),
            }
        }
    }

    #[test]
    fn absent_settings_take_their_defaults() {
        for config in ["", "  ", "{}", "null"] {
            let (sample, warnings) = Settings::read::<Sample>(config).unwrap();
            assert_eq!(
                (sample.discount, sample.zones.len(), sample.count),
                (0.2, 0, 3)
            );
            assert!(sample.shares.is_empty() && sample.units.is_empty() && warnings.is_empty());
        }
    }

    #[test]
    fn numbers_by_name_keep_their_order() {
        let config = r#"{"shares": {"web": 0.5, "batch": 1}}"#;
        let (sample, _) = Settings::read::<Sample>(config).unwrap();
        let shares = [("web".to_owned(), 0.5), ("batch".to_owned(), 1.0)];
        assert_eq!(sample.shares, shares);
    }

    #[test]
    fn each_mistake_names_its_key() {
        for (config, path, message) in [
            (r#"{"discount": 2}"#, "/discount", "must be between 0 and 1"),
            (r#"{"discount": "x"}"#, "/discount", "must be a number"),
            (r#"{"zones": ["a", 1]}"#, "/zones/1", "must be a text"),
            (r#"{"per/hour": [1]}"#, "/per~1hour/0", "must be a text"),
            (
                r#"{"count": 1.5}"#,
                "/count",
                "must be a whole number that is not negative",
            ),
            (
                r#"{"shares": [1]}"#,
                "/shares",
                "must be an object of names and numbers",
            ),
            (
                r#"{"shares": {"web": 0.5, "a/b": 2}}"#,
                "/shares/a~1b",
                "must be a number between 0 and 1",
            ),
            ("[]", "", "the configuration must be an object"),
            (r#"{"discount" 2}"#, "", "line 1 column 13: expected `:`"),
        ] {
            let issues = Settings::read::<Sample>(config).unwrap_err();
            let found = (issues[0].path.as_str(), issues[0].message.as_str());
            assert_eq!(found, (path, message), "{config}");
        }
    }

    #[test]
    fn numbers_in_messages() {
        assert_eq!(fixed(0.3125, 3), "0.312");
        assert_eq!(fixed(-1.5, 1), "-1.5");
        assert_eq!(fixed(0.0004, 3), "0.000");
        assert_eq!(fixed(7.0, 0), "7");
        assert_eq!(decimal(1.0, 3), "1");
        assert_eq!(decimal(0.25, 3), "0.25");
        assert_eq!(decimal(1200.0, 0), "1200");
    }

    #[test]
    fn a_misspelt_key_is_a_warning() {
        let (_, warnings) = Settings::read::<Sample>(r#"{"disc/ount": 0.1}"#).unwrap();
        assert_eq!(warnings[0].path, "/disc~1ount");
        assert_eq!(
            warnings[0].message,
            "unknown; the settings are shares, discount, zones, count, per/hour"
        );
    }
}
