//! A digest of everything that goes into the built-in components, so that a test can tell when they are
//! older than their sources.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Digest of the sources of one policy: the interface, the SDK, and its own crate.
pub(crate) fn digest(repository: &Path, policy: &str) -> io::Result<String> {
    let mut files = Vec::new();
    for folder in ["wit", "guest-sdk/src", &format!("policies/{policy}")] {
        collect(&repository.join(folder), &mut files)?;
    }
    files.push(repository.join("guest-sdk/build.rs"));
    // Its version is part of what a component says of itself.
    files.push(repository.join("guest-sdk/Cargo.toml"));
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let name = file.strip_prefix(repository).unwrap_or(&file);
        let bytes = fs::read(&file)?;
        hasher.update(name.to_string_lossy().as_bytes());
        hasher.update([0]);
        hasher.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(bytes);
    }
    Ok(hex(&hasher.finalize()))
}

/// Hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Files that a compiler reads; notes beside them change nothing.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|it| it == "rs" || it == "toml" || it == "wit")
        {
            files.push(path);
        }
    }
    Ok(())
}
