//! Log lines of a provisioning pass while it goes on. What else is told of it, once it is over, is in `report.rs`.
//!
//! The lines answer to `pkg/controllers/provisioning/provisioner.go`.

use std::time::Duration;

use apis::NodeRef;
use scheduling::Solution;
use scheduling::pod::PodKey;
use tracing::{debug, error, info};

use super::creation::CreationRefusal;
use super::{Decided, Observed};
use crate::shell::journal::JournalEntry;
use crate::shell::journal::log_values::FirstFew;

/// Something that happens in a pass.
pub(super) enum PassEntry<'a> {
    /// It is known which pods go where.
    Decided {
        decided: &'a Decided,
        took: Duration,
    },
    /// So many pods are to go to a node that there is.
    NodeNominated { node: &'a NodeRef, pods: usize },
    /// A claim of this NodePool was not created.
    CreationRefused {
        pool: &'a str,
        refusal: &'a CreationRefusal,
    },
}

impl JournalEntry for PassEntry<'_> {
    type Subject = Observed;

    fn log(&self, observed: &Observed) {
        match self {
            Self::Decided { decided, took } => log_decided(observed, decided, *took),
            Self::NodeNominated { node, pods } => {
                debug!(Node = %node, pods, "nominated node");
            }
            Self::CreationRefused { pool, refusal } => {
                error!(NodePool = %pool, error = %refusal, "creating nodeclaim");
            }
        }
    }
}

fn log_decided(observed: &Observed, decided: &Decided, took: Duration) {
    let Decided { solution, pods, .. } = decided;
    if *pods > 0 {
        let names = FirstFew(pods_of(observed, solution));
        info!(Pods = %names, pods, duration = ?took, "found provisionable pod(s)");
    }
    if !solution.claims.is_empty() {
        info!(
            nodeclaims = solution.claims.len(),
            pods = solution
                .claims
                .iter()
                .map(|it| it.pods.len())
                .sum::<usize>(),
            "computed new nodeclaim(s) to fit pod(s)"
        );
    }
}

/// Pods that wait, for which there is a place or none; neither those about to be created nor the room of buffers.
fn pods_of<'a>(
    observed: &'a Observed,
    solution: &'a Solution,
) -> impl Iterator<Item = &'a PodKey> + Clone {
    let placed = solution.existing.iter().flat_map(|it| &it.pods);
    let opened = solution.claims.iter().flat_map(|it| &it.pods);
    let all = placed.chain(opened).chain(solution.pod_errors.keys());
    all.filter(|key| observed.snapshot.pod(key).is_some())
}
