//! The seam over HTTP: each method hands the input's fields to the SDK's own client.
//!
//! Only translation lives here, and how clients talk: time-outs, repetitions, proxies. Every field of an input is
//! listed, but for those that EC2 retired, so that none gets lost on the way.
//! Answers to the client construction in Karpenter's `pkg/operator/operator.go`.

mod change_fence;
mod ec2;
mod iam;
mod lookups;
mod request;
mod requests;
mod sqs;

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider as TlsProvider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use prometheus_client::registry::Registry;

use crate::pricing::pricing_endpoint_region;
use requests::RequestMetrics;

use change_fence::ChangeFence;

/// How long an operation may take with its repetitions; CreateFleet can be slow.
const OPERATION_TIMEOUT: Duration = Duration::from_mins(4);
/// How long one exchange may take, so that one that hangs leaves time for the next.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(1);

/// Name of the sender in requests, where AWS logs them.
const APP_NAME: &str = concat!("mortise-", env!("CARGO_PKG_VERSION"));

/// The clients of all services in use, behind the seam.
#[derive(Debug, Clone)]
pub struct SdkClients {
    ec2: aws_sdk_ec2::Client,
    /// Asks once: who tries what it may do is not to add to a throttle.
    ec2_once: aws_sdk_ec2::Client,
    eks: aws_sdk_eks::Client,
    iam: aws_sdk_iam::Client,
    ssm: aws_sdk_ssm::Client,
    pricing: aws_sdk_pricing::Client,
    sqs: aws_sdk_sqs::Client,
    zonal_shift: aws_sdk_arczonalshift::Client,
    region: Option<String>,
    change_fence: ChangeFence,
    requests: RequestMetrics,
}

/// A client of a service whose requests are counted.
macro_rules! counted {
    ($service:ident, $config:expr, $requests:expr) => {
        $service::Client::from_conf(
            $service::config::Builder::from($config)
                .interceptor($requests.clone())
                .build(),
        )
    };
}

impl SdkClients {
    /// Connects with the SDK's default chains of credentials, region and endpoints.
    pub async fn connect() -> Self {
        Self::of(&Self::loader().load().await)
    }

    /// How every client talks, for those who know region, endpoint or credentials themselves.
    pub fn loader() -> ConfigLoader {
        // Only connectors can be told of the proxies that HTTPS_PROXY and NO_PROXY name.
        let http_client =
            aws_smithy_http_client::Builder::new().build_with_connector_fn(|settings, runtime| {
                let mut connector = Connector::builder().proxy_config(ProxyConfig::from_env());
                connector.set_connector_settings(settings.cloned());
                connector.set_sleep_impl(runtime.and_then(RuntimeComponents::sleep_impl));
                connector
                    .tls_provider(TlsProvider::Rustls(CryptoMode::Ring))
                    .build()
            });
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(OPERATION_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .build();
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http_client)
            .retry_config(RetryConfig::standard())
            .timeout_config(timeouts);
        match AppName::new(APP_NAME) {
            Ok(name) => loader.app_name(name),
            Err(_) => loader,
        }
    }

    /// The clients of a configuration that [`Self::loader`] led to.
    pub fn of(config: &SdkConfig) -> Self {
        let region = config.region().map(ToString::to_string);
        let pricing_region = pricing_endpoint_region(region.as_deref().unwrap_or_default());
        let requests = RequestMetrics::default();
        let pricing = aws_sdk_pricing::config::Builder::from(config)
            .region(Region::new(pricing_region))
            .interceptor(requests.clone())
            .build();
        let ec2_once = aws_sdk_ec2::config::Builder::from(config)
            .retry_config(RetryConfig::disabled())
            .interceptor(requests.clone())
            .build();
        Self {
            ec2: counted!(aws_sdk_ec2, config, requests),
            ec2_once: aws_sdk_ec2::Client::from_conf(ec2_once),
            eks: counted!(aws_sdk_eks, config, requests),
            iam: counted!(aws_sdk_iam, config, requests),
            ssm: counted!(aws_sdk_ssm, config, requests),
            pricing: aws_sdk_pricing::Client::from_conf(pricing),
            sqs: counted!(aws_sdk_sqs, config, requests),
            zonal_shift: counted!(aws_sdk_arczonalshift, config, requests),
            region,
            requests,
            change_fence: ChangeFence::default(),
        }
    }

    /// Makes clients of these that send no change once the answer is no. Dry runs change nothing.
    #[must_use]
    pub fn while_so(self, may_change: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self {
            change_fence: ChangeFence::while_so(may_change),
            ..self
        }
    }

    /// The client for a call that may be a dry run.
    fn ec2_for(&self, dry_run: Option<bool>) -> &aws_sdk_ec2::Client {
        match dry_run {
            Some(true) => &self.ec2_once,
            Some(false) | None => &self.ec2,
        }
    }

    /// Shows requests to who scrapes.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.requests.register(registry);
    }

    /// The region in use, if any was configured or discovered.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }
}
