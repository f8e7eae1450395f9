//! Cells of columns and symbol tables, by row: what is beyond their end is empty, since rows come from guests and
//! records.

/// The cell of a row.
pub(crate) fn at<T: Copy + Default>(column: &[T], row: u32) -> T {
    let index = usize::try_from(row).ok();
    index
        .and_then(|it| column.get(it).copied())
        .unwrap_or_default()
}

/// The word that a symbol stands for.
pub(crate) fn word(symbols: &[String], symbol: u32) -> &str {
    let index = usize::try_from(symbol).ok();
    index
        .and_then(|it| symbols.get(it))
        .map_or("", String::as_str)
}
