//! Spans and values of the controllers' log lines, as Karpenter writes them: spans with the controller and the number
//! of the reconcile, and values that are put together only where the line is written.
//!
//! Answers to controller-runtime's `pkg/builder/controller.go` and Karpenter's `pkg/utils/pretty`.

use std::fmt;

use apis::ObjectKey;
use serde::Serialize;
use tracing::{Span, error_span, field};

/// Names that a line has of a list.
const NAMED_MAX: usize = 5;

/// A key that a line can name: its object.
pub(crate) trait LoggedKey {
    /// Empty for what is in none.
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
}

impl LoggedKey for ObjectKey {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The number of a reconcile or a round, sixteen digits long.
pub(crate) struct ReconcileId(pub(crate) u64);

impl fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A controller with a queue, as its log lines name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControllerName {
    /// Karpenter's name of it, which metrics show as well.
    pub(crate) name: &'static str,
    /// Group and kind of the objects that its keys name.
    pub(crate) kind: (&'static str, &'static str),
}

/// Around all that a controller with a queue does.
pub(crate) fn controller_span(controller: ControllerName) -> Span {
    let ControllerName {
        name,
        kind: (group, kind),
    } = controller;
    error_span!(
        "controller",
        controller = name,
        controllerGroup = group,
        controllerKind = kind
    )
}

/// Around one reconcile of a controller.
pub(crate) fn reconcile_span(controller: &Span, key: &impl LoggedKey, number: u64) -> Span {
    error_span!(
        parent: controller,
        "reconcile",
        namespace = key.namespace(),
        name = key.name(),
        reconcileID = %ReconcileId(number)
    )
}

/// Around a controller without a queue; each of its rounds has a number, which [`number_round`] writes.
pub(crate) fn loop_span(controller: &'static str) -> Span {
    error_span!("loop", controller, reconcileID = field::Empty)
}

/// Gives what is logged from here on, until the next round, this number.
pub(crate) fn number_round(number: u64) {
    Span::current().record("reconcileID", field::display(ReconcileId(number)));
}

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

    #[test]
    fn numbers_of_reconciles_are_of_one_length() {
        assert_eq!(ReconcileId(26).to_string(), "000000000000001a");
    }
}
