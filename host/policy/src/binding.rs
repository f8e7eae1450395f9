//! A binding: the ConfigMap by which somebody puts a policy in charge, read from plain maps.
//!
//! Every mistake names the key it is in and the way out. Nothing is loaded here.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use crate::builtin::{self, BUILTINS};
use crate::limits::Kind;
use crate::rule::RuleSource;

const LABEL_KIND: &str = "mortise.dev/policy";
const ANNOTATION_MODE: &str = "mortise.dev/mode";
const ANNOTATION_NODE_POOLS: &str = "mortise.dev/nodepools";
const ANNOTATION_ORDER: &str = "mortise.dev/order";
const ANNOTATION_ON_FAILURE: &str = "mortise.dev/on-failure";
const ANNOTATION_AUTHORITY: &str = "mortise.dev/authority";
/// Keys of the binary data, in the order of their packing.
const MODULE_KEYS: [&str; 3] = ["policy.wasm", "policy.wasm.gz", "policy.wasm.zst"];

/// A ConfigMap as plain maps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindingSource {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Name of the ConfigMap.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its text values.
    pub data: BTreeMap<String, String>,
    /// Its binary values, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

impl BindingSource {
    /// Who the binding is.
    pub fn key(&self) -> BindingKey {
        BindingKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Namespace and name of a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingKey {
    /// Namespace of the ConfigMap.
    pub namespace: String,
    /// Name of the ConfigMap.
    pub name: String,
}

impl fmt::Display for BindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a policy's answer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It decides.
    Enforce,
    /// It is asked after the decision, and the difference is reported.
    Shadow,
    /// It decides for so many of a hundred decisions, picked by their id.
    Canary {
        /// 0 to 100.
        percent: u8,
    },
    /// It is checked and not asked.
    Off,
}

/// Who decides when the policy fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The built-in default.
    Default,
    /// Nobody: nothing is disrupted this round.
    Hold,
}

/// How far a budget policy reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The declared budgets hold in any case.
    Lower,
    /// Its answer stands in for the declared budgets.
    Replace,
}

/// Where the component comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// Part of this binary.
    Builtin(&'static str),
    /// Carried by the ConfigMap; unpacked.
    Module(Vec<u8>),
    /// Expressions in the ConfigMap.
    Rule(RuleSource),
}

/// A binding that makes sense, not yet loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Who it is.
    pub key: BindingKey,
    /// What it judges: one kind, or all for `full`.
    pub kinds: Vec<Kind>,
    /// What its answer does.
    pub mode: Mode,
    /// NodePools it is for; empty means all.
    pub node_pools: Vec<String>,
    /// Place in the chain.
    pub order: i32,
    /// Who decides when it fails.
    pub on_failure: OnFailure,
    /// For budgets.
    pub authority: Authority,
    /// Its component.
    pub source: PolicySource,
    /// JSON given to the component; empty when there is none.
    pub config: String,
    /// Hexadecimal digest that the component must have.
    pub sha256: Option<String>,
}

/// Why a ConfigMap is no binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// A key with a value that means nothing.
    #[error("{key}: {found:?} is not valid; use {expected}")]
    Value {
        /// Label, annotation or data key.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: String,
    },
    /// Components are not fetched: the controller would need credentials, and a start would need a
    /// registry that answers.
    #[error(
        "data.module: components are not fetched from registries; put the bytes of {0} into \
         binaryData[\"policy.wasm.zst\"], which `mortise policy pack` does"
    )]
    Registry(String),
    /// Nothing says which component to run.
    #[error(
        "names no policy; set data.rule to an expression, data.builtin to a name, or \
         binaryData[\"policy.wasm\"] (or .gz, .zst) to a component"
    )]
    NoPolicy,
    /// Several things say which component to run.
    #[error("names more than one policy ({0}); keep one of them")]
    SeveralPolicies(String),
    /// A packed component that does not unpack.
    #[error("binaryData[{key:?}]: cannot be unpacked: {error}; pack it again")]
    Unpack {
        /// Binary key.
        key: &'static str,
        /// The unpacker's words.
        error: String,
    },
    /// A component beyond the limit.
    #[error(
        "binaryData[{key:?}]: the component is larger than {bytes_max} bytes; build it for size"
    )]
    TooLarge {
        /// Binary key.
        key: &'static str,
        /// The limit.
        bytes_max: usize,
    },
    /// A config that is neither JSON nor YAML.
    #[error("data.config: neither JSON nor YAML: {0}")]
    Config(String),
}

impl BindingError {
    /// CamelCase word for the status.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Registry(_) => "NotSupported",
            Self::Unpack { .. } => "UnpackFailed",
            Self::TooLarge { .. } => "TooLarge",
            Self::Config(_) => "InvalidConfig",
            Self::Value { .. } | Self::NoPolicy | Self::SeveralPolicies(_) => "InvalidBinding",
        }
    }
}

