//! Items that are packed together, in columns, so that the next pod for a node is found at a few instructions a kind.
//!
//! A kind is what items of equal class and requests have in common. Columns hold rounded numbers and only propose; what
//! fits is decided in whole units by the filler.

use std::ops::Range;

use super::items::{COMMON_DIMENSIONS, PackItems};
use super::plan_context::PlanContext;
use crate::solve::input::vocabulary::Amounts;

/// Kinds that are scored together.
const LANES: usize = 16;

/// Items of equal class and requests.
#[derive(Debug)]
pub(super) struct ItemKind {
    pub(super) class: usize,
    pub(super) requests: Amounts,
    /// Positions in [`ItemColumns::items`].
    pub(super) items: Range<usize>,
    slot: usize,
}

/// The kinds of a class, side by side in the columns.
#[derive(Debug)]
struct Block {
    class: usize,
    is_special: bool,
    slots: Range<usize>,
}

/// Items that are packed together.
#[derive(Debug, Default)]
pub(super) struct ItemColumns {
    /// Positions among all items.
    pub(super) items: Vec<usize>,
    pub(super) kinds: Vec<ItemKind>,
    blocks: Vec<Block>,
    cpu: Vec<f32>,
    memory: Vec<f32>,
    kind_at: Vec<usize>,
    /// By position in `items`.
    kind_of: Vec<usize>,
}

/// What of them is not packed yet, and where a node being filled looks.
#[derive(Debug, Clone, Default)]
pub(super) struct Unpacked {
    /// By position among all items.
    pub(super) remaining: Vec<usize>,
    /// Dollars an hour that one pod is worth, by position among all items.
    pub(super) worths: Vec<f64>,
    /// Worth of each kind that has pods left, else zero.
    worth: Vec<f32>,
    /// The same without what the node being filled cannot take.
    value: Vec<f32>,
    /// Blocks that may use the node.
    open: Vec<usize>,
}

impl ItemColumns {
    /// The columns of some of the items, given in ascending order.
    pub(super) fn new(all: &PackItems, items: Vec<usize>) -> Self {
        let mut columns = Self {
            items,
            ..Self::default()
        };
        for at in 0..columns.items.len() {
            let item = &all.items[columns.items[at]];
            let class = item.class;
            if columns.blocks.last().is_none_or(|b| b.class != class) {
                columns.pad();
                let start = columns.cpu.len();
                columns.blocks.push(Block {
                    class,
                    is_special: all.classes[class].is_special,
                    slots: start..start,
                });
            }
            if let Some(last) = columns.kinds.last_mut()
                && last.class == class
                && last.requests == item.requests
            {
                last.items.end = at + 1;
                let kind = columns.kinds.len() - 1;
                columns.kind_of.push(kind);
                continue;
            }
            columns.kinds.push(ItemKind {
                class,
                requests: item.requests.clone(),
                items: at..at + 1,
                slot: columns.cpu.len(),
            });
            columns.cpu.push(item.requests[0] as f32);
            columns.memory.push(item.requests[1] as f32);
            columns.kind_at.push(columns.kinds.len() - 1);
            columns.kind_of.push(columns.kinds.len() - 1);
            if let Some(block) = columns.blocks.last_mut() {
                block.slots.end = columns.cpu.len();
            }
        }
        columns.pad();
        columns
    }

    /// Fills up to whole lanes with slots that never win.
    fn pad(&mut self) {
        let len = self.cpu.len().next_multiple_of(LANES);
        self.cpu.resize(len, 0.0);
        self.memory.resize(len, 0.0);
        self.kind_at.resize(len, usize::MAX);
        if let Some(block) = self.blocks.last_mut() {
            block.slots.end = len;
        }
    }

    /// All pods of the items, none packed.
    pub(super) fn unpacked(&self, all: &PackItems) -> Unpacked {
        let mut unpacked = Unpacked {
            remaining: vec![0; all.items.len()],
            worths: all.items.iter().map(|item| item.worth).collect(),
            worth: vec![0.0; self.cpu.len()],
            value: vec![0.0; self.cpu.len()],
            open: Vec::new(),
        };
        for item in &self.items {
            self.give(&mut unpacked, *item, all.items[*item].count);
        }
        unpacked
    }

