//! Reads fields of `spec.kubelet` and notes what is wrong with them, each with its path.
//!
//! Puts no default in the place of what it cannot read, and does not stop at the first fault.

use crate::kubelet::fields::{EVICTION_SIGNALS, MANAGED, RESERVABLE, UPSTREAM};
use crate::kubelet::{Kubelet, KubeletExpression};
use apis::GoDuration;
use apis::quantity::ParsedQuantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of one class, with what was found out while reading.
pub(super) struct KubeletReader<'a> {
    /// As the class has them.
    pub(super) map: &'a BTreeMap<String, Value>,
    /// Faults, each with the path of its field.
    pub(super) errors: Vec<String>,
    /// Values that only follow from the machine.
    pub(super) expressions: Vec<KubeletExpression>,
}

impl KubeletReader<'_> {
    /// Notes a fault of a field.
    pub(super) fn fail(&mut self, path: &str, what: &str) {
        self.errors.push(format!("spec.kubelet.{path}: {what}"));
    }

    /// A list of strings; empty where the field is absent or faulty.
    pub(super) fn strings(&mut self, field: &str) -> Vec<String> {
        let Some(value) = self.map.get(field).filter(|value| !value.is_null()) else {
            return Vec::new();
        };
        let strings = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        });
        strings.unwrap_or_else(|| {
            self.fail(field, "must be a list of strings");
            Vec::new()
        })
    }

    /// A whole number within bounds, both included.
    pub(super) fn integer(&mut self, field: &str, min: i64, max: i64) -> Option<i64> {
        let value = self.map.get(field).filter(|value| !value.is_null())?;
        match value.as_i64() {
            Some(number) if (min..=max).contains(&number) => Some(number),
            Some(_) => {
                self.fail(field, &format!("must lie between {min} and {max}"));
                None
            }
            None => {
                self.fail(field, "must be an integer");
                None
            }
        }
    }

    /// True or false.
    pub(super) fn boolean(&mut self, field: &str) -> Option<bool> {
        let value = self.map.get(field).filter(|value| !value.is_null())?;
        if value.as_bool().is_none() {
            self.fail(field, "must be true or false");
        }
        value.as_bool()
    }

    /// `maxPods`, unless it is an expression.
    pub(super) fn max_pods(&mut self) -> Option<i64> {
        if let Some(Value::String(source)) = self.map.get("maxPods") {
            self.set_aside("maxPods".to_owned(), source);
            return None;
        }
        self.integer("maxPods", 0, i64::from(i32::MAX))
    }

    fn set_aside(&mut self, path: String, source: &str) {
        let source = source.to_owned();
        self.expressions.push(KubeletExpression { path, source });
    }

    /// A map of strings, without entries of other types.
    pub(super) fn entries(&mut self, field: &str) -> BTreeMap<String, String> {
        let Some(value) = self.map.get(field).filter(|value| !value.is_null()) else {
            return BTreeMap::new();
        };
        let Some(object) = value.as_object() else {
            self.fail(field, "must be a map of strings");
            return BTreeMap::new();
        };
        let mut entries = BTreeMap::new();
        for (key, value) in object {
            match value.as_str() {
                Some(text) => drop(entries.insert(key.clone(), text.to_owned())),
                None => self.fail(&format!("{field}[{key}]"), "must be a string"),
            }
        }
        entries
    }

    /// Quantities by resource, without those that are expressions.
    pub(super) fn reserved(&mut self, field: &str) -> BTreeMap<String, String> {
        let mut entries = self.entries(field);
        entries.retain(|key, value| {
            let path = format!("{field}[{key}]");
            if !RESERVABLE.contains(&key.as_str()) {
                self.fail(&path, "cannot be reserved");
                return false;
            }
            if value.starts_with('-') {
                self.fail(&path, "must not be negative");
                return false;
            }
            if value.parse::<ParsedQuantity>().is_err() {
                self.set_aside(format!("{field}.{key}"), value);
                return false;
            }
            true
        });
        entries
    }

    /// Thresholds by eviction signal, as quantities or percentages.
    pub(super) fn eviction(&mut self, field: &str) -> BTreeMap<String, String> {
        let entries = self.entries(field);
        for (key, value) in &entries {
            let path = format!("{field}[{key}]");
            self.signal(&path, key);
            if let Some(percent) = value.strip_suffix('%') {
                let is_fine = percent
                    .parse::<f64>()
                    .is_ok_and(|percent| (0.0..=100.0).contains(&percent));
                if !is_fine {
                    self.fail(&path, "must be a percentage between 0% and 100%");
                }
            } else if value
                .parse::<ParsedQuantity>()
                .map_or(true, ParsedQuantity::is_negative)
            {
                self.fail(
                    &path,
                    "must be a percentage or a quantity that is not negative",
                );
            }
        }
        entries
    }

    /// `evictionSoftGracePeriod`, durations by eviction signal.
    pub(super) fn grace_periods(&mut self) -> BTreeMap<String, String> {
        let field = "evictionSoftGracePeriod";
        let entries = self.entries(field);
        for (key, value) in &entries {
            let path = format!("{field}[{key}]");
            self.signal(&path, key);
            if value.starts_with('-') || value.parse::<GoDuration>().is_err() {
                self.fail(&path, "must be a duration that is not negative");
            }
        }
        entries
    }

    /// Notes it where a key is no eviction signal.
    pub(super) fn signal(&mut self, path: &str, key: &str) {
        if !EVICTION_SIGNALS.contains(&key) {
            self.fail(path, "is not an eviction signal");
        }
    }

    /// Notes fields that no kubelet has.
    pub(super) fn unknown_fields(&mut self) {
        let map = self.map;
        for key in map.keys().map(String::as_str) {
            if key == "registerWithTaints" {
                self.fail(key, "is owned by the NodePool's taints");
            } else if !MANAGED.contains(&key) && !UPSTREAM.contains(&key) {
                self.fail(key, "is not a field of the kubelet's configuration");
            }
        }
    }

    /// Notes what fields demand of each other.
    pub(super) fn relations(&mut self, kubelet: &Kubelet) {
        let soft = &kubelet.eviction_soft;
        let grace = &kubelet.eviction_soft_grace_period;
        if soft.keys().ne(grace.keys()) {
            self.fail(
                "evictionSoft",
                "must name the same signals as evictionSoftGracePeriod",
            );
        }
        let (high, low) = (
            kubelet.image_gc_high_threshold_percent,
            kubelet.image_gc_low_threshold_percent,
        );
        if let (Some(high), Some(low)) = (high, low)
            && high <= low
        {
            self.fail(
                "imageGCHighThresholdPercent",
                "must be greater than imageGCLowThresholdPercent",
            );
        }
    }
}
