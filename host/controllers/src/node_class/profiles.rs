//! Lets the cloud delete the instance profiles that no class and no claim names any more.
//!
//! Every half hour. What is deleted is the provider's to say; here is only what is in use. Answers to
//! `pkg/controllers/instanceprofile/garbagecollection` of the AWS provider.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::{Ec2NodeClass, labels};
use cloudprovider::CloudProvider;
use kube::ResourceExt;
use tracing::error;

use crate::shell::Shell;
use crate::shell::error::ReconcileError;
use crate::shell::paging::for_each_listed;

const PERIOD: Duration = Duration::from_mins(30);

/// The controller.
pub(crate) struct Profiles {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

impl Profiles {
    pub(crate) async fn run(&self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let metrics = &self.shell.metrics;
            let mut round = metrics.round("instanceprofile.garbagecollection");
            let outcome = async {
                let in_use = self.in_use().await?;
                Ok::<_, ReconcileError>(self.provider.release_unused(&in_use).await?)
            };
            if let Err(error) = outcome.await {
                error!(%error, "garbage collecting instance profiles");
                round.failed(error);
            }
        }
    }

    /// As the API server has it: what the watch tells may be old.
    async fn in_use(&self) -> Result<BTreeSet<String>, ReconcileError> {
        let mut profiles = BTreeSet::new();
        for_each_listed(&self.shell.writer.api::<Ec2NodeClass>(), "", |class| {
            let status = class.status;
            profiles.extend(status.and_then(|status| status.instance_profile));
        })
        .await?;
        self.shell
            .model
            .for_each_claim("", |claim| {
                let profile = claim.annotations().get(labels::INSTANCE_PROFILE_ANNOTATION);
                profiles.extend(profile.cloned());
            })
            .await?;
        Ok(profiles)
    }
}
