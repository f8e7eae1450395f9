//! Scores of pods by what a node still has available, a lane of kinds at a time.
//!
//! Proposes only: numbers are rounded.

use super::LANES;
use crate::solve::pack::items::COMMON_DIMENSIONS;

/// The slots of a block with what is scored of them.
pub(super) struct BlockSlots<'a> {
    pub(super) cpu: &'a [f32],
    pub(super) memory: &'a [f32],
    pub(super) value: &'a [f32],
    /// The first slot.
    pub(super) start: usize,
}

/// The slot that scored best so far.
#[derive(Clone, Copy)]
pub(super) struct BestSlot {
    pub(super) score: f32,
    pub(super) slot: usize,
}

/// Scores pods by what a node has available.
pub(super) struct Scorer<'a> {
    pub(super) available: &'a [i64],
    cpu: f32,
    memory: f32,
    per_cpu: f32,
    per_memory: f32,
    /// The share that a pod takes of the places left.
    place: f32,
    pub(super) size_weight: f32,
}

impl BestSlot {
    /// What scores no more than this does not count.
    pub(super) fn none_above(score: f32) -> Self {
        Self {
            score,
            slot: usize::MAX,
        }
    }
}

impl<'a> Scorer<'a> {
    pub(super) fn new(available: &'a [i64], size_weight: f64) -> Self {
        let [cpu, memory, places] = [0, 1, COMMON_DIMENSIONS - 1].map(|at| available[at] as f32);
        let place = 1000.0 / places.max(1.0);
        #[expect(clippy::cast_possible_truncation, reason = "a small factor")]
        let size_weight = size_weight as f32;
        Self {
            available,
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
    pub(super) fn scan_worth(&self, slots: &BlockSlots<'_>, best: &mut BestSlot) {
        let BlockSlots {
            cpu,
            memory,
            value,
            start,
        } = slots;
        for (slot, ((cpu, memory), value)) in cpu.iter().zip(*memory).zip(*value).enumerate() {
            if *value > best.score && *cpu <= self.cpu && *memory <= self.memory {
                *best = BestSlot {
                    score: *value,
                    slot: start + slot,
                };
            }
        }
    }

    #[inline]
    pub(super) fn scan(&self, slots: &BlockSlots<'_>, best: &mut BestSlot) {
        let BlockSlots {
            cpu,
            memory,
            value,
            start,
        } = slots;
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
            if greatest > best.score
                && let Some(lane) = scores.iter().position(|score| *score >= greatest)
            {
                *best = BestSlot {
                    score: greatest,
                    slot: start + chunk * LANES + lane,
                };
            }
        }
    }
}
