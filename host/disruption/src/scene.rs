//! View that the methods of one loop share: the candidates, their budgets, and what would happen if some of them went.
//!
//! Complete from the start: what takes time and is not always needed (the simulator, the answers of the policies) is
//! worked out when it is first asked for, so that no caller can find it missing. One answer depends on what was asked
//! before it: what nodes cost is what an earlier loop knew until moves are weighed (`what_if`), and what the ranking
//! policy says now from then on. Decides nothing. A second look at a command is given one as well.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use apis::NodeRef;
use apis::resources::Resources;
use scheduling::Interrupt;
use scheduling::ranking::PolicyUse;

use crate::appraisal::{Costs, EffectiveCosts};
use crate::budgets::{Budgets, Targets};
use crate::buffers;
use crate::candidate::{Blocked, Candidate, Candidates};
use crate::command::{Cost, Proposal};
use crate::consolidation::lower_bound::LowerBound;
use crate::consolidation::price::{PoolPrices, Types};
use crate::hooks::{Context, Move, Verdict};
use crate::input::{DisruptionInput, PolicyHooks, context};
use crate::round::{PolicyRound, RoundSource};
use crate::simulation::{SimulationInput, Simulator};

/// One loop's view of the cluster.
pub(crate) struct Scene<'a> {
    pub(crate) input: &'a DisruptionInput,
    pub(crate) hooks: PolicyHooks<'a>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) context: Context,
    /// In order of node name.
    pub(crate) candidates: Vec<Candidate>,
    /// The nodes that are no candidates.
    pub(crate) blocked: Vec<Blocked>,
    pub(crate) budgets: Budgets,
    simulator: OnceCell<Simulator<'a>>,
    prices: PoolPrices,
    lower_bound: OnceCell<LowerBound>,
    /// Costs as the ranking policy reckons now.
    costs: OnceCell<Costs>,
    /// Costs from a loop that saw the same cluster.
    known_costs: OnceCell<Option<Costs>>,
    round: OnceCell<PolicyRound>,
    /// The table with known costs.
    known_round: OnceCell<PolicyRound>,
    /// Positions of the candidates in the policy's order.
    order: OnceCell<Vec<usize>>,
    buffer_nodes: OnceCell<BTreeSet<NodeRef>>,
    /// Policies asked, in order.
    uses: RefCell<Vec<PolicyUse>>,
}

/// Simulator, costs and prices by which moves are simulated and weighed.
pub(crate) struct WhatIf<'s, 'a> {
    /// Tells what would happen.
    pub(crate) simulator: &'s Simulator<'a>,
    /// Cost of each candidate.
    pub(crate) costs: &'s Costs,
    /// Types that could come, by pool.
    pub(crate) prices: &'s PoolPrices,
    /// The least that resources cost anywhere.
    pub(crate) lower_bound: &'s LowerBound,
}

/// A proposal as its policy saw it, and the verdict.
pub(crate) struct ShownMove {
    pub(crate) shown: Move,
    pub(crate) verdict: Verdict,
}

impl<'a> Scene<'a> {
    /// Looks at every node and asks for the budgets; `targets` are what nodes are renewed towards.
    pub(crate) fn new(
        input: &'a DisruptionInput,
        hooks: PolicyHooks<'a>,
        interrupt: &'a Interrupt,
        targets: &Targets,
    ) -> Self {
        let now = input.options.now;
        let context = context(&input.options);
        let found = Candidates::find(&input.snapshot, &input.types, &input.queued, now);
        let world = input.budget_world(targets);
        let budgets = Budgets::ask(&world, context.clone(), hooks.budgets);
        Self {
            uses: RefCell::new(budgets.uses.clone()),
            input,
            hooks,
            interrupt,
            context,
            candidates: found.candidates,
            blocked: found.blocked,
            budgets,
            simulator: OnceCell::new(),
            prices: PoolPrices::default(),
            lower_bound: OnceCell::new(),
            costs: OnceCell::new(),
            known_costs: OnceCell::new(),
            round: OnceCell::new(),
            known_round: OnceCell::new(),
            order: OnceCell::new(),
            buffer_nodes: OnceCell::new(),
        }
    }

    /// Nodes that hold the room of CapacityBuffers.
    pub(crate) fn buffer_nodes(&self) -> &BTreeSet<NodeRef> {
        self.buffer_nodes
            .get_or_init(|| buffers::nodes(&self.world(), &self.input.tables))
    }

    /// The policies that judge: what others held back or found nothing in is looked at again.
    pub(crate) fn judges(&self) -> String {
        let rank = self.hooks.rank.identity();
        [rank, self.hooks.consolidation.identity()].join(" | ")
    }

