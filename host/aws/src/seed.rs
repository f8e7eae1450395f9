//! Facts about instance types that no EC2 call tells, and prices for when none can be asked.
//!
//! Read-only; the tables are data of this crate (`data/instance-types.csv`, and `data/prices-elsewhere.csv` for the
//! partitions with prices of their own). Answers to Karpenter's `zz_generated.bandwidth.go`,
//! `zz_generated.vpclimits.go` and `zz_generated.pricing_aws*.go`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static TABLE: LazyLock<BTreeMap<&'static str, Seed>> = LazyLock::new(|| {
    include_str!("../data/instance-types.csv")
        .lines()
        .filter_map(row)
        .collect()
});

/// On demand by type, in the order of [`Elsewhere`].
static ELSEWHERE: LazyLock<BTreeMap<&'static str, [Option<f64>; 3]>> = LazyLock::new(|| {
    include_str!("../data/prices-elsewhere.csv")
        .lines()
        .filter_map(row_elsewhere)
        .collect()
});

/// Where prices are others than those of us-east-1 by more than a few percent, or in another currency.
#[derive(Debug, Clone, Copy)]
enum Elsewhere {
    GovEast,
    GovWest,
    /// Regions of China, in CNY.
    China,
}

impl Elsewhere {
    fn of(region: &str) -> Option<Self> {
        match region {
            "us-gov-east-1" => Some(Self::GovEast),
            _ if region.starts_with("us-gov-") => Some(Self::GovWest),
            _ if region.starts_with("cn-") => Some(Self::China),
            _ => None,
        }
    }
}

/// Row of the table about one type.
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

/// On-demand prices an hour of all types for which one is known, in the currency of the region.
pub(crate) fn prices(region: &str) -> BTreeMap<String, f64> {
    let Some(elsewhere) = Elsewhere::of(region) else {
        let priced =
            |(name, seed): (&&str, &Seed)| Some(((*name).to_owned(), seed.price_per_hour?));
        return TABLE.iter().filter_map(priced).collect();
    };
    let price = |prices: &[Option<f64>; 3]| {
        let [gov_east, gov_west, china] = *prices;
        match elsewhere {
            Elsewhere::GovEast => gov_east,
            Elsewhere::GovWest => gov_west,
            Elsewhere::China => china,
        }
    };
    let rows = ELSEWHERE.iter();
    rows.filter_map(|(name, prices)| Some(((*name).to_owned(), price(prices)?)))
        .collect()
}

fn row_elsewhere(line: &'static str) -> Option<(&'static str, [Option<f64>; 3])> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split(',');
    let name = fields.next()?;
    let mut price = || Some(fields.next()?.parse().ok());
    Some((name, [price()?, price()?, price()?]))
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
        let elsewhere = include_str!("../data/prices-elsewhere.csv").lines();
        let elsewhere = elsewhere.filter(|line| !line.starts_with('#'));
        assert_eq!(ELSEWHERE.len(), elsewhere.count());
    }

    #[test]
    fn every_partition_begins_with_prices_of_its_own() {
        // Region, its number of types, and an hour of a c5.large and of a g3.4xlarge.
        let cases = [
            ("us-east-1", 1341, Some(0.085), None),
            ("eu-west-1", 1341, Some(0.085), None),
            ("us-gov-east-1", 549, Some(0.102), None),
            ("us-gov-west-1", 770, Some(0.102), Some(1.32)),
            ("cn-north-1", 316, Some(0.739), Some(16.2045)),
            ("cn-northwest-1", 316, Some(0.739), Some(16.2045)),
        ];
        for (region, count, c5, g3) in cases {
            let prices = prices(region);
            let of = |name: &str| prices.get(name).copied();
            assert_eq!(prices.len(), count, "{region}");
            assert_eq!((of("c5.large"), of("g3.4xlarge")), (c5, g3), "{region}");
            assert!(prices.values().all(|price| *price > 0.0), "{region}");
        }
    }
}
