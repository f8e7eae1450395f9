//! Tells NodePools when traffic is shifted away from a zone that they may launch in, and when it is back.
//!
//! Every half minute. What a shift does to launches and terminations is the provider's to say. Answers to
//! `pkg/controllers/arczonalshift` of the AWS provider.

mod decision;
mod entries;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudprovider::{CloudProvider, CloudProviderError};
use tracing::error;

use self::decision::{Observed, PoolZones, decide};
use crate::shell::Shell;
use crate::shell::runtime::periodic::{PastRound, Periodic};

const PERIOD: Duration = Duration::from_secs(30);

/// Controller of zonal shifts; one round in half a minute.
pub(crate) struct ZonalShifts {
    shell: Arc<Shell>,
    provider: Arc<dyn CloudProvider>,
    /// Zones shifted away from as reported last, by id.
    reported: BTreeSet<String>,
}

impl Periodic for ZonalShifts {
    const NAME: &'static str = "zonalshift";
    const BEGINS_AT_ONCE: bool = true;
    type Error = CloudProviderError;

    async fn round(&mut self) -> Result<(), CloudProviderError> {
        let now = self.provider.shifted_zones().await?;
        if now != self.reported {
            self.report(now);
        }
        Ok(())
    }

    fn log(&mut self, error: &CloudProviderError) {
        error!(%error, "looking for zonal shifts");
    }

    fn pause(&self, _: PastRound) -> Duration {
        PERIOD
    }
}

impl ZonalShifts {
    pub(crate) fn new(shell: Arc<Shell>, provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            shell,
            provider,
            reported: BTreeSet::new(),
        }
    }

    /// Reports to pools what has changed.
    fn report(&mut self, now: BTreeSet<String>) {
        let observed = Observed {
            before: std::mem::take(&mut self.reported),
            now,
            pools: self.pools(),
        };
        for transition in decide(&observed) {
            let node_pool = transition.node_pool;
            self.shell.journal.write(node_pool, &transition);
        }
        self.reported = observed.now;
    }

    fn pools(&self) -> Vec<PoolZones> {
        let snapshot = self.shell.model.snapshot();
        let pools = snapshot.node_pools().map(|node_pool| {
            let class = snapshot.class_of(node_pool);
            let status = class.and_then(|class| class.status.as_ref());
            PoolZones {
                node_pool: Arc::clone(node_pool),
                subnets: status.map(|it| it.subnets.clone()).unwrap_or_default(),
            }
        });
        pools.collect()
    }
}
