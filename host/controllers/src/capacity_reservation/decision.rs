//! Decides about a claim whose capacity reservation ends.
//!
//! Pure; `capacity_reservation.rs` does it.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{CapacityType, NodeClaim, labels};
use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};

/// Labels that only things in a reservation have.
const OF_RESERVATION: [&str; 3] = [
    labels::CAPACITY_RESERVATION_ID,
    labels::CAPACITY_RESERVATION_TYPE,
    labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

/// End of a reservation, as the cloud tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The instances of a capacity block end with it, soon.
    OfBlock,
    /// The instance has left its reservation and runs on, on-demand.
    OfReservation,
}

/// A claim whose reservation ends.
pub(super) struct Observed {
    /// Id of the reservation, or the empty string.
    pub(super) reservation: String,
    pub(super) claim: Arc<NodeClaim>,
    /// Read only where the reservation is left.
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) end: End,
}

/// Steps to take, in this order.
#[derive(Debug)]
pub(super) enum Step {
    /// The claim is deleted.
    DeleteClaim,
    /// The node says on-demand.
    WriteNode { before: Arc<Node>, after: Box<Node> },
    /// The claim says on-demand.
    WriteClaim { after: Box<NodeClaim> },
}

pub(super) fn decide(observed: &Observed) -> Vec<Step> {
    let Observed {
        reservation: _,
        claim,
        nodes,
        end,
    } = observed;
    if claim.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    match end {
        End::OfBlock => vec![Step::DeleteClaim],
        End::OfReservation => {
            let nodes = nodes
                .iter()
                .filter(|it| is_reserved(it.labels()) && is_registered(it));
            let nodes = nodes.map(|node| Step::WriteNode {
                before: Arc::clone(node),
                after: Box::new(demoted(node.as_ref())),
            });
            let after = Box::new(demoted(claim.as_ref()));
            // Nodes first: a claim that says on-demand is not looked at again.
            nodes.chain([Step::WriteClaim { after }]).collect()
        }
    }
}

fn is_reserved(found: &BTreeMap<String, String>) -> bool {
    let capacity_type = found.get(labels::CAPACITY_TYPE);
    capacity_type.is_some_and(|it| it == CapacityType::Reserved.as_str())
}

/// The labels of others are still to come.
fn is_registered(node: &Node) -> bool {
    let registered = node.labels().get(labels::REGISTERED);
    registered.is_some_and(|it| it == "true")
}

fn demoted<K: Resource + Clone>(object: &K) -> K {
    let mut after = object.clone();
    let found = after.labels_mut();
    let on_demand = CapacityType::OnDemand.to_string();
    found.insert(labels::CAPACITY_TYPE.to_owned(), on_demand);
    for key in OF_RESERVATION {
        found.remove(key);
    }
    after
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::node_claim::tests::claim_with;

    fn reserved() -> Value {
        json!({
            "karpenter.sh/capacity-type": "reserved", "karpenter.k8s.aws/capacity-reservation-id": "cr-1",
            "karpenter.k8s.aws/capacity-reservation-type": "default", "kept": "as it is",
        })
    }

    fn node(name: &str, capacity_type: &str, registered: &str) -> Arc<Node> {
        let mut labels = reserved();
        labels["karpenter.sh/capacity-type"] = capacity_type.into();
        labels["karpenter.sh/registered"] = registered.into();
        let node = json!({"metadata": {"name": name, "labels": labels}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    /// What is done, each step with what it leaves of the labels of reservations.
    fn steps(end: End, deleted_at: &Value, nodes: Vec<Arc<Node>>) -> Vec<String> {
        let extra =
            json!({"/metadata/deletionTimestamp": deleted_at, "/metadata/labels": reserved()});
        let observed = Observed {
            reservation: "cr-1".to_owned(),
            claim: Arc::new(claim_with(&extra)),
            nodes,
            end,
        };
        let capacity_type_of = |labels: &BTreeMap<String, String>| {
            assert_eq!(labels["kept"], "as it is");
            assert!(OF_RESERVATION.iter().all(|it| !labels.contains_key(*it)));
            labels[labels::CAPACITY_TYPE].clone()
        };
        let steps = decide(&observed).into_iter();
        let steps = steps.map(|step| match step {
            Step::DeleteClaim => "delete".to_owned(),
            Step::WriteNode { before, after } => {
                assert_eq!(before.name_any(), after.name_any());
                format!("{} {}", after.name_any(), capacity_type_of(after.labels()))
            }
            Step::WriteClaim { after } => format!("claim {}", capacity_type_of(after.labels())),
        });
        steps.collect()
    }

    #[test]
    fn claims_of_ending_blocks_go_and_the_others_say_on_demand_nodes_first() {
        let (living, going) = (json!(null), json!("2026-01-01T00:00:00Z"));
        let n1 = || node("n1", "reserved", "true");
        let cases = [
            (End::OfBlock, &living, vec![], vec!["delete"]),
            (End::OfBlock, &going, vec![], vec![]),
            (
                End::OfReservation,
                &living,
                vec![n1()],
                vec!["n1 on-demand", "claim on-demand"],
            ),
            (
                End::OfReservation,
                &living,
                vec![node("n1", "on-demand", "true")],
                vec!["claim on-demand"],
            ),
            (
                End::OfReservation,
                &living,
                vec![node("n1", "reserved", "")],
                vec!["claim on-demand"],
            ),
            (End::OfReservation, &living, vec![], vec!["claim on-demand"]),
            (End::OfReservation, &going, vec![n1()], vec![]),
        ];
        for (end, deleted_at, nodes, expected) in cases {
            let found = steps(end, deleted_at, nodes);
            assert_eq!(found, expected, "{end:?} {deleted_at}");
        }
    }
}