impl Binding {
    /// Reads a ConfigMap. Components larger than `bytes_max` when unpacked are refused while unpacking.
    pub fn parse(source: &BindingSource, bytes_max: usize) -> Result<Self, BindingError> {
        let annotation = |key: &str| source.annotations.get(key).map_or("", |value| value.trim());
        Ok(Self {
            key: source.key(),
            kinds: kinds(source.labels.get(LABEL_KIND).map_or("", String::as_str))?,
            mode: mode(annotation(ANNOTATION_MODE))?,
            node_pools: words(annotation(ANNOTATION_NODE_POOLS)),
            order: order(annotation(ANNOTATION_ORDER))?,
            on_failure: on_failure(annotation(ANNOTATION_ON_FAILURE))?,
            authority: authority(annotation(ANNOTATION_AUTHORITY))?,
            source: policy_source(source, bytes_max)?,
            config: config(source.data.get("config").map_or("", String::as_str))?,
            sha256: sha256(source.data.get("sha256").map_or("", String::as_str))?,
        })
    }

    /// Whether the binding is for the pool.
    pub fn is_for(&self, node_pool: &str) -> bool {
        self.node_pools.is_empty() || self.node_pools.iter().any(|name| name == node_pool)
    }
}

fn value(key: &'static str, found: &str, expected: &str) -> BindingError {
    BindingError::Value {
        key,
        found: found.to_owned(),
        expected: expected.to_owned(),
    }
}

fn kinds(label: &str) -> Result<Vec<Kind>, BindingError> {
    match label {
        "rank" => Ok(vec![Kind::Rank]),
        "consolidation" => Ok(vec![Kind::Consolidation]),
        "budgets" => Ok(vec![Kind::Budgets]),
        "full" => Ok(Kind::ALL.to_vec()),
        other => Err(value(
            LABEL_KIND,
            other,
            "rank, consolidation, budgets or full",
        )),
    }
}

fn mode(text: &str) -> Result<Mode, BindingError> {
    match text {
        "" | "enforce" => Ok(Mode::Enforce),
        "shadow" => Ok(Mode::Shadow),
        "off" => Ok(Mode::Off),
        other => other
            .strip_prefix("canary:")
            .and_then(|rest| rest.strip_suffix('%'))
            .and_then(|percent| percent.parse().ok())
            .filter(|percent| *percent <= 100)
            .map(|percent| Mode::Canary { percent })
            .ok_or_else(|| value(ANNOTATION_MODE, other, "enforce, shadow, canary:10% or off")),
    }
}

fn order(text: &str) -> Result<i32, BindingError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| value(ANNOTATION_ORDER, text, "a whole number"))
}

fn on_failure(text: &str) -> Result<OnFailure, BindingError> {
    match text {
        "" | "default" => Ok(OnFailure::Default),
        "hold" => Ok(OnFailure::Hold),
        other => Err(value(ANNOTATION_ON_FAILURE, other, "default or hold")),
    }
}

fn authority(text: &str) -> Result<Authority, BindingError> {
    match text {
        "" | "lower" => Ok(Authority::Lower),
        "replace" => Ok(Authority::Replace),
        other => Err(value(
            ANNOTATION_AUTHORITY,
            other,
            "replace, or leave it out",
        )),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn policy_source(source: &BindingSource, bytes_max: usize) -> Result<PolicySource, BindingError> {
    // A key with nothing in it is as good as none: `kubectl create --from-literal` leaves such ones.
    let text = |key: &str| {
        source
            .data
            .get(key)
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
    };
    let rule = RuleSource {
        rule: text("rule").unwrap_or_default().to_owned(),
        exclude: text("exclude").unwrap_or_default().to_owned(),
    };
    let mut named: Vec<&'static str> = ["builtin", "module"]
        .into_iter()
        .filter(|key| text(key).is_some())
        .collect();
    if rule != RuleSource::default() {
        named.insert(0, "rule");
    }
    named.extend(
        MODULE_KEYS
            .into_iter()
            .filter(|key| source.binary_data.contains_key(*key)),
    );
    match named.as_slice() {
        [] => Err(BindingError::NoPolicy),
        ["rule"] => Ok(PolicySource::Rule(rule)),
        ["module"] => {
            let reference = text("module").unwrap_or_default();
            Err(BindingError::Registry(reference.to_owned()))
        }
        ["builtin"] => {
            let name = text("builtin").unwrap_or_default();
            builtin::find(name)
                .map(|it| PolicySource::Builtin(it.name))
                .ok_or_else(|| {
                    let names: Vec<&str> = BUILTINS.iter().map(|it| it.name).collect();
                    value(
                        "data.builtin",
                        name,
                        &format!("one of {}", names.join(", ")),
                    )
                })
        }
        [key] => {
            let packed = source.binary_data.get(*key).map_or(&[][..], Vec::as_slice);
            unpack(key, packed, bytes_max).map(PolicySource::Module)
        }
        several => Err(BindingError::SeveralPolicies(several.join(", "))),
    }
}

fn unpack(key: &'static str, packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, BindingError> {
    let failed = |error: std::io::Error| BindingError::Unpack {
        key,
        error: error.to_string(),
    };
    let reader: Box<dyn Read + '_> = match key.rsplit('.').next() {
        Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Some("zst") => Box::new(zstd::stream::read::Decoder::new(packed).map_err(failed)?),
        _ => Box::new(packed),
    };
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > bytes_max {
        return Err(BindingError::TooLarge { key, bytes_max });
    }
    Ok(bytes)
}

/// JSON as it stands; anything else is read as YAML and given on as JSON, since that is all a guest reads.
fn config(text: &str) -> Result<String, BindingError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
        return Ok(value.to_string());
    }
    serde_saphyr::from_str::<serde_json::Value>(text)
        .map(|value| value.to_string())
        .map_err(|error| BindingError::Config(error.to_string()))
}

