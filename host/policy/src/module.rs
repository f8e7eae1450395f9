//! A component that has been let in: compiled, its imports and exports known, its configuration tried.
//!
//! All of this happens off the decision path. What a binding needs beyond it (sample questions) is in
//! `golden.rs`.

mod functions;

use std::fmt::Write as _;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::binding::BindingError;
use crate::builtin;
use crate::call::{CallFailure, Grant, call, issues_text};
use crate::conformance::NotConformant;
use crate::interface::{Descriptor, Guest, is_granted};
use crate::limits::{Kind, short};
use crate::linker::{MEMORIES_MAX, State};
use crate::needs::NeedError;
use crate::precompiled;
use crate::rule::RuleError;
use crate::schema::{SCHEMA_BYTES_MAX, SchemaError};

/// Warnings about a configuration that are told.
const WARNINGS_MAX: usize = 8;
/// Needs of a descriptor that are looked at.
const NEEDS_MAX: usize = 16;

/// Why a component was not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Not what the binding announces.
    #[error("data.sha256: the component has {found}, not {expected}; update one of the two")]
    Digest {
        /// In the binding.
        expected: String,
        /// Of the bytes.
        found: String,
    },
    /// Too large.
    #[error("the component has {bytes} bytes and may have {bytes_max}; build it for size")]
    TooLarge {
        /// Of the component.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Has a function that would keep a compiler busy.
    #[error("a function of {bytes} bytes, and a function may have {bytes_max}; split it")]
    FunctionTooLarge {
        /// Of the largest function.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Holds components within components.
    #[error(
        "holds components within components more than {depth_max} levels deep; no tool makes such ones, link it flat"
    )]
    NestedTooDeep {
        /// The limit.
        depth_max: u32,
    },
    /// Shares no memory with itself.
    #[error("has {found} memories and may have {most}; link its modules into one")]
    TooManyMemories {
        /// Of the component.
        found: u32,
        /// The limit.
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
    /// Of another world.
    #[error("does not export mortise:policy/{missing}@0.2 (or 0.1); it exports {found}")]
    World {
        /// Interface that the binding needs.
        missing: &'static str,
        /// What there is.
        found: String,
    },
    /// Failed when tried.
    #[error("{during}: {failure}")]
    Tried {
        /// What was tried.
        during: &'static str,
        /// How it went.
        failure: CallFailure,
    },
    /// Refused its configuration.
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

/// Refuses what would take a compiler long.
pub(crate) fn check_functions(component: &[u8], bytes_max: usize) -> Result<(), LoadError> {
    match functions::largest_bytes(component) {
        Ok(bytes) if bytes > bytes_max => Err(LoadError::FunctionTooLarge { bytes, bytes_max }),
        Ok(_) => Ok(()),
        Err(functions::NestedTooDeep) => Err(LoadError::NestedTooDeep {
            depth_max: functions::DEPTH_MAX,
        }),
    }
}

/// A compiled component.
pub(crate) struct Module {
    pub(crate) digest: String,
    pub(crate) pre: InstancePre<State>,
    pub(crate) guest: Guest,
    /// Built into this binary: bound by fuel alone.
    pub(crate) is_trusted: bool,
}

/// `sha256:` and the digest in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Module {
    /// Compiles a component and looks at what it wants and has.
    pub(crate) fn compile(
        linker: &Linker<State>,
        bytes: &[u8],
        is_trusted: bool,
    ) -> Result<Self, LoadError> {
        let invalid = |error: wasmtime::Error| LoadError::Invalid(short(format!("{error:#}")));
        // Text is a convenience of tools; a cluster takes components only.
        if !bytes.starts_with(b"\0asm") {
            return Err(LoadError::Invalid(
                "it does not begin as WebAssembly does".to_owned(),
            ));
        }
        let component = Component::new(linker.engine(), bytes).map_err(invalid)?;
        Self::linked(linker, &component, bytes, is_trusted)
    }

    /// A component of ours: as it was compiled with this binary, or compiled now where that does not fit.
    pub(crate) fn trusted(linker: &Linker<State>, bytes: &[u8]) -> Result<Self, LoadError> {
        let precompiled =
            builtin::of_component(bytes).and_then(|it| precompiled::load(linker.engine(), it));
        match precompiled {
            Some(component) => Self::linked(linker, &component, bytes, true),
            None => Self::compile(linker, bytes, true),
        }
    }

    fn linked(
        linker: &Linker<State>,
        component: &Component,
        bytes: &[u8],
        is_trusted: bool,
    ) -> Result<Self, LoadError> {
        let invalid = |error: wasmtime::Error| LoadError::Invalid(short(format!("{error:#}")));
        let engine = linker.engine();
        check_imports(engine, component)?;
        check_memories(component)?;
        let pre = linker.instantiate_pre(component).map_err(invalid)?;
        let guest = Guest::new(&pre).ok_or_else(|| LoadError::World {
            missing: "lifecycle",
            found: exports(engine, component),
        })?;
        Ok(Self {
            digest: digest(bytes),
            guest,
            pre,
            is_trusted,
        })
    }

    /// Whether the component has what the kind needs.
    pub(crate) fn check_kind(&self, kind: Kind) -> Result<(), LoadError> {
        if self.guest.has(kind) {
            return Ok(());
        }
        let component = self.pre.component();
        Err(LoadError::World {
            missing: kind.as_str(),
            found: exports(component.engine(), component),
        })
    }

    /// Names of what it imports.
    pub(crate) fn imports(&self) -> Vec<String> {
        let component = self.pre.component();
        let of_type = component.component_type();
        let imports = of_type.imports(component.engine());
        imports.map(|(name, _)| name.to_owned()).collect()
    }

    /// Names of what it exports.
    pub(crate) fn exports(&self) -> Vec<String> {
        let component = self.pre.component();
        let of_type = component.component_type();
        let exports = of_type.exports(component.engine());
        exports.map(|(name, _)| name.to_owned()).collect()
    }

    /// Asks who it is.
    pub(crate) fn describe(&self, grant: Grant<'_>) -> Result<Descriptor, LoadError> {
        let described = call(self, grant, |session| {
            session.ask(|guest, at| guest.describe(at).map(Ok))
        });
        let descriptor = described.result.and_then(checked_descriptor);
        descriptor.map_err(|failure| LoadError::Tried {
            during: "describe",
            failure,
        })
    }

    /// Tries a configuration; gives warnings.
    pub(crate) fn validate(
        &self,
        config: &str,
        grant: Grant<'_>,
    ) -> Result<Vec<String>, LoadError> {
        let validated = call(self, grant, |session| {
            session.ask(|guest, at| guest.validate(at, config).map(Ok))
        });
        let answer = validated.result.map_err(|failure| LoadError::Tried {
            during: "validate",
            failure,
        })?;
        match answer {
            Ok(warnings) => Ok(warnings
                .iter()
                .take(WARNINGS_MAX)
                .map(|it| issues_text(std::slice::from_ref(it)))
                .collect()),
            Err(issues) => Err(LoadError::Config(issues_text(&issues))),
        }
    }
}

