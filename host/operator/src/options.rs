//! The flags of the process: Karpenter's flags and environment variables, one row each, byte for byte. What controllers
//! and the cloud obey are rows of theirs, `controllers/src/settings.rs` and `aws/src/options.rs`, taken over whole.
//!
//! A flag wins over its variable, the variable over the default. Mortise's own settings begin with
//! `MORTISE_` and are all optional. Answers to Karpenter's `pkg/operator/options/options.go` and the AWS
//! provider's file of the same name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use apis::duration::GoDuration;
use aws::AwsOptions;
use clap::Args;
use clap::builder::BoolishValueParser;
use controllers::Settings;

use crate::policies::recorder;

/// What `mortise controller` can be told. The groups of this file are taken apart whole where they are used, so that a
/// flag that nobody reads does not compile.
#[derive(Debug, Clone, Args)]
pub(crate) struct ControllerOptions {
    #[command(flatten)]
    pub(crate) cloud: CloudOptions,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) process: ProcessOptions,
    #[command(flatten)]
    pub(crate) policies: PolicyOptions,
    /// Karpenter settings that are accepted, so that its Deployment starts, and that change nothing here
    #[command(flatten)]
    pub(crate) accepted: AcceptedOptions,
}

/// What the cloud must know.
#[derive(Debug, Clone, Args)]
pub(crate) struct CloudOptions {
    #[command(flatten)]
    pub(crate) aws: AwsOptions,
    /// Name of the SQS queue with EC2's interruption notices; empty: do not listen
    #[arg(
        long,
        env = "INTERRUPTION_QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) interruption_queue: String,
}

/// What the process is in the cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProcessOptions {
    /// Port of /metrics; 0 turns it off
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    pub(crate) metrics_port: u16,
    /// Serve that port by TLS, and only to whom the API server lets ask for the path: the bearer token goes into a
    /// TokenReview, the path into a SubjectAccessReview
    #[arg(long, env = "MORTISE_METRICS_SECURE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) metrics_secure: bool,
    /// Folder with tls.crt and tls.key for that, read again when they change. Default: the process makes a certificate
    /// for itself
    #[arg(long, env = "MORTISE_METRICS_CERT_DIR", value_name = "FOLDER")]
    pub(crate) metrics_cert_dir: Option<PathBuf>,
    /// Port of /healthz and /readyz; 0 turns it off
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    pub(crate) health_probe_port: u16,
    /// Run without a leader-election lease
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) disable_leader_election: bool,
    /// Name of the lease
    #[arg(
        long,
        env = "LEADER_ELECTION_NAME",
        default_value = "karpenter-leader-election"
    )]
    pub(crate) leader_election_name: String,
    /// Namespace of the lease. Default: the controller's own
    #[arg(
        long,
        env = "LEADER_ELECTION_NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) leader_election_namespace: String,
    /// Requests a second to the API server, watches and the lease aside; negative for no limit
    #[arg(
        long,
        env = "KUBE_CLIENT_QPS",
        default_value_t = 200,
        allow_hyphen_values = true
    )]
    pub(crate) kube_client_qps: i32,
    /// Requests that may go at once before that counts
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value_t = 300)]
    pub(crate) kube_client_burst: i32,
    /// debug, info or error; `curl -X PUT --data debug` to `/debug/log-level` of the metrics port changes it until the
    /// next start
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// Where the log goes: a comma list of stdout, stderr and files
    #[arg(long, env = "LOG_OUTPUT_PATHS", default_value = "stdout")]
    pub(crate) log_output_paths: String,
    /// Serve profiles of CPU and heap under /debug/pprof/ of the metrics port, in the format of pprof
    #[arg(long, env = "ENABLE_PROFILING", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) enable_profiling: bool,
    /// Namespace of the controller. Default: that of its service account, else mortise
    #[arg(
        long,
        env = "SYSTEM_NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) system_namespace: String,
    /// Namespace of the ConfigMaps that bind policies. Default: the controller's own
    #[arg(
        long,
        env = "MORTISE_POLICY_NAMESPACE",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) policy_namespace: String,
}

/// What becomes of policies.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyOptions {
    /// Let policies of budgets allow more than NodePools declare, where their binding says
    /// `mortise.dev/authority: replace`
    #[arg(long, env = "MORTISE_ALLOW_POLICY_AUTHORITY_REPLACE", default_value_t = false, num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) allow_policy_authority_replace: bool,
    /// Write every call of a policy to this file, for `mortise policy run`, `cases`, `replay` and `diff --records`; the
    /// metrics port serves it under /debug/policy-records
    #[arg(long, env = "MORTISE_POLICY_RECORDS", value_name = "FILE")]
    pub(crate) policy_records: Option<PathBuf>,
    /// Room for that: what was written first goes, half of it at a time, to FILE.old and away
    #[arg(long, env = "MORTISE_POLICY_RECORDS_SIZE", value_name = "QUANTITY", default_value = "256Mi", value_parser = recorder::parse_bytes)]
    pub(crate) policy_records_size: u64,
}

