//! What the log lines of one reconcile, or of one round, have in common: the controller, the object and the number.
//!
//! Answers to the logger that controller-runtime's `pkg/builder/controller.go` hands to a reconcile.

use std::fmt;

use apis::ObjectKey;
use tracing::{Span, error_span, field};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_reconciles_are_of_one_length() {
        assert_eq!(ReconcileId(26).to_string(), "000000000000001a");
    }
}
