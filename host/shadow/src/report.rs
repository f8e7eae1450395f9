//! Report of both autoscalers, side by side: a pure function of two counts and a price list.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::tally::{BoughtOffering, FleetTally};

/// As AWS reckons a month.
const HOURS_A_MONTH: f64 = 730.0;

/// Sources of the report.
pub struct BothSides<'a> {
    pub karpenter: &'a FleetTally,
    pub mortise: &'a FleetTally,
    /// Price of an instance, USD an hour; none where nobody knows it.
    pub price: &'a dyn Fn(&BoughtOffering) -> Option<f64>,
    pub requests: Requests,
    /// Differences between the shadow and the cluster, one sentence each.
    pub notes: Vec<String>,
    /// What could not be read, and what of that.
    pub unread: Vec<String>,
}

/// Number of requests to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// GETs that were sent.
    pub reads: u64,
    /// Everything else, none of which was.
    pub refused: u64,
}

/// Figures of an autoscaler, of a NodePool or in sum.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    pub nodes: usize,
    pub average_nodes: f64,
    pub vcpus: f64,
    pub usd_per_hour: f64,
    pub average_usd_per_hour: f64,
    pub launches: u64,
    pub terminations: u64,
    pub evictions: u64,
}

/// A NodePool under either autoscaler.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReport {
    pub node_pool: String,
    pub karpenter: Figures,
    pub mortise: Figures,
}

/// Pods that wait for a node, of whatever NodePool.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub pending_pods: usize,
    pub pending_pod_seconds: f64,
}

/// One of the two in sum.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    #[serde(flatten)]
    pub figures: Figures,
    #[serde(flatten)]
    pub waiting: Waiting,
}

/// Savings of Mortise; a negative figure is a cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// By what runs at the end.
    pub usd_per_month: f64,
    /// By what ran on average.
    pub average_usd_per_month: f64,
    /// Of Karpenter's average, in percent.
    pub average_percent: f64,
}

/// Both autoscalers side by side, and what Mortise would save.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub since: Timestamp,
    pub seconds: f64,
    pub node_pools: Vec<PoolReport>,
    pub karpenter: Sum,
    pub mortise: Sum,
    /// Nothing where the price of a node is not known.
    pub saved: Option<Saved>,
    /// Nodes that no NodeClaim stands for; they are the same for both.
    pub bare_nodes: usize,
    /// Types of nodes whose price is not known: they count as nodes and cost nothing here.
    pub types_without_price: Vec<String>,
    pub requests: Requests,
    pub notes: Vec<String>,
    pub unread: Vec<String>,
}

/// One autoscaler, NodePool by NodePool.
struct Side {
    pools: BTreeMap<String, Figures>,
    without_price: BTreeSet<String>,
    waiting: Waiting,
}

impl Report {
    pub fn of(observed: BothSides<'_>) -> Self {
        let BothSides {
            karpenter,
            mortise,
            price,
            requests,
            notes,
            unread,
        } = observed;
        let sides = [karpenter, mortise].map(|tally| Side::of(tally, price));
        let [theirs, ours] = &sides;
        let names: BTreeSet<&String> = sides.iter().flat_map(|side| side.pools.keys()).collect();
        let figures = |side: &Side, name: &str| side.pools.get(name).cloned().unwrap_or_default();
        let node_pools = names.into_iter().map(|name| PoolReport {
            node_pool: name.clone(),
            karpenter: figures(theirs, name),
            mortise: figures(ours, name),
        });
        let node_pools = node_pools.collect();
        let without_price: BTreeSet<&String> =
            sides.iter().flat_map(|side| &side.without_price).collect();
        let (theirs, ours) = (theirs.sum(), ours.sum());
        Self {
            since: karpenter.since(),
            seconds: karpenter.seconds(),
            node_pools,
            saved: without_price
                .is_empty()
                .then(|| saved(&theirs.figures, &ours.figures)),
            karpenter: theirs,
            mortise: ours,
            bare_nodes: karpenter.bare_nodes(),
            types_without_price: without_price.into_iter().cloned().collect(),
            requests,
            notes,
            unread,
        }
    }
}

impl Side {
    fn of(tally: &FleetTally, price: &dyn Fn(&BoughtOffering) -> Option<f64>) -> Self {
        let mut pools: BTreeMap<String, Figures> = BTreeMap::new();
        let mut without_price = BTreeSet::new();
        let mut cost = |bought: &BoughtOffering| {
            let known = price(bought);
            if known.is_none() {
                without_price.insert(bought.instance_type.clone());
            }
            known.unwrap_or_default()
        };
        for (stock, cpus) in tally.stock() {
            let figures = pools.entry(stock.node_pool.clone()).or_default();
            figures.nodes += 1;
            figures.vcpus += cpus;
            figures.usd_per_hour += cost(&stock.bought);
        }
        // Without a watch the average is what there is.
        let seconds = tally.seconds();
        for (stock, node_seconds) in &tally.node_seconds {
            let figures = pools.entry(stock.node_pool.clone()).or_default();
            let share = if seconds > 0.0 {
                node_seconds / seconds
            } else {
                0.0
            };
            figures.average_nodes += share;
            figures.average_usd_per_hour += share * cost(&stock.bought);
        }
        for (name, counts) in &tally.pools {
            let figures = pools.entry(name.clone()).or_default();
            figures.launches = counts.launches;
            figures.terminations = counts.terminations;
            figures.evictions = counts.evictions;
        }
        let waiting = Waiting {
            pending_pods: tally.pending_pods(),
            pending_pod_seconds: tally.pending_pod_seconds,
        };
        Self {
            pools,
            without_price,
            waiting,
        }
    }

    fn sum(&self) -> Sum {
        let mut sum = Figures::default();
        for figures in self.pools.values() {
            let Figures {
                nodes,
                average_nodes,
                vcpus,
                usd_per_hour,
                average_usd_per_hour,
                launches,
                terminations,
                evictions,
            } = figures;
            sum.nodes += nodes;
            sum.average_nodes += average_nodes;
            sum.vcpus += vcpus;
            sum.usd_per_hour += usd_per_hour;
            sum.average_usd_per_hour += average_usd_per_hour;
            sum.launches += launches;
            sum.terminations += terminations;
            sum.evictions += evictions;
        }
        Sum {
            figures: sum,
            waiting: self.waiting.clone(),
        }
    }
}

fn saved(karpenter: &Figures, mortise: &Figures) -> Saved {
    let average = karpenter.average_usd_per_hour - mortise.average_usd_per_hour;
    let base = karpenter.average_usd_per_hour;
    Saved {
        usd_per_month: (karpenter.usd_per_hour - mortise.usd_per_hour) * HOURS_A_MONTH,
        average_usd_per_month: average * HOURS_A_MONTH,
        average_percent: if base > 0.0 {
            average / base * 100.0
        } else {
            0.0
        },
    }
}

#[cfg(test)]
mod tests;
