//! What guests are compiled for. Shared with the build script, which compiles the built-ins ahead: code is only
//! taken when it was compiled for the very same.

use wasmtime::Config;
#[cfg(not(feature = "precompiled"))]
use wasmtime::{OptLevel, RegallocAlgorithm};

const STACK_BYTES_MAX: usize = 512 << 10;

/// Guests compute the same on every machine: canonical NaNs, no relaxed SIMD, and (by leaving out wasmtime's
/// features) no threads.
pub(crate) fn guest_config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(STACK_BYTES_MAX);
    // One core a component: of shared ones, who waits for its own part takes up the slowest function of another.
    #[cfg(feature = "precompiled")]
    config.parallel_compilation(false);
    // What guests answer and the fuel they take is the same either way.
    #[cfg(not(feature = "precompiled"))]
    config
        .cranelift_opt_level(OptLevel::None)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    config
}
