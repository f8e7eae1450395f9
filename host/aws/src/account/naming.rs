//! Names in an account as texts have them: what is put in place of the words between braces.
//!
//! Checks no name: `names.rs` lets none in that would break a text.

use super::names::AccountPlace;
use super::needs::AccountOptions;

/// What stands for the words between braces of a text: the names themselves, or what a form of documents puts there
/// when it is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccountNames {
    /// `{partition}`
    pub(super) partition: String,
    /// `{dns-suffix}`
    pub(super) dns_suffix: String,
    /// `{region}`
    pub(super) region: String,
    /// `{account}`
    pub(super) account: String,
    /// `{cluster}`
    pub(super) cluster: String,
    /// `{node-role}`
    pub(super) node_role: String,
}

impl AccountNames {
    /// The names as they are.
    pub(super) fn literal(options: &AccountOptions, place: &AccountPlace) -> Self {
        let AccountPlace {
            partition,
            region,
            account,
        } = place;
        let cluster = options.cluster_name.to_string();
        Self {
            partition: partition.name().to_owned(),
            dns_suffix: partition.dns_suffix().to_owned(),
            region: region.0.clone(),
            account: account.0.clone(),
            node_role: options.node_role(&cluster),
            cluster,
        }
    }

    /// A text with the names in it.
    pub(super) fn fill(&self, text: &str) -> String {
        let Self {
            partition,
            dns_suffix,
            region,
            account,
            cluster,
            node_role,
        } = self;
        text.replace("{partition}", partition)
            .replace("{dns-suffix}", dns_suffix)
            .replace("{region}", region)
            .replace("{account}", account)
            .replace("{cluster}", cluster)
            .replace("{node-role}", node_role)
    }
}
