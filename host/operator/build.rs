//! Folds functions of the same code into one when the binary is linked: a seventh less of it to load and to keep in
//! memory.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The linker that Rust brings knows how, and is what links here unless somebody says otherwise.
    let brings_linker = env::var("TARGET").is_ok_and(|it| it == "x86_64-unknown-linux-gnu");
    let names_another = |flags: String| flags.contains("linker") || flags.contains("fuse-ld");
    let is_another = env::var_os("RUSTC_LINKER").is_some()
        || env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(names_another);
    if brings_linker && !is_another {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
