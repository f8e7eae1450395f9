//! What the tests share: where the project lies, how its binary is run, how its answers are read.

use std::path::PathBuf;

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or(manifest.clone(), PathBuf::from)
}
