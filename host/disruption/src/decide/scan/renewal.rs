//! The methods that renew nodes whatever they cost: drift, of pools with replicas and of the others.
//!
//! Budgets and what blocks a node hold here too; prices and `consolidateAfter` do not count.

use std::collections::BTreeMap;

use jiff::Timestamp;
use state::ledger::OutcomeId;

use super::Scan;
use crate::candidate::Candidate;
use crate::command::{Command, Proposal};
use crate::consolidation::Obstacle;
use crate::drift;
use crate::method::Method;
use crate::simulation::{Purpose, Simulator};
use crate::static_drift::{self, Standing};

/// Nodes that a loop proposes to renew before they expire, the next to expire first.
const EXPIRING_AT_ONCE: usize = 5;
/// Nodes of one static pool that are exchanged in one loop at most.
const STATIC_AT_ONCE: usize = 100;

impl Scan<'_> {
    /// Drifted nodes of static pools, each with what comes in its place, as far as budgets and limits allow.
    pub(in crate::decide) fn static_drift(&mut self) -> Vec<Command> {
        let method = Method::StaticDrift;
        let rows = drift::order(&self.candidates, static_drift::is_eligible);
        let tried = rows.clone();
        let rows = self.unblocked(rows, method);
        self.count(method, rows.len());
        let rows = self.of_settled_pools(rows);
        let rows = self.of_awake_pools(rows);
        let mut left = self.budgets.clone();
        let mut standings = BTreeMap::new();
        let mut commands = Vec::new();
        for row in rows {
            if commands.len() == STATIC_AT_ONCE {
                break;
            }
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            let pool = candidate.pool().to_owned();
            if left.remaining(&pool, method.budget_reason()) == 0 {
                self.note(row, self.out_of_budget(row, method));
                continue;
            }
            let standing = standings
                .entry(pool.clone())
                .or_insert_with(|| Standing::of(self.input.snapshot, &candidate.node_pool));
            let types = static_drift::types_of(self.input.types, &pool);
            let how = (method, self.input.gates.terminate_first_drift);
            let proposal = match static_drift::propose(candidate, types, standing, how) {
                Ok(proposal) => proposal,
                Err(obstacle) => {
                    self.note(row, obstacle);
                    continue;
                }
            };
            let rows = vec![row];
            // One by one: what is refused takes neither budget nor room from the next.
            let approved = self.approved(vec![Proposal { rows, ..proposal }]);
            for (proposal, verdict) in approved {
                left.take(&pool, method.budget_reason());
                if !proposal.replacements.is_empty() {
                    standing.take_room();
                }
                commands.push(self.command(proposal, verdict));
            }
        }
        self.keep_findings(tried);
        commands
    }

    /// Leaves out nodes of pools whose last replacement did not come.
    fn of_awake_pools(&mut self, mut rows: Vec<usize>) -> Vec<usize> {
        let (history, now) = (self.input.history, self.input.options.now);
        rows.retain(|&row| {
            let pool = self.candidates.get(row).map_or("", Candidate::pool);
            let Some((until, times)) = history.pool_rests(pool, now) else {
                return true;
            };
            let told = format!("nodepool \"{pool}\": {times} in a row, next try {until}");
            self.note(row, Obstacle::new(OutcomeId::NodeReplacementFailed, told));
            false
        });
        rows
    }

    /// Leaves out nodes of pools that have more nodes than replicas.
    fn of_settled_pools(&mut self, mut rows: Vec<usize>) -> Vec<usize> {
        rows.retain(|&row| {
            let Some(candidate) = self.candidates.get(row) else {
                return false;
            };
            let standing = Standing::of(self.input.snapshot, &candidate.node_pool);
            let surplus = standing.check_surplus().err();
            if let Some(obstacle) = &surplus {
                self.note(row, obstacle.clone());
            }
            surplus.is_none()
        });
        rows
    }

    /// One drifted node and what replaces it.
    pub(in crate::decide) fn drift(&mut self) -> Option<Command> {
        let rows = drift::order(&self.candidates, drift::is_eligible);
        let command = self.first_drifted(rows.clone());
        self.keep_findings(rows);
        command
    }

    fn keep_findings(&mut self, rows: Vec<usize>) {
        for row in rows {
            if let Some(Some(finding)) = self.findings.get(row) {
                self.drift_findings.insert(row, finding.clone());
            }
        }
    }

    fn first_drifted(&mut self, rows: Vec<usize>) -> Option<Command> {
        let method = Method::Drift;
        let rows = self.unblocked(rows, method);
        self.count(method, rows.len());
        let rows = self.of_awake_pools(rows);
        let rows = self.each_within(&rows, method);
        self.first_renewed(&rows, method)
    }

    /// One node some time before it expires, where a policy asks for that, and what replaces it.
    pub(in crate::decide) fn expiry(&mut self) -> Option<Command> {
        let method = Method::Expiry;
        if !self.hooks.consolidation.needs().expire {
            return None;
        }
        let mut rows: Vec<(Timestamp, usize)> = (0..)
            .zip(&self.candidates)
            .filter(|(_, it)| !it.node_pool.is_static() && it.drifted_at().is_none())
            .filter_map(|(row, it)| Some((it.expires_at()?, row)))
            .collect();
        rows.sort_unstable();
        let rows = rows.into_iter().map(|it| it.1).collect();
        let rows = self.unblocked(rows, method);
        self.count(method, rows.len());
        let rows = self.of_awake_pools(rows);
        let mut rows = self.each_within(&rows, method);
        rows.retain(|&row| self.held(row).is_none());
        rows.truncate(EXPIRING_AT_ONCE);
        self.first_renewed(&rows, method)
    }

    fn first_renewed(&mut self, rows: &[usize], method: Method) -> Option<Command> {
        for &row in rows {
            if self.held(row).is_some() {
                continue;
            }
            self.prepare();
            match self.renewed(row, method)? {
                Ok(proposal) => {
                    if let Some((proposal, verdict)) = self.approved(vec![proposal]).pop() {
                        return Some(self.command(proposal, verdict));
                    }
                }
                Err(obstacle) => self.note(row, obstacle),
            }
        }
        None
    }

    fn renewed(&self, row: usize, method: Method) -> Option<Result<Proposal, Obstacle>> {
        let (simulator, candidate) = (self.simulator.as_ref()?, self.candidates.get(row)?);
        let input = &self.input;
        let with_slot = || {
            let slot = drift::slot_of(candidate, input.gates.terminate_first_drift)?;
            let options = input.options.clone();
            let how = (self.hooks.rank, slot);
            let simulator =
                Simulator::with_slot(input.snapshot, input.pools, options, how, self.interrupt);
            Some(simulator)
        };
        let how = (method, Purpose::Renewal);
        let renewed = drift::renew(simulator, candidate, how, with_slot);
        Some(renewed.map(|it| Proposal {
            rows: vec![row],
            ..it
        }))
    }
}

/// What a chosen node is told to be.
pub(super) fn chosen(method: Method) -> OutcomeId {
    match method {
        Method::Repair => OutcomeId::NodeChosenUnhealthy,
        Method::Emptiness => OutcomeId::NodeChosenEmpty,
        Method::StaticDrift | Method::Drift => OutcomeId::NodeChosenDrifted,
        Method::Expiry => OutcomeId::NodeChosenExpiring,
        Method::MultiNodeConsolidation => OutcomeId::NodeChosenMulti,
        Method::SingleNodeConsolidation => OutcomeId::NodeChosenSingle,
    }
}
