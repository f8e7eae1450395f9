//! Where a policy has a say: for which NodePools, at which place of the chain, and how far it reaches.

use std::collections::{BTreeMap, BTreeSet};

use hooks::disruption::{
    BudgetPool, BudgetReasons, BudgetRound, BudgetsHook, ConsolidationHook, DeclaredBudget,
};
use policy::{BindingSource, BindingState, InCharge, Limits, NodePoolLabels, PolicyHost};
use scheduling::ranking::{ClaimView, RankHook, RankRound};

use crate::agreement::{consolidation_round, context};
use crate::random::SplitMix;
use crate::support::{annotated, builtin, config_map, host, key, round};

fn rule(name: &str, kind: &str, text: &str) -> BindingSource {
    let mut source = config_map(name, kind);
    source.data.insert("rule".to_owned(), text.to_owned());
    source
}

/// Binds a policy, which must be let in, and says how it is in charge.
fn bind(host: &PolicyHost, source: &BindingSource) -> InCharge {
    let status = host.apply(source);
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    status.in_charge.unwrap()
}

fn pools<'a>(names: impl IntoIterator<Item = &'a str>) -> NodePoolLabels {
    let labelled = |name: &str| {
        let team = name.split('-').next().unwrap_or_default().to_owned();
        (name.to_owned(), BTreeMap::from([("team".to_owned(), team)]))
    };
    names.into_iter().map(labelled).collect()
}

/// The pools of which a binding changed the order of the round's two offerings.
fn changed(host: &PolicyHost) -> Vec<&'static str> {
    let answer = host.rank(&round());
    let named = ["web", "batch"].into_iter().zip(answer.rankings);
    named
        .filter(|(_, ranking)| ranking.scores[0] > ranking.scores[1])
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn names_globs_exclusions_and_labels_say_for_which_pools_a_policy_decides() {
    for (key, value, expected, unmatched) in [
        ("nodepools", "web", &["web"][..], &[][..]),
        ("nodepools", "b*", &["batch"], &[]),
        ("nodepools", "!web", &["batch"], &[]),
        ("nodepool-selector", "team=web", &["web"], &[]),
        ("nodepool-selector", "team", &["web", "batch"], &[]),
        ("nodepools", "wbe", &[], &["wbe (did you mean web?)"]),
        (
            "nodepool-selector",
            "team=x",
            &[],
            &["mortise.dev/nodepool-selector"],
        ),
    ] {
        let host = host();
        host.set_node_pools(pools(["web", "batch", "gpu"]));
        let source = builtin("it", "rank", "prefer-arm64");
        let applies_to = bind(&host, &annotated(source, key, value)).applies_to;
        assert_eq!((changed(&host).as_slice(), applies_to.total), (expected, 3));
        assert_eq!(applies_to.unmatched, unmatched);
    }
}

#[test]
fn pools_that_come_or_change_their_labels_are_told_apart_from_the_next_round_on() {
    let host = host();
    let source = builtin("it", "rank", "prefer-arm64");
    bind(&host, &annotated(source, "nodepool-selector", "team=web"));
    // Nobody has told of any labels: a tool asks the policy for every pool.
    assert_eq!(changed(&host), ["web", "batch"]);
    host.set_node_pools(pools(["batch"]));
    assert_eq!(changed(&host), [""; 0]);
    host.set_node_pools(pools(["web", "batch"]));
    assert_eq!(changed(&host), ["web"]);
    let renamed = BTreeMap::from([("team".to_owned(), "web".to_owned())]);
    host.set_node_pools(BTreeMap::from([("batch".to_owned(), renamed)]));
    assert_eq!(changed(&host), ["batch"]);
    let status = host.statuses().pop().unwrap().in_charge.unwrap();
    assert_eq!(status.applies_to.names, ["batch"]);
}

/// A round of one claim in a pool of that name.
fn round_of(pool: &str, decision_id: &str) -> RankRound {
    let mut round = round();
    round.table.symbols.push(pool.to_owned());
    let nodepool = u32::try_from(round.table.symbols.len() - 1).unwrap();
    decision_id.clone_into(&mut round.decision_id);
    round.claims = vec![ClaimView {
        nodepool,
        weight: 1,
        ..ClaimView::default()
    }];
    round
}

