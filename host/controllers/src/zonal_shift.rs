//! Tells NodePools when traffic is shifted away from a zone that they may launch in, and when it is back.
//!
//! Every half minute. What a shift does to launches and terminations is the provider's to say. Answers to
//! `pkg/controllers/arczonalshift` of the AWS provider.

mod decision;
mod entries;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudprovider::CloudProvider;
use tracing::error;

use self::decision::{Observed, PoolZones, decide};
use crate::shell::Shell;

const PERIOD: Duration = Duration::from_secs(30);

/// The controller.
pub(crate) struct ZonalShifts {
    pub(crate) shell: Arc<Shell>,
    pub(crate) provider: Arc<dyn CloudProvider>,
}

impl ZonalShifts {
    pub(crate) async fn run(&self) {
        let mut before = BTreeSet::new();
        loop {
            let mut round = self.shell.metrics.round("zonalshift");
            match self.provider.shifted_zones().await {
                Ok(now) if now == before => {}
                Ok(now) => before = self.tell(before, now),
                Err(error) => {
                    error!(%error, "looking for zonal shifts");
                    round.failed(error.into());
                }
            }
            drop(round);
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Tells pools of what has changed; the answer is what to compare with the next time.
    fn tell(&self, before: BTreeSet<String>, now: BTreeSet<String>) -> BTreeSet<String> {
        let observed = Observed {
            before,
            now,
            pools: self.pools(),
        };
        for transition in decide(&observed) {
            let node_pool = transition.node_pool;
            self.shell.journal.write(node_pool, &transition);
        }
        observed.now
    }

    fn pools(&self) -> Vec<PoolZones> {
        let snapshot = self.shell.model.snapshot();
        let pools = snapshot.node_pools().map(|node_pool| {
            let class = &node_pool.spec.template.spec.node_class_ref.name;
            let class = snapshot.node_class_object(class);
            let status = class.and_then(|class| class.status.as_ref());
            PoolZones {
                node_pool: Arc::clone(node_pool),
                subnets: status.map(|it| it.subnets.clone()).unwrap_or_default(),
            }
        });
        pools.collect()
    }
}
