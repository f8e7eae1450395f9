//! Offerings as columns, and the dictionary of their words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The symbol that stands for none.
pub const NO_SYMBOL: u32 = u32::MAX;

/// All purchasable offerings of a round, one row each; columns have equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingTable {
    /// Dictionary of the symbols: the word of each, by its index.
    pub symbols: Vec<String>,
    /// Symbol of the type's name.
    pub instance_type: Vec<u32>,
    /// Symbol of the family.
    pub family: Vec<u32>,
    /// Generation of the family; 0 when unknown.
    pub generation: Vec<u32>,
    /// Symbol of who makes the CPU.
    pub cpu_manufacturer: Vec<u32>,
    /// Symbol of the zone.
    pub zone: Vec<u32>,
    /// Symbol of the architecture.
    pub arch: Vec<u32>,
    /// 0 on-demand, 1 spot, 2 reserved, 255 where nobody knows.
    pub capacity_type: Vec<u8>,
    /// USD an hour after overlays.
    pub price: Vec<f64>,
    /// USD an hour of the on-demand offering of the same type; 0 when unknown.
    pub on_demand_price: Vec<f64>,
    /// CPU capacity of the instance type, milli-CPU.
    pub cpu_milli: Vec<u32>,
    /// Memory capacity of the instance type, MiB.
    pub memory_mib: Vec<u32>,
    /// Accelerators of any kind.
    pub gpus: Vec<u32>,
    /// Pods that a node takes at most.
    pub max_pods: Vec<u32>,
    /// Free slots of a reservation.
    pub reservation_slots: Vec<u32>,
    /// Insufficient-capacity answers in the window.
    pub ice_count: Vec<u32>,
    /// Seconds since the latest; all ones when there was none.
    pub ice_age: Vec<u32>,
    /// Interruptions per node and 30 days; negative when unknown.
    pub interruption_rate: Vec<f64>,
    /// Effective USD an hour so far.
    pub prior: Vec<f64>,
    /// Columns that this version has no field for.
    pub extra: Vec<ExtraColumn>,
}

/// A column that has a name and no field of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtraColumn {
    pub name: String,
    pub values: ExtraValues,
}

/// Values of a named column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExtraValues {
    /// Numbers with a fraction.
    Floats(Vec<f64>),
    /// Whole numbers from 0.
    Ints(Vec<u32>),
    /// Indexes into the dictionary of the table.
    Syms(Vec<u32>),
    /// Whole numbers from 0 to 255, such as codes.
    Bytes(Vec<u8>),
}

/// Builds the dictionary of a table.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    ids: BTreeMap<String, u32>,
    words: Vec<String>,
}

impl Symbols {
    /// The symbol of a word; the empty word has none.
    pub fn intern(&mut self, word: &str) -> u32 {
        if word.is_empty() {
            return NO_SYMBOL;
        }
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let id = u32::try_from(self.words.len()).unwrap_or(NO_SYMBOL);
        self.ids.insert(word.to_owned(), id);
        self.words.push(word.to_owned());
        id
    }

    /// The symbol of a word that is known.
    pub fn find(&self, word: &str) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// Keys and values as pairs of symbols.
    pub fn pairs<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Vec<(u32, u32)> {
        let labels = labels.into_iter();
        let pair = |(key, value): (&String, &String)| (self.intern(key), self.intern(value));
        labels.map(pair).collect()
    }

    /// The words in the order of their symbols.
    pub fn into_words(self) -> Vec<String> {
        self.words
    }
}

impl OfferingTable {
    /// An empty table with room for so many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            symbols: Vec::new(),
            instance_type: Vec::with_capacity(rows),
            family: Vec::with_capacity(rows),
            generation: Vec::with_capacity(rows),
            cpu_manufacturer: Vec::with_capacity(rows),
            zone: Vec::with_capacity(rows),
            arch: Vec::with_capacity(rows),
            capacity_type: Vec::with_capacity(rows),
            price: Vec::with_capacity(rows),
            on_demand_price: Vec::with_capacity(rows),
            cpu_milli: Vec::with_capacity(rows),
            memory_mib: Vec::with_capacity(rows),
            gpus: Vec::with_capacity(rows),
            max_pods: Vec::with_capacity(rows),
            reservation_slots: Vec::with_capacity(rows),
            ice_count: Vec::with_capacity(rows),
            ice_age: Vec::with_capacity(rows),
            interruption_rate: Vec::with_capacity(rows),
            prior: Vec::with_capacity(rows),
            extra: Vec::new(),
        }
    }

    /// Number of rows, one per offering.
    pub fn len(&self) -> usize {
        self.price.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.price.is_empty()
    }
}