#[test]
fn a_canary_keeps_each_pool_on_one_side_and_grows_without_taking_any_back() {
    let names: Vec<String> = (0..200).map(|it| format!("pool-{it}")).collect();
    let mut smaller = BTreeSet::new();
    for percent in [0, 10, 50, 100] {
        let host = host();
        host.set_node_pools(pools(names.iter().map(String::as_str)));
        let source = builtin("it", "rank", "prefer-arm64");
        let mode = format!("canary:{percent}%");
        let in_charge = bind(&host, &annotated(source, "mode", &mode));
        let picked: BTreeSet<String> = in_charge.applies_to.names.into_iter().collect();
        // A binomial of 200 draws stays within five of its deviations.
        let expected = 2 * percent;
        assert!(
            picked.len().abs_diff(expected) < 36,
            "{percent}: {}",
            picked.len()
        );
        assert!(percent % 100 != 0 || picked.len() == expected);
        assert!(smaller.is_subset(&picked), "{percent}");
        for name in names.iter().step_by(10) {
            for decision in ["pack-1", "launch-2", "pack-3"] {
                let answer = host.rank(&round_of(name, decision));
                let is_changed = answer.rankings[0].scores[0] > answer.rankings[0].scores[1];
                assert_eq!(
                    is_changed,
                    picked.contains(name),
                    "{percent} {name} {decision}"
                );
            }
        }
        smaller = picked;
    }
}

