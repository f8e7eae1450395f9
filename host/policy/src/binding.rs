//! A binding: the ConfigMap by which somebody puts a policy in charge, read from plain maps.
//!
//! Every mistake names the key it is in and the way out; what nobody would read is a mistake. Nothing is loaded here.

mod config;
pub(crate) mod error;
mod facts;
mod keys;
mod module;
mod node_pools;
mod other_config_map;

use apis::ObjectKey;
use hooks::binding::keys::{
    APPLIES_TO_KEY, AUTHORITY_ANNOTATION, BUILTIN_KEY, EXCLUDE_KEY, MESSAGE_KEY, MODE_ANNOTATION,
    MODULE_KEY, NODE_POOL_SELECTOR_ANNOTATION, NODE_POOLS_ANNOTATION, ON_FAILURE_ANNOTATION,
    ORDER_ANNOTATION, POLICY_LABEL, RULE_KEY, SHA256_KEY, VARIABLES_KEY,
};
use hooks::binding::{Authority, BindingSource, Mode, OnFailure};
use hooks::policy_use::PolicyKind;

use crate::builtin::{self, BUILTINS};
use crate::rule::source::RuleSource;

pub use error::BindingError;
use error::value;
pub use facts::BindingFacts;
pub use keys::{BINDING_ANNOTATIONS, BINDING_BINARY_DATA, BINDING_DATA, BINDING_LABELS};
pub use node_pools::NodePools;
pub(crate) use node_pools::Scope;
use other_config_map::is_name;

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
    /// Namespace and name of the ConfigMap.
    pub key: ObjectKey,
    /// Kinds of decisions that it judges: one kind, or all for `full`.
    pub kinds: Vec<PolicyKind>,
    /// Use that is made of the policy's answer.
    pub mode: Mode,
    /// NodePools it is for.
    pub node_pools: NodePools,
    /// Place in the chain.
    pub order: i32,
    /// Who decides when it fails.
    pub on_failure: OnFailure,
    /// How far a policy of budgets reaches.
    pub authority: Authority,
    /// Code of the policy: a component or expressions.
    pub source: PolicySource,
    /// JSON given to the component; empty when there is none.
    pub config: String,
    /// Hexadecimal digest that the component must have.
    pub sha256: Option<String>,
    /// Facts that it tells the policy beside its settings.
    pub facts: BindingFacts,
}

impl Binding {
    /// Reads a ConfigMap. Components larger than `bytes_max` when unpacked are refused while unpacking.
    pub fn parse(source: &BindingSource, bytes_max: usize) -> Result<Self, BindingError> {
        keys::refuse_unknown(source)?;
        let annotation = |key: &str| source.annotations.get(key).map(|value| value.trim());
        let label = source.labels.get(POLICY_LABEL).map_or("", String::as_str);
        let kinds = kinds(label)?;
        Ok(Self {
            key: source.key(),
            mode: mode(annotation(MODE_ANNOTATION))?,
            node_pools: NodePools::parse(
                annotation(NODE_POOLS_ANNOTATION),
                annotation(NODE_POOL_SELECTOR_ANNOTATION),
            )?,
            order: order(annotation(ORDER_ANNOTATION))?,
            on_failure: on_failure(annotation(ON_FAILURE_ANNOTATION), &kinds)?,
            authority: authority(annotation(AUTHORITY_ANNOTATION), &kinds)?,
            source: policy_source(source, bytes_max)?,
            config: config::config(source)?,
            sha256: sha256(source.data.get(SHA256_KEY).map_or("", String::as_str))?,
            facts: BindingFacts::read(source)?,
            kinds,
        })
    }
}

/// Names of the ConfigMaps beside a binding without which it cannot be read.
pub fn references(source: &BindingSource) -> Vec<String> {
    let config = config::reference(source).map(|it| it.name);
    let names = config.into_iter().chain(module::parts(source));
    names
        .filter(|name| is_name(name))
        .map(str::to_owned)
        .collect()
}

fn kinds(label: &str) -> Result<Vec<PolicyKind>, BindingError> {
    match label {
        "rank" => Ok(vec![PolicyKind::Rank]),
        "consolidation" => Ok(vec![PolicyKind::Consolidation]),
        "budgets" => Ok(vec![PolicyKind::Budgets]),
        "full" => Ok(PolicyKind::ALL.to_vec()),
        other => Err(value(
            POLICY_LABEL,
            other,
            "rank, consolidation, budgets or full",
        )),
    }
}

