//! A consolidation policy: nodes are renewed at an hour of your choice, some time before they expire.
//!
//! `{"days": 2, "from": 22, "to": 5, "zone": "Europe/Berlin"}`: a node that expires within two days is replaced between
//! 22:00 and 5:00 in Berlin, within the budgets for drift; what is not renewed by then expires as it would. The zone
//! must be one that the binding names under `time-zones`. Nodes that will be renewed soon are also tried first where
//! money can be saved, and one that expires within `minutes` is left to its end instead of being moved twice.

use guest_sdk::{
    ConsolidationPolicy, Context, MoveKind, Need, Node, Policy, ProposedMove, Settings, Verdict,
};

const DAY_SECONDS: f64 = 86_400.0;

/// Renews nodes before they expire.
#[derive(Debug)]
pub struct SoftExpiry {
    soon_seconds: f64,
    ending_seconds: f64,
    from: u32,
    to: u32,
    zone: String,
}

impl Policy for SoftExpiry {
    const NAME: &'static str = "soft-expiry";
    const SUMMARY: &'static str = "renews nodes at allowed hours some time before they expire";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"days":{"type":"number","minimum":0,"maximum":3650,"default":1,"description":"how long before its expiry a node may be renewed"},"from":{"type":"integer","minimum":0,"maximum":24,"default":0,"description":"first hour in which nodes are renewed"},"to":{"type":"integer","minimum":0,"maximum":24,"default":24,"description":"the hour in which that ends; before `from`, it is that of the next day"},"zone":{"type":"string","default":"UTC","description":"whose hours; one of the binding's time-zones"},"minutes":{"type":"number","minimum":0,"maximum":100000,"default":60,"description":"a node that expires within this time is left to it"}}}"#;
    const NEEDS: &'static [Need] = &[Need::Expire];

    fn configure(settings: &mut Settings) -> Self {
        let soft = Self {
            soon_seconds: DAY_SECONDS * settings.number("days", 1.0, 0.0..=3650.0),
            ending_seconds: 60.0 * settings.number("minutes", 60.0, 0.0..=100_000.0),
            from: settings.integer("from", 0),
            to: settings.integer("to", 24),
            zone: settings.text("zone", "UTC"),
        };
        for (key, hour) in [("from", soft.from), ("to", soft.to)] {
            if hour > 24 {
                settings.error(key, "must be an hour between 0 and 24");
            }
        }
        soft
    }
}

impl SoftExpiry {
    fn expires_within(node: &Node<'_>, limit: f64) -> bool {
        node.seconds_to_expiry()
            .is_some_and(|seconds| f64::from(seconds) < limit)
    }

    fn is_ending(&self, node: &Node<'_>) -> bool {
        Self::expires_within(node, self.ending_seconds)
    }

    /// Why nothing is renewed at this moment.
    fn closed(&self, context: &Context) -> Option<&'static str> {
        let Some(civil) = context.civil_in(&self.zone) else {
            return Some("its zone is not among the time-zones of the binding");
        };
        let hour = u32::from(civil.hour);
        let is_open = if self.from <= self.to {
            (self.from..self.to).contains(&hour)
        } else {
            hour >= self.from || hour < self.to
        };
        (!is_open).then_some("it is no hour to renew nodes")
    }

    fn renewal(&self, proposed: &ProposedMove<'_>, context: &Context) -> Verdict {
        let soon = |node: Node<'_>| Self::expires_within(&node, self.soon_seconds);
        if !proposed.removed().all(soon) {
            return Verdict::reject("it has not expired, nor will it soon");
        }
        match self.closed(context) {
            Some(reason) => Verdict::reject(reason),
            None => Verdict::approve(0.0, "it expires soon"),
        }
    }
}

impl ConsolidationPolicy for SoftExpiry {
    fn order_key(&self, node: &Node<'_>, _context: &Context) -> f64 {
        if self.is_ending(node) {
            return -1.0;
        }
        let key = node.disruption_per_price();
        // Both halves keep Karpenter's order within them.
        let squeezed = key / (1.0 + key);
        if Self::expires_within(node, self.soon_seconds) {
            squeezed
        } else {
            1.0 + squeezed
        }
    }

    fn verdict(&self, proposed: &ProposedMove<'_>, context: &Context) -> Verdict {
        if proposed.kind() == MoveKind::Expire {
            return self.renewal(proposed, context);
        }
        if let Some(objection) = proposed.objection() {
            return Verdict::reject(objection);
        }
        if proposed.is_for_savings() && proposed.removed().any(|node| self.is_ending(&node)) {
            return Verdict::hold(300, "a node of the move is about to expire");
        }
        proposed.approve_as_default()
    }
}

guest_sdk::export_policy!(consolidation: SoftExpiry);

#[cfg(test)]
mod tests;
