//! Why a ConfigMap is no binding: one sentence with the key, what was meant and the way out.

/// Why a ConfigMap is no binding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingError {
    /// A key with a value that means nothing.
    #[error("{key}: {found:?} is not valid; use {expected}")]
    Value {
        /// Label, annotation or data key.
        key: &'static str,
        /// Value as it was written.
        found: String,
        /// Values that would be valid, in words.
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
        /// Key of `binaryData` that holds the component.
        key: &'static str,
        /// Message of the unpacker.
        error: String,
    },
    /// A component beyond the limit.
    #[error(
        "binaryData[{key:?}]: the component is larger than {bytes_max} bytes; build it for size"
    )]
    TooLarge {
        /// Key of `binaryData` that holds the component.
        key: &'static str,
        /// Largest size of a component, bytes.
        bytes_max: usize,
    },
    /// A config that is neither JSON nor YAML.
    #[error("{key}: neither JSON nor YAML: {error}")]
    Config {
        /// Where it was to be read from.
        key: &'static str,
        /// Message of the parser.
        error: String,
    },
    /// Keys that nobody reads.
    #[error("{0}")]
    UnknownKeys(String),
    /// A key whose value has no effect on this kind of policy.
    #[error("{key}: {found} means nothing to a policy of kind {kind}; take it out")]
    NoEffect {
        /// Annotation or data key.
        key: &'static str,
        /// Value as it was written.
        found: &'static str,
        /// Kind of policy that the label names.
        kind: &'static str,
    },
    /// More say over budgets than the controller grants.
    #[error(
        "mortise.dev/authority: replace lifts the budgets that NodePools declare, and this controller does not allow \
         it; start it with --allow-policy-authority-replace (MORTISE_ALLOW_POLICY_AUTHORITY_REPLACE=true), or take \
         the annotation out"
    )]
    AuthorityNotAllowed,
    /// Both `data.config` and `data.config-from` hold a configuration.
    #[error("data.config and data.config-from both hold a configuration; keep one of them")]
    TwoConfigs,
    /// A ConfigMap that is not there.
    #[error("{key}: there is no ConfigMap {name} in {namespace}; make it, or name another")]
    NoSuchConfigMap {
        /// Where it is named.
        key: &'static str,
        name: String,
        /// Where it was looked for.
        namespace: String,
    },
    /// A ConfigMap without the key that is meant.
    #[error("data.config-from: ConfigMap {name} has no key {key}; it has {keys}")]
    NoSuchKey {
        /// Name of the ConfigMap.
        name: String,
        /// Key that the binding names.
        key: String,
        /// Keys that the ConfigMap has.
        keys: String,
    },
    /// A gap among the chunks of a component.
    #[error(
        "binaryData[\"{key}.*\"]: chunk {missing} is missing here and in the ConfigMaps that mortise.dev/parts names; \
         name its ConfigMap there, or pack it again"
    )]
    MissingChunk {
        /// Binary key without the number.
        key: &'static str,
        /// Number of the chunk that is missing.
        missing: usize,
    },
    /// Two chunks of one number.
    #[error("binaryData[{key:?}] is in {places}; keep one of them")]
    ChunkTwice {
        /// Key of `binaryData` that holds the chunk.
        key: String,
        /// Names of the ConfigMaps.
        places: String,
    },
    /// Chunks that nothing holds together.
    #[error(
        "data.sha256: a component in chunks needs it, so that chunks of two versions are never mixed; \
         `mortise policy pack` writes it"
    )]
    Unsigned,
}

impl BindingError {
    /// CamelCase word for the status.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Registry(_) => "NotSupported",
            Self::Unpack { .. } => "UnpackFailed",
            Self::TooLarge { .. } => "TooLarge",
            Self::Config { .. } | Self::TwoConfigs => "InvalidConfig",
            Self::AuthorityNotAllowed => "NotAllowed",
            Self::UnknownKeys(_) => "UnknownKey",
            Self::NoSuchConfigMap { .. } | Self::NoSuchKey { .. } | Self::MissingChunk { .. } => {
                "NotFound"
            }
            Self::Value { .. }
            | Self::NoEffect { .. }
            | Self::NoPolicy
            | Self::SeveralPolicies(_)
            | Self::ChunkTwice { .. }
            | Self::Unsigned => "InvalidBinding",
        }
    }
}

/// A value that the key does not take.
pub(super) fn value(key: &'static str, found: &str, expected: &str) -> BindingError {
    BindingError::Value {
        key,
        found: found.to_owned(),
        expected: expected.to_owned(),
    }
}