#[test]
fn a_ranking_shadow_starts_from_what_stands_at_its_place() {
    // A policy in charge makes the arm64 offering the cheaper one; by their prices it is the dearer by 0.01.
    for (order, text, disagreements, usd_per_hour) in [
        ("5", "prior", 0, 0.0),
        ("-5", "prior", 0, 0.0),
        ("5", r#"arch == "amd64" ? prior * 0.5 : prior"#, 2, -0.02),
        ("-5", r#"arch == "arm64" ? prior * 0.5 : prior"#, 2, 0.02),
        ("5", "list_price", 2, -0.02),
    ] {
        let host = host();
        bind(&host, &builtin("decides", "rank", "prefer-arm64"));
        let shadow = annotated(rule("watches", "rank", text), "mode", "shadow");
        bind(&host, &annotated(shadow, "order", order));
        host.drain_records();
        let answer = host.rank(&round());
        assert!(answer.uses.iter().all(|it| it.name == "decides"));
        let shadows = host.drain_records();
        let shadows: Vec<_> = shadows.iter().filter_map(|it| it.shadow).collect();
        assert_eq!(shadows.len(), 1, "one call for claims that agree");
        let found = (shadows[0].disagreements, shadows[0].usd_per_hour);
        assert_eq!(found.0, disagreements, "{order} {text}");
        assert!(
            (found.1 - usd_per_hour).abs() < 1e-9,
            "{order} {text}: {found:?}"
        );
    }
}

#[test]
fn a_consolidation_shadow_is_asked_for_its_order_and_its_verdicts() {
    let (enforced, watched, default) = (host(), host(), host());
    let source = || builtin("it", "consolidation", "soft-expiry");
    bind(&enforced, &source());
    bind(&watched, &annotated(source(), "mode", "shadow"));
    let first = |keys: &[f64]| {
        let tried = (0..keys.len()).filter(|row| keys[*row] >= 0.0);
        tried.min_by(|a, b| keys[*a].total_cmp(&keys[*b]))
    };
    let mut random = SplitMix::new(11);
    let mut seen = 0;
    for _ in 0..200 {
        let (round, moves) = consolidation_round(&mut random);
        watched.drain_records();
        let (theirs, ours) = (enforced.order(&round).keys, watched.order(&round).keys);
        assert_eq!(ours, default.order(&round).keys);
        let skips = theirs.iter().zip(&ours);
        let skips = skips.filter(|(a, b)| (**a < 0.0) != (**b < 0.0)).count();
        let expected = skips + usize::from(first(&theirs) != first(&ours));
        let decisions = |host: &PolicyHost| -> Vec<_> {
            let verdicts = host.judge(&round, &moves).verdicts;
            verdicts.iter().map(|it| it.decision).collect()
        };
        let (judged, kept) = (decisions(&enforced), decisions(&watched));
        let others = judged.iter().zip(&kept).filter(|(a, b)| a != b).count();
        let shadows = watched.drain_records();
        let shadows: Vec<u32> = shadows
            .iter()
            .filter_map(|it| it.shadow.map(|it| it.disagreements))
            .collect();
        let mut wanted = vec![u32::try_from(expected).unwrap()];
        if !moves.is_empty() {
            wanted.push(u32::try_from(others).unwrap());
        }
        assert_eq!(shadows, wanted);
        seen += expected + others;
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn a_shadow_beside_others_is_compared_with_what_it_would_change() {
    let allowances = |shadow: &str| {
        let host = host();
        bind(&host, &rule("decides", "budgets", "2"));
        let source = rule("watches", "budgets", shadow);
        bind(&host, &annotated(source, "mode", "shadow"));
        host.drain_records();
        host.allow(&closed(5));
        let shadows = host.drain_records();
        shadows
            .iter()
            .find_map(|it| it.shadow)
            .unwrap()
            .disagreements
    };
    // The minimum counts: more than the other allows changes nothing.
    assert_eq!(
        (allowances("4"), allowances("2"), allowances("1")),
        (0, 0, 3)
    );
}

/// A pool of twenty nodes whose budgets allow so many.
fn closed(nodes: u32) -> BudgetRound {
    BudgetRound {
        context: context(),
        pools: vec![BudgetPool {
            name: "web".to_owned(),
            total: 20,

            declared: vec![DeclaredBudget {
                nodes: nodes.to_string(),
                resolved: nodes,
                active: true,
                next_change_seconds: 0,
                reasons: BudgetReasons::ALL,
            }],
            ..BudgetPool::default()
        }],
    }
}

#[test]
fn only_a_host_that_is_told_so_lets_a_policy_lift_budgets() {
    let greedy = annotated(rule("greedy", "budgets", "total"), "authority", "replace");
    let host = host();
    let status = host.apply(&greedy);
    assert_eq!(
        (status.state, status.reason.as_str(), status.in_charge),
        (BindingState::Degraded, "NotAllowed", None)
    );
    for words in [
        "--allow-policy-authority-replace",
        "the built-in default decides",
    ] {
        assert!(status.message.contains(words), "{}", status.message);
    }
    let lifted = |host: &PolicyHost| {
        let items = host.allow(&closed(0)).items;
        let lifted = items
            .iter()
            .filter(|it| it.replaces_declared && it.allowed > 0);
        lifted.count()
    };
    assert_eq!(lifted(&host), 0);
    let willing = PolicyHost::new(Limits {
        may_replace_budgets: true,
        ..Limits::default()
    })
    .unwrap();
    bind(&willing, &greedy);
    assert_eq!(lifted(&willing), 3);
}

#[test]
fn what_is_told_of_a_failure_says_who_decided_instead() {
    // Samples have NodePools of other names; of one row more steps than it may take.
    let nine = "[1,2,3,4,5,6,7,8,9]";
    let costly = format!("{nine}.map(a, {nine}.map(b, {nine}.map(c, a + b + c)))");
    let text = format!("nodepool == \"mine\" ? size({costly}) : declared");
    let source = rule("costly", "budgets", &text);
    let mut round = closed(5);
    round.pools[0].name = "mine".to_owned();
    for (annotation, value, allowed, words, in_quarantine) in [
        (
            "on-failure",
            "default",
            5,
            "the built-in default decided",
            "the built-in default decides until",
        ),
        (
            "on-failure",
            "hold",
            0,
            "disrupts nothing of its NodePools",
            "the built-in default decides until",
        ),
        (
            "mode",
            "shadow",
            5,
            "it only watches",
            "it does not watch until",
        ),
    ] {
        let host = host();
        bind(&host, &annotated(source.clone(), annotation, value));
        let items = host.allow(&round).items;
        assert_eq!(items[0].allowed, allowed, "{value}");
        let told = host.drain_events().remove(0).message;
        assert!(told.contains(words), "{value}: {told}");
        for _ in 0..2 {
            host.allow(&round);
        }
        let status = host.status(&key("costly")).unwrap();
        assert_eq!(status.state, BindingState::Quarantined, "{value}");
        let told = status.message;
        assert!(told.contains(in_quarantine), "{value}: {told}");
        assert_eq!(host.allow(&round).items[0].allowed, 5, "{value}");
    }
}

#[test]
fn what_decides_is_told_apart_by_everything_that_its_decisions_hang_on() {
    let host = host();
    let mut seen = vec![RankHook::identity(&host)];
    let mut changes = |host: &PolicyHost| {
        let now = RankHook::identity(host);
        assert!(!seen.contains(&now), "{seen:?}");
        seen.push(now);
    };
    let source = || builtin("it", "rank", "prefer-arm64");
    bind(&host, &source());
    changes(&host);
    let mut settled = source();
    settled
        .data
        .insert("config".to_owned(), "discount: 0.5".to_owned());
    bind(&host, &settled);
    changes(&host);
    bind(
        &host,
        &annotated(settled.clone(), "nodepool-selector", "team=web"),
    );
    changes(&host);
    host.set_node_pools(pools(["web", "batch"]));
    changes(&host);
    let before = RankHook::identity(&host);
    bind(
        &host,
        &annotated(rule("watches", "rank", "1"), "mode", "shadow"),
    );
    bind(&host, &rule("judges", "consolidation", "true"));
    assert_eq!(RankHook::identity(&host), before);
    assert!(!ConsolidationHook::identity(&host).is_empty());
}
