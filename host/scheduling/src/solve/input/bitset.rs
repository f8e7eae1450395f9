//! Sets of rows as machine words.
//!
//! Sets that meet must have the same length; nothing here checks more than that.

/// A set of small integers below a fixed bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// No member, room for `len`.
    pub(crate) fn empty(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
        }
    }

    /// All of `0..len`.
    pub(crate) fn full(len: usize) -> Self {
        let mut set = Self {
            words: vec![u64::MAX; len.div_ceil(64)],
        };
        let tail = len % 64;
        if tail != 0
            && let Some(last) = set.words.last_mut()
        {
            *last = (1 << tail) - 1;
        }
        set
    }

    pub(crate) fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    pub(crate) fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.words[index / 64] & (1 << (index % 64)) != 0
    }

    pub(crate) fn intersect(&mut self, other: &Self) {
        debug_assert_eq!(
            self.words.len(),
            other.words.len(),
            "sets over different rows"
        );
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= theirs;
        }
    }

    pub(super) fn unite(&mut self, other: &Self) {
        debug_assert_eq!(
            self.words.len(),
            other.words.len(),
            "sets over different rows"
        );
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The least member: with rows sorted by cost, the cheapest.
    pub(crate) fn first(&self) -> Option<usize> {
        self.words
            .iter()
            .position(|word| *word != 0)
            .map(|at| at * 64 + self.words[at].trailing_zeros() as usize)
    }

    /// The least common member from `from` on, if it is one of those that are wanted; all before it are wanted too.
    pub(super) fn first_of_all(
        sets: &[&Self],
        from: usize,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (first, others) = sets.split_first()?;
        let start = from / 64;
        let mut mask = u64::MAX << (from % 64);
        for at in start..first.words.len() {
            let common = others
                .iter()
                .fold(first.words[at] & mask, |word, set| word & set.words[at]);
            mask = u64::MAX;
            if common != 0 {
                return Some(at * 64 + common.trailing_zeros() as usize)
                    .filter(|it| is_wanted(*it));
            }
            if !is_wanted(at * 64) {
                return None;
            }
        }
        None
    }

    /// Members in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }
}
