//! A component that has been let in: compiled, its imports and exports known, its configuration tried.
//!
//! All of this happens off the decision path. What a binding needs beyond it (sample questions) is in
//! `golden.rs`.

mod functions;
mod lifecycle;

use hooks::policy_use::PolicyKind;
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::builtin;
use crate::digest::digest;
use crate::guest::guest_state::{GuestState, MEMORIES_MAX};
use crate::guest::limits::short;
use crate::guest::precompiled;
use crate::interface::{Guest, is_granted};
use crate::load_error::LoadError;

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
    pub(crate) pre: InstancePre<GuestState>,
    pub(crate) guest: Guest,
    pub(crate) origin: Origin,
}

/// Whose a component is, which says what its calls are bound by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Built into a binary of ours, this one or the one that recorded it: bound by fuel alone.
    BuiltIn,
    /// Given by somebody: bound by time as well, and compiled within bounds.
    Given,
}

impl Module {
    /// Compiles a component and looks at what it wants and has.
    pub(crate) fn compile(
        linker: &Linker<GuestState>,
        bytes: &[u8],
        origin: Origin,
    ) -> Result<Self, LoadError> {
        let invalid = |error: wasmtime::Error| LoadError::Invalid(short(format!("{error:#}")));
        // Text is a convenience of tools; a cluster takes components only.
        if !bytes.starts_with(b"\0asm") {
            return Err(LoadError::Invalid(
                "it does not begin as WebAssembly does".to_owned(),
            ));
        }
        let component = Component::new(linker.engine(), bytes).map_err(invalid)?;
        Self::linked(linker, &component, bytes, origin)
    }

    /// A component of ours: as it was compiled with this binary, or compiled now where that does not fit.
    pub(crate) fn built_in(linker: &Linker<GuestState>, bytes: &[u8]) -> Result<Self, LoadError> {
        let precompiled =
            builtin::of_component(bytes).and_then(|it| precompiled::load(linker.engine(), it));
        match precompiled {
            Some(component) => Self::linked(linker, &component, bytes, Origin::BuiltIn),
            None => Self::compile(linker, bytes, Origin::BuiltIn),
        }
    }

    fn linked(
        linker: &Linker<GuestState>,
        component: &Component,
        bytes: &[u8],
        origin: Origin,
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
            origin,
        })
    }

    /// Whether the component has what the kind needs.
    pub(crate) fn check_kind(&self, kind: PolicyKind) -> Result<(), LoadError> {
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
