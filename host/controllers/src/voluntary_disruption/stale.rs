//! Removes the traces of commands that are no more, such as after a restart: the taint and the condition that
//! mark nodes about to go.
//!
//! A taint added by hand goes too. Answers to the clean-up in `pkg/controllers/disruption/controller.go`.

use std::collections::BTreeSet;

use apis::conditions::{self, Conditioned as _};
use apis::labels;
use disruption::queue::{StaleMark, stale_marks};
use tracing::{error, info};

use crate::node::taints::without_taint;
use crate::shell::Shell;
use crate::shell::error::ReconcileError;

pub(super) async fn remove(shell: &Shell, queued: &BTreeSet<String>) {
    let stale = stale_marks(&shell.model.snapshot(), queued);
    for StaleMark {
        node,
        claim,
        is_tainted,
    } in stale
    {
        let node = is_tainted.then_some(node.as_str());
        if let Err(error) = unmark(shell, &claim, node).await {
            error!(NodeClaim = %claim, %error, "removing stale disruption marks");
        }
    }
}

/// Takes taint and condition off.
pub(super) async fn unmark(
    shell: &Shell,
    claim: &str,
    node: Option<&str>,
) -> Result<(), ReconcileError> {
    if let Some(name) = node
        && let Some(node) = shell.model.node(name).await?
    {
        let after = without_taint(&node, labels::DISRUPTED_TAINT_KEY);
        shell.writer.write_node(&node, &after).await?;
        info!(Node = name, "removed disrupted taint");
    }
    if let Some(claim) = shell.model.node_claim(claim).await? {
        let after = claim.without_condition(conditions::DISRUPTION_REASON, shell.now());
        shell.writer.write_claim_status(&claim, &after).await?;
    }
    Ok(())
}
