//! Nodes that there are, by NodePool, instance type, zone and capacity type: a view of the table.

use crate::bindings::exports::mortise::policy::rank;
use crate::rank::CapacityType;
use crate::symbols::{at, text, text_at};

pub use rank::Usage;

/// Nodes of the cluster, those on their way included.
#[derive(Debug, Clone, Copy)]
pub struct UsageView<'a> {
    /// The columns.
    pub table: &'a Usage,
    /// What their symbols mean.
    pub symbols: &'a [String],
}

impl<'a> UsageView<'a> {
    /// Number of rows.
    pub fn rows(&self) -> u32 {
        u32::try_from(self.table.nodes.len()).unwrap_or(u32::MAX)
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        let view = *self;
        (0..view.rows()).map(move |row| UsageRow { view, row })
    }

    /// The rows of a NodePool.
    pub fn of_pool(&self, name: &str) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        self.with(&self.table.nodepool, name)
    }

    /// The rows of a zone.
    pub fn in_zone(&self, zone: &str) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        self.with(&self.table.zone, zone)
    }

    /// The rows of an instance family.
    pub fn of_family(&self, family: &str) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        self.with(&self.table.family, family)
    }

    /// The rows of an instance type.
    pub fn of_type(&self, name: &str) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        self.with(&self.table.instance_type, name)
    }

    /// The rows whose column holds a word; words are looked up once, rows compare numbers.
    fn with(&self, column: &'a [u32], word: &str) -> impl Iterator<Item = UsageRow<'a>> + use<'a> {
        let known = self.symbols.iter().position(|it| it == word);
        let sym = known.and_then(|it| u32::try_from(it).ok());
        let is_of = move |row: &UsageRow<'a>| {
            let own = column.get(row.row as usize);
            sym.is_some() && own.copied() == sym
        };
        self.iter().filter(is_of)
    }

    /// Nodes of a type in a zone, bought in one way, given as symbols: what an offering has in use.
    pub(crate) fn in_use(&self, (instance_type, zone, capacity_type): (u32, u32, u8)) -> u32 {
        let Usage {
            instance_type: types,
            zone: zones,
            capacity_type: codes,
            nodes,
            ..
        } = self.table;
        let own = types.iter().zip(zones).zip(codes).zip(nodes);
        let own = own.filter(|(((of_type, of_zone), code), _)| {
            **of_type == instance_type && **of_zone == zone && **code == capacity_type
        });
        own.fold(0, |sum, (_, nodes)| sum.saturating_add(*nodes))
    }
}

/// Nodes of one NodePool, instance type, zone and capacity type.
#[derive(Debug, Clone, Copy)]
pub struct UsageRow<'a> {
    view: UsageView<'a>,
    row: u32,
}

impl<'a> UsageRow<'a> {
    fn text(&self, column: &'a [u32]) -> &'a str {
        text_at(self.view.symbols, column, self.row)
    }

    /// Name of the NodePool.
    pub fn node_pool(&self) -> &'a str {
        self.text(&self.view.table.nodepool)
    }

    /// Instance type.
    pub fn instance_type(&self) -> &'a str {
        self.text(&self.view.table.instance_type)
    }

    /// Instance family.
    pub fn family(&self) -> &'a str {
        self.text(&self.view.table.family)
    }

    /// Availability zone.
    pub fn zone(&self) -> &'a str {
        self.text(&self.view.table.zone)
    }

    /// Symbol of the zone, which the offerings of the call share.
    pub fn zone_sym(&self) -> u32 {
        let zones = &self.view.table.zone;
        zones.get(self.row as usize).copied().unwrap_or(u32::MAX)
    }

    /// How they were bought.
    pub fn capacity_type(&self) -> CapacityType {
        CapacityType::of(at(&self.view.table.capacity_type, self.row))
    }

    /// Nodes, those on their way included.
    pub fn nodes(&self) -> u32 {
        at(&self.view.table.nodes, self.row)
    }

    /// Those of them that have not registered yet.
    pub fn launching(&self) -> u32 {
        at(&self.view.table.launching, self.row)
    }

    /// USD an hour of one of them; 0 when unknown.
    pub fn price(&self) -> f64 {
        at(&self.view.table.price, self.row)
    }

    /// The text of a symbol of the call.
    pub fn symbol(&self, sym: u32) -> &'a str {
        text(self.view.symbols, sym)
    }
}
