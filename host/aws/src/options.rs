//! Settings of the provider: the AWS provider's flags, variables and defaults, and what the operator finds out.
//!
//! A row is the flag, its variable, its default, its help and the setting that is obeyed. The operator's command takes
//! them over whole; nothing here reads the command line or the environment. A row that nobody obeys fails
//! `tests/it/flags.rs`. Answers to Karpenter's `pkg/operator/options/options.go` of the AWS provider.

use std::net::IpAddr;

use apis::flag_text;
use clap::builder::{BoolishValueParser, Resettable};
use clap::{ArgAction, Args, Command, FromArgMatches as _};
use jiff::SignedDuration;

/// What the provider needs to know about its cluster and account.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AwsOptions {
    /// Name of the cluster; tags, launch templates and instance profiles carry it. Required on EC2
    #[arg(
        long,
        env = "CLUSTER_NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub cluster_name: String,
    /// URL of the cluster's API server, as nodes reach it. Default: what EKS says
    #[arg(
        long,
        env = "CLUSTER_ENDPOINT",
        default_value = "",
        hide_default_value = true,
        value_parser = parse_endpoint
    )]
    pub cluster_endpoint: String,
    /// Certificate authority of the API server, in base64, for node user data. Default: the one this controller trusts
    #[arg(long, env = "CLUSTER_CA_BUNDLE")]
    pub cluster_ca_bundle: Option<String>,
    /// EKS says the Kubernetes version by which images are chosen, instead of the API server
    #[arg(long, env = "EKS_CONTROL_PLANE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub eks_control_plane: bool,
    /// Do not try permissions by dry runs, neither at the start nor for each EC2NodeClass
    #[arg(long, env = "DISABLE_DRY_RUN", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub disable_dry_run: bool,
    /// The VPC has no way to AWS's public endpoints: no price look-ups, prices are those of the built-in list
    #[arg(long, env = "ISOLATED_VPC", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub isolated_vpc: bool,
    /// Launch nothing in zones that ARC has shifted the cluster's traffic away from, and end nothing there
    #[arg(long, env = "ENABLE_ZONAL_SHIFT", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub enable_zonal_shift: bool,
    /// Share of an instance's memory that the hypervisor and the OS take, until a node tells the truth
    #[arg(long, env = "VM_MEMORY_OVERHEAD_PERCENT", default_value_t = 0.075, value_parser = parse_share)]
    pub vm_memory_overhead_percent: f64,
    /// Network interfaces kept from the pods-per-node formula
    #[arg(long, env = "RESERVED_ENIS", default_value_t = 0)]
    pub reserved_enis: u32,
    /// Comma list of Name=bool: NodeClassCEL lets values in spec.kubelet of an EC2NodeClass be expressions
    #[arg(
        long,
        env = "AWS_FEATURE_GATES",
        default_value = "",
        hide_default_value = true,
        value_parser = parse_gates
    )]
    pub aws_feature_gates: AwsFeatureGates,
    /// How long resolved images are believed, a minute at least
    #[arg(long, env = "AMI_REFRESH_INTERVAL", default_value = "1m", value_parser = parse_refresh_interval)]
    pub ami_refresh_interval: SignedDuration,
    /// How long resolved subnets are believed, a minute at least
    #[arg(long, env = "SUBNET_REFRESH_INTERVAL", default_value = "1m", value_parser = parse_refresh_interval)]
    pub subnet_refresh_interval: SignedDuration,

    // What follows has no flag here: the cluster and the controllers' settings say it.
    /// Whether EKS is to say the endpoint, because no setting does.
    #[arg(skip)]
    pub discovers_endpoint: bool,
    /// ARN of the cluster, by which ARC knows it.
    #[arg(skip)]
    pub cluster_arn: Option<String>,
    /// Service CIDR of the cluster; AL2023 cannot boot without it.
    #[arg(skip)]
    pub cluster_cidr: Option<String>,
    /// Minor-precise Kubernetes version such as `1.33`, for image parameters.
    #[arg(skip = "1.33")]
    pub kubernetes_version: String,
    /// Address of the cluster's DNS service. An IPv6 address makes the cluster an IPv6 one.
    #[arg(skip)]
    pub kube_dns_ip: Option<IpAddr>,
    /// Region of the cluster.
    #[arg(skip)]
    pub region: String,
    /// Whether capacity reservations may be used.
    #[arg(skip = true)]
    pub reserved_capacity: bool,
    /// Whether minValues may be relaxed instead of refusing to launch.
    #[arg(skip)]
    pub min_values_best_effort: bool,
}

/// What is tried out, and off unless asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AwsFeatureGates {
    /// Values in `spec.kubelet` may be expressions.
    pub node_class_cel: bool,
}

impl AwsOptions {
    /// What the flags say of a cluster when nobody says anything else, whatever is in the environment.
    pub fn new(cluster_name: impl Into<String>, region: impl Into<String>) -> Self {
        let flags = Self::augment_args(Command::new("defaults").no_binary_name(true));
        let flags = flags.mut_args(|flag| flag.env(Resettable::Reset));
        let parsed = flags.try_get_matches_from([""; 0]);
        let options = parsed.and_then(|it| Self::from_arg_matches(&it));
        #[expect(
            clippy::expect_used,
            reason = "defaults are constants; a test parses them"
        )]
        let options = options.expect("defaults are valid values");
        Self {
            cluster_name: cluster_name.into(),
            region: region.into(),
            ..options
        }
    }

    /// What was given as flags, in a region. What is empty was not given.
    pub fn given(self, region: String) -> Self {
        Self {
            discovers_endpoint: self.cluster_endpoint.is_empty(),
            cluster_ca_bundle: self.cluster_ca_bundle.filter(|it| !it.is_empty()),
            region,
            ..self
        }
    }

    /// Whether nodes and pods have IPv6 addresses.
    pub fn is_ipv6(&self) -> bool {
        self.kube_dns_ip.is_some_and(|address| address.is_ipv6())
    }

    /// Minor number of the Kubernetes version, 0 if it cannot be read.
    pub fn kubernetes_minor(&self) -> u32 {
        let minor = self.kubernetes_version.split('.').nth(1);
        minor
            .and_then(|minor| minor.trim_end_matches('+').parse().ok())
            .unwrap_or(0)
    }
}

