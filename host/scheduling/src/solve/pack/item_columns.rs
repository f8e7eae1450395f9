//! Items that are packed together, in columns, so that the next pod for a node is found at a few instructions a kind.
//!
//! A kind is what items of equal class and requests have in common. Columns hold rounded numbers and only propose; what
//! fits is decided in whole units by the filler.

mod scorer;

use std::ops::Range;

use super::items::{ClassId, PackItems};
use super::plan_context::PlanContext;
use super::planned_node::ItemCount;
use crate::solve::input::pool_table::RowId;
use crate::solve::input::vocabulary::Amounts;

use scorer::{BestSlot, BlockSlots, Scorer};

/// Kinds that are scored together.
const LANES: usize = 16;

/// Which pods a node is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Those that no pool before the node's takes.
    OfPool,
    All,
}

/// Items of equal class and requests.
#[derive(Debug)]
pub(super) struct ItemKind {
    pub(super) class: ClassId,
    pub(super) requests: Amounts,
    /// Positions in [`ItemColumns::items`].
    pub(super) items: Range<usize>,
    slot: usize,
}

/// The kinds of a class, side by side in the columns.
#[derive(Debug)]
struct ClassBlock {
    class: ClassId,
    is_special: bool,
    slots: Range<usize>,
}

/// Items that are packed together.
#[derive(Debug, Default)]
pub(super) struct ItemColumns {
    /// Positions among all items.
    pub(super) items: Vec<usize>,
    pub(super) kinds: Vec<ItemKind>,
    blocks: Vec<ClassBlock>,
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
    /// Worth of each kind that has pods left and that the node being filled can take, else zero.
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
                columns.blocks.push(ClassBlock {
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

    /// All pods of these picks have a place.
    pub(super) fn take_picks(&self, unpacked: &mut Unpacked, picks: &[ItemCount]) {
        for ItemCount { item, count } in picks {
            self.take(unpacked, *item, *count);
        }
    }

    /// Gets ready to fill a node of a row, with pods of all pools or those alone that no pool before this one takes;
    /// whether it left any out.
    pub(super) fn start(
        &self,
        context: &PlanContext<'_>,
        unpacked: &mut Unpacked,
        RowId { pool, row }: RowId,
        company: Company,
    ) -> bool {
        unpacked.open.clear();
        let mut has_others = false;
        for (index, block) in self.blocks.iter().enumerate() {
            let class = &context.classes[block.class];
            let rows = &class.rows[pool];
            if !rows.as_ref().is_some_and(|rows| rows.contains(row)) {
                continue;
            }
            if company == Company::OfPool && class.first_pool < pool {
                has_others = true;
                continue;
            }
            unpacked.open.push(index);
            let slots = block.slots.clone();
            unpacked.value[slots.clone()].copy_from_slice(&unpacked.worth[slots]);
        }
        has_others
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
        let mut best = BestSlot::none_above(0.0);
        for index in &unpacked.open {
            let block = &self.blocks[*index];
            if block.is_special {
                self.scan_special(block, unpacked, &scorer, &mut best);
            } else {
                scorer.scan(&self.slots_of(block, unpacked), &mut best);
            }
        }
        self.kind_at.get(best.slot).copied()
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
        let mut best = BestSlot::none_above(than as f32 * 1.000_1);
        for index in &unpacked.open {
            let block = &self.blocks[*index];
            if !block.is_special {
                scorer.scan_worth(&self.slots_of(block, unpacked), &mut best);
            }
        }
        self.kind_at.get(best.slot).copied()
    }

    fn slots_of<'a>(&'a self, block: &ClassBlock, unpacked: &'a Unpacked) -> BlockSlots<'a> {
        let slots = block.slots.clone();
        BlockSlots {
            start: slots.start,
            cpu: &self.cpu[slots.clone()],
            memory: &self.memory[slots.clone()],
            value: &unpacked.value[slots],
        }
    }

    fn scan_special(
        &self,
        block: &ClassBlock,
        unpacked: &Unpacked,
        scorer: &Scorer<'_>,
        best: &mut BestSlot,
    ) {
        let available = scorer.available;
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
            let score = value / taken.max(1e-12) * (1.0 + scorer.size_weight * greatest);
            if score > best.score {
                *best = BestSlot { score, slot };
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
