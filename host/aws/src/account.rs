//! Needs of Mortise in an AWS account: the roles of controller and nodes with what they may do, the queue, and the
//! rules by which EventBridge feeds it; as documents for people, for CloudFormation and for Terraform.
//!
//! Pure, and asks nobody: the form that is deployed finds out region and account where it lands. Who may do what comes
//! of one table, [`actions`], which a test holds against the calls of [`crate::sdk`]. Answers to the
//! `cloudformation.yaml` of Karpenter's guide.

mod actions;
mod cloudformation;
mod controller_policy;
mod documents;
mod names;
mod naming;
mod needs;
mod scopes;
mod statement;
mod terraform;
#[cfg(test)]
mod tests;

pub use cloudformation::cloudformation;
pub use documents::documents;
pub(crate) use names::is_account_id;
pub use names::{AccountId, AccountPlace, AwsPartition, AwsRegion, InstallationName, RoleName};
pub use needs::{AccountOptions, ControllerTrust, OidcIssuer, ServiceAccountName};
pub use terraform::terraform;
