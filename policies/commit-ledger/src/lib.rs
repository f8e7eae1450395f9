//! A ranking policy: discounts that are used up.
//!
//! `{"commitments": [{"family": "m7g", "nodes": 10, "discount": 0.4}]}`: the first ten on-demand nodes of
//! the family cost 40 % less, as under a savings plan; the eleventh does not. All nodes of the cluster count, whatever
//! their size and whether or not more of them can be had.

use guest_sdk::{
    CapacityType, Json, Offering, Policy, PolicyError, RankCall, RankPolicy, RankRound, Rankings,
    Settings, UsageView,
};

/// Lowers the cost while a commitment has room.
#[derive(Debug)]
pub struct CommitLedger {
    commitments: Vec<Commitment>,
}

#[derive(Debug)]
struct Commitment {
    family: String,
    nodes: f64,
    discount: f64,
}

impl Policy for CommitLedger {
    const NAME: &'static str = "commit-ledger";
    const SUMMARY: &'static str = "discounts on demand until a commitment is used up";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"commitments":{"type":"array","items":{"type":"object","required":["family","nodes","discount"],"properties":{"family":{"type":"string"},"nodes":{"type":"number","minimum":0},"discount":{"type":"number","minimum":0,"maximum":1}}}}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        let items = match settings.get("commitments") {
            None => Vec::new(),
            Some(Json::List(items)) => items,
            Some(_) => {
                settings.error("commitments", "must be a list");
                Vec::new()
            }
        };
        let read: Option<Vec<Commitment>> = items.iter().map(commitment).collect();
        if read.is_none() {
            settings.error(
                "commitments",
                "every entry needs a family, nodes and a discount between 0 and 1",
            );
        }
        Self {
            commitments: read.unwrap_or_default(),
        }
    }
}

fn commitment(item: &Json) -> Option<Commitment> {
    let Json::Object(fields) = item else {
        return None;
    };
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, it)| it);
    match (field("family")?, field("nodes")?, field("discount")?) {
        (Json::Text(family), Json::Number(nodes), Json::Number(discount))
            if *nodes >= 0.0 && (0.0..=1.0).contains(discount) =>
        {
            Some(Commitment {
                family: family.clone(),
                nodes: *nodes,
                discount: *discount,
            })
        }
        _ => None,
    }
}

impl RankPolicy for CommitLedger {
    fn cost(&self, offering: &Offering<'_>, round: &RankRound<'_>) -> f64 {
        cost(offering, &self.open(&round.usage))
    }

    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        let open = self.open(&call.usage);
        let costs: Vec<f64> = (0..call.offerings.rows())
            .map(|row| cost(&call.offering(row), &open))
            .collect();
        Ok(call.ranked_by(&costs))
    }
}

impl CommitLedger {
    /// The commitments that have room for a node.
    fn open(&self, usage: &UsageView<'_>) -> Vec<&Commitment> {
        let has_room = |commitment: &&Commitment| {
            let rows = usage.of_family(&commitment.family);
            let on_demand = rows.filter(|row| row.capacity_type() == CapacityType::OnDemand);
            on_demand.map(|row| f64::from(row.nodes())).sum::<f64>() < commitment.nodes
        };
        self.commitments.iter().filter(has_room).collect()
    }
}

fn applies(commitment: &Commitment, offering: &Offering<'_>) -> bool {
    offering.capacity_type() == CapacityType::OnDemand && offering.family() == commitment.family
}

fn cost(offering: &Offering<'_>, open: &[&Commitment]) -> f64 {
    let own = open.iter().filter(|it| applies(it, offering));
    let discount = own.map(|it| it.discount).fold(0.0, f64::max);
    offering.prior() * (1.0 - discount)
}

guest_sdk::export_policy!(rank: CommitLedger);

#[cfg(test)]
mod tests {
    use super::CommitLedger;
    use guest_sdk::testing::{Harness, OfferingRow, RankQuestion, UsedRow};

    #[test]
    fn the_discount_holds_until_it_is_used_up() {
        let config = r#"{"commitments": [{"family": "m7g", "nodes": 2, "discount": 0.4}]}"#;
        for (in_use, capacity_type, winner) in [
            (0, 0, "m7g.large"),
            (1, 0, "m7g.large"),
            (2, 0, "m7i.large"),
            (0, 1, "m7i.large"),
        ] {
            let committed = OfferingRow {
                instance_type: "m7g.large",
                price: 0.15,
                capacity_type,
                ..OfferingRow::default()
            };
            let offerings = [OfferingRow::default(), committed];
            // Of another size and not to be bought, and spot, which no commitment is for.
            let used = |capacity_type, nodes| UsedRow {
                instance_type: "m7g.8xlarge",
                capacity_type,
                nodes,
                ..UsedRow::default()
            };
            let policy = Harness::<CommitLedger>::new(config).unwrap();
            let row = policy.first_choice(&RankQuestion {
                offerings: &offerings,
                usage: &[used(0, in_use), used(1, 9)],
                ..RankQuestion::default()
            });
            let found = row.and_then(|row| offerings.get(row as usize));
            assert_eq!(found.unwrap().instance_type, winner, "{in_use}");
        }
        assert!(Harness::<CommitLedger>::new(r#"{"commitments": [{}]}"#).is_err());
    }
}
