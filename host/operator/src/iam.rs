//! `mortise iam`: what Mortise needs in an AWS account, as documents to be applied by others.
//!
//! Asks nobody. What is needed is decided in [`aws::account`].

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use aws::account::{
    AccountOptions, AccountPlace, AwsPartition, ControllerTrust, cloudformation, documents,
    terraform,
};

use crate::cli::{IamArguments, IamFormat};
use crate::output::print_text;

/// Fails where it is not said what a format needs, or is said what a format finds out.
pub(crate) fn run(arguments: &IamArguments) -> anyhow::Result<ExitCode> {
    let options = options(arguments);
    let document = match arguments.format {
        IamFormat::Json => documents(&options, &place(arguments)?),
        IamFormat::Cloudformation => {
            refuse_place(arguments)?;
            cloudformation(&options)
        }
        IamFormat::Terraform => {
            refuse_place(arguments)?;
            terraform(&options)
        }
    };
    print_text(&format!("{document:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &IamArguments) -> AccountOptions {
    let trust = match &arguments.oidc_provider {
        None => ControllerTrust::PodIdentity,
        Some(issuer) => ControllerTrust::Token {
            issuer: issuer.clone(),
            service_account: arguments.service_account.clone(),
        },
    };
    AccountOptions {
        cluster_name: arguments.cluster_name.clone(),
        node_role: arguments.node_role.clone(),
        has_queue: !arguments.without_queue,
        is_isolated_vpc: arguments.isolated_vpc,
        trust,
    }
}

fn place(arguments: &IamArguments) -> anyhow::Result<AccountPlace> {
    let account = arguments.account.clone();
    let region = arguments.region.clone();
    let account = account.context("JSON names the account: say --account")?;
    let region = region.context("JSON names the region: say --region")?;
    let of_region = AwsPartition::of(&region);
    Ok(AccountPlace {
        partition: arguments.partition.unwrap_or(of_region),
        region,
        account,
    })
}

/// A flag that changes nothing would be taken for one that does.
fn refuse_place(arguments: &IamArguments) -> anyhow::Result<()> {
    let is_given =
        arguments.account.is_some() || arguments.region.is_some() || arguments.partition.is_some();
    if is_given {
        bail!(
            "--account, --region and --partition are for JSON: this format finds them out where it is deployed"
        );
    }
    Ok(())
}