    /// Pods of an item are to be placed again.
    pub(super) fn give(&self, unpacked: &mut Unpacked, item: usize, count: usize) {
        unpacked.remaining[item] += count;
        if unpacked.remaining[item] > 0
            && let Ok(at) = self.items.binary_search(&item)
        {
            let kind = &self.kinds[self.kind_of[at]];
            unpacked.worth[kind.slot] = rounded(unpacked.worths[item]);
        }
    }

    /// Makes the pods of each kind worth so many times what they were at first.
    pub(super) fn reprice(
        &self,
        context: &PlanContext<'_>,
        unpacked: &mut Unpacked,
        times: &[f64],
    ) {
        for (kind, times) in self.kinds.iter().zip(times) {
            for item in &self.items[kind.items.clone()] {
                unpacked.worths[*item] = context.items[*item].worth * times;
                if unpacked.remaining[*item] > 0 {
                    unpacked.worth[kind.slot] = rounded(unpacked.worths[*item]);
                }
            }
        }
    }

    /// The kind of an item among these.
    pub(super) fn kind_of(&self, item: usize) -> Option<usize> {
        let at = self.items.binary_search(&item).ok()?;
        Some(self.kind_of[at])
    }

    /// Pods of an item have a place.
    pub(super) fn take(&self, unpacked: &mut Unpacked, item: usize, count: usize) {
        unpacked.remaining[item] = unpacked.remaining[item].saturating_sub(count);
        if unpacked.remaining[item] == 0
            && let Ok(at) = self.items.binary_search(&item)
        {
            let kind = &self.kinds[self.kind_of[at]];
            let mut of_kind = self.items[kind.items.clone()].iter();
            if of_kind.all(|item| unpacked.remaining[*item] == 0) {
                unpacked.worth[kind.slot] = 0.0;
            }
        }
    }

    /// Gets ready to fill a node of a row.
    pub(super) fn start(
        &self,
        context: &PlanContext<'_>,
        unpacked: &mut Unpacked,
        (pool, row): (usize, usize),
    ) {
        unpacked.open.clear();
        for (index, block) in self.blocks.iter().enumerate() {
            let rows = &context.classes[block.class].rows[pool];
            if rows.as_ref().is_some_and(|rows| rows.contains(row)) {
                unpacked.open.push(index);
                let slots = block.slots.clone();
                unpacked.value[slots.clone()].copy_from_slice(&unpacked.worth[slots]);
            }
        }
    }

    /// Takes a kind out until the next node.
    pub(super) fn drop_kind(&self, unpacked: &mut Unpacked, kind: usize) {
        unpacked.value[self.kinds[kind].slot] = 0.0;
    }

    /// The kind that is worth most for what it takes of the scarce resources; greater pods first.
    pub(super) fn best(
        &self,
        unpacked: &Unpacked,
        available: &[i64],
        size_weight: f64,
    ) -> Option<usize> {
        if available.iter().any(|amount| *amount < 0) {
            return None;
        }
        let scorer = Scorer::new(available, size_weight);
        let mut best = (0.0_f32, usize::MAX);
        for index in &unpacked.open {
            let block = &self.blocks[*index];
            if block.is_special {
                self.best_special(unpacked, available, (block, scorer.size_weight), &mut best);
            } else {
                let slots = block.slots.clone();
                let slices = (
                    &self.cpu[slots.clone()],
                    &self.memory[slots.clone()],
                    &unpacked.value[slots.clone()],
                );
                scorer.scan(slices, slots.start, &mut best);
            }
        }
        self.kind_at.get(best.1).copied()
    }

