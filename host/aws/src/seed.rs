//! Facts about instance types that no EC2 call tells, and prices for when none can be asked.
//!
//! Read-only; the table is data of this crate (`data/instance-types.csv`). Answers to Karpenter's
//! `zz_generated.bandwidth.go`, `zz_generated.vpclimits.go` and `zz_generated.pricing_aws.go`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static TABLE: LazyLock<BTreeMap<&'static str, Seed>> = LazyLock::new(|| {
    include_str!("../data/instance-types.csv")
        .lines()
        .filter_map(row)
        .collect()
});

/// What the table says of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seed {
    /// Baseline, all cards together.
    pub(crate) network_mbps: u32,
    /// Branch interfaces for pods; 0 for types that cannot trunk.
    pub(crate) branch_interfaces: u32,
    /// On demand in us-east-1.
    pub(crate) price_per_hour: Option<f64>,
}

/// The row of a type, if it was known when the table was made.
pub(crate) fn seed(instance_type: &str) -> Option<Seed> {
    TABLE.get(instance_type).copied()
}

/// On-demand prices of all known types.
pub(crate) fn prices() -> impl Iterator<Item = (&'static str, f64)> {
    TABLE
        .iter()
        .filter_map(|(name, seed)| Some((*name, seed.price_per_hour?)))
}

fn row(line: &'static str) -> Option<(&'static str, Seed)> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split(',');
    let name = fields.next()?;
    let network_mbps = fields.next()?.parse().ok()?;
    let branch_interfaces = fields.next()?.parse().ok()?;
    let price_per_hour = fields.next()?.parse().ok();
    Some((
        name,
        Seed {
            network_mbps,
            branch_interfaces,
            price_per_hour,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("../data/instance-types.csv")
            .lines()
            .filter(|l| !l.starts_with('#'));
        assert_eq!(TABLE.len(), lines.count());
        let m5 = seed("m5.large").unwrap();
        assert_eq!(
            (m5.network_mbps, m5.branch_interfaces, m5.price_per_hour),
            (750, 9, Some(0.096))
        );
        assert_eq!(seed("trn2.48xlarge").unwrap().price_per_hour, None);
    }
}
