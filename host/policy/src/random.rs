//! splitmix64: numbers without a pattern, the same on every machine. The tests read this file too.

/// Where the sequence stands.
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u32) -> Self {
        Self(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound.max(1))).unwrap_or_default()
    }

    /// One of the values.
    pub(crate) fn among<T: Copy + Default>(&mut self, values: &[T]) -> T {
        let count = u32::try_from(values.len()).unwrap_or_default();
        let index = usize::try_from(self.below(count)).unwrap_or_default();
        values.get(index).copied().unwrap_or_default()
    }
}
