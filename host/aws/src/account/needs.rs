//! Needs of an installation in its account, as those say who set it up.
//!
//! Reads texts and refuses wrong ones. Which rights a need brings is not known here.

use std::str::FromStr;

use apis::RepairAction;

use super::names::{InstallationName, NODE_ROLE_PREFIX, RoleName};
use crate::repair::repair_policies;

/// Parts that an installation is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOptions {
    /// Whose cluster it is.
    pub cluster_name: InstallationName,
    /// The role of the nodes, if there is one already.
    pub node_role: Option<RoleName>,
    /// Whether a queue tells of interruptions.
    pub has_queue: bool,
    /// Whether it does without the price list and without making instance profiles, as `--isolated-vpc` has it.
    pub is_isolated_vpc: bool,
    /// Who may be the controller.
    pub trust: ControllerTrust,
}

impl AccountOptions {
    /// Name of the role of the nodes, for a name of the cluster.
    pub(super) fn node_role(&self, cluster: &str) -> String {
        match &self.node_role {
            Some(RoleName(name)) => name.clone(),
            None => format!("{NODE_ROLE_PREFIX}{cluster}"),
        }
    }
}

/// By what AWS knows the controller's pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerTrust {
    /// An association of EKS, which names the service account.
    PodIdentity,
    /// A token of the service account that the cluster signs (IRSA).
    Token {
        /// Who vouches for it.
        issuer: OidcIssuer,
        /// Whose token it is.
        service_account: ServiceAccountName,
    },
}

/// A cluster's provider of identities as IAM names it: the address without `https://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcIssuer(pub(super) String);

impl FromStr for OidcIssuer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("https://").unwrap_or(text);
        let is_part = |it: char| it.is_ascii_alphanumeric() || "-._:/".contains(it);
        if address.contains('.') && address.chars().all(is_part) {
            Ok(Self(address.trim_end_matches('/').to_owned()))
        } else {
            Err(
                "a provider is called like oidc.eks.eu-central-1.amazonaws.com/id/0123ABCD"
                    .to_owned(),
            )
        }
    }
}

/// A service account with its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl FromStr for ServiceAccountName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |it: &str| {
            let is_part = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
            !it.is_empty() && it.chars().all(is_part)
        };
        match text.split_once('/') {
            Some((namespace, name)) if is_name(namespace) && is_name(name) => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            Some(_) | None => Err("it is called like mortise/mortise: NAMESPACE/NAME".to_owned()),
        }
    }
}

/// When an action is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionNeed {
    Always,
    /// Where a queue tells of interruptions.
    Queue,
    /// Where prices are asked for.
    PriceList,
    /// Where EC2NodeClasses name roles, for which instance profiles are made.
    Profiles,
    /// Where a node is rebooted before it is replaced.
    Reboots,
}

impl ActionNeed {
    pub(super) fn is_met(self, options: &AccountOptions) -> bool {
        match self {
            Self::Always => true,
            Self::Queue => options.has_queue,
            Self::PriceList | Self::Profiles => !options.is_isolated_vpc,
            Self::Reboots => reboots(),
        }
    }
}

/// Whether any sick node of EC2 is helped by a reboot.
fn reboots() -> bool {
    let policies = repair_policies();
    policies.iter().any(|it| it.action == RepairAction::Reboot)
}
