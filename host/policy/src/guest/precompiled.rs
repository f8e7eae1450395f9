//! Takes the code of the built-ins that the build script made. The one place without the compiler's guard.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::builtin::Builtin;

/// The built-in as it was compiled with this binary; `None` where that was for another kind of machine.
pub(crate) fn load(engine: &Engine, builtin: &Builtin) -> Option<Component> {
    let code = builtin.precompiled();
    if code.is_empty() {
        return None;
    }
    #[expect(
        unsafe_code,
        reason = "code is trusted here; the engine checks its version, target, features and settings"
    )]
    // SAFETY: the bytes are what `precompile_component` gave to the build script. They are part of this binary, and
    // nothing from outside gets here.
    let component = unsafe { Component::deserialize(engine, code) };
    component.ok()
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;

    use super::load;
    use crate::builtin::BUILTINS;
    use crate::guest::engine::engine;
    use crate::guest::guest_config::guest_config;
    use crate::guest::limits::Limits;

    #[test]
    fn no_built_in_is_compiled_at_the_start() {
        let engine = engine(&Limits::default()).unwrap();
        for builtin in BUILTINS {
            assert!(load(&engine, builtin).is_some(), "{}", builtin.name);
        }
    }

    #[test]
    fn code_for_another_engine_is_left() {
        let fuelless = Engine::new(guest_config().consume_fuel(false)).unwrap();
        for builtin in BUILTINS {
            assert!(load(&fuelless, builtin).is_none(), "{}", builtin.name);
        }
    }
}
