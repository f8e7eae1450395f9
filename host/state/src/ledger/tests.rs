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
                claim: Some(format!("claim-of-{node}")),
                pool: Some("web".to_owned()),
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
fn a_node_without_claim_or_pool_is_written_with_empty_names() {
    let alone = NodeOutcome {
        node: "a".to_owned(),
        claim: None,
        pool: None,
        outcome: OutcomeId::NodeNotManaged,
        reason: String::new(),
    };
    let written = serde_json::to_value(&alone).unwrap();
    let expected = serde_json::json!({
        "node": "a", "claim": "", "pool": "", "outcome": "node-not-managed", "reason": "",
    });
    assert_eq!(written, expected);
    assert_eq!(
        serde_json::from_value::<NodeOutcome>(written).unwrap(),
        alone
    );
    for subject in [Subject::Claim(String::new()), Subject::Pool(String::new())] {
        let mut ledger = Ledger::default();
        ledger.push(Record::DisruptionRound(DisruptionRound {
            at: jiff::Timestamp::UNIX_EPOCH,
            decision_id: String::new(),
            nodes: vec![alone.clone()],
            policies: Vec::new(),
            commands: 0,
            interrupted: false,
        }));
        assert!(Why::of(&ledger, &subject).steps.is_empty(), "{subject:?}");
    }
}

#[test]
fn a_claim_is_told_what_became_of_its_node() {
    let mut ledger = Ledger::default();
    ledger.push(scan(
        10,
        &[
            ("a", OutcomeId::NodeBudgetExhausted),
            ("b", OutcomeId::NodeNominated),
        ],
    ));
    let of_claim = Why::of(&ledger, &Subject::parse("claim", "claim-of-a").unwrap());
    let of_node = Why::of(&ledger, &Subject::parse("node", "a").unwrap());
    assert_eq!(of_claim.steps, of_node.steps);
    assert_eq!(of_claim.funnel, of_node.funnel);
    assert_eq!(of_claim.steps[0].outcome.name(), "node-budget-exhausted");
}

