//! What the ledger keeps, folds, forgets and hashes.

use super::*;

fn scan(at_seconds: i64, outcomes: &[(&str, OutcomeId)]) -> Record {
    Record::DisruptionRound(DisruptionRound {
        at: jiff::Timestamp::from_second(at_seconds).unwrap(),
        decision_id: format!("disruption-{at_seconds}"),
        nodes: outcomes
            .iter()
            .map(|(node, outcome)| NodeOutcome {
                node: (*node).to_owned(),
                pool: "web".to_owned(),
                outcome: *outcome,
                reason: String::new(),
            })
            .collect(),
        policies: Vec::new(),
        commands: 0,
        interrupted: false,
    })
}

#[test]
fn the_table_of_outcome_ids_is_unique_and_ascending() {
    for pair in OutcomeId::TABLE.windows(2) {
        assert!(pair[0].code() < pair[1].code(), "{} {}", pair[0], pair[1]);
    }
    for &id in OutcomeId::TABLE {
        assert_eq!(OutcomeId::from_name(id.name()), Some(id));
        assert!(id.meaning().ends_with('.'), "{id}");
    }
}

#[test]
fn equal_scans_share_an_entry_but_change_the_hash() {
    let mut ledger = Ledger::default();
    ledger.push(scan(10, &[("a", OutcomeId::NodeNominated)]));
    let first = ledger.hash();
    ledger.push(scan(20, &[("a", OutcomeId::NodeNominated)]));
    assert_eq!(ledger.entries().count(), 1);
    assert_eq!(ledger.entries().next().unwrap().times, 2);
    assert_ne!(ledger.hash(), first);
    ledger.push(scan(30, &[("a", OutcomeId::NodeChosenEmpty)]));
    assert_eq!(ledger.entries().count(), 2);
    assert_eq!(ledger.since(2).count(), 1);
}

#[test]
fn equal_writes_give_equal_hashes() {
    let run = || {
        let mut ledger = Ledger::default();
        ledger.push(scan(10, &[("a", OutcomeId::NodeNominated)]));
        ledger.push(scan(20, &[("b", OutcomeId::NodeMissing)]));
        ledger.hash()
    };
    assert_eq!(run(), run());
    assert_eq!(run().len(), 64);
}

#[test]
fn the_oldest_records_go_when_the_ring_is_full() {
    let mut ledger = Ledger::with_lines_max(4);
    for at in 0..10 {
        let node = format!("n{at}");
        ledger.push(scan(at, &[(node.as_str(), OutcomeId::NodeNominated)]));
    }
    assert_eq!(ledger.entries().count(), 2);
    assert_eq!(ledger.about(&Subject::Node("n9".into())).count(), 1);
    assert_eq!(ledger.about(&Subject::Node("n0".into())).count(), 0);
    assert_eq!(ledger.about(&Subject::Pool("web".into())).count(), 2);
    assert_eq!(ledger.sequence(), 10);
}

#[test]
fn a_record_survives_json() {
    let record = scan(10, &[("a", OutcomeId::NodePodPdbBlocked)]);
    let text = serde_json::to_string(&record).unwrap();
    assert!(text.contains("node-pod-pdb-blocked"), "{text}");
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}
