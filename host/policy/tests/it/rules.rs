//! Rules: one line in a ConfigMap changes the next decision, and a wrong one says where it is wrong.

use disruption::hooks::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, Civil, ConsolidationHook,
    ConsolidationRound, Context, DeclaredBudget, Move, MoveKind, NO_SYMBOL, NodeTable,
    VerdictDecision,
};
use policy::{BindingSource, BindingState, Kind, rule_variables};
use scheduling::ranking::{RankHook, Ranking};

use crate::support::{annotated, config_map, host, key, round};

fn rule(kind: &str, data: &[(&str, &str)]) -> BindingSource {
    let mut source = config_map("mine", kind);
    for (key, value) in data {
        source.data.insert((*key).to_owned(), (*value).to_owned());
    }
    source
}

fn ranked(data: &[(&str, &str)]) -> Ranking {
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
        ("double(cpu_milli / 1500)", [1.0, 1.0]),
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
        // One side decides, so the missing label of the other does not matter.
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
    for (name, order, text) in [("first", "1", "prior * 2"), ("second", "2", "prior + 1")] {
        let mut source = config_map(name, "rank");
        source.data.insert("rule".to_owned(), text.to_owned());
        assert_eq!(
            host.apply(&annotated(source, "order", order)).state,
            BindingState::Ready
        );
    }
    let answer = host.rank(&round());
    assert!((answer.rankings[0].scores[0] - 1.2).abs() < 1e-12);
    assert!(
        answer
            .uses
            .iter()
            .all(|it| it.digest.starts_with("sha256:"))
    );
}

/// Kind, key, rule and what is said of it.
const WRONG: &[(&str, &str, &str, &str)] = &[
    (
        "rank",
        "rule",
        "prise * 2",
        "line 1 column 1: unknown variable `prise`; did you mean `price`?",
    ),
    ("rank", "rule", "price *", "line 1 column 8"),
    (
        "rank",
        "rule",
        "price\n  + zoom",
        "line 2 column 5: unknown variable `zoom`",
    ),
    (
        "rank",
        "rule",
        "price + zone",
        "a number and a text cannot be computed with",
    ),
    (
        "rank",
        "rule",
        "zone == 1",
        "a text cannot be compared with a whole number",
    ),
    (
        "rank",
        "rule",
        "zone",
        "gives a text, and a number is wanted",
    ),
    (
        "rank",
        "rule",
        "price > 1 ? 1 : \"x\"",
        "one branch gives a whole number, the other a text",
    ),
    ("rank", "rule", "cost(price)", "unknown function `cost`"),
    ("rank", "rule", "labels == 1 ? 1 : 2", "use labels[\"key\"]"),
    (
        "rank",
        "rule",
        "config.missing * 2",
        "there is no field `missing` here",
    ),
    ("rank", "rule", "[1, 2].map(x, x)", "exists() and all()"),
    (
        "rank",
        "rule",
        "zone.matches(\"(\") ? 1 : 2",
        "not a pattern",
    ),
    (
        "rank",
        "exclude",
        "price < 1\nzone",
        "data.exclude: line 2 of it, line 1 column 1",
    ),
    ("rank", "rule", "price - 100", "is not a finite cost"),
    ("rank", "rule", "price / gpus", "is not a finite cost"),
    (
        "rank",
        "rule",
        "cpu_milli / gpus",
        "line 1 column 11: division by zero",
    ),
    (
        "consolidation",
        "rule",
        "savings",
        "true or false is wanted",
    ),
    (
        "consolidation",
        "rule",
        "price > 1",
        "unknown variable `price`",
    ),
    ("budgets", "rule", "total > 1", "a number is wanted"),
    ("full", "rule", "price", "a rule is for one kind"),
    ("budgets", "exclude", "total > 1", "only rank rules exclude"),
];

#[test]
fn a_wrong_rule_is_refused_with_its_position() {
    let host = host();
    for &(kind, key, text, words) in WRONG {
        let status = host.apply(&rule(kind, &[(key, text)]));
        assert_eq!(status.state, BindingState::Degraded, "{text}: {status:?}");
        assert!(status.message.contains(words), "{text}: {}", status.message);
        assert_eq!(host.rank(&round()).uses[0].name, "default-rank");
    }
}

