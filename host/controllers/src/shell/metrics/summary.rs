//! Summaries with quantiles of what was observed in the last ten minutes, which the library of metrics does not have.
//!
//! Exact and bounded: beyond [`SAMPLES_MAX`] the oldest sample goes. Answers to `prometheus.NewSummary` of
//! client_golang with Karpenter's `SummaryObjectives`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locks::lock;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};
use tokio::time::Instant;

use super::labels::{Series, SeriesLabels};

/// How long a sample counts for the quantiles.
const AGE_MAX: Duration = Duration::from_mins(10);
/// Samples that count at one time.
const SAMPLES_MAX: usize = 2048;
/// As label values, and as shares.
const QUANTILES: [(&str, f64); 5] = [
    ("0", 0.0),
    ("0.5", 0.5),
    ("0.9", 0.9),
    ("0.99", 0.99),
    ("1", 1.0),
];

/// One series of a summary. Clones share what was observed.
#[derive(Debug, Clone, Default)]
pub struct QuantileSummary(Arc<Mutex<RecentValues>>);

#[derive(Debug, Default)]
struct RecentValues {
    recent: VecDeque<(Instant, f64)>,
    sum: f64,
    count: u64,
}

impl QuantileSummary {
    /// Takes in a value.
    pub fn observe(&self, value: f64) {
        let now = Instant::now();
        let mut observed = lock(&self.0);
        observed.forget(now);
        if observed.recent.len() == SAMPLES_MAX {
            observed.recent.pop_front();
        }
        observed.recent.push_back((now, value));
        observed.sum += value;
        observed.count += 1;
    }

    /// Sum and number of all values, and each quantile of the recent ones; not a number where there is none.
    fn read(&self) -> (f64, u64, [f64; 5]) {
        let mut observed = lock(&self.0);
        observed.forget(Instant::now());
        let mut values: Vec<f64> = observed.recent.iter().map(|it| it.1).collect();
        values.sort_by(f64::total_cmp);
        let quantiles = QUANTILES.map(|(_, share)| quantile(&values, share));
        (observed.sum, observed.count, quantiles)
    }
}

impl RecentValues {
    fn forget(&mut self, now: Instant) {
        let is_old = |it: &(Instant, f64)| now.duration_since(it.0) > AGE_MAX;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
    }
}

/// The smallest value that at least this share of all does not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rank among a few thousand"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    let at = rank.max(1) - 1;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// All summaries of one name, by their labels.
#[derive(Debug, Clone)]
pub struct QuantileSummaries<L>(Arc<Mutex<BTreeMap<Series<L>, QuantileSummary>>>);

impl<L> Default for QuantileSummaries<L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<L: SeriesLabels> QuantileSummaries<L> {
    /// The series with these labels.
    pub fn get_or_create(&self, series: &Series<L>) -> QuantileSummary {
        let mut all = lock(&self.0);
        all.entry(series.clone()).or_default().clone()
    }
}

/// The library has no word for summaries: of unknown type are they alone, and whoever serves the text says so.
impl<L> TypedMetric for QuantileSummaries<L> {
    const TYPE: MetricType = MetricType::Unknown;
}

impl<L: SeriesLabels> EncodeMetric for QuantileSummaries<L> {
    /// The library knows no summaries: quantiles are written as gauges, sum and count as a histogram without buckets.
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let all = lock(&self.0);
        for (series, summary) in all.iter() {
            let (sum, count, quantiles) = summary.read();
            for ((name, _), value) in QUANTILES.iter().zip(quantiles) {
                let of_quantile = (series.clone(), [("quantile", *name)]);
                encoder.encode_family(&of_quantile)?.encode_gauge(&value)?;
            }
            let mut encoder = encoder.encode_family(series)?;
            encoder.encode_histogram::<NoLabelSet>(sum, count, &[], None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn quantiles_are_of_the_last_ten_minutes_and_sums_of_all_time() {
        let summary = QuantileSummary::default();
        assert!(summary.read().2.iter().all(|it| it.is_nan()));
        for value in 1..=100 {
            summary.observe(f64::from(value));
        }
        let (sum, count, quantiles) = summary.read();
        assert_eq!((sum, count), (5050.0, 100));
        assert_eq!(quantiles.to_vec(), [1.0, 50.0, 90.0, 99.0, 100.0]);
        tokio::time::advance(AGE_MAX + Duration::from_secs(1)).await;
        summary.observe(7.0);
        let (sum, count, quantiles) = summary.read();
        assert_eq!((sum, count), (5057.0, 101));
        assert_eq!(quantiles.to_vec(), [7.0; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_samples_are_kept() {
        let summary = QuantileSummary::default();
        for _ in 0..SAMPLES_MAX * 2 {
            summary.observe(1.0);
        }
        assert_eq!(summary.0.lock().unwrap().recent.len(), SAMPLES_MAX);
    }
}
