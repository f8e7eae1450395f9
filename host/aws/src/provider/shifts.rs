//! Zones that ARC has shifted the cluster's traffic away from: asked for here, and what runs there is left as it is.
//!
//! What is offered there is `offering.rs`' to say. Answers to `pkg/providers/arczonalshift` of the AWS provider, which
//! does not look at shifts that AWS itself begins, and keeps one that is cancelled beside another until its end.

use std::collections::{BTreeMap, BTreeSet};

use cloudprovider::CloudProviderError;
use jiff::Timestamp;

use super::AwsProvider;
use crate::error::call_failure;
use crate::instance::Instance;
use crate::seam::ZonalShift;

impl AwsProvider {
    /// Ids of the zones that traffic is shifted away from, as last told.
    pub(super) fn shifted(&self) -> BTreeSet<String> {
        self.unavailable.shifted_zones(self.clock.now())
    }

    /// The instance as EC2 tells it now, and as last seen where what EC2 tells of its zone is not to be relied upon.
    pub(super) async fn instance(&self, id: &str) -> Result<Instance, CloudProviderError> {
        match self
            .instances
            .seen(id)
            .filter(|it| it.is_in(&self.shifted()))
        {
            Some(seen) => Ok(seen),
            None => self.instances.get(id).await,
        }
    }

    /// An instance that may be changed: nothing is, in a zone that traffic is shifted away from.
    pub(super) fn changeable(&self, instance: Instance) -> Result<Instance, CloudProviderError> {
        if instance.is_in(&self.shifted()) {
            return Err(CloudProviderError::Other(format!(
                "instance {} stays as it is while traffic is shifted away from its zone {} (ARC zonal shift)",
                instance.id, instance.zone
            )));
        }
        Ok(instance)
    }

    /// Asks ARC, where the settings say so, and takes over what it says.
    pub(super) async fn ask_shifted_zones(&self) -> Result<BTreeSet<String>, CloudProviderError> {
        let options = self.options();
        if !options.enable_zonal_shift {
            return Ok(BTreeSet::new());
        }
        let Some(arn) = &options.cluster_arn else {
            return Err(CloudProviderError::Other(
                "ENABLE_ZONAL_SHIFT needs the ARN of the cluster, which EKS does not tell (eks:DescribeCluster)"
                    .to_owned(),
            ));
        };
        let shifts = self.zonal_shift.zonal_shifts(arn).await;
        let context = "asking ARC for zonal shifts (arc-zonal-shift:GetManagedResource)";
        let shifts = shifts.map_err(|error| call_failure(context, &error))?;
        let mut until = BTreeMap::<String, Timestamp>::new();
        for ZonalShift {
            away_from,
            expires_at,
        } in shifts
        {
            let latest = until.entry(away_from).or_default();
            *latest = (*latest).max(expires_at.unwrap_or(Timestamp::MAX));
        }
        self.unavailable.shift(until);
        Ok(self.shifted())
    }
}
