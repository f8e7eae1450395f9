//! How the answers of several consolidation policies come together.

use super::*;

fn verdict(decision: VerdictDecision, score: f64) -> Verdict {
    Verdict {
        decision,
        score,
        reason: "r".to_owned(),
        retry_after_seconds: 0,
    }
}

#[test]
fn any_reject_wins_then_hold_and_scores_multiply() {
    use VerdictDecision::{Approve, Hold, Reject};
    for (earlier, later, expected) in [
        (Approve, Approve, Approve),
        (Approve, Hold, Hold),
        (Hold, Approve, Hold),
        (Hold, Reject, Reject),
        (Reject, Approve, Reject),
    ] {
        let chained = chained_verdict(verdict(earlier, 2.0), verdict(later, 3.0));
        assert_eq!(chained.decision, expected, "{earlier:?} {later:?}");
        if expected == Approve {
            assert!((chained.score - 6.0).abs() < 1e-12);
        }
    }
    assert!(chained_key(-1.0, 2.0) < 0.0 && chained_key(f64::MAX, 2.0).is_finite());
}

#[test]
fn the_reasons_that_were_given_are_joined() {
    let approved = |reason: &str| Verdict {
        reason: reason.to_owned(),
        ..verdict(VerdictDecision::Approve, 1.0)
    };
    for (earlier, later, expected) in [
        ("a", "b", "a; b"),
        ("", "b", "b"),
        ("a", "", "a"),
        ("", "", ""),
    ] {
        let chained = chained_verdict(approved(earlier), approved(later));
        assert_eq!(chained.reason, expected);
    }
}
