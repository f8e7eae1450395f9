//! Compiled patterns, each kept once: definitions repeat theirs, and the interpreter of rules compiles one each time it
//! meets it, which costs more than everything else that a write does.

use std::collections::BTreeMap;
use std::sync::Mutex;

use regex::Regex;

use crate::sync::lock;

static PATTERNS: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
/// Patterns kept; definitions hold a few dozen, and a rule may make them up as it runs.
const PATTERNS_MAX: usize = 512;

/// The compiled pattern.
pub(super) fn pattern(text: &str) -> Result<Regex, regex::Error> {
    let mut kept = lock(&PATTERNS);
    if let Some(known) = kept.get(text) {
        return Ok(known.clone());
    }
    let compiled = Regex::new(text)?;
    if kept.len() >= PATTERNS_MAX {
        kept.clear();
    }
    kept.insert(text.to_owned(), compiled.clone());
    Ok(compiled)
}
