//! What budgets allow, and which of them cannot be used.

use apis::{GoDuration, labels};
use state::{Cluster, Event};

use super::*;
use crate::history::History;

fn budget(
    nodes: &str,
    schedule: Option<(&str, i64)>,
    reasons: Option<Vec<DisruptionReason>>,
) -> Budget {
    Budget {
        nodes: nodes.to_owned(),
        schedule: schedule.map(|it| it.0.to_owned()),
        duration: schedule.map(|it| GoDuration::from_seconds(it.1)),
        reasons,
    }
}

fn allowed(budgets: &[Budget], total: u32, now: &str, reason: BudgetReason) -> u32 {
    let now = now.parse().unwrap();
    BudgetPool {
        declared: resolved(budgets, total, now).budgets,
        ..BudgetPool::default()
    }
    .declared_allowed(reason)
}

#[test]
fn a_budget_is_in_force_from_its_start_until_just_before_its_end() {
    // 2026-11-20 is a Friday.
    let weekdays = [budget("0", Some(("0 9 * * mon-fri", 8 * 3600)), None)];
    for (now, expected) in [
        ("2026-11-20T08:59:59Z", u32::MAX),
        ("2026-11-20T09:00:00Z", 0),
        ("2026-11-20T16:59:59Z", 0),
        ("2026-11-20T17:00:00Z", u32::MAX),
        ("2026-11-21T12:00:00Z", u32::MAX),
    ] {
        assert_eq!(
            allowed(&weekdays, 10, now, BudgetReason::Empty),
            expected,
            "{now}"
        );
    }
}

#[test]
fn a_window_changes_where_no_other_is_open_when_it_closes() {
    for (schedule, seconds, expected) in [
        ("0 9 * * mon-fri", 8 * 3600, 5 * 3600),
        ("0 9 * * sat", 8 * 3600, 21 * 3600),
        // Each opens before the one before it closes.
        ("* * * * *", 3600, 0),
        ("0 0 * * *", 24 * 3600, 0),
        ("0,30 11-12 * * *", 3600, 90 * 60),
        ("0 0 * * fri,sat", 24 * 3600, 36 * 3600),
        // A single number with a step goes on to the end.
        ("0/30 9-17 * * *", 600, 600),
        ("0 12/6 * * *", 3600, 3600),
        // Days limit each other where one of them is a star, however it is written.
        ("0 12 */1 * sat", 3600, 24 * 3600),
        ("0 12 ? * fri", 3600, 3600),
        ("0 12 1-31 * sat", 3600, 3600),
    ] {
        let budgets = [budget("0", Some((schedule, seconds)), None)];
        let resolved = resolved(&budgets, 10, "2026-11-20T12:00:00Z".parse().unwrap());
        let found = resolved.budgets[0].next_change_seconds;
        assert_eq!(found, expected, "{schedule}");
    }
}

#[test]
fn the_least_budget_that_covers_the_reason_counts() {
    use DisruptionReason::{Drifted, Empty};
    let drift_off = budget("0", None, Some(vec![Drifted]));
    for (budgets, total, reason, expected) in [
        (
            vec![budget("20%", None, None), drift_off.clone()],
            19,
            BudgetReason::Drifted,
            0,
        ),
        (
            vec![budget("20%", None, None), drift_off],
            19,
            BudgetReason::Underutilized,
            4,
        ),
        (
            vec![budget("5", None, Some(vec![Empty]))],
            19,
            BudgetReason::Drifted,
            u32::MAX,
        ),
        (vec![budget("10%", None, None)], 1, BudgetReason::Empty, 1),
        (vec![budget("0%", None, None)], 100, BudgetReason::Empty, 0),
        (
            vec![budget("3", None, Some(vec![]))],
            10,
            BudgetReason::Empty,
            u32::MAX,
        ),
        (vec![], 10, BudgetReason::Empty, u32::MAX),
    ] {
        let got = allowed(&budgets, total, "2026-11-20T08:00:00Z", reason);
        assert_eq!(got, expected, "{budgets:?} {reason:?}");
    }
}

