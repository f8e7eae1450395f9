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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut generator = SplitMix64 { state: 0 };
        // Of its authors' implementation, seed 0.
        for want in [
            0xE220_A839_7B1D_CDAF,
            0x6E78_9E6A_A1B9_65F4,
            0x06C4_5D18_8009_454F,
        ] {
            assert_eq!(generator.next_u64(), want);
        }
    }

    #[test]
    fn numbers_stay_between_their_bounds_and_come_to_all_of_them() {
        let mut generator = SplitMix64::new(7, "tests");
        let mut seen = [0_u32; 3];
        for _ in 0..300 {
            let unit = generator.next_unit();
            assert!((0.0..1.0).contains(&unit), "{unit}");
            let between = generator.between(4, 6);
            seen[usize::try_from(between).unwrap() - 4] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
        assert_eq!(generator.between(5, 5), 5);
        // Bounds that are the wrong way round are no reason to fail.
        assert_eq!(generator.between(5, 4), 5);
        assert_eq!((unit(0), unit(u64::MAX)), (0.0, 1.0 - f64::EPSILON / 2.0));
    }

    #[test]
    fn chance_hangs_on_seed_and_words_alone() {
        let first = hash(1, &["zone", "a"]);
        assert_eq!(first, hash(1, &["zone", "a"]));
        for other in [
            hash(2, &["zone", "a"]),
            hash(1, &["zonea"]),
            hash(1, &["zone", "a", ""]),
            hash(1, &["a", "zone"]),
        ] {
            assert_ne!(first, other);
        }
        let mut concerns = ["first", "second"].map(|it| SplitMix64::new(1, it));
        let [first, second] = concerns.each_mut().map(SplitMix64::next_u64);
        assert_ne!(first, second);
    }
}
