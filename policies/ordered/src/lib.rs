//! A ranking policy: tiers inside one NodePool, tried in their order.
//!
//! `{"tiers": [["m7g", "spot"], ["m7i"]]}` prefers spot m7g, then m7i, then everything else. A word of a
//! tier is an instance type, a family, a zone, an architecture or a capacity type; a row is in the first
//! tier of which it has all kinds of words (m7g *and* spot; of two families either).
//!
//! A tier counts `step` times as dear as the one before it. A factor and not a sum, so that within a tier prices
//! keep their proportions: when the first tier is gone, nodes of the second are packed as they were without tiers.

use guest_sdk::{Json, Offering, Policy, RankPolicy, RankRound, Settings};

/// What no tier makes an offering dearer than, so that sums of it are still numbers.
const DEAREST: f64 = 1e300;

/// Multiplies the cost by a step for every tier that comes first.
#[derive(Debug)]
pub struct Ordered {
    tiers: Vec<Vec<String>>,
    step: f64,
}

impl Policy for Ordered {
    const NAME: &'static str = "ordered";
    const SUMMARY: &'static str = "tiers inside one pool, cheapest first within a tier";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"tiers":{"type":"array","items":{"type":"array","items":{"type":"string"}}},"step":{"type":"number","minimum":1,"maximum":1000000,"default":1000,"description":"how many times as dear a tier counts as the one before it"}}}"#;

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
            step: settings.number("step", 1000.0, 1.0..=1_000_000.0),
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
        let before = self.tiers.iter().take_while(|it| !is_in(offering, it));
        // Of very many tiers the last are equally dear: a cost must stay a number.
        before.fold(offering.prior(), |cost, _| (cost * self.step).min(DEAREST))
    }
}

/// For each kind of word that the tier has, one must be the offering's.
fn is_in(offering: &Offering<'_>, tier: &[String]) -> bool {
    let matches = |own: &str, is_kind: fn(&str) -> bool| {
        let mut of_kind = tier.iter().filter(|word| is_kind(word)).peekable();
        of_kind.peek().is_none() || of_kind.any(|word| word == own)
    };
    matches(offering.capacity_type().as_str(), is_capacity_type)
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

/// Families have a hyphen at most (`u-6tb1`, `mac2-m2`), zones of every kind two or more (`us-east-1a`,
/// `us-east-1-wl1-bos-wlz-1`).
fn is_zone(word: &str) -> bool {
    word.matches('-').count() >= 2 && !word.contains('.')
}

guest_sdk::export_policy!(rank: Ordered);

#[cfg(test)]
mod tests;
