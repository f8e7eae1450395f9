//! A ranking policy: tiers inside one NodePool, tried in their order.
//!
//! `{"tiers": [["m7g", "spot"], ["m7i"]]}` prefers spot m7g, then m7i, then everything else. A word of a
//! tier is an instance type, a family, a zone, an architecture or a capacity type; a row is in the first
//! tier of which it has all kinds of words (m7g *and* spot; of two families either).

use guest_sdk::{CapacityType, Json, Offering, Policy, RankPolicy, RankRound, Settings};

/// Adds a step for every tier that comes first.
#[derive(Debug)]
pub struct Ordered {
    tiers: Vec<Vec<String>>,
    step_usd_per_hour: f64,
}

impl Policy for Ordered {
    const NAME: &'static str = "ordered";
    const SUMMARY: &'static str = "tiers inside one pool, cheapest first within a tier";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"tiers":{"type":"array","items":{"type":"array","items":{"type":"string"}}},"step":{"type":"number","minimum":0,"maximum":1000,"default":100,"description":"USD an hour by which a later tier counts as dearer"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        let mut tiers = Vec::new();
        match settings.get("tiers") {
            None => {}
            Some(Json::List(items)) => {
                for item in items {
                    tiers.push(words(item).unwrap_or_default());
                }
                if tiers.iter().any(Vec::is_empty) {
                    settings.error("tiers", "every tier must be a list of words");
                }
            }
            Some(_) => settings.error("tiers", "must be a list of tiers"),
        }
        Self {
            tiers,
            step_usd_per_hour: settings.number("step", 100.0, 0.0..=1000.0),
        }
    }
}

fn words(tier: Json) -> Option<Vec<String>> {
    let Json::List(items) = tier else { return None };
    let texts = items.into_iter().map(|item| match item {
        Json::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

impl RankPolicy for Ordered {
    const LOOKS_AT_CLAIMS: bool = false;

    fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
        let tier = self.tiers.iter().position(|tier| is_in(offering, tier));
        let tier = u32::try_from(tier.unwrap_or(self.tiers.len())).unwrap_or(u32::MAX);
        offering.prior() + f64::from(tier) * self.step_usd_per_hour
    }
}

/// For each kind of word that the tier has, one must be the offering's.
fn is_in(offering: &Offering<'_>, tier: &[String]) -> bool {
    let capacity_type = match offering.capacity_type() {
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
        CapacityType::Reserved => "reserved",
    };
    let matches = |own: &str, is_kind: fn(&str) -> bool| {
        let mut of_kind = tier.iter().filter(|word| is_kind(word)).peekable();
        of_kind.peek().is_none() || of_kind.any(|word| word == own)
    };
    matches(capacity_type, is_capacity_type)
        && matches(offering.arch(), is_arch)
        && matches(offering.zone(), is_zone)
        && matches(offering.instance_type(), |word| word.contains('.'))
        && matches(offering.family(), |word| {
            !(is_capacity_type(word) || is_arch(word) || is_zone(word) || word.contains('.'))
        })
}

fn is_capacity_type(word: &str) -> bool {
    matches!(word, "on-demand" | "spot" | "reserved")
}

fn is_arch(word: &str) -> bool {
    matches!(word, "amd64" | "arm64")
}

fn is_zone(word: &str) -> bool {
    word.contains('-') && !is_capacity_type(word) && !word.contains('.')
}

guest_sdk::export_policy!(rank: Ordered);

#[cfg(test)]
mod tests {
    use super::Ordered;
    use guest_sdk::testing::{Harness, OfferingRow};

    #[test]
    fn an_earlier_tier_wins_however_dear_it_is() {
        let row = |instance_type, capacity_type, price| OfferingRow {
            instance_type,
            capacity_type,
            price,
            ..OfferingRow::default()
        };
        let rows = [
            row("m7i.large", 0, 0.1),
            row("m7g.large", 1, 0.9),
            row("c7g.large", 0, 0.3),
        ];
        for (config, winner) in [
            ("", "m7i.large"),
            (r#"{"tiers": [["m7g", "spot"], ["c7g"]]}"#, "m7g.large"),
            (
                r#"{"tiers": [["m7g", "on-demand"], ["c7g.large"]]}"#,
                "c7g.large",
            ),
            (r#"{"tiers": [["m7g", "m7i", "us-east-1a"]]}"#, "m7i.large"),
        ] {
            let policy = Harness::<Ordered>::new(config).unwrap();
            assert_eq!(policy.cheapest(&rows), winner, "{config}");
        }
    }

    #[test]
    fn a_tier_without_words_is_refused() {
        for config in [
            r#"{"tiers": [[]]}"#,
            r#"{"tiers": "m7g"}"#,
            r#"{"tiers": [[1]]}"#,
        ] {
            let issues = Harness::<Ordered>::new(config).unwrap_err();
            assert_eq!(issues[0].path, "/tiers", "{config}");
        }
    }
}
