//! Values of log lines as Karpenter writes them, put together only where the line is written.
//!
//! Answers to Karpenter's `pkg/utils/pretty`.

use std::fmt;

use serde::Serialize;

/// Names that a line has of a list.
const NAMED_MAX: usize = 5;

/// The first five, and how many there are besides.
pub(crate) struct FirstFew<I>(pub(crate) I);

impl<I> fmt::Display for FirstFew<I>
where
    I: Iterator<Item: fmt::Display> + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = self.0.clone();
        for (at, item) in items.by_ref().take(NAMED_MAX).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        match items.count() {
            0 => Ok(()),
            others => write!(f, " and {others} other(s)"),
        }
    }
}

/// As JSON; the formatter of lines puts it in as it is.
pub(crate) struct AsJson<T>(pub(crate) T);

impl<T: Serialize> fmt::Display for AsJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_list_the_first_five_are_named() {
        let cases = [
            (0, ""),
            (1, "1"),
            (2, "1, 2"),
            (5, "1, 2, 3, 4, 5"),
            (6, "1, 2, 3, 4, 5 and 1 other(s)"),
            (60, "1, 2, 3, 4, 5 and 55 other(s)"),
        ];
        for (count, text) in cases {
            assert_eq!(FirstFew(1..=count).to_string(), text);
        }
    }
}
