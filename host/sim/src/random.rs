//! Chance from a seed: one small generator per concern, so that one concern never shifts another.
//!
//! Everything random in the simulated world comes from here; nothing here reads the machine.

use apis::fnv::{OFFSET_BASIS, fnv_1a};

/// The splitmix64 generator.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator for one concern under the world's seed.
    pub fn new(seed: u64, concern: &str) -> Self {
        Self {
            state: hash(seed, &[concern]),
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number in `[0, 1)`.
    pub fn next_unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// A number in `[low, high]`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next_u64() % (high.saturating_sub(low) + 1)
    }
}

/// A stable 64-bit digest of words under a seed: chance that depends on a thing's name, not on the order
/// of questions.
pub fn hash(seed: u64, words: &[&str]) -> u64 {
    // FNV-1a over the words, each closed by a byte that cannot occur in one, then mixed.
    let state = words.iter().fold(OFFSET_BASIS ^ mix(seed), |state, word| {
        fnv_1a(state, word.bytes().chain([0xFF]))
    });
    mix(state)
}

/// `hash` as a number in `[0, 1)`.
pub(crate) fn hash_unit(seed: u64, words: &[&str]) -> f64 {
    unit(hash(seed, words))
}

fn unit(bits: u64) -> f64 {
    // 53 bits: every value is exact in a double.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