/// Nodes join by TLS, and what is no URL would come out when the first of them does not.
fn parse_endpoint(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").map(|rest| {
        let end = rest.find(['/', ':', '?', '#']);
        &rest[..end.unwrap_or(rest.len())]
    });
    let is_host = |it: &str| !it.is_empty() && !it.contains(['@', ' ', '\t']);
    if text.is_empty() || host.is_some_and(|it| it.starts_with('[') || is_host(it)) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "`{text}` is not the URL of an API server, such as https://ABC.gr7.eu-central-1.eks.amazonaws.com"
        ))
    }
}

/// Karpenter's bound: each look-up is a call of EC2.
fn parse_refresh_interval(text: &str) -> Result<SignedDuration, String> {
    let interval = flag_text::parse_duration(text)?.to_signed_duration();
    if interval < SignedDuration::from_mins(1) {
        return Err(format!("`{text}` is less than a minute"));
    }
    Ok(interval)
}

/// Gates that nobody knows are passed over, as Karpenter does.
fn parse_gates(text: &str) -> Result<AwsFeatureGates, String> {
    let given = flag_text::parse_gates(text)?;
    Ok(AwsFeatureGates {
        node_class_cel: given.get("NodeClassCEL").copied().unwrap_or_default(),
    })
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err(format!(
            "`{text}` is not a share of 0 or more, such as 0.075"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sets_is_as_karpenter_has_it() {
        let options = AwsOptions::new("demo", "us-east-1");
        assert!((options.vm_memory_overhead_percent - 0.075).abs() < 1e-9);
        let intervals = [
            options.ami_refresh_interval,
            options.subnet_refresh_interval,
        ];
        assert_eq!(intervals, [SignedDuration::from_mins(1); 2]);
        assert_eq!(
            (options.cluster_ca_bundle, options.reserved_enis),
            (None, 0)
        );
    }

    #[test]
    fn what_is_given_empty_was_not_given() {
        let options = AwsOptions {
            cluster_ca_bundle: Some(String::new()),
            ..AwsOptions::new("demo", "")
        };
        let options = options.given("us-east-1".to_owned());
        assert_eq!(options.cluster_ca_bundle, None);
        assert!(options.discovers_endpoint);
        let endpoint = "https://demo".to_owned();
        let options = AwsOptions {
            cluster_endpoint: endpoint,
            ..options
        };
        assert!(!options.given("us-east-1".to_owned()).discovers_endpoint);
    }

    #[test]
    fn gates_are_read_from_a_list() {
        let cases = [
            ("", Some(false)),
            ("NodeClassCEL=true", Some(true)),
            ("Other=true, NodeClassCEL=true", Some(true)),
            ("NodeClassCEL=false,", Some(false)),
            ("NodeClassCEL=True", Some(true)),
            ("NodeClassCEL = 1", Some(true)),
            ("NodeClassCEL=F", Some(false)),
            ("NodeClassCEL", None),
            ("NodeClassCEL=yes", None),
        ];
        for (text, want) in cases {
            let read = parse_gates(text).map(|gates| gates.node_class_cel);
            assert_eq!(read.ok(), want, "{text}");
        }
    }

    #[test]
    fn the_endpoint_is_a_url_that_nodes_can_join_by() {
        let cases = [
            ("", true),
            ("https://ABC.gr7.eu-central-1.eks.amazonaws.com", true),
            ("https://10.0.0.1:6443", true),
            ("https://[fd00::1]:6443/", true),
            ("https://", false),
            ("https:///path", false),
            ("https://a b", false),
            ("ABC.gr7.eu-central-1.eks.amazonaws.com", false),
            ("http://10.0.0.1", false),
            ("demo", false),
        ];
        for (text, is_url) in cases {
            let read = parse_endpoint(text);
            assert_eq!(read.is_ok(), is_url, "{text}: {read:?}");
        }
    }

    #[test]
    fn switches_are_read_as_go_reads_them() {
        let read = |word: &str| {
            let flags = AwsOptions::augment_args(Command::new("flags").no_binary_name(true));
            let flags = flags.mut_args(|flag| flag.env(Resettable::Reset));
            let parsed = flags.try_get_matches_from([format!("--isolated-vpc={word}")]);
            let options = parsed.and_then(|it| AwsOptions::from_arg_matches(&it));
            options.map(|it| it.isolated_vpc).ok()
        };
        for word in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(read(word), Some(true), "{word}");
        }
        for word in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(read(word), Some(false), "{word}");
        }
        assert_eq!(read("maybe"), None);
    }

    #[test]
    fn what_is_looked_up_is_believed_for_a_minute_at_least() {
        let error = parse_refresh_interval("30s").unwrap_err();
        assert_eq!(error, "`30s` is less than a minute");
    }
}
