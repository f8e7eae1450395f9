//! Prices of types that EC2 does not have, from a file in the format of Karpenter's kwok provider.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use apis::labels;
use problem_file::InstanceTypes;

/// USD an hour by type and capacity type; zones of one type cost the same there.
#[derive(Debug, Default)]
pub(super) struct Prices {
    by_type: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Prices {
    /// Those of a file; none without one.
    pub(super) fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut prices = Self::default();
        let Some(file) = file else {
            return Ok(prices);
        };
        let named = || format!("--instance-types {}", file.display());
        let text = std::fs::read_to_string(file).with_context(named)?;
        let types = InstanceTypes::read(&text).with_context(named)?;
        for instance_type in types.types.iter() {
            let of_type = prices
                .by_type
                .entry(instance_type.name.clone())
                .or_default();
            for offering in &instance_type.offerings {
                let capacity_type = offering.label(labels::CAPACITY_TYPE).unwrap_or_default();
                of_type.insert(capacity_type.to_owned(), offering.price_per_hour);
            }
        }
        Ok(prices)
    }

    pub(super) fn of(&self, instance_type: &str, capacity_type: &str) -> Option<f64> {
        self.by_type.get(instance_type)?.get(capacity_type).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_costs_what_the_file_says_of_its_capacity_type() {
        let file = std::env::temp_dir().join(format!("mortise-prices-{}.json", std::process::id()));
        let offering = |capacity: &str, price: f64| {
            serde_json::json!({"Price": price, "Available": true, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]},
            ]})
        };
        let types = serde_json::json!([{
            "name": "c-4x-amd64-linux", "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "offerings": [offering("spot", 0.07), offering("on-demand", 0.1)],
        }]);
        std::fs::write(&file, types.to_string()).unwrap();
        let prices = Prices::read(Some(&file)).unwrap();
        std::fs::remove_file(&file).unwrap();
        let of = |capacity| prices.of("c-4x-amd64-linux", capacity);
        assert_eq!(
            (of("spot"), of("on-demand"), of("reserved")),
            (Some(0.07), Some(0.1), None)
        );
        assert_eq!(prices.of("other", "spot"), None);
        assert!(Prices::read(Some(Path::new("/nowhere"))).is_err());
        assert_eq!(Prices::read(None).unwrap().of("a", "spot"), None);
    }
}
