//! Cells of columns and symbol tables, by row: what is beyond their end is empty, since rows come from guests and
//! records, and what is too large for a cell is the largest that it holds.

/// Where a row or symbol stands; beyond every end where it is no place at all.
#[inline]
pub fn index(row: u32) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

/// The cell of a row.
#[inline]
pub fn at<T: Copy + Default>(column: &[T], row: u32) -> T {
    column.get(index(row)).copied().unwrap_or_default()
}

/// A number as columns and counts hold it: what is below zero becomes zero, what is too large the largest.
#[inline]
pub fn saturated<N: TryInto<u32> + Ord + Default>(number: N) -> u32 {
    number.max(N::default()).try_into().unwrap_or(u32::MAX)
}

/// The word that a symbol stands for.
#[inline]
pub fn word(symbols: &[String], symbol: u32) -> &str {
    symbols.get(index(symbol)).map_or("", String::as_str)
}