/// Who a guest says it is, with its texts cut.
fn checked_descriptor(descriptor: Descriptor) -> Result<Descriptor, CallFailure> {
    let Descriptor {
        name,
        version,
        summary,
        config_schema,
        deterministic,
        needs,
        sdk,
    } = descriptor;
    if config_schema.len() > SCHEMA_BYTES_MAX {
        return Err(CallFailure::InvalidAnswer(format!(
            "its config-schema has {} bytes and may have {SCHEMA_BYTES_MAX}",
            config_schema.len()
        )));
    }
    Ok(Descriptor {
        name: short(name),
        version: short(version),
        summary: short(summary),
        config_schema,
        deterministic,
        needs: needs.into_iter().take(NEEDS_MAX).map(short).collect(),
        sdk: short(sdk),
    })
}

fn check_imports(engine: &Engine, component: &Component) -> Result<(), LoadError> {
    let foreign = component
        .component_type()
        .imports(engine)
        .map(|(name, _)| name.to_owned())
        .find(|name| !is_granted(name));
    foreign.map_or(Ok(()), |name| Err(LoadError::Import(short(name))))
}

/// The limit of memory is one of the instance, and not one of each of its memories.
fn check_memories(component: &Component) -> Result<(), LoadError> {
    let found = component
        .resources_required()
        .map_or(0, |it| it.num_memories);
    if found > MEMORIES_MAX {
        return Err(LoadError::TooManyMemories {
            found,
            most: MEMORIES_MAX,
        });
    }
    Ok(())
}

fn exports(engine: &Engine, component: &Component) -> String {
    let names: Vec<String> = component
        .component_type()
        .exports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        short(names.join(", "))
    }
}