#[test]
fn an_expression_that_grows_beyond_a_page_is_refused() {
    let host = host();
    let long = vec!["price"; 2000].join(" + ");
    let status = host.apply(&rule("rank", &[("rule", &long)]));
    assert!(
        status.message.contains("may have 4096"),
        "{}",
        status.message
    );
    let items = vec!["1"; 90].join(",");
    let nested = format!("[{items}].exists(a, [{items}].exists(b, a + b == cpu_milli)) ? 1 : 2");
    let status = host.apply(&rule("rank", &[("rule", &nested)]));
    assert!(status.message.contains("too large"), "{}", status.message);
}

#[test]
fn a_rule_short_of_a_label_leaves_the_round_to_the_default() {
    let host = host();
    let status = host.apply(&rule(
        "rank",
        &[("rule", r#"labels["team"] == "x" ? 0 : price"#)],
    ));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11]);
    assert!(
        answer.uses[0].outcome.contains("no label \"team\""),
        "{:?}",
        answer.uses
    );
    assert_eq!(host.drain_events_of(&key("mine")).len(), 1);
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

#[test]
fn a_consolidation_rule_narrows_what_karpenter_approves() {
    let nodes = NodeTable {
        symbols: vec!["web".to_owned(), "node".to_owned()],
        name: vec![1],
        nodepool: vec![0],
        instance_type: vec![NO_SYMBOL],
        zone: vec![NO_SYMBOL],
        capacity_type: vec![0],
        price: vec![1.0],
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
    };
    let round = ConsolidationRound {
        context: context(),
        nodes,
    };
    let saving = |cost_after| Move {
        kind: MoveKind::Replace,
        remove: vec![0],
        cost_before: 1.0,
        cost_after,
        pods_moved: 4,
        singletons_moved: 0,
        max_priority: 0,
        new_nodes: 1,
        replacement_type: NO_SYMBOL,
        replacement_spot: false,
        recent_hour: 0,
        recent_day: 0,
        labels: Vec::new(),
    };
    let moves = [saving(0.95), saving(0.5), saving(1.5)];
    let (approve, reject) = (VerdictDecision::Approve, VerdictDecision::Reject);
    for (text, expected) in [
        ("savings >= 0.1", [reject, approve, reject]),
        ("true", [approve, approve, reject]),
        ("cpu_utilization < 0.2", [reject, reject, reject]),
        (
            r#"youngest_age >= 600 && nodepool == "web" && kind == "replace""#,
            [approve, approve, reject],
        ),
    ] {
        let host = host();
        let status = host.apply(&rule("consolidation", &[("rule", text)]));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        assert_eq!(host.order(&round).keys.len(), 1);
        let verdicts = host.judge(&round, &moves).verdicts;
        let decisions: Vec<_> = verdicts.iter().map(|it| it.decision).collect();
        assert_eq!(decisions, expected, "{text}");
        if expected[0] == reject {
            assert_eq!(
                verdicts[0].reason,
                format!("the rule does not hold: {text}")
            );
        }
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
            disrupting: vec![1, 0, 0],
            declared: vec![DeclaredBudget {
                nodes: "4".to_owned(),
                resolved: 4,
                active: true,
                next_change_seconds: 0,
                reasons: BudgetReasons::ALL,
            }],
            recent_hour: 2,
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
    ] {
        let host = host();
        let status = host.apply(&rule("budgets", &[("rule", text)]));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        let mut items = host.allow(&round).items;
        items.sort_by_key(|it| it.reason);
        let allowed: Vec<u32> = BudgetReason::ALL
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
        (Kind::Rank, "rank"),
        (Kind::Consolidation, "consolidation"),
        (Kind::Budgets, "budgets"),
    ] {
        for variable in rule_variables(kind) {
            let name = variable.name;
            let text = match kind {
                Kind::Rank | Kind::Budgets => format!("string({name}) == \"\" ? 1 : 2"),
                Kind::Consolidation => format!("string({name}) != \"?\""),
            };
            let status = host.apply(&rule(word, &[("rule", &text)]));
            assert_eq!(status.state, BindingState::Ready, "{text}: {status:?}");
        }
    }
}
