//! Which pods come back for one that goes to their node, so that both nodes have room for theirs.

use apis::labels::{RESOURCE_CPU, RESOURCE_MEMORY};

use super::super::kinds::Columns;

/// Memory that counts as much as a CPU where sizes of pods are compared, as most machines have it. Amounts of both
/// are in thousandths.
const BYTES_PER_CPU: i64 = 4 << 30;

/// Where the resources that nearly always decide whether pods fit stand among all.
#[derive(Debug)]
pub(super) struct SizeColumns {
    cpu: usize,
    memory: usize,
}

/// A pod that goes to another node, and the room of both.
pub(super) struct Exchange<'a> {
    /// What it asks for, by column.
    pub(super) goes: &'a [i64],
    /// What is left where it goes.
    pub(super) spare_there: &'a [i64],
    /// What is left where it comes from, while it is there.
    pub(super) spare_here: &'a [i64],
}

#[derive(Debug, Clone, Copy)]
struct CpuAndMemory {
    cpu: i64,
    memory: i64,
}

/// Bounds on the sum of the pods that come back: they have to make room for the pod, and to have room in its place.
struct Window {
    least: CpuAndMemory,
    most: CpuAndMemory,
}

impl SizeColumns {
    pub(super) fn new(columns: &Columns) -> Self {
        let at = |name| columns.of(name).unwrap_or_default();
        Self {
            cpu: at(RESOURCE_CPU),
            memory: at(RESOURCE_MEMORY),
        }
    }

    fn size(&self, amounts: &[i64]) -> CpuAndMemory {
        CpuAndMemory {
            cpu: amounts[self.cpu],
            memory: amounts[self.memory],
        }
    }

    /// How large a pod is, as one number: its CPU, and its memory as if it were CPU.
    fn weight(&self, amounts: &[i64]) -> i64 {
        let CpuAndMemory { cpu, memory } = self.size(amounts);
        cpu.saturating_add(memory / BYTES_PER_CPU)
    }
}

impl CpuAndMemory {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            memory: self.memory + other.memory,
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            cpu: self.cpu - other.cpu,
            memory: self.memory - other.memory,
        }
    }
}

impl Exchange<'_> {
    /// As few of the pods as make room: none, one, two or three, the largest first.
    pub(super) fn few(
        &self,
        amounts: &SizeColumns,
        mut others: Vec<(usize, &[i64])>,
    ) -> Option<Vec<usize>> {
        if self.fits(&[]) {
            return Some(Vec::new());
        }
        others.sort_by_key(|(pod, asked)| (-amounts.weight(asked), *pod));
        let sizes: Vec<CpuAndMemory> = others.iter().map(|it| amounts.size(it.1)).collect();
        let goes = amounts.size(self.goes);
        let window = Window {
            least: goes.less(amounts.size(self.spare_there)),
            most: goes.plus(amounts.size(self.spare_here)),
        };
        window.few(&sizes, |chosen| {
            let asked: Vec<&[i64]> = chosen.iter().map(|it| others[*it].1).collect();
            let pods = || chosen.iter().map(|it| others[*it].0).collect();
            self.fits(&asked).then(pods)
        })
    }

    fn fits(&self, back: &[&[i64]]) -> bool {
        (0..self.goes.len()).all(|at| {
            let back: i64 = back.iter().map(|it| it[at]).sum();
            self.goes[at] <= self.spare_there[at] + back
                && back <= self.spare_here[at] + self.goes[at]
        })
    }
}

impl Window {
    fn is_within(&self, sum: CpuAndMemory) -> bool {
        self.fits_below(sum) && sum.cpu >= self.least.cpu && sum.memory >= self.least.memory
    }

    fn fits_below(&self, sum: CpuAndMemory) -> bool {
        sum.cpu <= self.most.cpu && sum.memory <= self.most.memory
    }

    /// The first one, two or three whose sum is within, and that will do.
    fn few<T>(&self, sizes: &[CpuAndMemory], will_do: impl Fn(&[usize]) -> Option<T>) -> Option<T> {
        let within = |sum, chosen: &[usize]| self.is_within(sum).then(|| will_do(chosen)).flatten();
        let mut singles = sizes.iter().enumerate();
        if let Some(found) = singles.find_map(|(first, size)| within(*size, &[first])) {
            return Some(found);
        }
        for (first, size) in sizes.iter().enumerate() {
            for second in first + 1..sizes.len() {
                let pair = size.plus(sizes[second]);
                if !self.fits_below(pair) {
                    continue;
                }
                if let Some(found) = within(pair, &[first, second]) {
                    return Some(found);
                }
                let mut thirds = second + 1..sizes.len();
                let found = thirds
                    .find_map(|third| within(pair.plus(sizes[third]), &[first, second, third]));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}
