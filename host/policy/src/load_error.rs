//! Why a policy is not let in, and the word for it in the status of its binding.

use std::time::Duration;

use crate::binding::error::BindingError;
use crate::guest::call_failure::CallFailure;
use crate::needs::NeedError;
use crate::rule::place::RuleError;
use crate::schema::SchemaError;
use crate::trying::conformance::fault::NotConformant;

/// Why a component was not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not what the binding announces.
    #[error("data.sha256: the component has {found}, not {expected}; update one of the two")]
    Digest {
        /// Digest that the binding announces.
        expected: String,
        /// Digest of the bytes.
        found: String,
    },
    #[error("the component has {bytes} bytes and may have {bytes_max}; build it for size")]
    TooLarge {
        /// Size of the component.
        bytes: usize,
        /// Largest size of a component.
        bytes_max: usize,
    },
    /// Has a function that would keep a compiler busy.
    #[error("a function of {bytes} bytes, and a function may have {bytes_max}; split it")]
    FunctionTooLarge {
        /// Size of the largest function.
        bytes: usize,
        /// Largest size of a function.
        bytes_max: usize,
    },
    /// Holds components within components.
    #[error(
        "holds components within components more than {depth_max} levels deep; no tool makes such ones, link it flat"
    )]
    NestedTooDeep {
        /// Greatest depth of components within components.
        depth_max: u32,
    },
    /// Has more memories than a component may have.
    #[error("has {found} memories and may have {most}; link its modules into one")]
    TooManyMemories {
        /// Memories of the component.
        found: u32,
        /// Memories that a component may have.
        most: u32,
    },
    /// Not a valid component.
    #[error("not a valid component: {0}")]
    Invalid(String),
    /// Not compiled in time.
    #[error("was not compiled within {0:?}; it is too large or made to be slow to compile")]
    CompileTimeout(Duration),
    /// Other components are being compiled, and none of them gets done.
    #[error("other components are being compiled; apply it again")]
    CompilersBusy,
    /// Wants more than it may have.
    #[error("imports {0}, and a policy is granted only mortise:policy/host@0.2 (or 0.1)")]
    Import(String),
    /// Lacks the interface of its kind, so it is of another world.
    #[error("does not export mortise:policy/{missing}@0.2 (or 0.1); it exports {found}")]
    World {
        /// Interface that the binding needs.
        missing: &'static str,
        /// Interfaces that it exports.
        found: String,
    },
    /// Failed when the host called it on trial.
    #[error("{during}: {failure}")]
    Tried {
        /// Call during which it failed.
        during: &'static str,
        /// Failure of the call.
        failure: CallFailure,
    },
    /// Refused its configuration, for this reason.
    #[error("data.config: {0}")]
    Config(String),
    /// Says of its settings what cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Facts of a recorded binding that are none.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// Needs what it cannot be told.
    #[error(transparent)]
    Need(#[from] NeedError),
    /// Expressions that are none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Has no answer to a round that a cluster may ask.
    #[error(transparent)]
    NotConformant(#[from] NotConformant),
    /// Gave different answers to one question.
    #[error("not deterministic: {0}")]
    NotDeterministic(&'static str),
}

impl LoadError {
    /// Whether the same bytes are refused again, whatever the machine is busy with.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::TooLarge { .. }
            | Self::FunctionTooLarge { .. }
            | Self::NestedTooDeep { .. }
            | Self::TooManyMemories { .. }
            | Self::Invalid(_)
            | Self::Import(_)
            | Self::World { .. } => true,
            Self::Digest { .. }
            | Self::CompileTimeout(_)
            | Self::CompilersBusy
            | Self::Tried { .. }
            | Self::Config(_)
            | Self::Schema(_)
            | Self::Binding(_)
            | Self::Need(_)
            | Self::Rule(_)
            | Self::NotConformant(_)
            | Self::NotDeterministic(_) => false,
        }
    }

    /// CamelCase word for the status.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Digest { .. } => "DigestMismatch",
            Self::TooLarge { .. } => "TooLarge",
            Self::FunctionTooLarge { .. } => "FunctionTooLarge",
            Self::NestedTooDeep { .. } => "NestedTooDeep",
            Self::TooManyMemories { .. } => "TooManyMemories",
            Self::Invalid(_) => "InvalidComponent",
            Self::CompileTimeout(_) => "CompileTimeout",
            Self::CompilersBusy => "CompilersBusy",
            Self::Import(_) => "ForbiddenImport",
            Self::World { .. } => "WrongWorld",
            Self::Tried { failure, .. } => failure.reason(),
            Self::Config(_) => "InvalidConfig",
            Self::Schema(_) => "InvalidSchema",
            Self::Binding(error) => error.reason(),
            Self::Need(_) => "NotTold",
            Self::Rule(_) => "InvalidRule",
            Self::NotConformant(_) => "NotConformant",
            Self::NotDeterministic(_) => "NotDeterministic",
        }
    }
}
