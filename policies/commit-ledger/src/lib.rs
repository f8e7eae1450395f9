//! A ranking policy: discounts that are used up.
//!
//! `{"commitments": [{"family": "m7g", "nodes": 10, "discount": 0.4}, {"usdPerHour": 25, "discount": 0.2}]}`: the first
//! ten on-demand nodes of the family cost 40 % less, the eleventh does not; and while nodes on demand cost less than 25 USD
//! an hour all together, those of any family cost 20 % less, as under a compute savings plan. All nodes of the cluster
//! count, whatever their size and whether or not more of them can be had.

use guest_sdk::{
    CapacityType, Json, Offering, Policy, PolicyError, RankCall, RankPolicy, RankRound, Rankings,
    Settings, UsageRow, UsageView,
};

/// Lowers the cost while a commitment has room.
#[derive(Debug)]
pub struct CommitLedger {
    commitments: Vec<Commitment>,
}

#[derive(Debug)]
struct Commitment {
    /// All families without one.
    family: Option<String>,
    room: Room,
    discount: f64,
}

/// Of which there is so much.
#[derive(Debug)]
enum Room {
    Nodes(f64),
    /// By list price.
    UsdPerHour(f64),
}

impl Policy for CommitLedger {
    const NAME: &'static str = "commit-ledger";
    const SUMMARY: &'static str = "discounts on demand until a commitment is used up";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"commitments":{"type":"array","items":{"type":"object","required":["discount"],"additionalProperties":false,"properties":{"family":{"type":"string","description":"instance family; all when left out"},"nodes":{"type":"number","minimum":0,"description":"nodes that are committed to"},"usdPerHour":{"type":"number","minimum":0,"description":"or USD an hour by list price"},"discount":{"type":"number","minimum":0,"maximum":1}}}}}}"#;

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
                "every entry needs nodes or usdPerHour, and a discount between 0 and 1",
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
    let number = |name: &str| match field(name) {
        Some(Json::Number(number)) if *number >= 0.0 => Some(*number),
        _ => None,
    };
    let room = match (number("nodes"), number("usdPerHour")) {
        (Some(nodes), None) => Room::Nodes(nodes),
        (None, Some(usd)) => Room::UsdPerHour(usd),
        _ => return None,
    };
    let family = match field("family") {
        None => None,
        Some(Json::Text(family)) => Some(family.clone()),
        Some(_) => return None,
    };
    Some(Commitment {
        family,
        room,
        discount: number("discount").filter(|it| *it <= 1.0)?,
    })
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
        let has_room = |it: &&Commitment| it.has_room(usage);
        self.commitments.iter().filter(has_room).collect()
    }
}

impl Commitment {
    fn is_for(&self, family: &str, capacity_type: CapacityType) -> bool {
        let is_own = self.family.as_ref().is_none_or(|own| own == family);
        is_own && capacity_type == CapacityType::OnDemand
    }

    fn has_room(&self, usage: &UsageView<'_>) -> bool {
        let rows = usage.iter();
        let rows = rows.filter(|row| self.is_for(row.family(), row.capacity_type()));
        let nodes = |row: &UsageRow<'_>| f64::from(row.nodes());
        match self.room {
            Room::Nodes(room) => rows.map(|row| nodes(&row)).sum::<f64>() < room,
            Room::UsdPerHour(room) => rows.map(|row| nodes(&row) * row.price()).sum::<f64>() < room,
        }
    }
}

fn cost(offering: &Offering<'_>, open: &[&Commitment]) -> f64 {
    let own = open.iter();
    let own = own.filter(|it| it.is_for(offering.family(), offering.capacity_type()));
    let discount = own.map(|it| it.discount).fold(0.0, f64::max);
    offering.prior() * (1.0 - discount)
}

guest_sdk::export_policy!(rank: CommitLedger);

#[cfg(test)]
mod tests;
