//! From open claims to the answer: types in order of cost, capacity types, daemons' share, truncation.
//!
//! Answers to `FinalizeScheduling` and `TruncateInstanceTypes` of Karpenter's `scheduling/nodeclaim.go`.

use std::collections::{BTreeMap, BTreeSet};

use apis::{CapacityType, labels};

use crate::error::{PodError, PoolCause, PoolFailure};
use crate::problem::MinValuesPolicy;
use crate::requirements::{Operator, Requirement, Requirements};
use crate::solution::{BestOffering, NewClaim, PodsOnNode, RunnerUp, Solution, TypeNames};
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::{MissedMinValues, PoolId};
use crate::solve::input::vocabulary::{Amounts, add_times};
use crate::solve::place::claim::OpenClaim;
use crate::solve::solver::Solver;

/// What claims that may become the same rows have in common.
struct SharedOutcome {
    /// The rows left when types are cut to the greatest number allowed.
    rows: BitSet,
    names: TypeNames,
    capacity_types: BTreeSet<CapacityType>,
    /// The part of the daemons' requests that every type left has in common.
    overhead: Amounts,
}

impl Solver<'_> {
    /// Fills in claims and existing nodes.
    pub(crate) fn finalize(mut self, mut solution: Solution) -> Solution {
        for node in self.nodes.copies() {
            if !node.added.is_empty() {
                let pods = node
                    .added
                    .iter()
                    .map(|pod| self.problem.pods[*pod].key.clone());
                solution.existing.push(PodsOnNode {
                    node: node.node.node_ref.clone(),
                    pods: pods.collect(),
                });
            }
        }
        let mut outcomes: BTreeMap<(PoolId, BitSet), SharedOutcome> = BTreeMap::new();
        for mut claim in std::mem::take(&mut self.claims) {
            let outcome = outcomes
                .entry((claim.pool, std::mem::take(&mut claim.rows)))
                .or_insert_with_key(|(pool, rows)| self.outcome(*pool, rows));
            match self.finalize_claim(&mut claim, outcome) {
                Ok(claim) => solution.claims.push(claim),
                Err(failure) => {
                    for pod in &claim.members {
                        let key = self.problem.pods[*pod].key.clone();
                        solution
                            .pod_errors
                            .insert(key, PodError::Pools(vec![(*failure).clone()]));
                    }
                }
            }
        }
        solution
    }

    fn finalize_claim(
        &self,
        claim: &mut OpenClaim,
        outcome: &SharedOutcome,
    ) -> Result<NewClaim, Box<PoolFailure>> {
        claim.rows = outcome.rows.clone();
        let mut requirements = self.requirements(claim);
        let missed = self.missed_min_values(claim.pool, &claim.rows);
        let is_missed = missed.is_some();
        if let Some(MissedMinValues { key, needed, have }) = missed {
            if self.problem.options.min_values_policy == MinValuesPolicy::Strict {
                return Err(Box::new(PoolFailure {
                    pool: self.pools[claim.pool].name.clone(),
                    cause: PoolCause::MinValues { key, needed, have },
                    nearest_miss: None,
                }));
            }
            self.relax_min_values(claim, &mut requirements);
        }
        let mut requests = claim.requests.clone();
        add_times(&mut requests, &outcome.overhead, 1);
        Ok(NewClaim {
            pool: self.pools[claim.pool].name.clone(),
            requirements,
            instance_types: outcome.names.clone(),
            capacity_types: outcome.capacity_types.clone(),
            requests: self.dims.resources(&requests),
            pods: claim
                .members
                .iter()
                .map(|pod| self.problem.pods[*pod].key.clone())
                .collect(),
            best: self.best(claim),
            are_min_values_relaxed: claim.are_min_values_relaxed || is_missed,
        })
    }

    /// The types left, cheapest first, cut to the greatest number allowed; rows of the others go.
    fn outcome(&self, pool: PoolId, rows: &BitSet) -> SharedOutcome {
        let table = &self.pools[pool];
        let mut is_known = vec![false; table.types.len()];
        let mut types = Vec::new();
        for row in rows.iter() {
            let of_type = table.rows[row].type_index;
            if !is_known[of_type] {
                is_known[of_type] = true;
                types.push(of_type);
            }
        }
        let mut rows = rows.clone();
        let most = self.problem.options.tuning.instance_types_max;
        if types.len() > most {
            for cut in types.drain(most..) {
                is_known[cut] = false;
            }
            for row in 0..table.rows.len() {
                if !is_known[table.rows[row].type_index] {
                    rows.remove(row);
                }
            }
        }
        let picks = types.iter().filter_map(|at| u32::try_from(*at).ok());
        let sold = rows.iter().filter_map(|row| table.rows[row].capacity_type);
        SharedOutcome {
            names: TypeNames::new(&table.names, picks.collect()),
            capacity_types: sold.collect(),
            overhead: self.least_overhead(pool, &types),
            rows,
        }
    }

    fn requirements(&self, claim: &OpenClaim) -> Requirements {
        let mut requirements = self.vocabulary.get(claim.set).clone();
        requirements.remove(labels::HOSTNAME);
        if let Some(id) = &claim.reservation {
            let reserved = [labels::CAPACITY_TYPE_RESERVED];
            requirements.add(Requirement::new(
                labels::CAPACITY_TYPE,
                Operator::In,
                reserved,
            ));
            let id = [id.as_str()];
            requirements.add(Requirement::new(
                labels::CAPACITY_RESERVATION_ID,
                Operator::In,
                id,
            ));
        }
        requirements
    }

    /// Lowers each `minValues` to what is left.
    fn relax_min_values(&self, claim: &OpenClaim, requirements: &mut Requirements) {
        let table = &self.pools[claim.pool];
        for (key, needed) in &table.min_values {
            let have = table.distinct_values(key, &claim.rows, &self.vocabulary);
            if have < *needed {
                let mut requirement = requirements.get(key);
                requirement.min_values = Some(have.max(1));
                requirements.replace(requirement);
            }
        }
    }

    fn least_overhead(&self, pool: PoolId, kept: &[usize]) -> Amounts {
        let types = &self.pools[pool].types;
        let mut overheads = kept.iter().map(|of_type| &types[*of_type].daemon_overhead);
        let Some(first) = overheads.next() else {
            return self.dims.zero();
        };
        overheads.fold(first.clone(), |mut least, next| {
            for (least, next) in least.iter_mut().zip(next) {
                *least = (*least).min(*next);
            }
            least
        })
    }

    fn best(&self, claim: &OpenClaim) -> BestOffering {
        let table = &self.pools[claim.pool];
        let Some(first) = claim.rows.first() else {
            return BestOffering::default();
        };
        let row = &table.rows[first];
        let other = claim
            .rows
            .iter()
            .find(|other| table.rows[*other].type_index != row.type_index);
        let offering = table.offering(row);
        BestOffering {
            instance_type: table.type_of(first).instance_type.name.clone(),
            zone: offering.zone().map(str::to_owned),
            capacity_type: offering.capacity_type(),
            price_per_hour: row.price_per_hour,
            effective_cost_per_hour: row.effective_cost_per_hour,
            runner_up: other.map(|row| RunnerUp {
                instance_type: table.type_of(row).instance_type.name.clone(),
                effective_cost_per_hour: table.rows[row].effective_cost_per_hour,
            }),
        }
    }
}
