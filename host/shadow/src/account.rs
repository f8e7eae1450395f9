//! The simulated account in which the shadow buys: its region and zones, and what of the cluster is called otherwise
//! there.
//!
//! The catalogue has the zones of a few regions. A cluster elsewhere (or on another provider) is moved to zones that it
//! has, name by name, wherever an object names one.

use std::collections::{BTreeMap, BTreeSet};

use apis::labels::{TOPOLOGY_ZONE, TOPOLOGY_ZONE_ID};
use serde_json::Value;

use crate::gathered::Gathered;
use crate::kinds::ReadKind;
use crate::object::label;

/// Where a cluster goes whose zones the catalogue does not have.
const REGION: &str = "us-east-1";
const LETTERS: [&str; 5] = ["a", "b", "c", "d", "f"];

/// Zones of the simulated EC2.
pub struct ZoneMarket<'a> {
    /// Whether anything is sold in a zone.
    pub is_sold_in: &'a dyn Fn(&str) -> bool,
    /// The id of a zone, by region and zone.
    pub zone_id: &'a dyn Fn(&str, &str) -> String,
}

/// The account of a shadow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub region: String,
    /// At least one, in the order of their names.
    pub zones: Vec<String>,
    /// Names of zones, of their ids and of the region, where the cluster has others.
    names: BTreeMap<String, String>,
}

impl Account {
    /// The account for a cluster.
    pub fn of(gathered: &Gathered, market: &ZoneMarket<'_>) -> Self {
        let zones = zones(gathered);
        let names: Vec<&String> = zones.keys().collect();
        let is_known = !zones.is_empty() && names.iter().all(|zone| (market.is_sold_in)(zone));
        let regions: BTreeSet<String> = names.iter().map(|zone| region_of(zone)).collect();
        if is_known && regions.len() == 1 {
            let region = regions.into_iter().next().unwrap_or_default();
            let own = names.iter().map(|zone| (**zone).clone()).collect();
            return Self::moved(region, own, &zones, market);
        }
        let there = LETTERS.map(|letter| format!("{REGION}{letter}"));
        let count = match zones.len() {
            0 => 3,
            count => count.min(there.len()),
        };
        let own = there.into_iter().take(count).collect();
        let mut account = Self::moved(REGION.to_owned(), own, &zones, market);
        for region in regions
            .into_iter()
            .filter(|it| it != REGION && !it.is_empty())
        {
            // A zone that is a region of its own has its name already.
            account
                .names
                .entry(region)
                .or_insert_with(|| REGION.to_owned());
        }
        account
    }

    fn moved(
        region: String,
        own: Vec<String>,
        zones: &BTreeMap<String, Option<String>>,
        market: &ZoneMarket<'_>,
    ) -> Self {
        let mut names = BTreeMap::new();
        for (index, (zone, id)) in zones.iter().enumerate() {
            let to = &own[index % own.len()];
            let ids = id.clone().map(|id| (id, (market.zone_id)(&region, to)));
            let pairs = [(zone.clone(), to.clone())].into_iter().chain(ids);
            names.extend(pairs.filter(|(from, to)| from != to));
        }
        Self {
            region,
            zones: own,
            names,
        }
    }

