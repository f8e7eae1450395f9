//! Bindings come, change the next decision, and go.

use policy::{BindingState, PolicyHost};
use scheduling::ranking::{RankAnswer, RankHook};

use crate::support::{annotated, builtin, component, config_map, host, key, module, round};

fn scores(host: &PolicyHost) -> Vec<Vec<f64>> {
    host.rank(&round())
        .rankings
        .into_iter()
        .map(|ranking| ranking.scores)
        .collect()
}

fn names(answer: &RankAnswer) -> Vec<&str> {
    answer.uses.iter().map(|it| it.name.as_str()).collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-12
}

#[test]
fn without_bindings_the_default_component_decides() {
    let host = host();
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11]);
    assert_eq!(names(&answer), ["default-rank"]);
    assert_eq!(answer.uses[0].outcome.as_str(), "ok");
    assert!(answer.uses[0].digest.starts_with("sha256:"));
    let statistics = host.statistics();
    assert_eq!(
        (statistics[0].name.as_str(), statistics[0].calls),
        ("default-rank", 1)
    );
}

#[test]
fn a_binding_changes_the_next_decision_and_its_deletion_changes_it_back() {
    let host = host();
    let before = scores(&host);
    let status = host.apply(&builtin("graviton-first", "rank", "prefer-arm64"));
    assert_eq!(
        (status.state, status.reason.as_str()),
        (BindingState::Ready, "Enforcing"),
        "{status:?}"
    );
    let during = host.rank(&round());
    assert!(close(during.rankings[0].scores[1], 0.11 * 0.8));
    assert_eq!(names(&during), ["graviton-first"]);
    assert!(host.remove_binding(&key("graviton-first")));
    assert_eq!(scores(&host), before);
    assert!(host.statuses().is_empty());
}

#[test]
fn a_module_of_ones_own_decides_whether_packed_or_not() {
    let plain = component("prefer-arm64");
    let zst = zstd::encode_all(&plain[..], 3).unwrap();
    for (name, bytes) in [("policy.wasm", plain), ("policy.wasm.zst", zst)] {
        let host = host();
        let mut source = config_map("own", "rank");
        source.binary_data.insert(name.to_owned(), bytes);
        source
            .data
            .insert("config".to_owned(), "discount: 0.5".to_owned());
        let status = host.apply(&source);
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
        assert!(close(scores(&host)[0][1], 0.055));
    }
}

#[test]
fn a_chain_passes_scores_on_in_its_order_and_only_for_its_pools() {
    let host = host();
    for (name, order, pools) in [("second", "2", "*"), ("first", "1", "web")] {
        let source = annotated(builtin(name, "rank", "prefer-arm64"), "order", order);
        let status = host.apply(&annotated(source, "nodepools", pools));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
    }
    let answer = host.rank(&round());
    assert!(close(answer.rankings[0].scores[1], 0.11 * 0.64));
    assert!(close(answer.rankings[1].scores[1], 0.11 * 0.8));
    let mut used = names(&answer);
    used.sort_unstable();
    assert_eq!(used, ["first", "second"]);
}

#[test]
fn a_shadow_reports_the_difference_and_changes_nothing() {
    let host = host();
    let before = scores(&host);
    let source = annotated(builtin("watcher", "rank", "prefer-arm64"), "mode", "shadow");
    assert_eq!(host.apply(&source).reason, "Shadowing");
    host.drain_records();
    assert_eq!(scores(&host), before);
    let records = host.drain_records();
    let shadow = records.iter().find_map(|it| it.shadow).unwrap();
    assert_eq!(shadow.disagreements, 2);
    assert!(close(shadow.usd_per_hour, 0.02));
}

#[test]
fn off_and_canary_of_nothing_leave_the_default() {
    for mode in ["off", "canary:0%"] {
        let host = host();
        let source = annotated(builtin("idle", "rank", "prefer-arm64"), "mode", mode);
        assert_eq!(host.apply(&source).state, BindingState::Ready);
        assert_eq!(names(&host.rank(&round())), ["default-rank"], "{mode}");
    }
}

#[test]
fn what_cannot_be_loaded_leaves_the_previous_pair_in_charge_and_says_why() {
    let host = host();
    let good = host.apply(&builtin("mine", "rank", "prefer-arm64"));
    let digest = good.digest.clone().unwrap();
    let mut wrong_config = builtin("mine", "rank", "prefer-arm64");
    wrong_config
        .data
        .insert("config".to_owned(), r#"{"discount": 3}"#.to_owned());
    let mut rule = config_map("mine", "rank");
    rule.data
        .insert("rule".to_owned(), "prise * 0.9".to_owned());
    let mut wrong_digest = module("mine", "rank", component("default-rank"));
    wrong_digest
        .data
        .insert("sha256".to_owned(), "0".repeat(64));
    let mut truncated = component("default-rank");
    truncated.truncate(10_000);
    for (source, reason, words) in [
        (
            wrong_config,
            "InvalidConfig",
            "data.config: /discount is 3; must be a number from 0 to 1",
        ),
        (
            rule,
            "InvalidRule",
            "data.rule: line 1 column 1: unknown variable `prise`",
        ),
        (wrong_digest, "DigestMismatch", "data.sha256"),
        (
            module("mine", "rank", truncated),
            "InvalidComponent",
            "not a valid component",
        ),
        (
            builtin("mine", "budgets", "default-rank"),
            "WrongWorld",
            "does not export mortise:policy/budgets@0.2",
        ),
    ] {
        let status = host.apply(&source);
        assert_eq!(
            (status.state, status.reason.as_str()),
            (BindingState::Degraded, reason),
            "{status:?}"
        );
        assert!(status.message.contains(words), "{}", status.message);
        assert!(
            status
                .message
                .contains(&format!("{digest} stays in charge")),
            "{}",
            status.message
        );
        assert_eq!(names(&host.rank(&round())), ["mine"]);
    }
    assert_eq!(
        host.apply(&builtin("mine", "rank", "prefer-arm64")).state,
        BindingState::Ready
    );
}

#[test]
fn a_decision_is_remembered_with_who_changed_it() {
    let host = host();
    let of = |name: &str, order: &str, mode: &str| {
        let source = annotated(builtin(name, "rank", "prefer-arm64"), "order", order);
        host.apply(&annotated(source, "mode", mode));
    };
    of("first", "1", "enforce");
    of("second", "2", "enforce");
    of("third", "3", "shadow");
    host.rank(&round());
    let calls = host.calls_of("rank-1");
    let told: Vec<(&str, i32, String, &str)> = calls
        .iter()
        .map(|it| {
            (
                it.name.as_str(),
                it.order,
                it.mode.to_string(),
                it.changed.as_str(),
            )
        })
        .collect();
    let changed = "first choice of NodePool web: m7i.large us-east-1a on-demand -> m7g.large us-east-1a on-demand, and \
                   1 more";
    assert_eq!(
        told,
        [
            ("first", 1, "enforce".to_owned(), changed),
            ("second", 2, "enforce".to_owned(), ""),
            ("third", 3, "shadow".to_owned(), ""),
        ]
    );
    assert!(
        calls
            .iter()
            .all(|it| it.config_digest.starts_with("sha256:"))
    );
    assert!(host.calls_of("another").is_empty());
    // Telling takes nothing away.
    assert_eq!(host.calls_of("rank-1"), calls);
}
