//! What becomes of a node that is to join, case by case.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::node_claim::tests::{claim_with, condition, name_of};

/// The step of a claim that was launched at this minute before one, and whose node was ready at this second of it.
fn step(
    launched: &str,
    ready: &str,
    registrable: Result<Registrable, CloudProviderError>,
    opening: Option<NodeOpening>,
) -> String {
    let conditions = json!([condition("Registered", "Unknown", launched)]);
    let claim =
        claim_with(&json!({"/metadata/deletionTimestamp": null, "/status/conditions": conditions}));
    let at = format!("2026-01-01T00:59:{ready}Z");
    let node = json!({
        "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:50:00Z"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}]},
    });
    let node = NodeFacts::parse(&serde_json::from_value(node).unwrap());
    let observed = Observed {
        claim: &claim,
        node: &node,
        registrable,
        opening,
    };
    name_of(&decide(&observed, "2026-01-01T01:00:00Z".parse().unwrap()))
}

#[test]
fn a_node_opens_once_the_provider_and_its_pods_are_done() {
    let ready = || Ok(Registrable::Ready(BTreeMap::new()));
    let pending = || Ok(Registrable::Pending("a partition"));
    let unknown = || Err(CloudProviderError::Other("throttled".to_owned()));
    let held = Some(NodeOpening::Held(HoldReason::OthersAreComing));
    let early = Some(NodeOpening::TooEarly(HoldReason::PodsAreComing));
    let cases = [
        ("00:50", "10", ready(), Some(NodeOpening::Opens), "Open"),
        ("00:50", "56", ready(), held, "KeepClosed"),
        ("00:50", "55", ready(), held, "Hold"),
        ("00:50", "55", ready(), early, "Hold"),
        ("00:50", "59", pending(), None, "AwaitProvider"),
        ("00:50", "59", unknown(), None, "AskAgain"),
        // What may open does, however late.
        ("00:45", "10", ready(), Some(NodeOpening::Opens), "Open"),
        ("00:45", "10", ready(), held, "GiveUp"),
        ("00:45", "59", pending(), None, "GiveUp"),
        ("00:45", "59", unknown(), None, "GiveUp"),
    ];
    for (launched, ready, registrable, opening, expected) in cases {
        let case = format!("{launched} {ready} {registrable:?} {opening:?}");
        let found = step(launched, ready, registrable, opening);
        assert_eq!(found, expected, "{case}");
    }
}
