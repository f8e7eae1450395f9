//! Buckets of histograms, byte for byte Karpenter's.
//!
//! Answers to `DurationBuckets` in `pkg/metrics/constants.go` and to those that Karpenter writes out where it counts.

use std::hash::Hash;

use cloudprovider::DURATION_BUCKETS_SECONDS;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// Histograms of one name, by what tells one from the others.
pub(crate) type BucketFamily<S> = Family<S, Histogram, fn() -> Histogram>;

/// The longest time of a reconcile that is told apart, as controller-runtime has it.
const RECONCILE_SECONDS_MAX: f64 = 60.0;
const HOUR: f64 = 3600.0;
const LIFETIME_HOURS: [f64; 21] = [
    0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 48.0, 72.0, 120.0,
    240.0, 360.0, 480.0, 600.0, 720.0,
];

pub(super) fn histograms<S: Clone + Eq + Hash>(constructor: fn() -> Histogram) -> BucketFamily<S> {
    Family::new_with_constructor(constructor)
}

pub(super) fn durations() -> Histogram {
    Histogram::new(DURATION_BUCKETS_SECONDS)
}

pub(super) fn reconciles() -> Histogram {
    let all = DURATION_BUCKETS_SECONDS.into_iter();
    Histogram::new(all.take_while(|it| *it <= RECONCILE_SECONDS_MAX))
}

pub(super) fn doubling_to_1024() -> Histogram {
    doubling(1.0, 11)
}

pub(super) fn doubling_to_2048() -> Histogram {
    doubling(1.0, 12)
}

pub(super) fn doubling_to_1280() -> Histogram {
    doubling(10.0, 8)
}

/// Of conditions and terminations.
pub(super) fn doubling_to_8192() -> Histogram {
    doubling(0.5, 15)
}

fn doubling(first: f64, buckets: u8) -> Histogram {
    Histogram::new((0..buckets).map(|exponent| first * 2_f64.powi(i32::from(exponent))))
}

pub(super) fn scores() -> Histogram {
    Histogram::new([0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0])
}

pub(super) fn lifetimes() -> Histogram {
    Histogram::new(LIFETIME_HOURS.into_iter().map(|hours| hours * HOUR))
}

pub(super) fn library_default() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ])
}

/// Of work queues: from ten nanoseconds to a quarter of an hour.
pub(super) fn queue_times() -> Histogram {
    Histogram::new((0..12).map(|exponent| 10e-9 * 10_f64.powi(exponent)))
}
