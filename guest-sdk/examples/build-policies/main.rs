//! Builds the policies of `policies/` to components and writes them to `host/policy/builtin/`.
//!
//! `cargo run -p guest-sdk --example build-policies`, with a toolchain that has the target
//! `wasm32-unknown-unknown` (`rustup target add wasm32-unknown-unknown`) or, where that is not to be had,
//! with a system `/usr/bin/rustc` that comes with the sources of the standard library and with `wasm-ld`
//! (Debian: `rustc-web rust-web-src cargo-web lld`). Nothing else in the repository needs either.
//!
//! `-- --guests` writes the guests of the host's tests too: one for each kind as guests of the present version of the
//! interface (`host/policy/tests/released`), which must run for as long as hosts take that version, and the one that
//! repeats what it is told.
//!
//! `-- --bindings` writes what `mortise policy new --lang rust` copies beside the SDK: its bindings as plain
//! code, so that a policy's author compiles no generators.

mod bindings;
mod sources;
#[path = "../../../host/authoring/src/toolchain.rs"]
mod toolchain;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wit_component::ComponentEncoder;

const COMPONENT_BYTES_MAX: usize = 72_000;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Policies built into the binary; `host/policy/src/builtin.rs` embeds them.
const BUILTINS: [&str; 22] = [
    "default-rank",
    "default-consolidation",
    "default-budgets",
    "prefer-arm64",
    "perf-price",
    "ordered",
    "node-overhead",
    "zone-balance",
    "spot-risk",
    "commit-ledger",
    "prefer-return",
    "spot-share",
    "price-limit",
    "carbon",
    "balanced-k",
    "payback",
    "utilization-threshold",
    "soft-expiry",
    "workload-class",
    "canary-rollout",
    "rate-budget",
    "business-calendar",
];

/// The guests by which a version of the interface is remembered.
const RELEASED: [(&str, &str); 3] = [
    ("rank", "commit-ledger"),
    ("consolidation", "soft-expiry"),
    ("budgets", "canary-rollout"),
];
/// Asks for everything, and is for tests alone.
const REPEATING: &str = "everything";

fn main() -> Result<()> {
    // Asked at run time: one target folder may serve several clones.
    let repository = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    bindings::write(&repository)?;
    let is_asked = |word: &str| env::args().any(|argument| argument == word);
    if is_asked("--bindings") {
        return Ok(());
    }
    let modules = compile(&repository)?;
    if is_asked("--guests") {
        guests(&repository, &modules)?;
    }
    let folder = repository.join("host/policy/builtin");
    let mut manifest = String::from("# policy, digest of its sources, digest of its component\n");
    for name in BUILTINS {
        let component = component(&modules, name)?;
        if component.len() > COMPONENT_BYTES_MAX {
            let bytes = component.len();
            return Err(
                format!("{name} has {bytes} bytes and may have {COMPONENT_BYTES_MAX}").into(),
            );
        }
        fs::write(folder.join(format!("{name}.wasm")), &component)?;
        let sources = sources::digest(&repository, name)?;
        let digest = sources::hex(&Sha256::digest(&component));
        println!("{name:>24} {:>6} bytes  sha256:{digest}", component.len());
        writeln!(manifest, "{name} {sources} {digest}")?;
    }
    fs::write(folder.join("MANIFEST"), manifest)?;
    Ok(())
}

fn component(modules: &Path, name: &str) -> Result<Vec<u8>> {
    let module = fs::read(modules.join(format!("{}.wasm", name.replace('-', "_"))))?;
    let encoder = ComponentEncoder::default().validate(true);
    Ok(encoder.module(&module)?.encode()?)
}

/// Writes what the host's tests run.
fn guests(repository: &Path, modules: &Path) -> Result<()> {
    let tests = repository.join("host/policy/tests");
    let wit = fs::read_to_string(repository.join("wit/policy.wit"))?;
    let version = wit
        .lines()
        .find_map(|line| {
            line.strip_prefix("package mortise:policy@")?
                .strip_suffix(';')
        })
        .ok_or("wit/policy.wit has no version")?;
    let released = tests.join("released").join(version);
    fs::create_dir_all(&released)?;
    for (kind, name) in RELEASED {
        let file = released.join(kind).with_extension("wasm");
        fs::write(file, component(modules, name)?)?;
    }
    let file = tests.join("guests").join(REPEATING).with_extension("wasm");
    fs::write(file, component(modules, REPEATING)?)?;
    Ok(())
}

/// Compiles all policies to core modules; gives the folder they are in.
fn compile(repository: &Path) -> Result<PathBuf> {
    let target_dir = env::var_os("POLICIES_TARGET_DIR")
        .map_or_else(|| repository.join("target/policies"), PathBuf::from);
    let mut cargo = toolchain::cargo_build(&target_dir)?;
    cargo.current_dir(repository);
    for name in BUILTINS.into_iter().chain([REPEATING]) {
        cargo.args(["-p", name]);
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("cargo: {status}").into());
    }
    Ok(toolchain::modules_folder(&target_dir))
}
