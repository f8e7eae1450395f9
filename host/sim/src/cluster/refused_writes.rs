//! Writes of the world's own components that the API server refused, kept so that a run shows them.
//!
//! Decides nothing of what comes of a refusal and repeats nothing: whoever wrote goes on without it, as a controller
//! whose write failed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use api_server::StatusError;

use super::SimulatedCluster;

/// How many different ones are kept; the first say what is wrong.
const REFUSALS_MAX: usize = 100;

/// The server's words for each.
#[derive(Debug, Default)]
pub(crate) struct RefusedWrites {
    words: RefCell<BTreeSet<String>>,
}

impl RefusedWrites {
    pub(crate) fn all(&self) -> Vec<String> {
        self.words.borrow().iter().cloned().collect()
    }

    fn note(&self, status: &StatusError) {
        if is_expected(status) {
            return;
        }
        tracing::warn!(%status, "the API server refused a write of the simulated world");
        let mut words = self.words.borrow_mut();
        if words.len() < REFUSALS_MAX {
            words.insert(status.message.clone());
        }
    }
}

/// Whether two that write at once explain it: the object, or its namespace, is gone or there already, or somebody else
/// wrote it.
fn is_expected(status: &StatusError) -> bool {
    status.is_of_missing_object()
        || status.is_already_exists()
        || status.is_conflict()
        || status.is_of_terminating_namespace()
}

impl SimulatedCluster {
    /// What was written. Every write of the world comes by here: what was refused for another reason than a race is a
    /// violation of the run.
    pub(crate) fn note_refusal<T>(&self, outcome: Result<T, StatusError>) -> Option<T> {
        match outcome {
            Ok(written) => Some(written),
            Err(status) => {
                self.refused.note(&status);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api_server::{FieldError, Resource};

    use super::*;

    #[test]
    fn what_races_explain_is_not_kept_and_the_rest_is_once() {
        let pods = Resource::PODS;
        let invalid = StatusError::invalid("", "Pod", "a", &[FieldError::required("spec", "")]);
        let cases = [
            (StatusError::not_found(&pods, "a"), false),
            (StatusError::already_exists(&pods, "a"), false),
            (StatusError::conflict(&pods, "a", "it changed"), false),
            (
                StatusError::terminating_namespace(&pods, "a", "gone"),
                false,
            ),
            (StatusError::no_such_resource(), true),
            (StatusError::forbidden(&pods, "a", "no such class"), true),
            (invalid.clone(), true),
            (StatusError::internal("a fault"), true),
        ];
        for (status, is_kept) in cases {
            let refused = RefusedWrites::default();
            refused.note(&status);
            refused.note(&status);
            let want = if is_kept {
                vec![status.message.clone()]
            } else {
                vec![]
            };
            assert_eq!(refused.all(), want);
        }
    }
}
