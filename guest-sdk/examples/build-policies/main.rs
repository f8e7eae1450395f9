//! Builds the policies of `policies/` to components and writes them to `host/policy/builtin/`.
//!
//! `cargo run -p guest-sdk --example build-policies`, with a toolchain that has the target
//! `wasm32-unknown-unknown` (`rustup target add wasm32-unknown-unknown`) or, where that is not to be had,
//! with a system `/usr/bin/rustc` that comes with the sources of the standard library and with `wasm-ld`
//! (Debian: `rustc-web rust-web-src cargo-web lld`). Nothing else in the repository needs either.

mod sources;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";
const COMPONENT_BYTES_MAX: usize = 60_000;
/// Small code: a guest is read once and its loops are short.
const PROFILE: [&str; 7] = [
    "profile.policy.inherits='release'",
    "profile.policy.opt-level='s'",
    "profile.policy.lto=true",
    "profile.policy.codegen-units=1",
    "profile.policy.panic='abort'",
    "profile.policy.strip=true",
    "profile.policy.package.'*'.opt-level='s'",
];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Policies built into the binary; `host/policy/src/builtin.rs` embeds them.
const BUILTINS: [&str; 17] = [
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
    "balanced-k",
    "payback",
    "utilization-threshold",
    "soft-expiry",
    "canary-rollout",
    "rate-budget",
];

fn main() -> Result<()> {
    // Asked at run time: one target folder may serve several clones.
    let repository = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    let modules = compile(&repository)?;
    let folder = repository.join("host/policy/builtin");
    let mut manifest = String::from("# policy, digest of its sources, digest of its component\n");
    for name in BUILTINS {
        let module = fs::read(modules.join(format!("{}.wasm", name.replace('-', "_"))))?;
        let component = ComponentEncoder::default()
            .validate(true)
            .module(&module)?
            .encode()?;
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

/// Compiles all policies to core modules; gives the folder they are in.
fn compile(repository: &Path) -> Result<PathBuf> {
    let target_dir = env::var_os("POLICIES_TARGET_DIR")
        .map_or_else(|| repository.join("target/policies"), PathBuf::from);
    let mut cargo = toolchain()?;
    cargo
        .current_dir(repository)
        .env("CARGO_TARGET_DIR", &target_dir)
        .args(["build", "--profile", "policy", "--target", TARGET]);
    for setting in PROFILE {
        cargo.args(["--config", setting]);
    }
    for name in BUILTINS {
        cargo.args(["-p", name]);
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("cargo: {status}").into());
    }
    Ok(target_dir.join(TARGET).join("policy"))
}

/// Cargo with a compiler that knows the target.
fn toolchain() -> Result<Command> {
    if has_target("rustc")? {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What `cargo run` set for this program is not meant for the guests.
        cargo.env_remove("CARGO_MANIFEST_DIR");
        return Ok(cargo);
    }
    let system = Path::new("/usr/bin/rustc");
    if !system.exists() {
        return Err(format!(
            "no compiler for {TARGET}: run `rustup target add {TARGET}`, or install rustc-web, \
             rust-web-src, cargo-web and lld"
        )
        .into());
    }
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", system)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
        .env("RUSTFLAGS", "-Zunstable-options -Cpanic=immediate-abort")
        .args([
            "-Zbuild-std=std,panic_abort",
            "-Zbuild-std-features=optimize_for_size",
        ]);
    Ok(cargo)
}

fn has_target(rustc: &str) -> Result<bool> {
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}
