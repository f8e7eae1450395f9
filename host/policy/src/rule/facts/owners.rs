//! Pods by their owners, as rules see them: what the owners of a claim or of the nodes of a move have among them.

use std::collections::BTreeMap;

use hooks::ranking::{EVERY_CLAIM, WorkloadTable};

use super::super::value::Value;
use super::{at, distinct, symbol};

/// The rows of a table by the claim or the node that they are about.
pub(crate) struct Owners<'a> {
    table: &'a WorkloadTable,
    symbols: &'a [String],
    rows: BTreeMap<u32, Vec<usize>>,
}

/// Of one claim or move. Made once for all that is asked of it.
pub(crate) struct OwnersView<'a> {
    pub(super) namespaces: Value<'a>,
    pub(super) kinds: Value<'a>,
    pub(super) priority_classes: Value<'a>,
    pub(super) least_replicas: Value<'a>,
    pub(super) disruptions_allowed: Value<'a>,
}

impl<'a> Owners<'a> {
    pub(crate) fn new(table: &'a WorkloadTable, symbols: &'a [String]) -> Self {
        let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, of) in table.of.iter().enumerate() {
            rows.entry(*of).or_default().push(row);
        }
        Self {
            table,
            symbols,
            rows,
        }
    }

    /// What the owners have among them whose pods are there, or wait for every claim.
    pub(crate) fn of(&self, positions: &[u32]) -> OwnersView<'a> {
        let positions = || positions.iter().chain([&EVERY_CLAIM]);
        let rows = || positions().filter_map(|it| self.rows.get(it)).flatten();
        let (table, symbols) = (self.table, self.symbols);
        let texts =
            |column: &'a [u32]| distinct(rows().map(|row| symbol(symbols, at(column, *row))));
        let least = |column: &'a [u32]| {
            let values = rows().map(|row| at(column, *row));
            values.min().map_or(Value::Absent, Value::count)
        };
        OwnersView {
            namespaces: texts(&table.namespace),
            kinds: texts(&table.owner_kind),
            priority_classes: texts(&table.priority_class),
            least_replicas: least(&table.replicas),
            disruptions_allowed: least(&table.disruptions_allowed),
        }
    }
}
