//! The report for people, and the line of a moment.

use std::fmt::{self, Write as _};

use super::{Figures, PoolReport, Report, Sum};

/// Columns besides the names.
const HEADS: [&str; 8] = [
    "nodes", "avg", "vCPU", "USD/h", "avg", "launched", "ended", "evicted",
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds,
            node_pools,
            karpenter,
            mortise,
            saved: _,
            bare_nodes,
            types_without_price,
            requests,
            notes,
            unread,
            since,
        } = self;
        writeln!(f, "watched for {} from {since:.0}", span(*seconds))?;
        writeln!(f)?;
        write_table(f, node_pools, karpenter, mortise)?;
        writeln!(f)?;
        write_waits(f, karpenter, mortise)?;
        if *bare_nodes > 0 {
            writeln!(
                f,
                "nodes without a NodeClaim, the same for both: {bare_nodes}"
            )?;
        }
        writeln!(f, "{}", self.verdict())?;
        if !types_without_price.is_empty() {
            let types = types_without_price.join(", ");
            writeln!(
                f,
                "the catalogue has no price of {types}: such nodes count, and cost nothing here"
            )?;
        }
        for note in notes {
            writeln!(f, "note: {note}")?;
        }
        for fault in unread {
            writeln!(f, "not read: {fault}")?;
        }
        let (reads, refused) = (requests.reads, requests.refused);
        writeln!(
            f,
            "asked of the cluster: {reads} GET, nothing else ({refused} refused before they were sent)"
        )
    }
}

/// A row for each NodePool and side, and the sums.
fn write_table(
    f: &mut fmt::Formatter<'_>,
    node_pools: &[PoolReport],
    karpenter: &Sum,
    mortise: &Sum,
) -> fmt::Result {
    let names = node_pools.iter().map(|it| it.node_pool.chars().count());
    let width = names.chain(["NodePool".len()]).max().unwrap_or_default();
    write!(f, "{:width$}  {:9}", "NodePool", "")?;
    for head in HEADS {
        write!(f, " {head:>9}")?;
    }
    writeln!(f)?;
    for pool in node_pools {
        let PoolReport {
            node_pool,
            karpenter,
            mortise,
        } = pool;
        row(
            f,
            width,
            node_pool,
            ["Karpenter", "Mortise"],
            [karpenter, mortise],
        )?;
    }
    let sums = [&karpenter.figures, &mortise.figures];
    row(f, width, "all", ["Karpenter", "Mortise"], sums)
}

fn write_waits(f: &mut fmt::Formatter<'_>, karpenter: &Sum, mortise: &Sum) -> fmt::Result {
    for (name, sum) in [("Karpenter", karpenter), ("Mortise", mortise)] {
        let Sum {
            figures: _,
            waiting,
        } = sum;
        let (pods, seconds) = (waiting.pending_pods, waiting.pending_pod_seconds);
        writeln!(
            f,
            "pods that waited for a node, {name}: {seconds:.0} pod seconds, {pods} wait now"
        )?;
    }
    Ok(())
}

impl Report {
    /// Who is cheaper, in a sentence.
    pub fn verdict(&self) -> String {
        let Some(saved) = &self.saved else {
            return "what Mortise would save is not known, because the price of some nodes is not"
                .to_owned();
        };
        let told = |usd: f64| {
            let word = if usd < 0.0 { "cost" } else { "save" };
            format!("{word} {:.2} USD a month", usd.abs())
        };
        format!(
            "Mortise would {} by what runs now, and {} ({:.1} %) by the average of the watch",
            told(saved.usd_per_month),
            told(saved.average_usd_per_month),
            saved.average_percent.abs(),
        )
    }

    /// The line of a moment.
    pub fn line(&self) -> String {
        let mut line = span(self.seconds);
        for (name, sum) in [("Karpenter", &self.karpenter), ("Mortise", &self.mortise)] {
            let Figures {
                nodes,
                usd_per_hour,
                launches,
                terminations,
                evictions,
                ..
            } = &sum.figures;
            let pending = sum.waiting.pending_pods;
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                " | {name} {nodes} nodes {usd_per_hour:.2} USD/h, +{launches} -{terminations}, \
                 {evictions} evicted, {pending} pending"
            );
        }
        line
    }
}

fn row(
    f: &mut fmt::Formatter<'_>,
    width: usize,
    name: &str,
    sides: [&str; 2],
    figures: [&Figures; 2],
) -> fmt::Result {
    for (index, (side, figures)) in sides.iter().zip(figures).enumerate() {
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
        let name = if index == 0 { name } else { "" };
        writeln!(
            f,
            "{name:width$}  {side:9} {nodes:>9} {average_nodes:>9.1} {vcpus:>9} {usd_per_hour:>9.2} \
             {average_usd_per_hour:>9.2} {launches:>9} {terminations:>9} {evictions:>9}"
        )?;
    }
    Ok(())
}

/// `10m30s`.
fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round();
    let (hours, rest) = ((seconds / 3_600.0).floor(), seconds % 3_600.0);
    let (minutes, seconds) = ((rest / 60.0).floor(), rest % 60.0);
    match (hours > 0.0, minutes > 0.0) {
        (true, _) => format!("{hours:.0}h{minutes:.0}m{seconds:.0}s"),
        (false, true) => format!("{minutes:.0}m{seconds:.0}s"),
        (false, false) => format!("{seconds:.0}s"),
    }
}
