//! Patterns of `matches`: bounded when they are compiled, and paid for by the byte when they are used.
//!
//! As in RE2, which CEL prescribes, `\d`, `\w` and `\s` are those of ASCII.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

/// Length of a pattern at most, bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Sizes that a compiled pattern may have. The smallest that holds it says what a byte costs.
const SIZES_BYTES: [usize; 3] = [2 << 10, 8 << 10, 32 << 10];
/// Compiled size that takes a step for each byte of a text, at worst.
const SIZE_BYTES_A_STEP: usize = 512;
/// Memory of one search.
const SEARCH_BYTES_MAX: usize = 64 << 10;
/// Patterns of one policy, and those that one call may make besides.
pub(super) const PATTERNS_MAX: usize = 16;
/// Steps that compiling one takes.
pub(super) const COMPILE_STEPS: u64 = 400;

#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Arc<Regex>,
    steps_a_byte: usize,
}

impl Pattern {
    /// Compiles a pattern, or says why not.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "the pattern has {} bytes and may have {TEXT_BYTES_MAX}",
                text.len()
            ));
        }
        for size in SIZES_BYTES {
            let built = RegexBuilder::new(text)
                .unicode(false)
                .size_limit(size)
                .dfa_size_limit(SEARCH_BYTES_MAX)
                .nest_limit(32)
                .build();
            match built {
                Ok(regex) => {
                    return Ok(Self {
                        regex: Arc::new(regex),
                        steps_a_byte: size / SIZE_BYTES_A_STEP,
                    });
                }
                // Perhaps the next size holds it.
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    // The text of the error draws the pattern above its last line.
                    let error = error.to_string();
                    let last = error.lines().last().unwrap_or_default();
                    return Err(format!(
                        "not a pattern: {}",
                        last.trim_start_matches("error: ")
                    ));
                }
            }
        }
        Err("the pattern is too large; repeat less in it".to_owned())
    }

    /// Whether a part of the text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }

    /// Steps that looking for it in a text takes.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        let steps = (text.len() + 1).saturating_mul(self.steps_a_byte);
        u64::try_from(steps).unwrap_or(u64::MAX)
    }
}

/// Patterns that were computed, each compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<(String, Result<Pattern, String>)>);

impl Patterns {
    /// A pattern that was met before.
    pub(super) fn known(&self, text: &str) -> Option<Result<Pattern, String>> {
        let mut known = self.0.iter();
        known
            .find(|(known, _)| known == text)
            .map(|(_, pattern)| pattern.clone())
    }

    /// Compiles one more pattern, up to [`PATTERNS_MAX`].
    pub(super) fn compile(&mut self, text: &str) -> Result<Pattern, String> {
        if self.0.len() >= PATTERNS_MAX {
            return Err(format!(
                "more than {PATTERNS_MAX} different patterns in one call; write fewer, or compare strings"
            ));
        }
        let pattern = Pattern::new(text);
        self.0.push((text.to_owned(), pattern.clone()));
        pattern
    }
}
