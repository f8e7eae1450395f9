//! Pods by their owner: views of the table `workloads`, which is filled where a policy's needs name it.

use crate::policy::NEVER;
use crate::symbols::{at, label, text_at};

pub use crate::bindings::mortise::policy::types::Workloads;

/// The rows of one claim or node, or of a call.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadsView<'a> {
    /// The columns.
    pub table: &'a Workloads,
    /// What their symbols mean.
    pub symbols: &'a [String],
}

impl<'a> WorkloadsView<'a> {
    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = Workload<'a>> + use<'a> {
        let view = *self;
        let rows = u32::try_from(view.table.of.len()).unwrap_or(u32::MAX);
        (0..rows).map(move |row| Workload { view, row })
    }

    /// The rows of the claim or node at a position; before packing all pods wait for every claim.
    pub fn of(&self, position: u32) -> impl Iterator<Item = Workload<'a>> + use<'a> {
        let of = &self.table.of;
        self.iter().filter(move |it| {
            let own = of.get(it.row as usize).copied();
            own == Some(position) || own == Some(NEVER)
        })
    }
}

/// The pods of one owner on a claim or node.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    view: WorkloadsView<'a>,
    row: u32,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> &'a str {
            text_at(self.view.symbols, &self.view.table.$name, self.row)
        })*
    };
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self) -> u32 { at(&self.view.table.$name, self.row) })*
    };
}

impl<'a> Workload<'a> {
    texts! {
        /// Namespace of the pods.
        namespace,
        /// Kind of the owner, such as `Deployment`; empty for bare pods.
        owner_kind,
        /// Name of the owner; empty for bare pods.
        owner_name,
        /// Priority class; empty without one.
        priority_class,
    }

    counts! {
        /// Pods of the owner there.
        pods,
        /// Those of them that carry do-not-disrupt.
        do_not_disrupt,
        /// Their CPU requests.
        cpu_milli,
        /// Their memory requests.
        memory_mib,
        /// Their accelerator requests.
        gpus,
        /// Pods of the owner in the whole cluster.
        replicas,
    }

    /// Highest priority among them.
    pub fn priority(&self) -> i32 {
        at(&self.view.table.priority, self.row)
    }

    /// A pod label, of those that the binding's `mortise.dev/workload-labels` names.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        let own = self.view.table.labels.get(self.row as usize)?;
        label(self.view.symbols, own, key)
    }

    /// How many of the owner's pods PodDisruptionBudgets let go now; `None` where none selects them.
    pub fn disruptions_allowed(&self) -> Option<u32> {
        let column = &self.view.table.disruptions_allowed;
        let own = column.get(self.row as usize).copied();
        own.filter(|&allowed| allowed != NEVER)
    }

    /// Seconds that the longest waiting of them has been without a node; 0 when none waits.
    pub fn oldest_wait_seconds(&self) -> u32 {
        at(&self.view.table.oldest_wait, self.row)
    }
}
