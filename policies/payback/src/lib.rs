//! A consolidation policy: moves must pay back what they cost, and soon.
//!
//! Moving a pod costs `podCost` (USD); a move must save at least `minSavings` an hour and earn its cost
//! back within `minutes`.

use guest_sdk::{ConsolidationPolicy, Context, Policy, ProposedMove, Settings, Verdict, decimal};

/// Compares what a move costs with what it saves.
#[derive(Debug)]
pub struct Payback {
    pod_cost: f64,
    min_savings: f64,
    minutes: f64,
}

impl Policy for Payback {
    const NAME: &'static str = "payback";
    const SUMMARY: &'static str = "moves must pay back what moving pods costs";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"podCost":{"type":"number","minimum":0,"maximum":1000,"default":0.01,"description":"USD that moving a pod costs"},"minSavings":{"type":"number","minimum":0,"maximum":1000,"default":0,"description":"USD an hour"},"minutes":{"type":"number","minimum":1,"maximum":100000,"default":60,"description":"time to earn the cost back"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            pod_cost: settings.number("podCost", 0.01, 0.0..=1000.0),
            min_savings: settings.number("minSavings", 0.0, 0.0..=1000.0),
            minutes: settings.number("minutes", 60.0, 1.0..=100_000.0),
        }
    }
}

impl ConsolidationPolicy for Payback {
    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        if let Some(objection) = proposed.objection() {
            return Verdict::reject(objection);
        }
        if !proposed.is_for_savings() {
            return proposed.approve_as_default();
        }
        let savings = proposed.savings();
        if savings < self.min_savings {
            let least = decimal(self.min_savings, 4);
            return Verdict::reject(["saves less than ", &least, " USD an hour"].concat());
        }
        let cost = f64::from(proposed.as_move().pods_moved) * self.pod_cost;
        if cost * 60.0 > savings * self.minutes {
            let minutes = decimal(self.minutes, 0);
            return Verdict::reject(["does not pay back within ", &minutes, " minutes"].concat());
        }
        Verdict::approve(proposed.savings_per_disruption(), "pays back")
    }
}

guest_sdk::export_policy!(consolidation: Payback);

#[cfg(test)]
mod tests {
    use super::Payback;
    use guest_sdk::testing::{Harness, NodeRow, proposed};
    use guest_sdk::{Decision, MoveKind};

    #[test]
    fn what_moving_four_pods_costs_must_come_back_in_time() {
        for (config, cost_after, expected) in [
            ("", 0.9, Decision::Approve),
            ("", 0.97, Decision::Reject),
            (r#"{"minutes": 10}"#, 0.9, Decision::Reject),
            (r#"{"minSavings": 0.2}"#, 0.9, Decision::Reject),
            (r#"{"podCost": 0}"#, 0.99, Decision::Approve),
            (r#"{"podCost": 0}"#, 1.1, Decision::Reject),
        ] {
            let policy = Harness::<Payback>::new(config).unwrap();
            let it = proposed(MoveKind::Replace, &[0], 1.0, cost_after);
            let verdict = policy.judge(&[NodeRow::default()], it);
            assert_eq!(
                verdict.decision, expected,
                "{config} {cost_after}: {}",
                verdict.reason
            );
        }
    }

    #[test]
    fn drift_and_empty_nodes_need_not_pay() {
        let policy = Harness::<Payback>::new("").unwrap();
        for kind in [MoveKind::Drift, MoveKind::Empty] {
            let verdict = policy.judge(&[NodeRow::default()], proposed(kind, &[0], 1.0, 1.5));
            assert_eq!(verdict.decision, Decision::Approve);
        }
    }
}
