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
use crate::shell::model::paging::for_each_listed;
use crate::shell::runtime::periodic::{PastRound, Periodic};

const PERIOD: Duration = Duration::from_mins(30);

/// Controller of unused instance profiles; one round in half an hour.
pub(crate) struct Profiles {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
}

impl Periodic for Profiles {
    const NAME: &'static str = "instanceprofile.garbagecollection";
    const BEGINS_AT_ONCE: bool = false;
    type Error = ReconcileError;

    async fn round(&mut self) -> Result<(), ReconcileError> {
        let in_use = self.in_use().await?;
        Ok(self.provider.release_unused(&in_use).await?)
    }

    fn log(&mut self, error: &ReconcileError) {
        error!(%error, "garbage collecting instance profiles");
    }

    fn pause(&self, _: PastRound) -> Duration {
        PERIOD
    }
}

impl Profiles {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self { shell, provider }
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
