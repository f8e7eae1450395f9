//! Which prices are believed: one that nobody can have meant would move every node of the cluster.
//!
//! Pure. Karpenter believes every number.

use std::collections::BTreeMap;

/// A price that changed by more than this factor is believed once it was told twice in a row.
const JUMP_MAX: f64 = 10.0;

/// A price as text, if it is one: finite and above zero.
pub(super) fn parse(text: &str) -> Option<f64> {
    let price = text.trim().parse::<f64>().ok()?;
    (price.is_finite() && price > 0.0).then_some(price)
}

/// Whether a list is so much shorter than the last one that part of it must be missing.
pub(super) fn is_cut_short(now: usize, before: usize) -> bool {
    now * 2 < before
}

/// Jumps that were told once.
#[derive(Debug, Default)]
pub(super) struct Doubts(BTreeMap<String, f64>);

impl Doubts {
    /// Whether a price is believed beside what it was before.
    pub(super) fn believes(&mut self, what: &str, price: f64, before: Option<f64>) -> bool {
        let is_near = |other: f64| price <= other * JUMP_MAX && other <= price * JUMP_MAX;
        let told_before = self.0.remove(what);
        if before.is_none_or(is_near) || told_before.is_some_and(is_near) {
            return true;
        }
        tracing::warn!(
            what,
            price,
            before,
            "a price that jumps is believed when it is told again"
        );
        self.0.insert(what.to_owned(), price);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_can_be_prices_are() {
        let cases = [
            ("0.096", Some(0.096)),
            (" 1e-3 ", Some(0.001)),
            ("0", None),
            ("-0.1", None),
            ("NaN", None),
            ("inf", None),
            ("1e999", None),
            ("", None),
            ("free", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text), want, "{text}");
        }
    }

    #[test]
    fn a_jump_is_believed_when_it_is_told_again() {
        let mut doubts = Doubts::default();
        assert!(doubts.believes("a", 0.9, Some(0.1)));
        assert!(doubts.believes("new", 99.0, None));
        assert!(!doubts.believes("a", 9.0, Some(0.1)));
        assert!(!doubts.believes("a", 0.0001, Some(0.1)), "another jump");
        assert!(doubts.believes("a", 0.0001, Some(0.1)));
        assert!(!doubts.believes("a", 9.0, Some(0.1)));
        assert!(doubts.believes("a", 0.1, Some(0.1)), "as it was");
        assert!(
            !doubts.believes("a", 9.0, Some(0.1)),
            "that was no second time"
        );
    }

    #[test]
    fn a_list_of_less_than_half_is_cut_short() {
        assert!(is_cut_short(49, 100));
        assert!(!is_cut_short(50, 100));
        assert!(!is_cut_short(0, 0));
    }
}
