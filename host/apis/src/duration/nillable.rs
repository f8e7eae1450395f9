//! The duration that also says `Never`, as `consolidateAfter` and `expireAfter` have it.
//!
//! Answers to `NillableDuration` of Karpenter's `pkg/apis/v1/duration.go`.

use super::{DurationError, GoDuration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The word for "no duration".
pub const NEVER: &str = "Never";

/// A duration, or `Never`. Keeps the text it was read from, so that writing it back changes no byte.
#[derive(Debug, Clone)]
pub struct NillableDuration {
    duration: Option<GoDuration>,
    raw: String,
}

impl NillableDuration {
    /// No duration.
    pub fn never() -> Self {
        Self {
            duration: None,
            raw: NEVER.to_owned(),
        }
    }

    /// A duration with Go's text.
    pub fn of(duration: GoDuration) -> Self {
        Self {
            duration: Some(duration),
            raw: duration.to_string(),
        }
    }

    /// So many hours, written without minutes and seconds as people do.
    #[cfg(feature = "objects")]
    pub(crate) fn hours(hours: i64) -> Self {
        Self {
            duration: Some(GoDuration::from_seconds(hours * 3600)),
            raw: format!("{hours}h"),
        }
    }

    /// The duration, or nothing for `Never`.
    pub const fn duration(&self) -> Option<GoDuration> {
        self.duration
    }

    /// Whether it is `Never`.
    pub const fn is_never(&self) -> bool {
        self.duration.is_none()
    }

    /// Whole seconds, or nothing for `Never`.
    pub fn as_seconds(&self) -> Option<i64> {
        self.duration.map(GoDuration::as_seconds)
    }

    /// The text as the user wrote it.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

/// Durations that mean the same are equal, however they are spelt.
impl PartialEq for NillableDuration {
    fn eq(&self, other: &Self) -> bool {
        self.duration == other.duration
    }
}

impl Eq for NillableDuration {}

/// The absent duration: `Never`.
impl Default for NillableDuration {
    fn default() -> Self {
        Self::never()
    }
}

impl FromStr for NillableDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == NEVER {
            return Ok(Self::never());
        }
        Ok(Self {
            duration: Some(text.parse()?),
            raw: text.to_owned(),
        })
    }
}

impl fmt::Display for NillableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

impl Serialize for NillableDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.raw)
    }
}

impl<'de> Deserialize<'de> for NillableDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<Cow<'de, str>>::deserialize(deserializer)? {
            None => Ok(Self::never()),
            Some(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

#[cfg(feature = "objects")]
impl JsonSchema for NillableDuration {
    fn schema_name() -> Cow<'static, str> {
        "NillableDuration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(([0-9]+(s|m|h))+|Never)$"})
    }
}
