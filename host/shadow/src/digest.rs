//! A number by which two versions of an object are told apart.

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use serde_json::Value;

/// FNV-1a over the text of the values, in their order.
pub(crate) fn digest(values: &[&Value]) -> u64 {
    values.iter().fold(OFFSET_BASIS, |hash, value| {
        fnv_1a(hash, value.to_string().bytes())
    })
}
