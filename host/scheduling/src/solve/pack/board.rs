//! The items of a part of the packing in columns, so that the next pod for a node is found at a few instructions a
//! kind.
//!
//! Columns hold rounded numbers and only propose; what fits is decided in whole units by the filler.

use std::ops::Range;

use super::ground::Ground;
use super::items::{COMMON_DIMENSIONS, Items};
use crate::solve::input::vocabulary::Amounts;

/// Kinds looked at together.
const LANES: usize = 16;

/// Items of equal class and requests.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) class: usize,
    pub(crate) requests: Amounts,
    /// Positions in [`Board::items`].
    pub(crate) items: Range<usize>,
    slot: usize,
}

/// The kinds of a class, side by side in the columns.
#[derive(Debug)]
struct Block {
    class: usize,
    is_special: bool,
    slots: Range<usize>,
}

/// What is to be packed together.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Positions among all items.
    pub(crate) items: Vec<usize>,
    pub(crate) kinds: Vec<Kind>,
    blocks: Vec<Block>,
    cpu: Vec<f32>,
    memory: Vec<f32>,
    kind_at: Vec<usize>,
    /// By position in `items`.
    kind_of: Vec<usize>,
}

/// What is left of it, and where a node being filled looks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left {
    /// By position among all items.
    pub(crate) remaining: Vec<usize>,
    /// Dollars an hour that one pod is worth, by position among all items.
    pub(crate) worths: Vec<f64>,
    /// Worth of each kind that has pods left, else zero.
    worth: Vec<f32>,
    /// The same without what the node being filled cannot take.
    value: Vec<f32>,
    /// Blocks that may use the node.
    open: Vec<usize>,
}

