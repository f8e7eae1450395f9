//! The digest by which components, rules and settings are told apart.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// `sha256:` and the digest in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
