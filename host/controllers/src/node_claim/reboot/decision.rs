//! Decides the next step for a node that reboots by the claim and its node alone.
//!
//! Pure; `reboot.rs` does it.

use std::borrow::Cow;
use std::sync::Arc;

use apis::conditions::{self, Conditioned, is_node_ready};
use apis::duration::GoDuration;
use apis::{NodeClaim, labels};
use disruption::drain::{Drain, DrainInput, DrainStep, drain_step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use scheduling::pod::Pod;

use super::draining::boot_before;
use crate::node::taints::taints;

/// Reason of `Rebooting` once the cloud has been asked.
pub(super) const ISSUED: &str = "RebootIssued";
const DRAIN_MIN_SECONDS: i64 = 5;
/// For so long the cloud is asked again when it does not answer.
const ISSUANCE_SECONDS: i64 = 300;
/// So long the node may be away.
const RECOVERY_SECONDS: i64 = 1_200;

/// A claim that is to reboot, with what is known of its node.
pub(super) struct Observed {
    pub(super) claim: Arc<NodeClaim>,
    pub(super) node: Option<Arc<Node>>,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) asked_at: Option<Timestamp>,
}

/// Why a node is to be replaced instead.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ending {
    /// The cloud cannot, would not, or knows no such instance.
    Refused,
    /// The node did not come back.
    Lost,
}

/// A reboot that did not help.
#[derive(Debug)]
pub(super) struct FailedReboot {
    pub(super) ending: Ending,
    pub(super) why: Cow<'static, str>,
    /// How long the drain may take; nothing where it is not bounded.
    pub(super) bound: Option<GoDuration>,
}

/// The bound of a drain cannot be read, so nobody knows what was meant.
#[derive(Debug)]
struct UnreadableBound;

