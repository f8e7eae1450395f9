//! The structural hash: how texts, numbers, lists, maps and structs of Go become one 64-bit number.
//!
//! Knows no API type. Answers to `mitchellh/hashstructure` v2, format 2, with the options SlicesAsSets,
//! IgnoreZeroValue and ZeroNil.

use std::collections::BTreeMap;

/// FNV-1 (not 1a), 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte)
    })
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv(&bytes)
}

fn finished(hash: u64) -> u64 {
    fnv(&hash.to_le_bytes())
}

/// A string, also one of a named type.
pub(super) fn text(value: &str) -> u64 {
    fnv(value.as_bytes())
}

/// An int64, also a duration in nanoseconds.
pub(super) fn int64(value: i64) -> u64 {
    fnv(&value.to_le_bytes())
}

/// An int32.
pub(super) fn int32(value: i32) -> u64 {
    fnv(&value.to_le_bytes())
}

/// A bool.
pub(super) fn boolean(value: bool) -> u64 {
    fnv(&[u8::from(value)])
}

/// A time as Go's binary form has it, in a process whose local zone is UTC.
pub(super) fn time(value: jiff::Timestamp) -> u64 {
    const SECONDS_FROM_YEAR_ONE_TO_EPOCH: i64 = 62_135_596_800;
    let mut bytes = vec![1];
    bytes.extend((value.as_second() + SECONDS_FROM_YEAR_ONE_TO_EPOCH).to_be_bytes());
    bytes.extend(value.subsec_nanosecond().to_be_bytes());
    bytes.extend(0_i16.to_be_bytes());
    fnv(&bytes)
}

/// A list: order does not count, and two equal elements cancel each other, as they do in Karpenter's hash.
pub(super) fn list(elements: impl IntoIterator<Item = u64>) -> u64 {
    elements.into_iter().fold(0, |hash, element| hash ^ element)
}

/// A list that is left out when it has no element.
pub(super) fn list_if_any<T>(elements: &[T], hash: impl Fn(&T) -> u64) -> Option<u64> {
    (!elements.is_empty()).then(|| list(elements.iter().map(hash)))
}

/// A map of texts, left out when it has no entry.
pub(super) fn map_if_any(entries: &BTreeMap<String, String>) -> Option<u64> {
    let hash = |hash, (key, value): (&String, &String)| hash ^ ordered(text(key), text(value));
    (!entries.is_empty()).then(|| finished(entries.iter().fold(0, hash)))
}

/// A text that is left out when empty.
pub(super) fn text_if_any(value: &str) -> Option<u64> {
    (!value.is_empty()).then(|| text(value))
}

/// A struct being hashed, field by field in the order of its declaration in Go.
pub(super) struct Struct {
    hash: u64,
    is_zero: bool,
}

impl Struct {
    /// Starts a struct of that Go type.
    pub(super) fn named(name: &str) -> Self {
        Self {
            hash: text(name),
            is_zero: true,
        }
    }

    /// Adds a field under its Go name, unless it is zero.
    pub(super) fn field(self, name: &str, value: Option<u64>) -> Self {
        match value {
            None => self,
            Some(value) => Self {
                hash: finished(self.hash ^ ordered(text(name), value)),
                is_zero: false,
            },
        }
    }

    /// The hash of a struct behind a pointer, or at the top: present even when every field is zero.
    pub(super) const fn value(&self) -> u64 {
        self.hash
    }

    /// The hash of a struct held by value, left out when every field is zero.
    pub(super) fn value_if_any(&self) -> Option<u64> {
        (!self.is_zero).then_some(self.hash)
    }
}
