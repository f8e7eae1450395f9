//! Reading columns by row: total, so that a row outside a table reads as nothing instead of trapping.

use crate::policy::{Column, ExtraColumn};

pub(crate) fn at<T: Copy + Default>(column: &[T], row: u32) -> T {
    column.get(row as usize).copied().unwrap_or_default()
}

pub(crate) fn text(symbols: &[String], sym: u32) -> &str {
    symbols.get(sym as usize).map_or("", String::as_str)
}

/// A sym column by row; a missing row is "none" and not symbol 0.
pub(crate) fn text_at<'a>(symbols: &'a [String], column: &[u32], row: u32) -> &'a str {
    column
        .get(row as usize)
        .map_or("", |&sym| text(symbols, sym))
}

pub(crate) fn extra_number(extra: &[ExtraColumn], name: &str, row: u32) -> Option<f64> {
    let row = row as usize;
    match &extra.iter().find(|column| column.name == name)?.values {
        Column::Floats(values) => values.get(row).copied(),
        Column::Ints(values) => values.get(row).map(|&value| f64::from(value)),
        Column::Bytes(values) => values.get(row).map(|&value| f64::from(value)),
        Column::Syms(_) => None,
    }
}

pub(crate) fn extra_text<'a>(
    symbols: &'a [String],
    extra: &[ExtraColumn],
    name: &str,
    row: u32,
) -> Option<&'a str> {
    match &extra.iter().find(|column| column.name == name)?.values {
        Column::Syms(values) => values.get(row as usize).map(|&sym| text(symbols, sym)),
        Column::Floats(_) | Column::Ints(_) | Column::Bytes(_) => None,
    }
}

/// The value of a label among pairs of syms.
pub(crate) fn label<'a>(
    symbols: &'a [String],
    labels: &[(u32, u32)],
    key: &str,
) -> Option<&'a str> {
    labels
        .iter()
        .find(|&&(name, _)| text(symbols, name) == key)
        .map(|&(_, value)| text(symbols, value))
}
