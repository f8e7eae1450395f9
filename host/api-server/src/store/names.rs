//! Seeded chance of the API server: UIDs and the suffixes of generated names.
//!
//! Never asks the machine for chance: equal seeds give equal worlds.

/// The letters Kubernetes draws suffixes from: no vowels, no look-alikes.
const SUFFIX_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Generator of names: a splitmix64 stream.
#[derive(Debug, Clone)]
pub(crate) struct NameGenerator {
    state: u64,
}

impl NameGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        // Another stream than that of the rest of the world with the same seed.
        Self {
            state: seed ^ 0x6170_695f_7365_7276,
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0x0fff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Suffix of a generated name, five letters.
    pub(crate) fn suffix(&mut self) -> String {
        name_suffix(self.next(), 5)
    }
}

/// So many of the letters from which Kubernetes draws the suffixes of names, as the bits say.
pub fn name_suffix(mut bits: u64, length: usize) -> String {
    let letter = |_| {
        let at = usize::try_from(bits % 27).unwrap_or_default();
        bits /= 27;
        char::from(SUFFIX_LETTERS[at])
    };
    (0..length).map(letter).collect()
}