impl ProcessOptions {
    /// Finds out the namespace of the controller where none is given: in a pod a file says it.
    pub(crate) fn settle_namespace(&mut self, file: &Path) {
        if self.system_namespace.is_empty() {
            let of_pod = std::fs::read_to_string(file).unwrap_or_default();
            let of_pod = of_pod.trim();
            let namespace = if of_pod.is_empty() { "mortise" } else { of_pod };
            namespace.clone_into(&mut self.system_namespace);
        }
    }

    /// Where policies are bound.
    pub(crate) fn policy_namespace(&self) -> &str {
        if self.policy_namespace.is_empty() {
            &self.system_namespace
        } else {
            &self.policy_namespace
        }
    }
}

/// Karpenter's settings that have no effect in Mortise; kept so that a Deployment made for Karpenter starts.
#[derive(Debug, Clone, Args)]
pub(crate) struct AcceptedOptions {
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "", hide = true)]
    karpenter_service: String,
    #[arg(long, env = "DISABLE_CONTROLLER_WARMUP", default_value = "", hide = true, num_args = 0..=1)]
    disable_controller_warmup: String,
    #[arg(
        long,
        env = "MEMORY_LIMIT",
        default_value = "-1",
        hide = true,
        allow_hyphen_values = true
    )]
    memory_limit: String,
    #[arg(
        long,
        env = "LOG_ERROR_OUTPUT_PATHS",
        default_value = "stderr",
        hide = true
    )]
    log_error_output_paths: String,
}

impl AcceptedOptions {
    /// Names of those that say something else than Karpenter's default.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let Self {
            karpenter_service,
            disable_controller_warmup,
            memory_limit,
            log_error_output_paths,
        } = self;
        // Each with what it may be without being told of.
        let all: [(&str, &str, &[&str]); 4] = [
            ("KARPENTER_SERVICE", karpenter_service, &[""]),
            (
                "DISABLE_CONTROLLER_WARMUP",
                disable_controller_warmup,
                &["", "true"],
            ),
            ("MEMORY_LIMIT", memory_limit, &["", "-1"]),
            (
                "LOG_ERROR_OUTPUT_PATHS",
                log_error_output_paths,
                &["", "stderr"],
            ),
        ];
        let said = all
            .into_iter()
            .filter(|(_, said, silent)| !silent.contains(said));
        said.map(|(name, ..)| name).collect()
    }
}

/// A time that something is done in or waited for, which nothing is not.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let span = text.parse::<GoDuration>().map(GoDuration::to_std);
    match span {
        // A rotation without a pause would leave the world no time.
        Ok(span) if !span.is_zero() => Ok(span),
        _ => Err(format!("`{text}` is no duration such as `10s` or `2m`")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::builder::Resettable;

    use super::*;

    /// What is made of these flags, whatever is in the environment.
    fn parsed<A: Args>(flags: &[&str]) -> A {
        let command = A::augment_args(Command::new("flags").no_binary_name(true));
        let command = command.mut_args(|flag| flag.env(Resettable::Reset));
        let matches = command.try_get_matches_from(flags).unwrap();
        A::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn a_namespace_that_is_not_given_is_that_of_the_pod() {
        let file = std::env::temp_dir().join(format!("mortise-namespace-{}", std::process::id()));
        std::fs::write(&file, "shop\n").unwrap();
        let nowhere = Path::new("/no/such/file");
        let cases: [(&[&str], &Path, &str); 4] = [
            (&[], nowhere, "mortise"),
            (&[], &file, "shop"),
            (&["--system-namespace=own"], &file, "own"),
            (&["--system-namespace=own"], nowhere, "own"),
        ];
        for (flags, path, expected) in cases {
            let mut process = parsed::<ProcessOptions>(flags);
            process.settle_namespace(path);
            assert_eq!(process.system_namespace, expected, "{flags:?}");
            assert_eq!(process.policy_namespace(), expected, "{flags:?}");
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_changes_nothing_is_named_unless_it_is_as_karpenter_has_it() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (
                &[
                    "--disable-controller-warmup=true",
                    "--memory-limit=-1",
                    "--log-error-output-paths=stderr",
                ],
                &[],
            ),
            (
                &["--karpenter-service=k", "--memory-limit=1000"],
                &["KARPENTER_SERVICE", "MEMORY_LIMIT"],
            ),
            (&["--log-error-output-paths=x"], &["LOG_ERROR_OUTPUT_PATHS"]),
        ];
        for (flags, names) in cases {
            assert_eq!(parsed::<AcceptedOptions>(flags).given(), names, "{flags:?}");
        }
    }

    #[test]
    fn switches_are_read_as_go_reads_them() {
        let reads = |word: &str| {
            let flag = format!("--disable-leader-election={word}");
            parsed::<ProcessOptions>(&[&flag]).disable_leader_election
        };
        assert!(
            ["1", "t", "T", "true", "TRUE", "True"]
                .into_iter()
                .all(reads)
        );
        assert!(
            !["0", "f", "F", "false", "FALSE", "False"]
                .into_iter()
                .any(reads)
        );
    }
}
