//! A hash that is the same on every machine and in every version: for seeds, names and shares that runs must repeat,
//! and for knowing again what was seen before.
//!
//! Nothing that somebody could want to forge hangs on it.

/// What FNV of 64 bits begins with (draft-eastlake-fnv, section 5).
pub const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of 64 bits over the bytes.
pub fn fnv_1a(begin: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(begin, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
