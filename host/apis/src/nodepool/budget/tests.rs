//! How many nodes a budget allows.

use rstest::rstest;

use super::*;

#[rstest]
#[case("0", 100, Some(0))]
#[case("5", 3, Some(5))]
#[case("10%", 0, Some(0))]
#[case("10%", 1, Some(1))]
#[case("10%", 11, Some(2))]
#[case("100%", 7, Some(7))]
#[case("0%", 7, Some(0))]
#[case("99999999999", 7, Some(u32::MAX))]
#[case("101%", 7, None)]
#[case("-1", 7, None)]
#[case("%", 7, None)]
#[case("", 7, None)]
#[case("half", 7, None)]
fn nodes_allowed(#[case] nodes: &str, #[case] total: u32, #[case] expected: Option<u32>) {
    let budget = Budget {
        nodes: nodes.to_owned(),
        ..Budget::default()
    };
    assert_eq!(
        budget.allowed_nodes().ok().map(|nodes| nodes.of(total)),
        expected
    );
}

#[test]
fn no_reasons_means_all_but_an_empty_list_means_none() {
    let budget = |reasons| Budget {
        reasons,
        ..Budget::default()
    };
    assert!(budget(None).covers(DisruptionReason::Unhealthy));
    assert!(budget(Some(vec![DisruptionReason::Empty])).covers(DisruptionReason::Empty));
    assert!(!budget(Some(vec![DisruptionReason::Empty])).covers(DisruptionReason::Drifted));
    assert!(!budget(Some(Vec::new())).covers(DisruptionReason::Empty));
}
