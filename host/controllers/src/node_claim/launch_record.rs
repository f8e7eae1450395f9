//! The ledger's record of a step in a claim's life, with what ranking policies had to do with it.
//!
//! Pure: the journal writes it. Karpenter keeps no such thing.

use apis::{NodeClaim, labels};
use jiff::Timestamp;
use kube::ResourceExt;
use scheduling::ranking::{Exclusions, RankedLaunch};
use state::ledger::{LaunchStepRecord, OutcomeId, Record};

use crate::shell::journal::recorder::shorten;

/// A policy's note on a launch is cut here.
const NOTE_BYTES_MAX: usize = 300;

/// Record of a launch, with the claim as it was then; the price is that of the offering that was bought.
pub(super) fn launch_record(
    claim: &NodeClaim,
    at: Timestamp,
    outcome: OutcomeId,
    reason: &str,
    ranked: &RankedLaunch,
) -> Record {
    let label = |key: &str| claim.label(key).unwrap_or_default();
    let [instance_type, zone, capacity_type] = [
        labels::INSTANCE_TYPE,
        labels::TOPOLOGY_ZONE,
        labels::CAPACITY_TYPE,
    ]
    .map(label);
    let bought = ranked.offerings.iter().find(|offering| {
        *offering.instance_type == *instance_type
            && *offering.zone == *zone
            && offering.capacity_type.as_str() == capacity_type
    });
    let status = claim.status.as_ref();
    let node = status.and_then(|status| status.node_name.clone());
    Record::Launch(LaunchStepRecord {
        at,
        claim: claim.name_any(),
        pool: claim.pool_name().unwrap_or_default().to_owned(),
        node: node.unwrap_or_default(),
        outcome,
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        capacity_type: capacity_type.to_owned(),
        price_per_hour: bought.map_or(0.0, |offering| offering.price_per_hour),
        reason: reason.to_owned(),
        policies: ranked.uses.clone(),
    })
}

/// Record of a step that ranking had nothing to do with.
pub(crate) fn unranked_record(
    claim: &NodeClaim,
    at: Timestamp,
    outcome: OutcomeId,
    reason: &str,
) -> Record {
    launch_record(claim, at, outcome, reason, &RankedLaunch::default())
}

/// One that needs no reason either.
pub(super) fn plain_record(claim: &NodeClaim, at: Timestamp, outcome: OutcomeId) -> Record {
    unranked_record(claim, at, outcome, "")
}

/// A reason with what the policy says of its order, and what it ruled out of it.
pub(super) fn with_policy(reason: &str, ranked: &RankedLaunch) -> String {
    let note = shorten(ranked.note.as_deref().unwrap_or_default(), NOTE_BYTES_MAX);
    // Where nothing is left, the reason has it already.
    let exclusions = if ranked.offerings.is_empty() {
        Exclusions::default()
    } else {
        ranked.exclusions.clone()
    };
    let excluded = match exclusions.total() {
        0 => String::new(),
        1 => format!("1 offering excluded: {exclusions}"),
        many => format!("{many} offerings excluded: {exclusions}"),
    };
    let parts = [reason, &note, &excluded];
    let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join("; ")
}
