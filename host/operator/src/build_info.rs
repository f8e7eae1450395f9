//! What was built: the version of the crate, and the commit where the build says so.
//!
//! A build of one's own says none; the image, the workflow of releases and `just dist` set `MORTISE_COMMIT`.

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Empty where nobody said it.
pub(crate) const COMMIT: &str = match option_env!("MORTISE_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// The machine's architecture in Go's word for it, which Kubernetes and its programs use.
pub(crate) fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
