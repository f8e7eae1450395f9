//! Names in an account, as those say who set an installation up.
//!
//! They go into ARNs and policies as they are, so nothing gets in that could end a text or a name.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// Length of a role's name at most, by IAM.
const ROLE_NAME_MAX: usize = 64;

/// What the longest name of a role begins with.
pub(super) const NODE_ROLE_PREFIX: &str = "KarpenterNodeRole-";
pub(super) const CONTROLLER_ROLE_PREFIX: &str = "MortiseController-";

/// What roles and rules leave to the name of the cluster.
pub(super) const INSTALLATION_NAME_MAX: usize = ROLE_NAME_MAX - NODE_ROLE_PREFIX.len();

/// Name of a cluster after which its roles, its queue and its rules can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationName(String);

impl FromStr for InstallationName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if !text.starts_with(|it: char| it.is_ascii_alphanumeric()) || !text.chars().all(is_part) {
            return Err("a cluster's name is of letters, digits, `-` and `_`".to_owned());
        }
        if text.len() > INSTALLATION_NAME_MAX {
            return Err(format!(
                "with more than {INSTALLATION_NAME_MAX} characters the name of the nodes' role would be longer than the \
                 {ROLE_NAME_MAX} that IAM allows"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for InstallationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a role, with its path if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleName(pub(super) String);

impl FromStr for RoleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_part = |it: char| it.is_ascii_alphanumeric() || "_+=,.@-/".contains(it);
        let name = text.rsplit('/').next().unwrap_or_default();
        let fits = !name.is_empty() && name.len() <= ROLE_NAME_MAX && !text.starts_with('/');
        if fits && text.chars().all(is_part) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a role is called like KarpenterNodeRole-NAME, with its path before it".to_owned())
        }
    }
}

/// Id of an account: twelve digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountId(pub(super) String);

impl FromStr for AccountId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_account_id(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err("an account's id has twelve digits".to_owned())
        }
    }
}

/// Whether a text has the form of an account's id.
pub(crate) fn is_account_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|it| it.is_ascii_digit())
}

/// A region, such as `eu-central-1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsRegion(pub(super) String);

impl FromStr for AwsRegion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_part = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        let is_region = text.split('-').count() > 2
            && text.chars().all(is_part)
            && text.ends_with(|it: char| it.is_ascii_digit());
        if is_region {
            Ok(Self(text.to_owned()))
        } else {
            Err("a region is called like eu-central-1".to_owned())
        }
    }
}

/// Regions that share accounts and the beginning of ARNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AwsPartition {
    /// Most regions
    Aws,
    /// China
    AwsCn,
    /// AWS GovCloud (US)
    AwsUsGov,
}

impl AwsPartition {
    /// The partition that has a region.
    pub fn of(region: &AwsRegion) -> Self {
        let AwsRegion(region) = region;
        if region.starts_with("cn-") {
            Self::AwsCn
        } else if region.starts_with("us-gov-") {
            Self::AwsUsGov
        } else {
            Self::Aws
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::AwsCn => "aws-cn",
            Self::AwsUsGov => "aws-us-gov",
        }
    }

    pub(super) fn dns_suffix(self) -> &'static str {
        match self {
            Self::Aws | Self::AwsUsGov => "amazonaws.com",
            Self::AwsCn => "amazonaws.com.cn",
        }
    }
}

/// Where in AWS something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPlace {
    /// Partition, with which ARNs begin.
    pub partition: AwsPartition,
    /// Where the cluster is.
    pub region: AwsRegion,
    /// Account that owns everything.
    pub account: AccountId,
}
