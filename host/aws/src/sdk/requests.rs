//! `aws_sdk_go_*`: requests to AWS, each with its attempts, under the names that the Go SDK's users know.
//!
//! Watches: no request is changed or held up. Answers to the handlers of jonathan-innis/aws-sdk-go-prometheus, which
//! Karpenter puts into its session.

use std::time::Instant;

use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// `service`, `action`, `code`.
type RequestLabels = Vec<(&'static str, String)>;
type RequestHistograms = Family<RequestLabels, Histogram, fn() -> Histogram>;

fn times() -> Histogram {
    Histogram::new((0..20).map(|exponent| 0.01 * 1.5_f64.powi(exponent)))
}

fn retries() -> Histogram {
    Histogram::new((0..=10).map(f64::from))
}

/// Counters and histograms of requests; clones count together.
#[derive(Debug, Clone)]
pub(super) struct RequestMetrics {
    requests: Family<RequestLabels, Counter>,
    attempts: Family<RequestLabels, Counter>,
    request_seconds: RequestHistograms,
    attempt_seconds: RequestHistograms,
    retries: RequestHistograms,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            attempts: Family::default(),
            request_seconds: Family::new_with_constructor(times),
            attempt_seconds: Family::new_with_constructor(times),
            retries: Family::new_with_constructor(retries),
        }
    }
}

impl RequestMetrics {
    /// Puts every metric under its name.
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self {
            requests,
            attempts,
            request_seconds,
            attempt_seconds,
            retries,
        } = self;
        registry.register("aws_sdk_go_request", "Requests to AWS", requests.clone());
        registry.register(
            "aws_sdk_go_request_attempt",
            "Attempts of requests to AWS",
            attempts.clone(),
        );
        registry.register(
            "aws_sdk_go_request_duration_seconds",
            "Time of requests to AWS, with all attempts",
            request_seconds.clone(),
        );
        registry.register(
            "aws_sdk_go_request_attempt_duration_seconds",
            "Time of attempts of requests to AWS",
            attempt_seconds.clone(),
        );
        registry.register(
            "aws_sdk_go_request_retry_count",
            "Repetitions of requests to AWS",
            retries.clone(),
        );
    }
}

/// When a request began, when its last attempt did, and how many attempts there were.
#[derive(Debug, Clone, Copy)]
struct Course {
    began: Instant,
    attempt_began: Instant,
    attempts: u32,
}

impl Storable for Course {
    type Storer = StoreReplace<Self>;
}

/// What is known of a request at its end: 0 is the code of one without an answer.
fn labels(context: &FinalizerInterceptorContextRef<'_>, config: &ConfigBag) -> RequestLabels {
    let metadata = config.load::<Metadata>();
    let of = |name: fn(&Metadata) -> &str| metadata.map(name).unwrap_or_default().to_owned();
    let code = context.response().map_or(0, |it| it.status().as_u16());
    vec![
        ("service", of(Metadata::service)),
        ("action", of(Metadata::name)),
        ("code", code.to_string()),
    ]
}

/// Counts what has ended, and how long it took where it is known when it began.
fn ended(
    count: &Family<RequestLabels, Counter>,
    seconds: &RequestHistograms,
    labels: &RequestLabels,
    began: Option<Instant>,
) {
    count.get_or_create(labels).inc();
    if let Some(began) = began {
        let seconds = seconds.get_or_create(labels);
        seconds.observe(began.elapsed().as_secs_f64());
    }
}

impl Intercept for RequestMetrics {
    fn name(&self) -> &'static str {
        "RequestMetrics"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = Instant::now();
        config.interceptor_state().store_put(Course {
            began: now,
            attempt_began: now,
            attempts: 0,
        });
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(course) = config.load::<Course>().copied() {
            config.interceptor_state().store_put(Course {
                attempt_began: Instant::now(),
                attempts: course.attempts + 1,
                ..course
            });
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let labels = labels(context, config);
        let course = config.load::<Course>();
        let began = course.map(|it| it.attempt_began);
        ended(&self.attempts, &self.attempt_seconds, &labels, began);
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let labels = labels(context, config);
        let course = config.load::<Course>();
        let began = course.map(|it| it.began);
        ended(&self.requests, &self.request_seconds, &labels, began);
        if let Some(course) = course {
            let retries = self.retries.get_or_create(&labels);
            retries.observe(f64::from(course.attempts.saturating_sub(1)));
        }
        Ok(())
    }
}
