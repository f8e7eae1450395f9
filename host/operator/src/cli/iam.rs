//! Arguments of `mortise iam`.

use aws::account::{
    AccountId, AwsPartition, AwsRegion, InstallationName, OidcIssuer, RoleName, ServiceAccountName,
};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct IamArguments {
    /// Name of the cluster, after which roles, queue and rules are called
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: InstallationName,

    /// What to print
    #[arg(long, value_enum, default_value_t = IamFormat::Json)]
    pub(crate) format: IamFormat,

    /// Id of the account, for JSON; the other formats find it out where they are deployed
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<AccountId>,

    /// Region of the cluster, for JSON
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<AwsRegion>,

    /// Partition of the region, for JSON. Default: what the region's name says
    #[arg(long, value_enum)]
    pub(crate) partition: Option<AwsPartition>,

    /// Role of the nodes that is there already, as EC2NodeClasses name it; otherwise one is made
    #[arg(long, value_name = "NAME")]
    pub(crate) node_role: Option<RoleName>,

    /// Do without a queue that tells of interruptions, and its rules
    #[arg(long)]
    pub(crate) without_queue: bool,

    /// For a controller with --isolated-vpc: neither the price list nor instance profiles, which classes name
    /// themselves
    #[arg(long)]
    pub(crate) isolated_vpc: bool,

    /// The cluster's OIDC provider: trust tokens of the service account (IRSA) instead of EKS Pod Identity
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) oidc_provider: Option<OidcIssuer>,

    /// Service account whose tokens are trusted
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        default_value = "mortise/mortise",
        requires = "oidc_provider"
    )]
    pub(crate) service_account: ServiceAccountName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IamFormat {
    /// Documents by their names, for people and scripts
    Json,
    /// A template, in JSON
    Cloudformation,
    /// A configuration of Terraform and OpenTofu in their JSON syntax, for a file `mortise.tf.json`
    Terraform,
}