/// Step to take next.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Keep new pods away.
    Taint(&'a Node),
    /// Pods are asked to leave.
    Drain(&'a Node, DrainStep),
    /// Note which boot the node is in before the cloud is asked.
    Remember(&'a str),
    /// Ask the cloud; the bound is that of the drain where it refuses.
    Ask { bound: Option<GoDuration> },
    /// The cloud has been asked; the node is not ours to use until it is back.
    Issued(&'a Node),
    /// The node is away.
    Wait,
    /// It has booted anew; pods may come again.
    Untaint(&'a Node),
    /// The node is back and the reboot is over.
    Succeed,
    /// Nobody knows what was meant: the node stays.
    Reject(&'static str),
    /// The node is replaced.
    Fail(FailedReboot),
}

pub(super) fn decide(observed: &Observed, now: Timestamp) -> Step<'_> {
    let claim = &observed.claim;
    if is_issued(claim) {
        return away(observed, now);
    }
    let requested_at = claim.condition_since(conditions::REBOOTING);
    let since = |at: Timestamp| now.duration_since(at).as_secs();
    let Ok(bound) = bound(claim) else {
        return Step::Reject("the bound of its drain cannot be read");
    };
    let fail = |ending, why| {
        let why = Cow::Borrowed(why);
        Step::Fail(FailedReboot { ending, why, bound })
    };
    let Some(node) = observed.node.as_deref() else {
        return if since(requested_at) > ISSUANCE_SECONDS {
            fail(Ending::Lost, "its node is gone")
        } else {
            Step::Wait
        };
    };
    if !is_tainted(node) {
        return Step::Taint(node);
    }
    let boot = boot_id(node);
    let Some(before) = boot_before(claim) else {
        let drain = drain(observed, bound, requested_at, now);
        let drain = drain.map(|it| Step::Drain(node, it));
        let remember = || boot.map(Step::Remember);
        // Without the boot before there is no telling whether the node booted anew.
        return drain.or_else(remember).unwrap_or(Step::Wait);
    };
    if boot.is_some_and(|it| it != before) {
        return Step::Issued(node);
    }
    if observed
        .asked_at
        .is_some_and(|at| since(at) > ISSUANCE_SECONDS)
    {
        return fail(Ending::Refused, "the cloud did not answer");
    }
    Step::Ask { bound }
}

/// How long the drain may take; nothing where it is not bounded.
fn bound(claim: &NodeClaim) -> Result<Option<GoDuration>, UnreadableBound> {
    let key = labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION;
    let Some(text) = claim.annotations().get(key) else {
        return Ok(None);
    };
    match text.parse::<GoDuration>() {
        Ok(bound) if bound >= GoDuration::ZERO => Ok(Some(bound)),
        Ok(_) | Err(_) => Err(UnreadableBound),
    }
}

/// Which boot the node is in, where it says so.
fn boot_id(node: &Node) -> Option<&str> {
    let info = node.status.as_ref()?.node_info.as_ref()?;
    Some(info.boot_id.as_str()).filter(|it| !it.is_empty())
}

fn is_tainted(node: &Node) -> bool {
    taints(node)
        .iter()
        .any(|it| it.key == labels::REBOOTING_TAINT_KEY)
}

/// Drain that is left to do, if any.
fn drain(
    observed: &Observed,
    bound: Option<GoDuration>,
    since: Timestamp,
    now: Timestamp,
) -> Option<DrainStep> {
    let drain = drain_step(&DrainInput {
        pods: &observed.pods,
        deadline: None,
        draining_since: since,
        now,
    });
    let is_over = match bound {
        Some(bound) if bound == GoDuration::ZERO => true,
        Some(bound) => {
            let least = SignedDuration::from_secs(DRAIN_MIN_SECONDS);
            now.duration_since(since) >= bound.to_signed_duration().max(least)
        }
        None => false,
    };
    match drain {
        Drain::Draining(step) if !is_over => Some(step),
        Drain::Draining(_) | Drain::Done => None,
    }
}

fn away(observed: &Observed, now: Timestamp) -> Step<'_> {
    let claim = &observed.claim;
    let left_at = claim.condition_since(conditions::INITIALIZED);
    let is_late = now.duration_since(left_at).as_secs() > RECOVERY_SECONDS;
    let lost = Step::Fail(FailedReboot {
        ending: Ending::Lost,
        why: Cow::Borrowed("the node did not come back in time"),
        // It is too late to ask what was meant by one that cannot be read.
        bound: bound(claim).unwrap_or_default(),
    });
    let Some(node) = observed.node.as_deref() else {
        return if is_late { lost } else { Step::Wait };
    };
    // Without a note of the boot before the end was begun: the notes go first, and what says that it is over may fail.
    let has_booted =
        boot_before(claim).is_none_or(|before| boot_id(node).is_some_and(|it| it != before));
    let is_initialized = node.labels().contains_key(labels::INITIALIZED);
    match (has_booted, is_node_ready(node)) {
        (true, _) if is_tainted(node) => Step::Untaint(node),
        (true, true) => Step::Succeed,
        (true | false, _) if is_late => lost,
        (true | false, _) if is_initialized => Step::Issued(node),
        (true | false, _) => Step::Wait,
    }
}

/// The cloud has been asked.
pub(super) fn is_issued(claim: &NodeClaim) -> bool {
    let condition = claim.condition(conditions::REBOOTING);
    condition.is_some_and(|it| it.reason == ISSUED)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    fn observed(annotations: &Value, reason: &str, boot: &Value) -> Observed {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c", "uid": "u", "annotations": annotations},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "n"},
                "requirements": [],
            },
            "status": {"conditions": [
                condition("Initialized", "Unknown", "Rebooting"),
                condition("Rebooting", "True", reason),
            ]},
        });
        let node = json!({
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}]},
            "status": {"nodeInfo": {
                "architecture": "", "bootID": boot, "containerRuntimeVersion": "",
                "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "",
                "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
            }},
        });
        Observed {
            claim: Arc::new(serde_json::from_value(claim).unwrap()),
            node: Some(Arc::new(serde_json::from_value(node).unwrap())),
            pods: Vec::new(),
            asked_at: None,
        }
    }

    #[test]
    fn a_node_that_does_not_say_its_boot_is_waited_for() {
        let before = json!({labels::REBOOT_PRE_BOOT_ID_ANNOTATION: "one"});
        let cases = [
            (json!({}), "RebootRequested", "one", "Remember(\"one\")"),
            (json!({}), "RebootRequested", "", "Wait"),
            (before.clone(), ISSUED, "one", "Wait"),
            (before.clone(), ISSUED, "", "Wait"),
            (before, ISSUED, "two", "Untaint"),
            // The reboot was over, and its end could not be said.
            (json!({}), ISSUED, "two", "Untaint"),
        ];
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        for (annotations, reason, boot, expected) in cases {
            let observed = observed(&annotations, reason, &json!(boot));
            let found = format!("{:?}", decide(&observed, now));
            let case = format!("{annotations} {reason} {boot:?}: {found}");
            assert!(found.starts_with(expected), "{case}");
        }
    }

    /// A node that is Ready or not, tainted or not, in this boot, with these labels.
    fn node(is_tainted: bool, is_ready: bool, boot: &str, labels: &Value) -> Arc<Node> {
        let mut node = observed(&json!({}), "", &json!(boot)).node.unwrap();
        let changed = Arc::make_mut(&mut node);
        if !is_tainted {
            changed.spec = None;
        }
        changed.metadata.labels = serde_json::from_value(labels.clone()).unwrap();
        let ready = json!([{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]);
        let status = changed.status.get_or_insert_default();
        status.conditions = serde_json::from_value(ready).unwrap();
        node
    }

    /// The step of a claim that is to reboot since midnight, at minutes past it.
    fn step(annotations: &Value, reason: &str, node: Option<Arc<Node>>, minutes: i64) -> String {
        let midnight: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let observed = Observed {
            node,
            asked_at: Some(midnight),
            ..observed(annotations, reason, &json!(""))
        };
        let now = midnight + SignedDuration::from_mins(minutes);
        format!("{:?}", decide(&observed, now))
    }

    #[test]
    fn a_node_is_tainted_then_the_cloud_is_asked_for_five_minutes() {
        let noted = json!({labels::REBOOT_PRE_BOOT_ID_ANNOTATION: "one"});
        let unclear = json!({labels::REBOOT_TERMINATION_GRACE_PERIOD_ANNOTATION: "long"});
        let in_boot = |boot| Some(node(true, false, boot, &json!({})));
        let cases = [
            (
                json!({}),
                Some(node(false, true, "one", &json!({}))),
                1,
                "Taint",
            ),
            (unclear, in_boot("one"), 1, "Reject"),
            (json!({}), None, 5, "Wait"),
            (json!({}), None, 6, "Fail(FailedReboot { ending: Lost"),
            (noted.clone(), in_boot("one"), 5, "Ask { bound: None"),
            (
                noted.clone(),
                in_boot("one"),
                6,
                "Fail(FailedReboot { ending: Refused",
            ),
            // It went down before the claim could say that it was asked to.
            (noted, in_boot("two"), 6, "Issued"),
        ];
        for (annotations, node, minutes, expected) in cases {
            let found = step(&annotations, "RebootRequested", node, minutes);
            assert!(
                found.starts_with(expected),
                "{annotations} {minutes}: {found}"
            );
        }
    }

    #[test]
    fn a_node_that_is_away_comes_back_in_twenty_minutes_or_is_lost() {
        let noted = json!({labels::REBOOT_PRE_BOOT_ID_ANNOTATION: "one"});
        let initialized = json!({labels::INITIALIZED: "true"});
        let cases = [
            (None, 20, "Wait"),
            (None, 21, "Fail(FailedReboot { ending: Lost"),
            (Some(node(true, false, "one", &json!({}))), 20, "Wait"),
            (
                Some(node(true, false, "one", &json!({}))),
                21,
                "Fail(FailedReboot { ending: Lost",
            ),
            // Somebody says again that it takes pods.
            (Some(node(true, true, "one", &initialized)), 1, "Issued"),
            (Some(node(true, true, "two", &json!({}))), 21, "Untaint"),
            (Some(node(false, false, "two", &json!({}))), 20, "Wait"),
            (Some(node(false, true, "two", &json!({}))), 21, "Succeed"),
        ];
        for (node, minutes, expected) in cases {
            let found = step(&noted, ISSUED, node.clone(), minutes);
            assert!(found.starts_with(expected), "{node:?} {minutes}: {found}");
        }
    }
}
