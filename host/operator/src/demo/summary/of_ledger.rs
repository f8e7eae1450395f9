//! The part of a summary about the decisions of a run, from its ledger.

use std::collections::BTreeMap;

use state::ledger::{Ledger, OutcomeId, ProvisioningRound, Record};

use crate::demo::summary::PlanLine;

/// Claims that were given up because no offering left to them could be bought.
pub(crate) fn launches_without_capacity(ledger: &Ledger) -> usize {
    let launches = ledger.entries().filter(|entry| match &entry.record {
        Record::Launch(it) => it.outcome == OutcomeId::ClaimInsufficientCapacity,
        Record::ProvisioningRound(_)
        | Record::DisruptionRound(_)
        | Record::Command(_)
        | Record::Termination(_)
        | Record::Placement(_) => false,
    });
    launches.count()
}

/// The claims of the first round of provisioning that opened any.
pub(crate) fn first_plan(ledger: &Ledger) -> Option<PlanLine> {
    let mut plans = provisioning_rounds(ledger).map(|it| &it.claims);
    let first = plans.find(|it| !it.is_empty());
    first.map(|claims| PlanLine {
        nodes: claims.len(),
        pods: claims.iter().map(|it| it.pods).sum(),
        price_per_hour: claims.iter().map(|it| it.price_per_hour).sum(),
    })
}

/// The last word of the ledger on each pod, by `namespace/name`.
pub(crate) fn pod_reasons(ledger: &Ledger) -> BTreeMap<String, String> {
    let groups = provisioning_rounds(ledger).flat_map(|round| &round.pods);
    groups
        .flat_map(|group| {
            group
                .pods
                .iter()
                .map(|pod| (pod.clone(), group.reason.clone()))
        })
        .collect()
}

fn provisioning_rounds(ledger: &Ledger) -> impl Iterator<Item = &ProvisioningRound> {
    ledger.entries().filter_map(|entry| match &entry.record {
        Record::ProvisioningRound(round) => Some(round),
        Record::Launch(_)
        | Record::DisruptionRound(_)
        | Record::Command(_)
        | Record::Termination(_)
        | Record::Placement(_) => None,
    })
}
