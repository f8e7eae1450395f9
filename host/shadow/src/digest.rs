//! A number by which two versions of an object are told apart.

use serde_json::Value;

/// FNV-1a over the text of the values, in their order.
pub(crate) fn digest(values: &[&Value]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for value in values {
        for byte in value.to_string().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
