//! The project's Rust files, for the tests that look at them. Reads, and judges nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace_root;

/// The folders that hold Rust.
const FOLDERS: [&str; 4] = ["host", "guest-sdk", "policies", "tests"];

/// Every Rust file of the project with its text, by its path below the root; what cargo built there is left out.
pub fn rust_sources() -> Vec<(PathBuf, String)> {
    let root = workspace_root();
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = FOLDERS.iter().map(|it| root.join(it)).collect();
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| fail(&folder, &error));
        for entry in entries {
            let path = entry.map_or_else(|error| fail(&folder, &error), |it| it.path());
            if path.is_dir() {
                if !path.ends_with("target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_else(|error| fail(&path, &error));
                let below = path.strip_prefix(&root).unwrap_or(&path);
                found.push((below.to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

fn fail(path: &Path, error: &std::io::Error) -> ! {
    panic!("{}: {error}", path.display())
}
