//! What was built: the version of the crate, and the commit where the build says so.
//!
//! A build of one's own says none; the image, the workflow of releases and `just dist` set `MORTISE_COMMIT`.

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Empty where nobody said it.
pub(crate) const COMMIT: &str = match option_env!("MORTISE_COMMIT") {
    Some(commit) => commit,
    None => "",
};
