//! Buckets of histograms that the controllers and a provider share, byte for byte Karpenter's.
//!
//! Only numbers: who counts what stands where it is counted. Answers to `DurationBuckets` in
//! `pkg/metrics/constants.go`.

/// Times in seconds: up to a minute as controller-runtime has them, and what Karpenter adds.
pub const DURATION_BUCKETS_SECONDS: [f64; 45] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0,
];
