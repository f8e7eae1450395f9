//! A ranking policy: what a node costs beside its instance.
//!
//! `{"perNode": 0.02, "perCpu": 0.001}` adds licences, agents and the like, in USD an hour, so that fewer
//! and larger nodes win where the bill says so.

use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};

/// Adds the overhead to the cost.
#[derive(Debug)]
pub struct NodeOverhead {
    per_node: f64,
    per_cpu: f64,
}

impl Policy for NodeOverhead {
    const NAME: &'static str = "node-overhead";
    const SUMMARY: &'static str = "adds what a node costs beside its instance";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"perNode":{"type":"number","minimum":0,"maximum":1000,"default":0.01,"description":"USD an hour of a node"},"perCpu":{"type":"number","minimum":0,"maximum":1000,"default":0,"description":"USD an hour of a CPU"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            per_node: settings.number("perNode", 0.01, 0.0..=1000.0),
            per_cpu: settings.number("perCpu", 0.0, 0.0..=1000.0),
        }
    }
}

impl RankPolicy for NodeOverhead {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        let cpus = f64::from(offering.cpu_milli()) / 1000.0;
        offering.prior() + self.per_node + self.per_cpu * cpus
    }
}

guest_sdk::export_policy!(rank: NodeOverhead);

#[cfg(test)]
mod tests {
    use super::NodeOverhead;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn one_large_node_beats_two_small_ones_once_a_node_costs_something() {
        let row = |price, cpu_milli| OfferingRow {
            price,
            cpu_milli,
            ..OfferingRow::default()
        };
        let rows = [row(0.10, 2000), row(0.21, 4000)];
        for (config, large_wins) in [
            (r#"{"perNode": 0}"#, false),
            (r#"{"perNode": 0.02}"#, true),
            (r#"{"perNode": 0.02, "perCpu": 0.1}"#, true),
        ] {
            let scores = Harness::<NodeOverhead>::new(config).unwrap().scores(&rows);
            assert_eq!(
                scores[1] < 2.0 * scores[0],
                large_wins,
                "{config} {scores:?}"
            );
        }
    }

    #[test]
    fn a_licence_by_the_cpu_is_added() {
        let policy = Harness::<NodeOverhead>::new(r#"{"perNode": 0, "perCpu": 0.5}"#).unwrap();
        let scores = policy.scores(&[OfferingRow::default()]);
        assert!((scores[0] - 1.1).abs() < 1e-12, "{scores:?}");
    }
}