fn sha256(text: &str) -> Result<Option<String>, BindingError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text
        .strip_prefix("sha256:")
        .unwrap_or(text)
        .to_ascii_lowercase();
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(Some(digits))
    } else {
        Err(value("data.sha256", text, "64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(label: &str, annotations: &[(&str, &str)], data: &[(&str, &str)]) -> BindingSource {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        BindingSource {
            namespace: "mortise".to_owned(),
            name: "it".to_owned(),
            labels: map(&[(LABEL_KIND, label)]),
            annotations: map(annotations),
            data: map(data),
            binary_data: BTreeMap::new(),
        }
    }

    #[test]
    fn a_full_binding_is_read() {
        let source = source(
            "rank",
            &[
                (ANNOTATION_MODE, "canary:10%"),
                (ANNOTATION_NODE_POOLS, "web, batch"),
                (ANNOTATION_ORDER, "10"),
            ],
            &[("builtin", "prefer-arm64"), ("config", "discount: 0.3\n")],
        );
        let binding = Binding::parse(&source, 1 << 20).unwrap();
        assert_eq!(binding.mode, Mode::Canary { percent: 10 });
        assert_eq!(binding.node_pools, ["web", "batch"]);
        assert_eq!(
            (binding.order, binding.config.as_str()),
            (10, r#"{"discount":0.3}"#)
        );
        assert!(binding.is_for("web") && !binding.is_for("gpu"));
    }

    #[test]
    fn each_mistake_names_its_key_and_the_way_out() {
        for (label, annotations, data, words) in [
            (
                "ranking",
                &[][..],
                &[("builtin", "default-rank")][..],
                "mortise.dev/policy: \"ranking\"",
            ),
            (
                "rank",
                &[(ANNOTATION_MODE, "on")],
                &[("builtin", "default-rank")],
                "mortise.dev/mode: \"on\"",
            ),
            (
                "rank",
                &[(ANNOTATION_ORDER, "x")],
                &[("builtin", "default-rank")],
                "a whole number",
            ),
            (
                "rank",
                &[],
                &[("builtin", "defualt")],
                "one of default-rank",
            ),
            ("rank", &[], &[], "set data.rule"),
            (
                "rank",
                &[],
                &[("module", "oci://x")],
                "data.module: components are not fetched from registries; put the bytes of oci://x",
            ),
            (
                "rank",
                &[],
                &[("rule", "1"), ("builtin", "default-rank")],
                "rule, builtin",
            ),
            (
                "rank",
                &[],
                &[("builtin", "default-rank"), ("config", "{a: ")],
                "data.config",
            ),
            (
                "rank",
                &[],
                &[("builtin", "default-rank"), ("sha256", "abc")],
                "64 hexadecimal digits",
            ),
        ] {
            let error = Binding::parse(&source(label, annotations, data), 1 << 20).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn modules_are_unpacked_up_to_the_limit() {
        use std::io::Write;
        let bytes = vec![7_u8; 5000];
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&bytes).unwrap();
        let packed = [
            ("policy.wasm", bytes.clone()),
            ("policy.wasm.gz", gz.finish().unwrap()),
            ("policy.wasm.zst", zstd::encode_all(&bytes[..], 3).unwrap()),
        ];
        for (key, packed) in packed {
            let mut source = source("rank", &[], &[]);
            source.binary_data.insert(key.to_owned(), packed);
            let binding = Binding::parse(&source, 5000).unwrap();
            assert_eq!(binding.source, PolicySource::Module(bytes.clone()));
            let error = Binding::parse(&source, 4999).unwrap_err();
            assert!(matches!(error, BindingError::TooLarge { .. }), "{error}");
            if key != "policy.wasm" {
                source.binary_data.get_mut(key).unwrap().truncate(9);
                let error = Binding::parse(&source, 5000).unwrap_err();
                assert!(matches!(error, BindingError::Unpack { .. }), "{error}");
            }
        }
    }
}
