//! The languages in which policies are written, as an argument names them.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// A CEL expression in the ConfigMap
    Expr,
    /// Rust, with a toolchain for wasm32-unknown-unknown
    Rust,
    /// JavaScript, with Node and npm
    Js,
    /// C, with clang and wasm-ld
    C,
    /// Go, with Go 1.24 or TinyGo
    Go,
}
