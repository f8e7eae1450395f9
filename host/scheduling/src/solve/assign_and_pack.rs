//! Domains first, nodes second, and what to do when the nodes cannot be had.
//!
//! Shares of domains are assigned as if every pod found a node. Where limits, `minValues` or reservations forbid one,
//! the others may depend on counts that never came true: a spread would end up skewed, a pod without those it looks
//! for. Such a round is taken back and assigned again without what could not be had.

use super::input::pod_groups::shares_one_host;
use super::input::pool_table::{PoolCheckpoint, PoolTable};
use super::input::topology::{HOSTNAME_KEY, OwnedTerm, Pin, Topology, TopologyRule};
use super::place::claim::OpenClaim;
use super::place::open_claims::CostRise;
use super::solver::{DomainCaps, Pending, PodBatch, Solver};
use crate::interrupt::Interrupt;
use crate::problem::Packing;

/// Rounds in which a domain is still offered as many pods as it took before.
const TRIES_WITH_SHARE: usize = 4;
/// Rounds after which pods that keep failing sit out.
const TRIES_WITH_DOMAIN: usize = 8;

/// State that packing changes, to come back to.
struct Checkpoint {
    topology: Topology,
    claims: Vec<OpenClaim>,
    pools: Vec<PoolCheckpoint>,
    placed: usize,
}