    /// Zones that have other names in the shadow, one by one.
    pub fn moves(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_zone = |(from, to): (&'_ String, &'_ String)| self.zones.contains(to) && from != to;
        let moves = self
            .names
            .iter()
            .filter(move |(from, to)| is_zone((from, to)));
        moves.map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// Names zones in an object as the shadow does.
    pub fn relocate(&self, value: &mut Value) {
        if self.names.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Some(to) = self.names.get(text.as_str()) {
                    text.clone_from(to);
                } else if let Some((zone, id)) = text
                    .strip_prefix("aws:///")
                    .and_then(|rest| rest.split_once('/'))
                    && let Some(to) = self.names.get(zone)
                {
                    *text = format!("aws:///{to}/{id}");
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|it| self.relocate(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.relocate(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The zones of nodes and classes, with their ids where those are told.
fn zones(gathered: &Gathered) -> BTreeMap<String, Option<String>> {
    let mut zones: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut note = |zone: Option<&str>, id: Option<&str>| {
        if let Some(zone) = zone.filter(|it| !it.is_empty()) {
            let known = zones.entry(zone.to_owned()).or_default();
            *known = known.take().or_else(|| id.map(str::to_owned));
        }
    };
    for node in gathered.of(ReadKind::Nodes) {
        note(label(node, TOPOLOGY_ZONE), label(node, TOPOLOGY_ZONE_ID));
    }
    for class in gathered.of(ReadKind::Ec2NodeClasses) {
        let subnets = class["status"]["subnets"].as_array().into_iter().flatten();
        for subnet in subnets {
            note(subnet["zone"].as_str(), subnet["zoneID"].as_str());
        }
    }
    zones
}

/// `eu-west-1` of `eu-west-1a`; a zone that does not end so is a region of its own.
fn region_of(zone: &str) -> String {
    let region = zone.trim_end_matches(|it: char| it.is_ascii_lowercase());
    let is_region = region.ends_with(|it: char| it.is_ascii_digit());
    if is_region { region } else { zone }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gathered::ObjectChange;
    use serde_json::json;

    fn cluster(zones: &[(&str, &str)]) -> Gathered {
        let mut gathered = Gathered::default();
        for (zone, id) in zones {
            let object = json!({"metadata": {"name": zone, "labels": {
                "topology.kubernetes.io/zone": zone, "topology.k8s.aws/zone-id": id,
            }}});
            gathered.apply(ObjectChange {
                kind: ReadKind::Nodes,
                object,
                is_gone: false,
            });
        }
        gathered
    }

    fn account(zones: &[(&str, &str)]) -> Account {
        let market = ZoneMarket {
            is_sold_in: &|zone| zone.starts_with("us-east-1"),
            zone_id: &|_, zone| format!("id-{zone}"),
        };
        Account::of(&cluster(zones), &market)
    }

    #[test]
    fn a_cluster_of_a_known_region_keeps_its_zones() {
        let account = account(&[("us-east-1c", "use1-az6"), ("us-east-1a", "use1-az1")]);
        assert_eq!(account.region, "us-east-1");
        assert_eq!(account.zones, ["us-east-1a", "us-east-1c"]);
        assert_eq!(account.moves().count(), 0);
        let mut node = json!({"zone": "us-east-1c", "id": "use1-az6", "other": "use1"});
        account.relocate(&mut node);
        assert_eq!(
            node,
            json!({"zone": "us-east-1c", "id": "id-us-east-1c", "other": "use1"})
        );
    }

    #[test]
    fn a_cluster_of_another_region_moves_with_all_that_names_it() {
        let account = account(&[("eu-west-9a", "x"), ("eu-west-9b", "y")]);
        assert_eq!(account.zones, ["us-east-1a", "us-east-1b"]);
        let moves: Vec<_> = account.moves().collect();
        assert_eq!(
            moves,
            [("eu-west-9a", "us-east-1a"), ("eu-west-9b", "us-east-1b")]
        );
        let mut claim = json!({
            "values": ["eu-west-9b", "eu-west-9"], "providerID": "aws:///eu-west-9a/i-0123",
        });
        account.relocate(&mut claim);
        assert_eq!(
            claim,
            json!({
                "values": ["us-east-1b", "us-east-1"], "providerID": "aws:///us-east-1a/i-0123",
            })
        );
    }

    #[test]
    fn zones_of_another_provider_move_and_a_cluster_without_nodes_has_three() {
        let account = account(&[("test-zone-a", "p"), ("test-zone-d", "q")]);
        assert_eq!(account.moves().last(), Some(("test-zone-d", "us-east-1b")));
        assert_eq!(super::tests::account(&[]).zones.len(), 3);
    }
}
