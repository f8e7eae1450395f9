//! A compiler for policies in Rust: whatever has the target, else the one of the system.
//!
//! Free of everything else here, because the example that builds the policies of the repository compiles it
//! too.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
/// Every offering of a region is looked at for every pool, before each solve: its loops are worth their bytes.
const PROFILE: [&str; 7] = [
    "profile.policy.inherits='release'",
    "profile.policy.opt-level=2",
    "profile.policy.lto=true",
    "profile.policy.codegen-units=1",
    "profile.policy.panic='abort'",
    "profile.policy.strip=true",
    "profile.policy.package.'*'.opt-level=2",
];

/// Memory that an instance begins with: a round of 6,000 offerings. A page that is not touched costs nothing,
/// while memory that grows is mapped anew in every round.
const MEMORY: &str = "-Clink-arg=--initial-memory=3145728";

/// Why nothing can be compiled.
#[derive(Debug)]
pub(crate) enum ToolchainError {
    /// No compiler for the target.
    Missing,
    /// The compiler that there is does not run.
    NotRunning(io::Error),
}

impl std::error::Error for ToolchainError {}

impl fmt::Display for ToolchainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(
                f,
                "no compiler for {TARGET}: run `rustup target add {TARGET}`, or install Debian's \
                 rustc-web, rust-web-src, cargo-web and lld"
            ),
            Self::NotRunning(error) => write!(f, "rustc does not run: {error}"),
        }
    }
}

/// `cargo build` for policies into a folder; the caller adds where and what.
pub(crate) fn cargo_build(target_dir: &Path) -> Result<Command, ToolchainError> {
    let mut cargo = toolchain()?;
    cargo.env("CARGO_TARGET_DIR", target_dir).args([
        "build",
        "--profile",
        "policy",
        "--target",
        TARGET,
    ]);
    for setting in PROFILE {
        cargo.args(["--config", setting]);
    }
    Ok(cargo)
}

/// Where `cargo_build` leaves the core modules.
pub(crate) fn modules_folder(target_dir: &Path) -> PathBuf {
    target_dir.join(TARGET).join("policy")
}

/// Cargo with a compiler that knows the target.
fn toolchain() -> Result<Command, ToolchainError> {
    if has_target("rustc").map_err(ToolchainError::NotRunning)? {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What `cargo run` sets for its program is not meant for the guests.
        cargo.env_remove("CARGO_MANIFEST_DIR").arg("--config");
        cargo.arg(format!("target.{TARGET}.rustflags=['{MEMORY}']"));
        return Ok(cargo);
    }
    let system = Path::new("/usr/bin/rustc");
    if !system.exists() {
        return Err(ToolchainError::Missing);
    }
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", system)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
        .env(
            "RUSTFLAGS",
            format!("-Zunstable-options -Cpanic=immediate-abort {MEMORY}"),
        )
        .args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="]);
    Ok(cargo)
}

fn has_target(rustc: &str) -> io::Result<bool> {
    let output = match Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}