fn mode(text: Option<&str>) -> Result<Mode, BindingError> {
    match text {
        None => Ok(Mode::Enforce),
        Some(text) => text
            .parse()
            .map_err(|_| value(MODE_ANNOTATION, text, "enforce, shadow, canary:10% or off")),
    }
}

fn order(text: Option<&str>) -> Result<i32, BindingError> {
    let Some(text) = text else { return Ok(0) };
    text.parse()
        .map_err(|_| value(ORDER_ANNOTATION, text, "a whole number"))
}

fn on_failure(text: Option<&str>, kinds: &[PolicyKind]) -> Result<OnFailure, BindingError> {
    match text {
        None | Some("default") => Ok(OnFailure::Default),
        // A launch cannot be held back for want of an opinion: pods wait for it.
        Some("hold") if kinds == [PolicyKind::Rank] => Err(BindingError::NoEffect {
            key: ON_FAILURE_ANNOTATION,
            found: "hold",
            kind: "rank, where the default decides after a failure",
        }),
        Some("hold") => Ok(OnFailure::Hold),
        Some(other) => Err(value(ON_FAILURE_ANNOTATION, other, "default or hold")),
    }
}

fn authority(text: Option<&str>, kinds: &[PolicyKind]) -> Result<Authority, BindingError> {
    match text {
        None | Some("lower") => Ok(Authority::Lower),
        Some("replace") => match kinds {
            [PolicyKind::Budgets] | [_, _, ..] => Ok(Authority::Replace),
            [PolicyKind::Rank | PolicyKind::Consolidation] | [] => Err(BindingError::NoEffect {
                key: AUTHORITY_ANNOTATION,
                found: "replace",
                kind: kinds.first().map_or("", |kind| kind.as_str()),
            }),
        },
        Some(other) => Err(value(
            AUTHORITY_ANNOTATION,
            other,
            "lower or replace, or leave it out",
        )),
    }
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
        rule: text(RULE_KEY).unwrap_or_default().to_owned(),
        exclude: text(EXCLUDE_KEY).unwrap_or_default().to_owned(),
        variables: text(VARIABLES_KEY).unwrap_or_default().to_owned(),
        message: text(MESSAGE_KEY).unwrap_or_default().to_owned(),
        applies_to: text(APPLIES_TO_KEY).unwrap_or_default().to_owned(),
    };
    let mut named: Vec<&'static str> = [BUILTIN_KEY, MODULE_KEY]
        .into_iter()
        .filter(|key| text(key).is_some())
        .collect();
    if rule != RuleSource::default() {
        named.insert(0, RULE_KEY);
    }
    let packed = module::packed(source)?;
    named.extend(packed.iter().map(module::Packed::key));
    match named.as_slice() {
        [] => Err(BindingError::NoPolicy),
        [RULE_KEY] => Ok(PolicySource::Rule(rule)),
        [MODULE_KEY] => {
            let reference = text(MODULE_KEY).unwrap_or_default();
            Err(BindingError::Registry(reference.to_owned()))
        }
        [BUILTIN_KEY] => {
            let name = text(BUILTIN_KEY).unwrap_or_default();
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
        [_] => match packed.first() {
            Some(packed) if packed.is_split && text(SHA256_KEY).is_none() => {
                Err(BindingError::Unsigned)
            }
            Some(packed) => packed.unpack(bytes_max).map(PolicySource::Module),
            None => Err(BindingError::NoPolicy),
        },
        several => Err(BindingError::SeveralPolicies(several.join(", "))),
    }
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
            labels: map(&[(POLICY_LABEL, label)]),
            annotations: map(annotations),
            data: map(data),
            ..BindingSource::default()
        }
    }

    #[test]
    fn a_full_binding_is_read() {
        let source = source(
            "rank",
            &[
                (MODE_ANNOTATION, "canary:10%"),
                (NODE_POOLS_ANNOTATION, "web, batch"),
                (ORDER_ANNOTATION, "10"),
            ],
            &[("builtin", "prefer-arm64"), ("config", "discount: 0.3\n")],
        );
        let binding = Binding::parse(&source, 1 << 20).unwrap();
        assert_eq!(binding.mode, Mode::Canary { percent: 10 });
        assert_eq!(
            (binding.order, binding.config.as_str()),
            (10, r#"{"discount":0.3}"#)
        );
        assert!(binding.node_pools.names("web") && !binding.node_pools.names("gpu"));
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
