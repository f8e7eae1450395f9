//! What becomes of a node that is to register, case by case.

use jiff::SignedDuration;
use serde_json::json;
use state::Cluster;

use super::*;
use crate::node_claim::tests::{claim_with, condition, name_of};

/// The step of a claim that was launched at this minute before one, and whose node was ready at this second of it,
/// where nodes open that many seconds after one.
fn step(
    launched: &str,
    ready: &str,
    registrable: Result<Registrable, CloudProviderError>,
    opens_in: i64,
) -> Step {
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
        snapshot: Cluster::new().snapshot(),
        terms: OpeningTerms {
            holds_nodes_closed: true,
            nominates_pods: true,
        },
        shut_out: Arc::default(),
        opens_at: now() + SignedDuration::from_secs(opens_in),
    };
    decide(observed, now())
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

#[test]
fn a_node_opens_once_the_provider_and_its_pods_are_done() {
    let ready = || Ok(Registrable::Ready(BTreeMap::new()));
    let pending = || Ok(Registrable::Pending("a partition"));
    let unknown = || Err(CloudProviderError::Other("throttled".to_owned()));
    let cases = [
        ("00:50", "10", ready(), 0, "Open"),
        ("00:50", "56", ready(), 1, "KeepClosed"),
        ("00:50", "55", ready(), 1, "Hold"),
        ("00:50", "59", pending(), 0, "AwaitProvider"),
        ("00:50", "59", unknown(), 0, "AskAgain"),
        // What may open does, however late.
        ("00:45", "10", ready(), 0, "Open"),
        ("00:45", "10", ready(), 1, "GiveUp"),
        ("00:45", "59", pending(), 0, "GiveUp"),
        ("00:45", "59", unknown(), 0, "GiveUp"),
    ];
    for (launched, ready, registrable, opens_in, expected) in cases {
        let case = format!("{launched} {ready} {registrable:?} {opens_in}");
        let found = step(launched, ready, registrable, opens_in);
        assert_eq!(name_of(&found), expected, "{case}");
    }
}

#[test]
fn a_node_that_opens_alone_sets_the_moment_and_brings_the_labels_of_the_provider() {
    let labels = BTreeMap::from([("partition".to_owned(), "1".to_owned())]);
    let found = step("00:50", "10", Ok(Registrable::Ready(labels.clone())), -3600);
    let opening = NodeOpening::OpensAlone(now());
    assert_eq!(found, Step::Open(Preparation { labels, opening }));
}