#[test]
fn a_near_miss_is_a_node_that_might_have_gone() {
    let cases = [
        (OutcomeId::NodeMissing, false),
        (OutcomeId::NodeNominated, false),
        (OutcomeId::NodeNotConsolidatable, true),
        (OutcomeId::NodeBudgetExhausted, true),
        (OutcomeId::NodeOutranked, true),
        (OutcomeId::NodeInvalidatedBudget, true),
        (OutcomeId::NodeChosenSingle, false),
    ];
    for (outcome, expected) in cases {
        assert_eq!(outcome.is_near_miss(), expected, "{outcome:?}");
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
    assert_eq!(ledger.entries().next_back().unwrap().sequence, 3);
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
    assert_eq!(ledger.entries().next_back().unwrap().sequence, 10);
}

#[test]
fn a_record_survives_json() {
    let record = scan(10, &[("a", OutcomeId::NodePodPdbBlocked)]);
    let text = serde_json::to_string(&record).unwrap();
    assert!(text.contains("node-pod-pdb-blocked"), "{text}");
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}

#[test]
fn the_documented_table_is_the_one_in_force() {
    let written = std::fs::read_to_string("OUTCOMES.md").unwrap();
    assert_eq!(
        written,
        OutcomeId::document(),
        "run: cargo run -p state --example outcomes > host/state/OUTCOMES.md"
    );
}

#[test]
fn the_advice_of_the_book_is_the_one_in_force() {
    let page = std::fs::read_to_string("../../docs/troubleshooting.md").unwrap();
    assert!(page == OutcomeId::advise(&page), "run: just tables");
}

#[test]
fn advice_goes_where_its_number_belongs() {
    let [first, second] = [OutcomeId::NodeNotManaged, OutcomeId::NodeMissing];
    let row = |id: OutcomeId| format!("| {} | `{}` | {} |", id.code(), id.name(), id.advice());
    let page = format!(
        "| {} | `old` | old |\n\ntext\n| 9999 | `gone` | x |",
        first.code()
    );
    let made = OutcomeId::advise(&page);
    let told = format!("{}\n{}\n", row(first), row(second));
    assert!(made.contains(&told), "{made}");
    assert!(
        made.contains("\ntext\n") && !made.contains("9999"),
        "{made}"
    );
}

#[test]
fn why_tells_how_far_a_node_came_and_what_stopped_it() {
    let mut ledger = Ledger::default();
    ledger.push(scan(10, &[("a", OutcomeId::NodeNominated)]));
    for at in [20, 30] {
        ledger.push(scan(at, &[("a", OutcomeId::NodeBudgetExhausted)]));
    }
    let why = Why::of(&ledger, &Subject::parse("node", "a").unwrap());
    let told: Vec<_> = why.steps.iter().map(|it| (it.code, it.times)).collect();
    assert_eq!(told, [(4030, 2), (4005, 1)], "newest first");
    let results: Vec<_> = why.funnel.iter().map(|it| it.result).collect();
    assert_eq!(
        results[9..12],
        [
            GateResult::Passed,
            GateResult::Stopped,
            GateResult::NotReached
        ]
    );
    let pool = Why::of(&ledger, &Subject::parse("nodepool", "web").unwrap());
    assert_eq!(pool.steps.len(), 2);
    let nobody = Why::of(&ledger, &Subject::parse("pod", "p").unwrap());
    assert!(
        nobody
            .to_string()
            .contains("default/p: the ledger holds nothing")
    );
}

#[test]
fn why_stops_a_node_at_the_gate_where_the_scan_left_it() {
    // In the order in which a scan asks.
    let gates: [(&str, &[u16]); 15] = [
        ("is a node of ours", &[4001]),
        ("is in no command already", &[4013]),
        (
            "is ready, and neither going nor rebooting",
            &[4002, 4003, 4004, 4014],
        ),
        (
            "is not about to take pods, and carries no do-not-disrupt",
            &[4005, 4006],
        ),
        (
            "belongs to a NodePool with known types",
            &[4007, 4008, 4009],
        ),
        (
            "is eligible: empty, drifted, sick, or consolidatable",
            &[
                4015, 4020, 4021, 4022, 4023, 4024, 4025, 4026, 4027, 4029, 4058,
            ],
        ),
        ("has no pod that must stay", &[4010, 4011, 4012, 4016]),
        ("is not behind another command", &[4054]),
        ("is not skipped by the policy", &[4031]),
        (
            "its NodePool is neither sick as a whole nor above its replicas",
            &[4034, 4037],
        ),
        ("is within the budgets", &[4030]),
        (
            "its pods find a better place",
            &[
                4035, 4036, 4040, 4041, 4042, 4043, 4044, 4045, 4046, 4048, 4049,
            ],
        ),
        (
            "the move undoes no other, and a preference pays for itself",
            &[4038, 4039, 4047],
        ),
        ("the policy approves of the move", &[4032, 4033]),
        (
            "saves enough, and did so when it was looked at again",
            &[4028, 4055, 4056, 4057],
        ),
    ];
    for id in OutcomeId::TABLE.iter().filter(|it| it.code() / 1000 == 4) {
        let mut ledger = Ledger::default();
        ledger.push(scan(10, &[("a", *id)]));
        let why = Why::of(&ledger, &Subject::Node("a".into()));
        let stop = gates
            .iter()
            .position(|(_, codes)| codes.contains(&id.code()));
        let want = gates.iter().enumerate().map(|(at, (gate, _))| {
            let result = match stop.map(|stop| at.cmp(&stop)) {
                None | Some(std::cmp::Ordering::Less) => GateResult::Passed,
                Some(std::cmp::Ordering::Equal) => GateResult::Stopped,
                Some(std::cmp::Ordering::Greater) => GateResult::NotReached,
            };
            ((*gate).to_owned(), result)
        });
        let told = why.funnel.into_iter().map(|it| (it.gate, it.result));
        assert_eq!(told.collect::<Vec<_>>(), want.collect::<Vec<_>>(), "{id}");
        assert_eq!(stop.is_none(), id.is_chosen(), "{id}");
    }
}
