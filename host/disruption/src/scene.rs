//! View that the methods of one loop share: the candidates, their budgets, and what would happen if some of them went.
//!
//! Complete from the start: what takes time and is not always needed (the simulator, the answers of the policies) is
//! worked out when it is first asked for, so that no caller can find it missing, and is the same whoever asks first. By
//! which costs a policy is asked is an argument ([`CostBasis`]). Decides nothing. A second look at a command is given
//! one as well.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use apis::NodeRef;
use apis::resources::Resources;
use hooks::disruption::{Context, Move, Verdict};
use scheduling::Interrupt;
use scheduling::ranking::PolicyUse;

use crate::appraisal::{Costs, EffectiveCosts};
use crate::budgets::{Budgets, Targets};
use crate::buffers;
use crate::candidate::{Blocked, Candidate, Candidates};
use crate::command::{Cost, Proposal};
use crate::consolidation::lower_bound::LowerBound;
use crate::consolidation::price::{PoolPrices, Types};
use crate::input::{DisruptionInput, Gates, PolicyHooks, context};
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
    asked_costs: OnceCell<Costs>,
    /// Costs that a loop was told which saw the same cluster, if it was told of every candidate.
    remembered_costs: Option<Costs>,
    asked_round: OnceCell<PolicyRound>,
    remembered_round: OnceCell<PolicyRound>,
    buffer_nodes: OnceCell<BTreeSet<NodeRef>>,
    /// Policies asked, in order.
    uses: RefCell<Vec<PolicyUse>>,
}

/// Costs by which policies are shown the nodes, and by which a command tells what its nodes cost.
#[derive(Clone, Copy)]
pub(crate) enum CostBasis<'s> {
    /// What an earlier loop was told of the same cluster: enough to put nodes in order, and asks nobody.
    Remembered(&'s Costs),
    /// What the ranking policy says now: whatever follows the first move that is weighed reckons with that.
    Asked,
}

/// A simulator with the costs and prices by which the moves that it finds are weighed.
#[derive(Clone, Copy)]
pub(crate) struct PricedSimulator<'s, 'a> {
    /// Tells what would happen.
    pub(crate) simulator: &'s Simulator<'a>,
    /// Moves that are switched on.
    pub(crate) gates: Gates,
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
            remembered_costs: remembered_costs(input, &found.candidates, &judges(hooks)),
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
            asked_costs: OnceCell::new(),
            asked_round: OnceCell::new(),
            remembered_round: OnceCell::new(),
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
        judges(self.hooks)
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
            types: &self.input.types,
            options: &self.input.options,
            rank: self.hooks.rank,
            scheduler: &self.input.scheduler,
            interrupt: self.interrupt,
        }
    }

    /// Simulator, costs and prices for moves, by what the ranking policy says now. Who weighs moves in a loop asks the
    /// scan for it, which then goes on by these costs.
    pub(crate) fn priced_simulator(&self) -> PricedSimulator<'_, 'a> {
        let simulator = self.simulator();
        let costs = self.asked_costs.get_or_init(|| {
            let prepared = simulator.prepared();
            let (costs, uses) = Costs::ask(&self.candidates, &self.world(), prepared);
            self.note_uses(simulator.uses());
            self.note_uses(&uses);
            costs
        });
        PricedSimulator {
            simulator,
            gates: self.input.gates,
            costs,
            prices: &self.prices,
            lower_bound: self
                .lower_bound
                .get_or_init(|| LowerBound::of(simulator.prepared())),
        }
    }

    /// Costs that do until a move is weighed.
    pub(crate) fn first_basis(&self) -> CostBasis<'_> {
        let remembered = self.remembered_costs.as_ref();
        remembered.map_or(CostBasis::Asked, CostBasis::Remembered)
    }

    /// What the candidates cost.
    pub(crate) fn costs<'s>(&'s self, basis: CostBasis<'s>) -> &'s Costs {
        match basis {
            CostBasis::Remembered(costs) => costs,
            CostBasis::Asked => self.priced_simulator().costs,
        }
    }

    /// Effective costs that the ranking policy gave the nodes, if this loop asked.
    pub(crate) fn effective_costs(&self) -> Option<&EffectiveCosts> {
        self.asked_costs.get().map(Costs::by_offering)
    }

    fn source(&self) -> RoundSource<'_> {
        RoundSource {
            input: self.input,
            context: &self.context,
            candidates: &self.candidates,
        }
    }

    /// The table that policies see.
    pub(crate) fn round<'s>(&'s self, basis: CostBasis<'s>) -> &'s PolicyRound {
        let made = match basis {
            CostBasis::Remembered(_) => &self.remembered_round,
            CostBasis::Asked => &self.asked_round,
        };
        let costs = self.costs(basis);
        made.get_or_init(|| {
            PolicyRound::new(&self.source(), self.hooks.consolidation.needs(), costs)
        })
    }

    /// Asks the policy for its order of the candidates, without those that it skips.
    pub(crate) fn ask_order(&self, basis: CostBasis<'_>) -> Vec<&Candidate> {
        let answer = self.hooks.consolidation.order(&self.round(basis).table);
        self.note_uses(&answer.uses);
        let keys = answer.keys.into_iter();
        let mut order: Vec<(f64, &Candidate)> = keys
            .zip(&self.candidates)
            .filter(|(key, _)| *key >= 0.0)
            .collect();
        // Stable: candidates are in order of name, so equal keys fall back to it.
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        order.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// Asks the policy once about all proposals; the answers are in their order. One without a verdict has none.
    pub(crate) fn judge(&self, proposals: &[Proposal<'_>], basis: CostBasis<'_>) -> Vec<ShownMove> {
        let round = self.round(basis);
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

/// The policies that judge, by name and digest.
fn judges(hooks: PolicyHooks<'_>) -> String {
    [hooks.rank.identity(), hooks.consolidation.identity()].join(" | ")
}

/// Costs that an earlier loop was told, where the same policies judge the same cluster.
fn remembered_costs(
    input: &DisruptionInput,
    candidates: &[Candidate],
    judges: &str,
) -> Option<Costs> {
    let memory = &input.memory;
    let state = input.snapshot.consolidation_state(input.options.now);
    let mut looks = memory.nothing_found.values();
    let is_same = memory.judges == judges && looks.any(|it| it.state == state);
    is_same
        .then(|| Costs::known(candidates, &memory.costs))
        .flatten()
}

impl PricedSimulator<'_, '_> {
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
