//! `mortise_policy_*`: what the policies were asked, what it took and what failed.
//!
//! Read from the host's own counters when somebody scrapes, so that a call pays nothing for it.

use policy::{PolicyHost, PolicyStatistics, Swaps};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Registers with a registry as one collector.
#[derive(Debug)]
pub(crate) struct PolicyMetrics {
    pub(crate) host: PolicyHost,
}

type ReadCounter = fn(&PolicyStatistics) -> u64;
type LabelPairs<'a> = Vec<(&'static str, &'a str)>;

impl Collector for PolicyMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let statistics = self.host.statistics();
        let counters: [(&str, &str, ReadCounter); 4] = [
            ("mortise_policy_calls", "Calls of a policy.", |it| it.calls),
            ("mortise_policy_fuel", "Fuel that a policy spent.", |it| {
                it.fuel
            }),
            (
                "mortise_policy_log_lines_dropped",
                "Lines that a policy logged beyond what a call may.",
                |it| it.log_lines_dropped,
            ),
            (
                "mortise_policy_shadow_disagreements",
                "Answers in which a shadow differed from what decided.",
                |it| it.shadow_disagreements,
            ),
        ];
        for (name, help, value) in counters {
            let series = statistics
                .iter()
                .map(|it| (labels(it), ConstCounter::new(value(it))));
            family(&mut encoder, name, help, series)?;
        }
        let seconds = statistics
            .iter()
            .map(|it| (labels(it), ConstCounter::new(it.duration.as_secs_f64())));
        let (name, help) = ("mortise_policy_seconds", "Wall time that a policy took.");
        family(&mut encoder, name, help, seconds)?;
        let failures = statistics.iter().flat_map(|it| {
            it.failures_by_reason.iter().map(|(reason, count)| {
                let mut labels = labels(it);
                labels.push(("reason", reason.as_str()));
                (labels, ConstCounter::new(*count))
            })
        });
        let (name, help) = ("mortise_policy_failures", "Calls that failed.");
        family(&mut encoder, name, help, failures)?;
        let cost = statistics
            .iter()
            .map(|it| (labels(it), ConstGauge::new(it.shadow_usd_per_hour)));
        let (name, help) = (
            "mortise_policy_shadow_usd_per_hour",
            "Price of a shadow's first choices less that of the enforced ones, over all rounds.",
        );
        family(&mut encoder, name, help, cost)?;
        swaps(&mut encoder, self.host.swaps())
    }
}

fn labels(of: &PolicyStatistics) -> LabelPairs<'_> {
    vec![
        ("kind", of.kind.as_str()),
        ("policy", of.name.as_str()),
        ("digest", of.digest.as_str()),
    ]
}

/// How changes of bindings went.
fn swaps(encoder: &mut DescriptorEncoder<'_>, swaps: Swaps) -> Result<(), std::fmt::Error> {
    let Swaps {
        accepted,
        refused,
        longest_wait,
    } = swaps;
    let wait = ConstGauge::new(longest_wait.as_secs_f64());
    let (name, help) = (
        "mortise_policy_swap_wait_seconds",
        "The longest that a round waited to be told who decides.",
    );
    family(encoder, name, help, std::iter::once((Vec::new(), wait)))?;
    let results = [("accepted", accepted), ("refused", refused)];
    let (name, help) = (
        "mortise_policy_swaps",
        "Bindings put in charge, and refused.",
    );
    let series =
        results.map(|(result, count)| (vec![("result", result)], ConstCounter::new(count)));
    family(encoder, name, help, series.into_iter())
}

fn family<'a, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl Iterator<Item = (LabelPairs<'a>, M)>,
) -> Result<(), std::fmt::Error> {
    let mut series = series.peekable();
    let Some((_, first)) = series.peek() else {
        return Ok(());
    };
    let metric_type = first.metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, metric_type)?;
    for (labels, metric) in series {
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
