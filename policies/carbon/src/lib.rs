//! A ranking policy: the price of what a node emits.
//!
//! `{"usdPerTonne": 100, "gramsPerKwh": {"us-east-1": 380, "us-west-2": 120}, "wattsPerCpu": {"m7g": 1.2}, "watts": 2.5}`:
//! the power of the CPUs of an instance, at its data centre's overhead `pue`, times what the grid emits for it, is part of
//! the cost at the price of a tonne. Zones are known by what their names begin with, the longest first; families without
//! an entry take `watts`. Tables change: a CronJob may write them to the ConfigMap that `config-from` names.

use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};

const WATTS_PER_KILOWATT: f64 = 1000.0;
const GRAMS_PER_TONNE: f64 = 1e6;

/// Adds emissions to the price.
#[derive(Debug)]
pub struct Carbon {
    usd_per_tonne: f64,
    grams_per_kwh: Vec<(String, f64)>,
    watts_per_cpu: Vec<(String, f64)>,
    watts: f64,
    pue: f64,
}

impl Policy for Carbon {
    const NAME: &'static str = "carbon";
    const SUMMARY: &'static str = "adds the price of what a node emits";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"usdPerTonne":{"type":"number","minimum":0,"maximum":100000,"default":100,"description":"price of a tonne of carbon dioxide"},"gramsPerKwh":{"type":"object","additionalProperties":{"type":"number","minimum":0,"maximum":5000},"description":"what the grid emits, by zone or what its name begins with; without an entry nothing"},"wattsPerCpu":{"type":"object","additionalProperties":{"type":"number","minimum":0,"maximum":1000},"description":"power of a CPU, by instance family"},"watts":{"type":"number","minimum":0,"maximum":1000,"default":2.5,"description":"power of a CPU of the other families"},"pue":{"type":"number","minimum":1,"maximum":3,"default":1.15,"description":"power of the data centre for each watt of its computers"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        let mut grams_per_kwh = settings.numbers("gramsPerKwh", 0.0..=5000.0);
        grams_per_kwh.sort_by_key(|(zone, _)| usize::MAX - zone.len());
        Self {
            usd_per_tonne: settings.number("usdPerTonne", 100.0, 0.0..=100_000.0),
            grams_per_kwh,
            watts_per_cpu: settings.numbers("wattsPerCpu", 0.0..=1000.0),
            watts: settings.number("watts", 2.5, 0.0..=1000.0),
            pue: settings.number("pue", 1.15, 1.0..=3.0),
        }
    }
}

impl RankPolicy for Carbon {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        let (zone, family) = (offering.zone(), offering.family());
        let mut grids = self.grams_per_kwh.iter();
        let grid = grids.find(|(prefix, _)| zone.starts_with(prefix.as_str()));
        let mut families = self.watts_per_cpu.iter();
        let watts = families.find(|(name, _)| name == family);
        let watts = watts.map_or(self.watts, |(_, watts)| *watts);
        let cpus = f64::from(offering.cpu_milli()) / 1000.0;
        let kilowatts = cpus * watts * self.pue / WATTS_PER_KILOWATT;
        let tonnes_an_hour = kilowatts * grid.map_or(0.0, |(_, grams)| *grams) / GRAMS_PER_TONNE;
        offering.prior() + tonnes_an_hour * self.usd_per_tonne
    }
}

guest_sdk::export_policy!(rank: Carbon);

#[cfg(test)]
mod tests {
    use super::Carbon;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn power_grid_and_price_make_the_cost() {
        let config = r#"{"usdPerTonne": 1000, "gramsPerKwh": {"us-east-1": 400, "us-east-1b": 0},
            "wattsPerCpu": {"m7g": 1}, "watts": 2, "pue": 1.5}"#;
        let policy = Harness::<Carbon>::new(config).unwrap();
        let row = |instance_type, zone| OfferingRow {
            instance_type,
            zone,
            ..OfferingRow::default()
        };
        let scores = policy.scores(&[
            row("m7i.large", "us-east-1a"),
            row("m7g.large", "us-east-1a"),
            row("m7i.large", "us-east-1b"),
            row("m7i.large", "eu-north-1a"),
        ]);
        // Two CPUs at two watts, half as much again for the hall: six watts, 0.0024 kg an hour, a dollar a kg.
        for (found, expected) in scores.iter().zip([0.1024, 0.1012, 0.1, 0.1]) {
            assert!((found - expected).abs() < 1e-12, "{scores:?}");
        }
    }

    #[test]
    fn a_hall_that_makes_power_is_refused() {
        let issues = Harness::<Carbon>::new(r#"{"pue": 0.5}"#).unwrap_err();
        assert_eq!(issues[0].path, "/pue");
    }
}