impl Solver<'_> {
    /// Assigns domains and opens nodes; returns what found none.
    pub(super) fn assign_and_pack(
        &mut self,
        mut queue: Vec<Pending>,
        interrupt: &Interrupt,
    ) -> Vec<Pending> {
        let mut sitting_out = Vec::new();
        let barred = self.deferred.keys().chain(&self.closed_domains);
        let mut caps: DomainCaps = barred.map(|domain| (*domain, 0)).collect();
        let mut tries = 0;
        loop {
            let checkpoint = self.has_domain_terms(&queue).then(|| self.checkpoint());
            let (batches, mut left) = self.assign_domains(queue.clone(), &caps);
            let assigned: Vec<PodBatch> = batches
                .iter()
                .filter(|b| !b.pins.is_empty())
                .cloned()
                .collect();
            let failed = self.pack(batches, interrupt);
            for batch in &failed {
                self.unassign(batch, batch.members.len());
            }
            if let Some(checkpoint) = checkpoint
                && failed.iter().any(|batch| !batch.pins.is_empty())
                && !interrupt.is_tripped()
                && self.violates_terms(&queue, &checkpoint.topology)
            {
                self.restore(checkpoint);
                if tries < TRIES_WITH_DOMAIN {
                    let cap = if tries < TRIES_WITH_SHARE {
                        Cap::ToWhatItTook
                    } else {
                        Cap::Closed
                    };
                    cap.lay_on(&mut caps, &assigned, &failed);
                } else {
                    let fails = |p: &Pending| {
                        failed
                            .iter()
                            .any(|b| b.view.group == p.view.group && !b.pins.is_empty())
                    };
                    sitting_out.extend(queue.extract_if(.., |p| fails(p)));
                }
                tries += 1;
                continue;
            }
            let failed_domains = failed.iter().filter_map(|batch| {
                let Pin { key, domain } = *batch.pins.first()?;
                Some((batch.view.group, key, domain))
            });
            self.failed_domains.extend(failed_domains);
            left.extend(failed.into_iter().map(|batch| Pending {
                view: batch.view,
                members: batch.members,
            }));
            for pending in &mut left {
                // Rather a more expensive node than a pod without a place.
                self.place_on_claims(pending, CostRise::Any);
            }
            left.extend(sitting_out);
            return left;
        }
    }

    fn pack(&mut self, batches: Vec<PodBatch>, interrupt: &Interrupt) -> Vec<PodBatch> {
        match self.problem.options.packing {
            Packing::Cost => {
                // Pods that must share one host leave nothing to choose, and no second host may be planned for them.
                let together = |batch: &PodBatch| {
                    let view = self.view_of(batch.view);
                    shares_one_host(&self.topology, &view.membership)
                };
                let (together, apart) = batches.into_iter().partition(together);
                let mut failed = self.pack_first_fit(together, interrupt);
                failed.extend(self.pack_by_cost(apart, interrupt));
                failed
            }
            Packing::Karpenter => self.pack_first_fit(batches, interrupt),
        }
    }

    /// Whether any of the pods depends on how many others are in a zone or the like.
    fn has_domain_terms(&self, queue: &[Pending]) -> bool {
        self.domain_terms(queue).next().is_some()
    }

    fn domain_terms<'b>(
        &'b self,
        queue: &'b [Pending],
    ) -> impl Iterator<Item = (&'b Pending, &'b OwnedTerm)> {
        let owned = queue.iter().flat_map(|pending| {
            let membership = &self.view_of(pending.view).membership;
            membership.owned.iter().map(move |owned| (pending, owned))
        });
        owned.filter(|(_, owned)| {
            let group = self.topology.group(owned.group);
            group.key != HOSTNAME_KEY && !matches!(group.rule, TopologyRule::AntiAffinity { .. })
        })
    }

    /// Whether pods went to domains in this round that the final counts would have closed to them.
    fn violates_terms(&self, queue: &[Pending], before: &Topology) -> bool {
        self.domain_terms(queue).any(|(pending, owned)| {
            let (now, was) = (self.topology.group(owned.group), before.group(owned.group));
            let mut domains = 0..now.selected.len();
            match now.rule {
                TopologyRule::Spread { max_skew } => {
                    let strict = self.view_of(pending.view).strict;
                    let allowed = self.allowed_domains(strict, owned.group);
                    let least = self.topology.least(owned, &allowed);
                    domains.any(|d| {
                        now.owners[d] > was.owners[d]
                            && now.selected[d] > was.selected[d]
                            && now.selected[d] - least > max_skew
                    })
                }
                TopologyRule::Affinity => {
                    let strict = self.view_of(pending.view).strict;
                    let allowed = self.allowed_domains(strict, owned.group);
                    let came = |d: &usize| now.owners[*d] > was.owners[*d];
                    let is_opened = |d: &usize| {
                        allowed[*d] && was.selected[*d] == 0 && now.selected[*d] <= now.owners[*d]
                    };
                    let has_others =
                        |d: usize| was.selected[d] > 0 || now.selected[d] > now.owners[d];
                    // Pods that look for their own kind may open one domain, and that only if there are none of it
                    // elsewhere; otherwise the pods that drew them to a domain did not come.
                    let opened = domains.clone().filter(came).filter(is_opened).count();
                    let opened_max =
                        usize::from(!domains.clone().any(|d| allowed[d] && has_others(d)));
                    (owned.is_self_selecting && opened > opened_max)
                        || domains.filter(came).any(|d| now.selected[d] == 0)
                }
                TopologyRule::AntiAffinity { .. } => false,
            }
        })
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            topology: self.topology.clone(),
            claims: self.claims.clone(),
            pools: self.pools.iter().map(PoolTable::checkpoint).collect(),
            placed: self.placed,
        }
    }

    fn restore(&mut self, checkpoint: Checkpoint) {
        let Checkpoint {
            topology,
            claims,
            pools,
            placed,
        } = checkpoint;
        for (pool, before) in self.pools.iter_mut().zip(pools) {
            pool.restore(before);
        }
        (self.topology, self.claims, self.placed) = (topology, claims, placed);
    }
}

/// Fate of a domain that could not take all that was meant for it.
#[derive(Clone, Copy)]
enum Cap {
    ToWhatItTook,
    Closed,
}

impl Cap {
    fn lay_on(self, caps: &mut DomainCaps, assigned: &[PodBatch], failed: &[PodBatch]) {
        for batch in failed {
            for pin in &batch.pins {
                let there =
                    |b: &&PodBatch| b.view.group == batch.view.group && b.pins.contains(pin);
                let count = |all: &[PodBatch]| -> usize {
                    all.iter().filter(there).map(|b| b.members.len()).sum()
                };
                let took = count(assigned).saturating_sub(count(failed));
                let most = match self {
                    Self::ToWhatItTook => took,
                    Self::Closed => 0,
                };
                caps.insert((batch.view.group, pin.key, pin.domain), most);
            }
        }
    }
}