#[test]
fn what_cannot_be_understood_allows_nothing() {
    for bad in [
        budget("100", Some(("not a schedule at all", 3600)), None),
        budget("100", Some(("61 * * * *", 3600)), None),
        budget("100", Some(("* * * * * *", 3600)), None),
        budget("100", Some(("@never", 3600)), None),
        budget("100", Some(("/30 * * * *", 3600)), None),
        budget("100", Some(("*/0 * * * *", 3600)), None),
        budget("100", Some(("0-30-5 * * * *", 3600)), None),
        budget("100", Some(("0 0 L * *", 3600)), None),
        budget("100", Some(("0 0 15W * *", 3600)), None),
        budget("100", Some(("0 0 * * 7", 3600)), None),
        budget("100", Some(("0 0 * * fri#2", 3600)), None),
        budget("100", Some(("0 0 * * sat-sun", 3600)), None),
        budget("100", Some(("jan 0 * * *", 3600)), None),
        budget("ten", None, None),
        budget(
            "100",
            Some(("61 * * * *", 3600)),
            Some(vec![DisruptionReason::Drifted]),
        ),
    ] {
        let got = allowed(
            std::slice::from_ref(&bad),
            10,
            "2026-11-20T08:00:00Z",
            BudgetReason::Empty,
        );
        assert_eq!(got, 0, "{bad:?}");
    }
}

/// The answer of a policy.
fn asked(allowed: u32, replaces_declared: bool) -> Allowance {
    Allowance {
        pool: 0,
        reason: BudgetReason::Empty,
        allowed,
        why: "policy".to_owned(),
        replaces_declared,
    }
}

#[test]
fn a_policy_narrows_and_only_authority_widens() {
    for (declared, asked, expected) in [
        (5, None, 5),
        (5, Some(asked(2, false)), 2),
        (5, Some(asked(9, false)), 5),
        (5, Some(asked(9, true)), 9),
    ] {
        assert_eq!(combine(declared, asked.as_ref(), None).0, expected);
    }
}

#[test]
fn a_budget_that_cannot_be_understood_is_blamed_for_its_own_nought_alone() {
    let now = "2026-11-20T08:00:00Z".parse().unwrap();
    let fault = resolved(&[budget("150%", None, None)], 10, now).fault;
    let blamed = r#"a budget cannot be understood: budget nodes "150%": expected a number or a percentage up to 100%"#;
    for (asked, expected) in [
        (None, (0, blamed)),
        (Some(asked(0, false)), (0, blamed)),
        (Some(asked(5, false)), (0, blamed)),
        (Some(asked(0, true)), (0, "policy")),
        (Some(asked(5, true)), (5, "policy")),
    ] {
        let (allowed, why) = combine(0, asked.as_ref(), fault.as_ref());
        assert_eq!((allowed, why.as_str()), expected, "{asked:?}");
    }
}

#[test]
fn macros_and_windows_tell_their_next_change() {
    let daily = budget("0", Some(("@daily", 3600)), None);
    let at = |now: &str| resolve(&daily, 10, now.parse().unwrap()).unwrap();
    let open = at("2026-11-20T00:30:00Z");
    assert!(open.active);
    assert_eq!(open.next_change_seconds, 1800);
    let closed = at("2026-11-20T23:00:00Z");
    assert!(!closed.active);
    assert_eq!(closed.next_change_seconds, 3600);
}

#[test]
fn renewed_nodes_count_for_as_long_as_what_they_are_renewed_to_stands() {
    let at = |hour: i64| Timestamp::from_second(1_700_000_000 + hour * 3_600).unwrap();
    let mut cluster = Cluster::new();
    let (mut known, mut history) = (Targets::new(), History::default());
    // A roll-out begins in the first hour, rests over a weekend, and gives way to another.
    for (hour, hash, renewed, expected) in [
        (0, "a", 0, 0),
        (1, "b", 1, 0),
        (2, "b", 2, 1),
        (3, "b", 0, 3),
        (20, "b", 0, 3),
        (40, "b", 1, 3),
        (60, "b", 0, 4),
        (75, "b", 2, 4),
        (76, "b", 0, 6),
        (77, "c", 1, 0),
        (78, "c", 0, 1),
    ] {
        let mut pool = NodePool::default();
        pool.metadata.name = Some("web".to_owned());
        let hash = (labels::NODEPOOL_HASH_ANNOTATION.to_owned(), hash.to_owned());
        pool.metadata.annotations = Some([hash].into());
        let event = Event::applied::<NodePool>(Arc::new(pool));
        cluster.apply(at(hour), event).unwrap();
        known = targets(&cluster.snapshot(), &known, &history, at(hour));
        let counted = known["web"].renewed_by("web", &history);
        assert_eq!(counted, expected, "hour {hour}");
        // At the very moment of the look and after it.
        for node in 0..renewed {
            let claim = format!("{hour}-{node}");
            history.note_start(&claim, BudgetReason::Drifted);
            history.note_end(&claim, "web", at(hour));
        }
    }
}