impl Board {
    /// The columns of some of the items, given in ascending order.
    pub(crate) fn new(all: &Items, items: Vec<usize>) -> Self {
        let mut board = Self {
            items,
            ..Self::default()
        };
        for at in 0..board.items.len() {
            let item = &all.items[board.items[at]];
            let class = item.class;
            if board.blocks.last().is_none_or(|b| b.class != class) {
                board.pad();
                let start = board.cpu.len();
                board.blocks.push(Block {
                    class,
                    is_special: all.classes[class].is_special,
                    slots: start..start,
                });
            }
            if let Some(last) = board.kinds.last_mut()
                && last.class == class
                && last.requests == item.requests
            {
                last.items.end = at + 1;
                let kind = board.kinds.len() - 1;
                board.kind_of.push(kind);
                continue;
            }
            board.kinds.push(Kind {
                class,
                requests: item.requests.clone(),
                items: at..at + 1,
                slot: board.cpu.len(),
            });
            board.cpu.push(item.requests[0] as f32);
            board.memory.push(item.requests[1] as f32);
            board.kind_at.push(board.kinds.len() - 1);
            board.kind_of.push(board.kinds.len() - 1);
            if let Some(block) = board.blocks.last_mut() {
                block.slots.end = board.cpu.len();
            }
        }
        board.pad();
        board
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

    /// All pods of the board, none placed.
    pub(crate) fn left(&self, all: &Items) -> Left {
        let mut left = Left {
            remaining: vec![0; all.items.len()],
            worths: all.items.iter().map(|item| item.worth).collect(),
            worth: vec![0.0; self.cpu.len()],
            value: vec![0.0; self.cpu.len()],
            open: Vec::new(),
        };
        for item in &self.items {
            self.give(&mut left, *item, all.items[*item].count);
        }
        left
    }

    /// Pods of an item are to be placed again.
    pub(crate) fn give(&self, left: &mut Left, item: usize, count: usize) {
        left.remaining[item] += count;
        if left.remaining[item] > 0
            && let Ok(at) = self.items.binary_search(&item)
        {
            let kind = &self.kinds[self.kind_of[at]];
            left.worth[kind.slot] = rounded(left.worths[item]);
        }
    }

    /// Makes the pods of each kind worth so many times what they were at first.
    pub(crate) fn reprice(&self, ground: &Ground<'_>, left: &mut Left, times: &[f64]) {
        for (kind, times) in self.kinds.iter().zip(times) {
            for item in &self.items[kind.items.clone()] {
                left.worths[*item] = ground.items[*item].worth * times;
                if left.remaining[*item] > 0 {
                    left.worth[kind.slot] = rounded(left.worths[*item]);
                }
            }
        }
    }

    /// The kind of an item of the board.
    pub(crate) fn kind_of(&self, item: usize) -> Option<usize> {
        let at = self.items.binary_search(&item).ok()?;
        Some(self.kind_of[at])
    }

    /// Pods of an item have a place.
    pub(crate) fn take(&self, left: &mut Left, item: usize, count: usize) {
        left.remaining[item] = left.remaining[item].saturating_sub(count);
        if left.remaining[item] == 0
            && let Ok(at) = self.items.binary_search(&item)
        {
            let kind = &self.kinds[self.kind_of[at]];
            let mut of_kind = self.items[kind.items.clone()].iter();
            if of_kind.all(|item| left.remaining[*item] == 0) {
                left.worth[kind.slot] = 0.0;
            }
        }
    }

    /// Gets ready to fill a node of a row.
    pub(crate) fn start(&self, ground: &Ground<'_>, left: &mut Left, (pool, row): (usize, usize)) {
        left.open.clear();
        for (index, block) in self.blocks.iter().enumerate() {
            let rows = &ground.classes[block.class].rows[pool];
            if rows.as_ref().is_some_and(|rows| rows.contains(row)) {
                left.open.push(index);
                let slots = block.slots.clone();
                left.value[slots.clone()].copy_from_slice(&left.worth[slots]);
            }
        }
    }

    /// Takes a kind out until the next node.
    pub(crate) fn drop_kind(&self, left: &mut Left, kind: usize) {
        left.value[self.kinds[kind].slot] = 0.0;
    }

    /// The kind that is worth most for what it takes of the scarce resources; greater pods first.
    pub(crate) fn best(&self, left: &Left, room: &[i64], size_weight: f64) -> Option<usize> {
        if room.iter().any(|amount| *amount < 0) {
            return None;
        }
        let look = Look::new(room, size_weight);
        let mut best = (0.0_f32, usize::MAX);
        for index in &left.open {
            let block = &self.blocks[*index];
            if block.is_special {
                self.best_special(left, room, (block, look.size_weight), &mut best);
            } else {
                let slots = block.slots.clone();
                let columns = (
                    &self.cpu[slots.clone()],
                    &self.memory[slots.clone()],
                    &left.value[slots.clone()],
                );
                look.scan(columns, slots.start, &mut best);
            }
        }
        self.kind_at.get(best.1).copied()
    }

    /// The kind of greatest worth that fits, if it is worth more than `than`; special ones aside.
    pub(crate) fn greatest(&self, left: &Left, room: &[i64], than: f64) -> Option<usize> {
        if room.iter().any(|amount| *amount < 0) {
            return None;
        }
        let look = Look::new(room, 0.0);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "worths are compared, not summed"
        )]
        let mut best = (than as f32 * 1.000_1, usize::MAX);
        for index in &left.open {
            let block = &self.blocks[*index];
            if block.is_special {
                continue;
            }
            let slots = block.slots.clone();
            let columns = (
                &self.cpu[slots.clone()],
                &self.memory[slots.clone()],
                &left.value[slots.clone()],
            );
            look.scan_worth(columns, slots.start, &mut best);
        }
        self.kind_at.get(best.1).copied()
    }

    fn best_special(
        &self,
        left: &Left,
        room: &[i64],
        (block, size_weight): (&Block, f32),
        best: &mut (f32, usize),
    ) {
        for slot in block.slots.clone() {
            let value = left.value[slot];
            let Some(kind) = self.kinds.get(self.kind_at[slot]) else {
                continue;
            };
            if value <= 0.0 || kind.requests.iter().zip(room).any(|(ask, room)| ask > room) {
                continue;
            }
            let shares = kind.requests.iter().zip(room);
            let shares = shares.map(|(ask, room)| *ask as f32 / (*room).max(1) as f32);
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

/// How a node's room looks at pods.
struct Look {
    cpu: f32,
    memory: f32,
    per_cpu: f32,
    per_memory: f32,
    /// The share that a pod takes of the places left.
    place: f32,
    size_weight: f32,
}

impl Look {
    fn new(room: &[i64], size_weight: f64) -> Self {
        let [cpu, memory, places] = [0, 1, COMMON_DIMENSIONS - 1].map(|at| room[at] as f32);
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
