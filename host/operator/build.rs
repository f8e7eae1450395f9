//! Asks the linker for a smaller program: equal functions once, and relocations in their short form.
//!
//! A page of the program counts as memory of the process once it is touched, and the kernel maps its fifteen
//! neighbours with it. The AWS SDK brings thousands of functions that differ in their types only, and 280,000
//! relocations, each of 24 bytes, that are read whole at every start.

use std::env;
use std::process::Command;

/// The linker that Rust brings along for this target knows both options; others may not.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The first glibc whose loader reads relocations in the short form.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str| env::var(variable).is_ok_and(|value| value == TARGET);
    // Who chooses a linker, or how to link, chose another.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    if !is("TARGET") || is_chosen {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    if is("HOST") && glibc().is_some_and(|version| version >= GLIBC) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc, such as the 2.36 of `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