    /// The kind of greatest worth that fits, if it is worth more than `than`; special ones aside.
    pub(super) fn greatest(
        &self,
        unpacked: &Unpacked,
        available: &[i64],
        than: f64,
    ) -> Option<usize> {
        if available.iter().any(|amount| *amount < 0) {
            return None;
        }
        let scorer = Scorer::new(available, 0.0);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "worths are compared, not summed"
        )]
        let mut best = (than as f32 * 1.000_1, usize::MAX);
        for index in &unpacked.open {
            let block = &self.blocks[*index];
            if block.is_special {
                continue;
            }
            let slots = block.slots.clone();
            let slices = (
                &self.cpu[slots.clone()],
                &self.memory[slots.clone()],
                &unpacked.value[slots.clone()],
            );
            scorer.scan_worth(slices, slots.start, &mut best);
        }
        self.kind_at.get(best.1).copied()
    }

    fn best_special(
        &self,
        unpacked: &Unpacked,
        available: &[i64],
        (block, size_weight): (&Block, f32),
        best: &mut (f32, usize),
    ) {
        for slot in block.slots.clone() {
            let value = unpacked.value[slot];
            let Some(kind) = self.kinds.get(self.kind_at[slot]) else {
                continue;
            };
            if value <= 0.0
                || kind
                    .requests
                    .iter()
                    .zip(available)
                    .any(|(ask, available)| ask > available)
            {
                continue;
            }
            let shares = kind.requests.iter().zip(available);
            let shares = shares.map(|(ask, available)| *ask as f32 / (*available).max(1) as f32);
            let (taken, greatest) = shares.fold((0.0_f32, 0.0_f32), |(sum, most), share| {
                (sum + share, most.max(share))
            });
            let score = value / taken.max(1e-12) * (1.0 + size_weight * greatest);
            if score > best.0 {
                *best = (score, slot);
            }
        }
    }
}

/// A worth as the columns hold it: never zero, which stands for none left.
fn rounded(worth: f64) -> f32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "worths are compared, not summed"
    )]
    let worth = worth as f32;
    worth.max(f32::MIN_POSITIVE)
}

/// Scores pods by what a node has available.
struct Scorer {
    cpu: f32,
    memory: f32,
    per_cpu: f32,
    per_memory: f32,
    /// The share that a pod takes of the places left.
    place: f32,
    size_weight: f32,
}

impl Scorer {
    fn new(available: &[i64], size_weight: f64) -> Self {
        let [cpu, memory, places] = [0, 1, COMMON_DIMENSIONS - 1].map(|at| available[at] as f32);
        let place = 1000.0 / places.max(1.0);
        #[expect(clippy::cast_possible_truncation, reason = "a small factor")]
        let size_weight = size_weight as f32;
        Self {
            // Nothing is small enough for a node without a place.
            cpu: if place > 1.0 { -1.0 } else { cpu },
            memory,
            per_cpu: 1.0 / cpu.max(1.0),
            per_memory: 1.0 / memory.max(1.0),
            place: place.min(1.0),
            size_weight,
        }
    }

    #[inline]
    fn scan_worth(
        &self,
        (cpu, memory, value): (&[f32], &[f32], &[f32]),
        start: usize,
        best: &mut (f32, usize),
    ) {
        for (slot, ((cpu, memory), value)) in cpu.iter().zip(memory).zip(value).enumerate() {
            if *value > best.0 && *cpu <= self.cpu && *memory <= self.memory {
                *best = (*value, start + slot);
            }
        }
    }

    #[inline]
    fn scan(
        &self,
        (cpu, memory, value): (&[f32], &[f32], &[f32]),
        start: usize,
        best: &mut (f32, usize),
    ) {
        let chunks = cpu
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(memory.as_chunks::<LANES>().0)
            .zip(value.as_chunks::<LANES>().0);
        for (chunk, ((cpu, memory), value)) in chunks.enumerate() {
            let mut scores = [0.0_f32; LANES];
            for lane in 0..LANES {
                let of_cpu = cpu[lane] * self.per_cpu;
                let of_memory = memory[lane] * self.per_memory;
                let greatest = if of_cpu > of_memory {
                    of_cpu
                } else {
                    of_memory
                };
                let taken = of_cpu + of_memory + self.place;
                let score = value[lane] * (1.0 + self.size_weight * greatest) / taken;
                let score = if cpu[lane] <= self.cpu { score } else { 0.0 };
                scores[lane] = if memory[lane] <= self.memory {
                    score
                } else {
                    0.0
                };
            }
            let mut greatest = 0.0_f32;
            for score in scores {
                greatest = if score > greatest { score } else { greatest };
            }
            if greatest > best.0
                && let Some(lane) = scores.iter().position(|score| *score >= greatest)
            {
                *best = (greatest, start + chunk * LANES + lane);
            }
        }
    }
}
