//! The keys that a binding may have, and what is said of any other.
//!
//! A key that nobody reads would be a wish that nobody fulfils: `mortise.dev/Mode: shadow` would enforce. So whatever
//! is not in these tables is refused. What a reader in another file understands has its row here.

use apis::labels::MAX_PREMIUM_ANNOTATION;
use hooks::binding::BindingSource;
use hooks::binding::keys::{
    APPLIES_TO_KEY, AUTHORITY_ANNOTATION, BUILTIN_KEY, CALENDARS_KEY, CONFIG_FROM_KEY, CONFIG_KEY,
    EXCLUDE_KEY, INTERRUPTION_RATES_KEY, MESSAGE_KEY, MODE_ANNOTATION, MODULE_KEY,
    NODE_POOL_SELECTOR_ANNOTATION, NODE_POOLS_ANNOTATION, ON_FAILURE_ANNOTATION, ORDER_ANNOTATION,
    PARTS_ANNOTATION, POLICY_LABEL, RULE_KEY, SHA256_KEY, STATUS_ANNOTATION, TIME_ZONES_KEY,
    VARIABLES_KEY, WORKLOAD_LABELS_ANNOTATION,
};

use super::error::BindingError;
use crate::typo::{distance, near};

/// Labels of a binding.
pub const BINDING_LABELS: [&str; 1] = [POLICY_LABEL];
/// Annotations of a binding; the last one is the controller's own.
pub const BINDING_ANNOTATIONS: [&str; 10] = [
    MODE_ANNOTATION,
    NODE_POOLS_ANNOTATION,
    NODE_POOL_SELECTOR_ANNOTATION,
    ORDER_ANNOTATION,
    ON_FAILURE_ANNOTATION,
    AUTHORITY_ANNOTATION,
    PARTS_ANNOTATION,
    MAX_PREMIUM_ANNOTATION,
    WORKLOAD_LABELS_ANNOTATION,
    STATUS_ANNOTATION,
];
/// Keys of `data` that a binding may have.
pub const BINDING_DATA: [&str; 13] = [
    RULE_KEY,
    EXCLUDE_KEY,
    VARIABLES_KEY,
    MESSAGE_KEY,
    APPLIES_TO_KEY,
    BUILTIN_KEY,
    MODULE_KEY,
    CONFIG_KEY,
    CONFIG_FROM_KEY,
    TIME_ZONES_KEY,
    CALENDARS_KEY,
    INTERRUPTION_RATES_KEY,
    SHA256_KEY,
];
/// Keys of `binaryData`, in the order of their packing. With a number after another dot each is a chunk of a component.
pub const BINDING_BINARY_DATA: [&str; 3] = ["policy.wasm", "policy.wasm.gz", "policy.wasm.zst"];

const DOMAIN: &str = "mortise.dev";

/// A part of a ConfigMap that holds keys of bindings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BindingPart {
    Label,
    Annotation,
    Data,
    BinaryData,
}

impl BindingPart {
    const ALL: [Self; 4] = [Self::Label, Self::Annotation, Self::Data, Self::BinaryData];

    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Label => &BINDING_LABELS,
            Self::Annotation => &BINDING_ANNOTATIONS,
            Self::Data => &BINDING_DATA,
            Self::BinaryData => &BINDING_BINARY_DATA,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Label => "metadata.labels",
            Self::Annotation => "metadata.annotations",
            Self::Data => "data",
            Self::BinaryData => "binaryData",
        }
    }
}

/// The key that a chunk is of, and its number.
pub(super) fn chunk_of(key: &str) -> Option<(&'static str, usize)> {
    let (whole, number) = key.rsplit_once('.')?;
    let known = BINDING_BINARY_DATA.iter().find(|it| **it == whole)?;
    // Only the plain spelling: `00` and `+1` would name a chunk twice.
    let parsed: usize = number.parse().ok()?;
    (parsed.to_string() == number).then_some((*known, parsed))
}

/// Refuses keys that nobody reads, all at once.
pub(super) fn refuse_unknown(source: &BindingSource) -> Result<(), BindingError> {
    let labels = source.labels.keys().filter(|key| is_ours(key));
    let annotations = source.annotations.keys().filter(|key| is_ours(key));
    let binary = source.binary_data.keys();
    let binary = binary.filter(|key| chunk_of(key).is_none());
    let keys = labels
        .map(|key| (BindingPart::Label, key))
        .chain(annotations.map(|key| (BindingPart::Annotation, key)))
        .chain(source.data.keys().map(|key| (BindingPart::Data, key)))
        .chain(binary.map(|key| (BindingPart::BinaryData, key)));
    let faults: Vec<String> = keys
        .filter(|(place, key)| !place.known().contains(&key.as_str()))
        .map(|(place, key)| fault(place, key))
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(BindingError::UnknownKeys(faults.join("; ")))
    }
}

fn is_ours(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == DOMAIN
        || domain
            .strip_suffix(DOMAIN)
            .is_some_and(|it| it.ends_with('.'))
}

fn fault(place: BindingPart, key: &str) -> String {
    let head = format!("{}[{key:?}] means nothing", place.path());
    let word = plain(key);
    let all = BindingPart::ALL.into_iter().flat_map(|it| {
        let known = it.known().iter();
        known.map(move |known| (it, *known))
    });
    let nearest = all
        .map(|(it, known)| {
            (
                distance(&word, &plain(known)),
                it != place,
                known,
                it.path(),
            )
        })
        .min();
    // Fewer letters may be wrong where the place is wrong as well.
    let is_meant =
        |apart: usize, is_elsewhere: bool| apart <= near(&word, if is_elsewhere { 3 } else { 2 });
    match nearest {
        Some((apart, is_elsewhere, known, path)) if is_meant(apart, is_elsewhere) => {
            if is_elsewhere {
                format!("{head}; {known} goes into {path}")
            } else {
                format!("{head}; did you mean {known}?")
            }
        }
        Some(_) | None => {
            let known = place.known().join(", ");
            format!("{head}; take it out, or use one of {known}")
        }
    }
}

/// A key without its domain, in small letters and without dashes: those are what people get wrong.
fn plain(key: &str) -> String {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let letters = name.chars().filter(|it| !matches!(it, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}
