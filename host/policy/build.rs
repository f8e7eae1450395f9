//! Compiles the built-in policies for the target, so that a start maps code instead of making it.

#[cfg(feature = "precompiled")]
#[path = "src/guest/guest_config.rs"]
mod guest_config;

use std::error::Error;
use std::ffi::OsStr;
#[cfg(feature = "precompiled")]
use std::path::Path;
use std::path::PathBuf;
use std::{env, fs};

#[cfg(feature = "precompiled")]
use wasmtime::Engine;

const BUILTINS: &str = "builtin";
/// A component and what it was compiled to.
type Code = (PathBuf, Vec<u8>);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={BUILTINS}");
    println!("cargo::rerun-if-changed=src/guest/guest_config.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let mut components = Vec::new();
    for entry in fs::read_dir(BUILTINS)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("wasm")) {
            components.push(path);
        }
    }
    for (path, code) in codes(components)? {
        let name = path.file_stem().ok_or("a file without a name")?;
        fs::write(out.join(name).with_extension("cwasm"), code)?;
    }
    Ok(())
}

/// No code: the program compiles what it is asked for.
#[cfg(not(feature = "precompiled"))]
#[expect(clippy::unnecessary_wraps, reason = "the other one can fail")]
fn codes(components: Vec<PathBuf>) -> Result<Vec<Code>, Box<dyn Error>> {
    Ok(components.into_iter().map(|it| (it, Vec::new())).collect())
}

#[cfg(feature = "precompiled")]
fn codes(components: Vec<PathBuf>) -> Result<Vec<Code>, Box<dyn Error>> {
    let engine = engine(&env::var("TARGET")?);
    if let Err(error) = &engine {
        println!("cargo::warning=policies are compiled when the program starts: {error:#}");
    }
    let mut codes = Vec::new();
    for path in components {
        let code = match &engine {
            Ok(engine) => precompiled(engine, &path)?,
            Err(_) => Vec::new(),
        };
        codes.push((path, code));
    }
    Ok(codes)
}

/// The engine of the program, for every machine of the target and not for the one that builds.
#[cfg(feature = "precompiled")]
fn engine(target: &str) -> wasmtime::Result<Engine> {
    let mut config = guest_config::guest_config();
    // One component after the other is compiled here, so that nobody is held up.
    config.parallel_compilation(true);
    Engine::new(config.target(target)?)
}

#[cfg(feature = "precompiled")]
fn precompiled(engine: &Engine, path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let component = fs::read(path)?;
    let code = engine
        .precompile_component(&component)
        .map_err(|error| format!("{}: {error:#}", path.display()))?;
    Ok(code)
}
