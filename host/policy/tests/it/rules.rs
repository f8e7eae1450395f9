//! Rules: one line in a ConfigMap changes the next decision, and a wrong one says where it is wrong.

use hooks::disruption::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, Civil, ConsolidationHook,
    ConsolidationRound, Context, DeclaredBudget, Move, MoveKind, NO_CAPACITY_TYPE, NO_SYMBOL,
    NodeTable, PoolActivity, PoolView, VerdictDecision,
};
use policy::{BindingSource, BindingState, PolicyKind, ProviderFacts, rule_variables};
use scheduling::ranking::{
    ClaimOperator, ClaimRequirement, RankHook, RankStage, Ranking, UsageTable, WorkloadTable,
};

use crate::support::{annotated, config_map, host, round};

pub(crate) fn rule(kind: &str, data: &[(&str, &str)]) -> BindingSource {
    let mut source = config_map("mine", kind);
    for (key, value) in data {
        source.data.insert((*key).to_owned(), (*value).to_owned());
    }
    source
}

pub(crate) fn ranked(data: &[(&str, &str)]) -> Ranking {
    let host = host();
    let status = host.apply(&rule("rank", data));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    host.rank(&round()).rankings.swap_remove(0)
}

#[test]
fn a_line_of_cel_ranks_the_next_launch() {
    // The table: m7i.large (amd64) at 0.10 and m7g.large (arm64) at 0.11, both in us-east-1a.
    for (text, expected) in [
        (r#"arch == "arm64" ? price * 0.5 : price"#, [0.10, 0.055]),
        ("price * 2", [0.20, 0.22]),
        ("price + 0.01 * double(cpu_milli) / 1000", [0.12, 0.13]),
        // Ints are divided as doubles are.
        ("cpu_milli / 1600", [1.25, 1.25]),
        ("int(cpu_milli / 1600)", [1.0, 1.0]),
        ("cpu_milli % 1500", [500.0, 500.0]),
        (r#"family in ["m7g", "c7g"] ? 0 : 1"#, [1.0, 0.0]),
        (
            r#"instance_type.startsWith("m7g.") && zone.endsWith("a") ? 0.0 : price"#,
            [0.10, 0.0],
        ),
        (
            r#"instance_type.matches("^m[0-9]+i\\.") ? 3 : 4"#,
            [3.0, 4.0],
        ),
        (
            r#"["m7g", "r7g"].exists(f, family == f) ? 1 : 2"#,
            [2.0, 1.0],
        ),
        (r#"["m7g", "r7g"].all(f, family != f) ? 1 : 2"#, [1.0, 2.0]),
        ("max(price, 0.105)", [0.105, 0.11]),
        ("math.least(price, 0.105, 7)", [0.10, 0.105]),
        (
            r#"nodepool == "web" && weekday == 0 && hour == 12 ? 1 : 2"#,
            [1.0, 1.0],
        ),
        (r#""team" in labels ? 1 : 2"#, [2.0, 2.0]),
        (r#"labels.team == "x" || arch != "" ? 1 : 2"#, [1.0, 1.0]),
        ("ice_age > 3600 ? price : price * 4 // rested", [0.10, 0.11]),
        ("-(-price)", [0.10, 0.11]),
        ("size(zone) == 10 ? abs(-1) : ceil(0.2)", [1.0, 1.0]),
    ] {
        let scores = ranked(&[("rule", text)]).scores;
        for (found, expected) in scores.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{text}: {scores:?}");
        }
    }
}

#[test]
fn a_rank_rule_sees_the_claim_its_pods_and_the_nodes_there_are() {
    let mut asked = round();
    let words = [
        "Job",
        "nightly",
        "team",
        "shop",
        "us-east-1b",
        "high",
        "gpu",
    ];
    let first = u32::try_from(asked.table.symbols.len()).unwrap();
    asked.table.symbols.extend(words.map(str::to_owned));
    let sym = |at: u32| first + at;
    let claim = &mut asked.claims[0];
    claim.stage = RankStage::Launch;
    claim.nodepool_labels = vec![(sym(2), sym(3))];
    claim.free_addresses = vec![(sym(4), 9), (8, 250)];
    claim.requirements = vec![ClaimRequirement {
        key: sym(6),
        operator: ClaimOperator::Exists,
        values: Vec::new(),
        min_values: 0,
    }];
    claim.pods.oldest_wait_seconds = 90;
    claim.pods.max_priority = -5;
    claim.pods.do_not_disrupt = 2;
    // Five nodes of `web` and two of `batch` on the first offering, and three of `web` elsewhere.
    asked.usage = UsageTable {
        nodepool: vec![0, 1, 0],
        instance_type: vec![4, 4, 5],
        family: vec![6, 6, 7],
        zone: vec![8, 8, sym(4)],
        capacity_type: vec![0, 0, 1],
        nodes: vec![5, 2, 3],
        launching: vec![1, 1, 0],
        price: vec![0.1; 3],
    };
    asked.workloads = WorkloadTable {
        of: vec![0],
        namespace: vec![sym(1)],
        owner_kind: vec![sym(0)],
        owner_name: vec![NO_SYMBOL],
        priority_class: vec![sym(5)],
        priority: vec![0],
        labels: vec![Vec::new()],
        pods: vec![4],
        do_not_disrupt: vec![0],
        cpu_milli: vec![1000],
        memory_mib: vec![1024],
        gpus: vec![0],
        replicas: vec![4],
        disruptions_allowed: vec![1],
        oldest_wait: vec![90],
    };
    for text in [
        "in_use == 7 && launching == 2 && generation == 7",
        "nodepool_nodes == 8 && nodepool_zone_nodes == 5 && nodepool_capacity_type_nodes == 5",
        r#"stage == "launch" && nodepool_labels.team == "shop" && requirements == ["gpu"]"#,
        "free_addresses == 250 && pods_oldest_wait == 90 && pods_max_priority == -5",
        r#"owner_kinds == ["Job"] && "nightly" in namespaces && priority_classes == ["high"]"#,
        r#"pods_do_not_disrupt == 2 && cluster == "test" && seed == 3 && calendars == []"#,
    ] {
        let host = host();
        let text = format!("{text} ? 1 : 2");
        let status = host.apply(&rule("rank", &[("rule", &text)]));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        let answer = host.rank(&asked);
        assert!((answer.rankings[0].scores[0] - 1.0).abs() < 1e-9, "{text}");
    }
}

#[test]
fn a_rule_that_names_what_nobody_tells_is_refused() {
    let host = host().provided_by(ProviderFacts {
        free_addresses: false,
        interruption_rate: false,
    });
    let told = [("rule", "price * (1 + interruption_rate)")];
    let status = host.apply(&rule("rank", &told));
    assert_eq!(status.reason, "NotTold", "{status:?}");
    let rates = ("interruption-rates", "m7i: 0.1\nm7g: 0.2\n");
    let status = host.apply(&rule("rank", &[told[0], rates]));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let named = [("rule", "free_addresses > 10 ? price : price * 2")];
    assert_eq!(host.apply(&rule("rank", &named)).reason, "NotTold");
}

#[test]
fn settings_are_words_of_a_rule() {
    let ranking = ranked(&[
        (
            "rule",
            "family in config.families ? price * config.factor : price",
        ),
        ("config", "families: [m7g]\nfactor: 0.5\n"),
    ]);
    assert!((ranking.scores[1] - 0.055).abs() < 1e-12, "{ranking:?}");
}

#[test]
fn conditions_exclude_and_their_comments_are_the_reasons() {
    let ranking = ranked(&[(
        "exclude",
        "arch == \"arm64\" // our images are amd64\nzone == \"http://x\"\n",
    )]);
    assert_eq!(ranking.excluded, [(1, "our images are amd64".to_owned())]);
    assert_eq!(ranking.scores, [0.10, 0.11]);
}

#[test]
fn a_rule_takes_its_place_in_a_chain() {
    let host = host();
    // 0.10 by the list, 0.20 by the first, and so much for the second to begin with.
    for (name, order, text) in [
        ("first", "1", "price * 2"),
        (
            "second",
            "2",
            "price + 1 + 10 * (price - prior) + list_price",
        ),
    ] {
        let mut source = config_map(name, "rank");
        source.data.insert("rule".to_owned(), text.to_owned());
        assert_eq!(
            host.apply(&annotated(source, "order", order)).state,
            BindingState::Ready
        );
    }
    let answer = host.rank(&round());
    assert!((answer.rankings[0].scores[0] - 1.3).abs() < 1e-12);
    assert!(
        answer
            .uses
            .iter()
            .all(|it| it.digest.starts_with("sha256:"))
    );
}

fn context() -> Context {
    Context {
        now_seconds: 1_767_614_400,
        civil: vec![Civil {
            weekday: 0,
            hour: 12,
            ..Civil::default()
        }],
        decision_id: "consolidation-1".to_owned(),
        ..Context::default()
    }
}

/// A node of the pool `web`.
fn node() -> NodeTable {
    NodeTable {
        symbols: ["web", "node", "team", "shop", "Job", "batch"]
            .map(str::to_owned)
            .to_vec(),
        name: vec![1],
        nodepool: vec![0],
        instance_type: vec![NO_SYMBOL],
        zone: vec![NO_SYMBOL],
        capacity_type: vec![0],
        price: vec![1.0],
        effective_price: vec![1.0],
        consolidation_policy: vec![NO_SYMBOL],
        last_pod_event: vec![900],
        drift_reason: vec![NO_SYMBOL],
        gpus: vec![8],
        gpus_requested: vec![2],
        labels: vec![vec![(2, 3)]],
        age: vec![600],
        time_to_expiry: vec![u32::MAX],
        pods: vec![4],
        blocked_pods: vec![0],
        disruption_cost: vec![5.0],
        cpu_milli: vec![4000],
        cpu_requested_milli: vec![1000],
        memory_mib: vec![16_384],
        memory_requested_mib: vec![4096],
        extra: Vec::new(),
    }
}

/// Its pods.
fn workloads() -> WorkloadTable {
    WorkloadTable {
        of: vec![0],
        namespace: vec![5],
        owner_kind: vec![4],
        owner_name: vec![1],
        priority_class: vec![NO_SYMBOL],
        priority: vec![0],
        labels: vec![Vec::new()],
        pods: vec![4],
        do_not_disrupt: vec![0],
        cpu_milli: vec![1000],
        memory_mib: vec![1024],
        gpus: vec![2],
        replicas: vec![12],
        disruptions_allowed: vec![3],
        oldest_wait: vec![0],
    }
}

/// The node and moves of it.
fn consolidation() -> (ConsolidationRound, Vec<Move>) {
    let moved = |kind, cost_after| Move {
        kind,
        remove: vec![0],
        cost_before: 1.0,
        cost_after,
        effective_before: 1.0,
        effective_after: cost_after,
        pods_moved: 4,
        singletons_moved: 0,
        max_priority: 0,
        new_nodes: 1,
        replacement_type: NO_SYMBOL,
        replacement_zone: NO_SYMBOL,
        replacement_capacity_type: NO_CAPACITY_TYPE,
        labels: Vec::new(),
    };
    let moves = [
        moved(MoveKind::Replace, 0.95),
        moved(MoveKind::Replace, 0.5),
        moved(MoveKind::Replace, 1.5),
        moved(MoveKind::Drift, 1.0),
        moved(MoveKind::Empty, 0.99),
        moved(MoveKind::StaticDrift, 1.0),
        moved(MoveKind::Expire, 1.0),
    ];
    let pool = PoolView {
        name: 0,
        labels: vec![(2, 3)],
        nodes: 7,
        price: 9.0,
        effective_price: 8.0,
        disruption_cost: 40.0,
        recent_hour: 3,
        recent_day: 30,
    };
    (
        ConsolidationRound {
            context: context(),
            nodes: node(),
            pools: vec![pool],
            workloads: workloads(),
        },
        moves.to_vec(),
    )
}

fn decisions(data: &[(&str, &str)]) -> Vec<(VerdictDecision, String)> {
    let (host, (round, moves)) = (host(), consolidation());
    let status = host.apply(&rule("consolidation", data));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert_eq!(host.order(&round).keys.len(), 1);
    let verdicts = host.judge(&round, &moves).verdicts;
    let told = verdicts.into_iter().map(|it| (it.decision, it.reason));
    told.collect()
}

#[test]
fn a_consolidation_rule_narrows_what_karpenter_approves() {
    let (yes, no) = (VerdictDecision::Approve, VerdictDecision::Reject);
    for (text, applies_to, expected) in [
        // A node that drifted is replaced, and an empty one goes, whatever that saves; and none goes before its time.
        ("savings >= 0.1", "", [no, yes, no, yes, yes, yes, no]),
        ("savings >= 0.1", "all", [no, yes, no, no, no, no, no]),
        (
            "savings >= 0.1",
            "replace, empty",
            [no, yes, no, yes, no, yes, no],
        ),
        ("savings >= 0.1", "drift", [yes, yes, no, no, yes, yes, no]),
        (
            "savings >= 0.1",
            "static-drift",
            [yes, yes, no, yes, yes, no, no],
        ),
        ("true", "all", [yes, yes, no, yes, yes, yes, no]),
        ("true", "expire", [yes, yes, no, yes, yes, yes, yes]),
        ("hour == 3", "expire", [yes, yes, no, yes, yes, yes, no]),
        ("cpu_utilization < 0.2", "", [no, no, no, yes, yes, yes, no]),
        (
            r#"youngest_age >= 600 && nodepool == "web" && kind == "replace""#,
            "",
            [yes, yes, no, yes, yes, yes, no],
        ),
    ] {
        let found = decisions(&[("rule", text), ("applies-to", applies_to)]);
        let told: Vec<_> = found.iter().map(|(decision, _)| *decision).collect();
        assert_eq!(told, expected, "{text} for {applies_to:?}");
        if expected[0] == no {
            assert_eq!(found[0].1, format!("the rule does not hold: {text}"));
        }
    }
}

#[test]
fn a_consolidation_rule_sees_the_nodes_their_pods_and_their_pool() {
    for text in [
        r#"pods == 4 && oldest_age == 600 && capacity_type == "on-demand" && spot_nodes == 0"#,
        "nodepool_nodes == 7 && nodepool_price == 9.0 && nodepool_effective_price == 8.0",
        "nodepool_disruption_cost == 40 && recent_hour == 3 && recent_day == 30",
        r#"nodepool_labels.team == "shop" && node_labels["team"] == "shop" && !has(labels.team)"#,
        r#"owner_kinds == ["Job"] && namespaces.exists(n, n == "batch") && priority_classes == []"#,
        "least_replicas == 12 && disruptions_allowed == 3 && last_pod_event == 900",
        "gpus == 8 && gpus_requested == 2 && time_to_expiry == 4294967295",
        r#"node == "node" && drift_reason == "" && replacement_capacity_type == """#,
        "effective_before - effective_after == savings && list_savings == cost_before - cost_after",
    ] {
        let found = decisions(&[("rule", text)]);
        assert_eq!(found[0].0, VerdictDecision::Approve, "{text}");
    }
}

#[test]
fn a_message_says_why_a_move_is_rejected() {
    let rule = ("rule", "savings >= least");
    let variables = ("variables", "// USD an hour\nleast: 0.1");
    let message = (
        "message",
        r#""saves %.2f USD an hour, and %s asks for %.1f".format([savings, nodepool, least])"#,
    );
    let found = decisions(&[rule, variables, message]);
    assert_eq!(found[0].1, "saves 0.05 USD an hour, and web asks for 0.1");
    // What has no value says nothing, and decides nothing.
    for message in [r#"labels["team"]"#, r#""""#] {
        let found = decisions(&[rule, variables, ("message", message)]);
        assert_eq!(found[0].1, "the rule does not hold: savings >= least");
    }
}

#[test]
fn a_budget_rule_counts_nodes() {
    let round = BudgetRound {
        context: context(),
        pools: vec![BudgetPool {
            name: "web".to_owned(),
            labels: vec![("team".to_owned(), "shop".to_owned())],
            total: 20,
            drifted: 5,
            price: 2.5,
            activity: [
                PoolActivity {
                    disrupting: 1,
                    recent_hour: 2,
                    failed_day: 1,
                    ..PoolActivity::default()
                },
                PoolActivity::default(),
                PoolActivity::default(),
                PoolActivity::default(),
            ],
            declared: vec![DeclaredBudget {
                nodes: "4".to_owned(),
                resolved: 4,
                active: true,
                next_change_seconds: 0,
                reasons: BudgetReasons::ALL,
            }],
            ..BudgetPool::default()
        }],
    };
    for (text, expected) in [
        ("hour >= 9 && hour < 17 ? 0 : declared", [0, 0, 0]),
        ("declared - recent_hour", [2, 2, 2]),
        ("declared - 10", [0, 0, 0]),
        ("total * 0.17", [3, 3, 3]),
        (r#"reason == "Empty" ? total : 1"#, [1, 20, 1]),
        (r#"labels.team == "shop" ? disrupting + 1 : 0"#, [2, 1, 1]),
        ("reason_recent_hour + drifted", [7, 5, 5]),
        ("failed_day + reason_failed_day", [2, 1, 1]),
        (
            "cluster_nodes - cluster_disrupting - cluster_recent_hour",
            [17, 17, 17],
        ),
        ("price * 10", [25, 25, 25]),
        // Of a label that is not there nothing is known, and what is declared holds.
        (r#"int(labels["most"])"#, [4, 4, 4]),
        ("labels.?most.hasValue() ? 1 : 2", [2, 2, 2]),
    ] {
        let host = host();
        let status = host.apply(&rule("budgets", &[("rule", text)]));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        let mut items = host.allow(&round).items;
        items.sort_by_key(|it| it.reason);
        let allowed: Vec<u32> = BudgetReason::JUDGED
            .iter()
            .filter_map(|reason| items.iter().find(|it| it.reason == *reason))
            .map(|it| it.allowed)
            .collect();
        assert_eq!(allowed, expected, "{text}");
    }
}

#[test]
fn every_variable_can_be_named() {
    let host = host();
    for (kind, word) in [
        (PolicyKind::Rank, "rank"),
        (PolicyKind::Consolidation, "consolidation"),
        (PolicyKind::Budgets, "budgets"),
    ] {
        for variable in rule_variables(kind) {
            let name = variable.name;
            let text = match kind {
                PolicyKind::Rank | PolicyKind::Budgets => format!("{name} == {name} ? 1 : 2"),
                PolicyKind::Consolidation => format!("{name} == {name}"),
            };
            let status = host.apply(&rule(word, &[("rule", &text)]));
            assert_eq!(status.state, BindingState::Ready, "{text}: {status:?}");
        }
    }
}