    /// Tells what would happen, where no cost counts.
    pub(crate) fn simulator(&self) -> &Simulator<'a> {
        self.simulator
            .get_or_init(|| Simulator::new(&self.world(), &self.input.tables))
    }

    /// As [`Self::simulator`], for a node that goes first and leaves its slot of the reservation.
    pub(crate) fn simulator_after_termination(&self, freed_reservation: &str) -> Simulator<'a> {
        Simulator::after_termination(&self.world(), Some(freed_reservation))
    }

    fn world(&self) -> SimulationInput<'a> {
        SimulationInput {
            snapshot: &self.input.snapshot,
            pools: &self.input.pools,
            options: &self.input.options,
            rank: self.hooks.rank,
            scheduler: &self.input.scheduler,
            interrupt: self.interrupt,
        }
    }

    /// Simulator, costs and prices for moves, by what the ranking policy says now.
    pub(crate) fn what_if(&self) -> WhatIf<'_, 'a> {
        let simulator = self.simulator();
        let costs = self.costs.get_or_init(|| {
            let prepared = simulator.prepared();
            let (costs, uses) =
                Costs::ask(&self.candidates, &self.world(), &self.input.types, prepared);
            self.note_uses(simulator.uses());
            self.note_uses(&uses);
            costs
        });
        WhatIf {
            simulator,
            costs,
            prices: &self.prices,
            lower_bound: self
                .lower_bound
                .get_or_init(|| LowerBound::of(simulator.prepared())),
        }
    }

    /// Cost of a candidate, as far as it is known without asking again.
    pub(crate) fn cost(&self, candidate: &Candidate) -> Cost {
        self.known_or_asked().1.of(candidate)
    }

    /// Effective costs that the ranking policy gave the nodes, if this loop asked.
    pub(crate) fn effective_costs(&self) -> Option<&EffectiveCosts> {
        self.costs.get().map(Costs::by_offering)
    }

    fn source(&self) -> RoundSource<'_> {
        RoundSource {
            input: self.input,
            context: &self.context,
            candidates: &self.candidates,
        }
    }

    /// The table that policies see.
    pub(crate) fn round(&self) -> &PolicyRound {
        let (cell, costs) = self.known_or_asked();
        cell.get_or_init(|| {
            PolicyRound::new(&self.source(), self.hooks.consolidation.needs(), costs)
        })
    }

    /// The costs to put into the table, and where the table is kept. What an earlier loop knew is enough to put nodes
    /// in order; once moves are weighed, all that follows reckons with what was asked for them.
    fn known_or_asked(&self) -> (&OnceCell<PolicyRound>, &Costs) {
        if let Some(asked) = self.costs.get() {
            return (&self.round, asked);
        }
        match self.known_costs() {
            Some(known) => (&self.known_round, known),
            None => (&self.round, self.what_if().costs),
        }
    }

    fn known_costs(&self) -> Option<&Costs> {
        let known = self.known_costs.get_or_init(|| {
            let (memory, now) = (&self.input.memory, self.input.options.now);
            let state = self.input.snapshot.consolidation_state(now);
            let mut looks = memory.nothing_found.values();
            let is_same = memory.judges == self.judges() && looks.any(|it| it.state == state);
            is_same
                .then(|| Costs::known(&self.candidates, &memory.costs))
                .flatten()
        });
        known.as_ref()
    }

    /// The candidates in the policy's order, without those that it skips. It is asked once.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = &Candidate> {
        let order = self.order.get_or_init(|| {
            let answer = self.hooks.consolidation.order(&self.round().table);
            self.note_uses(&answer.uses);
            let keys = answer.keys.iter().copied();
            let mut order: Vec<(f64, usize)> = keys
                .zip(0..self.candidates.len())
                .filter(|(key, _)| *key >= 0.0)
                .collect();
            // Candidates are in order of name, so equal keys fall back to it.
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            order.into_iter().map(|(_, position)| position).collect()
        });
        order.iter().map(|position| &self.candidates[*position])
    }

    /// Asks the policy once about all proposals; the answers are in their order. One without a verdict has none.
    pub(crate) fn judge(&self, proposals: &[Proposal<'_>]) -> Vec<ShownMove> {
        let round = self.round();
        let source = self.source();
        let shown = proposals.iter().map(|it| round.describe(it, &source));
        let moves: Vec<Move> = shown.collect();
        let answer = self.hooks.consolidation.judge(&round.table, &moves);
        self.note_uses(&answer.uses);
        let judged = moves.into_iter().zip(answer.verdicts);
        judged
            .map(|(shown, verdict)| ShownMove { shown, verdict })
            .collect()
    }

    fn note_uses(&self, uses: &[PolicyUse]) {
        self.uses.borrow_mut().extend_from_slice(uses);
    }

    /// Policies asked; one asked several times with one result appears once.
    pub(crate) fn uses(&self) -> Vec<PolicyUse> {
        let mut distinct: Vec<PolicyUse> = Vec::new();
        for policy_use in self.uses.borrow().iter() {
            if !distinct.contains(policy_use) {
                distinct.push(policy_use.clone());
            }
        }
        distinct
    }
}

impl WhatIf<'_, '_> {
    /// Cost of the candidates together.
    pub(crate) fn cost_of(&self, candidates: &[&Candidate]) -> Cost {
        candidates.iter().map(|it| self.costs.of(it)).sum()
    }

    /// The least that the pods of these nodes could cost anywhere, effective USD an hour.
    pub(crate) fn least_cost_of_pods(&self, candidates: &[&Candidate]) -> f64 {
        let mut needed = Resources::new();
        for candidate in candidates {
            needed.add_assign(&candidate.requests);
        }
        self.lower_bound.cost_per_hour(&needed)
    }

    /// Types that a pool may buy.
    pub(crate) fn types(&self, pool: &str) -> Rc<Types> {
        self.prices.pool(self.simulator.prepared(), pool)
    }
}
