//! The claim whose instance the cloud takes back or finds sick: which it is, and how it goes.
//!
//! Who hears of it decides: `interruption.rs` by notices, `instance_status.rs` by asking. Answers to
//! `pkg/controllers/interruption` of the AWS provider.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeClaim;
use cloudprovider::InterruptionKind;

use super::entries::{InterruptedClaim, InterruptionEntry};
use crate::shell::Shell;
use crate::shell::error::{ReconcileError, ignore_not_found};
use crate::shell::journal::references;

/// Names of the claims of these instances, by instance id.
pub(super) fn claims_of(shell: &Shell, instance_ids: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let snapshot = shell.model.snapshot();
    let nodes = snapshot.nodes().filter_map(|node| {
        let id = node.provider_id()?.instance_id();
        let claim = node.claim_name()?;
        instance_ids
            .contains(id)
            .then(|| (id.to_owned(), claim.to_owned()))
    });
    nodes.collect()
}

/// The claim as the API server has it, where it is still this instance's.
pub(super) async fn claim_of(
    shell: &Shell,
    name: &str,
    instance_id: &str,
) -> Result<Option<Arc<NodeClaim>>, ReconcileError> {
    let is_its = |claim: &Arc<NodeClaim>| {
        let id = claim.provider_id();
        id.is_some_and(|it| it.instance_id() == instance_id)
    };
    Ok(shell.model.node_claim(name).await?.filter(is_its))
}

/// Says on the claim and its node what is the matter.
pub(super) fn notify(shell: &Shell, claim: &NodeClaim, kind: InterruptionKind) {
    write_entry(shell, claim, &InterruptionEntry::Notified(&kind));
}

/// Lets the claim go.
pub(super) async fn delete(
    shell: &Shell,
    claim: &NodeClaim,
    kind: InterruptionKind,
) -> Result<(), ReconcileError> {
    ignore_not_found(shell.writer.delete(claim).await)?;
    write_entry(shell, claim, &InterruptionEntry::Deleted(&kind));
    Ok(())
}

/// Tells what came of the cloud's word.
pub(super) fn write_entry(shell: &Shell, claim: &NodeClaim, entry: &InterruptionEntry<'_>) {
    let node = claim.status.as_ref().and_then(|it| it.node_name.as_ref());
    let node = node.map(|it| references::node(&shell.model.snapshot(), it));
    let subject = InterruptedClaim { claim, node };
    shell.journal.write(&subject, entry);
}
