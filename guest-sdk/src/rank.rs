//! Which offering to buy: the hook, and views of one row of the table and of one claim.

use crate::bindings::exports::mortise::policy::rank;
use crate::policy::{Context, NEVER, NO_SYM, Policy, PolicyError};
use crate::symbols::{at, extra_number, extra_text, label, text, text_at};
use crate::usage::UsageView;
use crate::workloads::{Workload, WorkloadsView};

pub use rank::{Claim, Offerings, Operator, PodsSummary, Ranking, Rankings, Requirement, Stage};

/// Judges what an offering costs in truth. Implement [`cost`](Self::cost); the rest is there for
/// policies that exclude, that explain, or that need the whole table at once.
pub trait RankPolicy: Policy {
    /// Whether costs and exclusions hang on the claim (its NodePool, pods, requirements, labels) and not on the
    /// offering and the table alone. A policy that says `false` is asked once for each row of a round instead of
    /// once for each row and claim, and must not look at [`RankRound::claim`].
    const LOOKS_AT_CLAIMS: bool = true;

    /// Effective USD an hour of one offering for one claim; lower is better. Start from
    /// [`Offering::prior`], so that the policy composes with those before it in a chain.
    fn cost(&self, offering: &Offering<'_>, round: &RankRound<'_>) -> f64;

    /// A reason never to launch the offering.
    fn exclude(&self, _offering: &Offering<'_>, _round: &RankRound<'_>) -> Option<String> {
        None
    }

    /// One line for the event and the record of a claim.
    fn note(&self, _round: &RankRound<'_>) -> Option<String> {
        None
    }

    /// What the next call is to be given as `context.memory`, 4 KiB at most; `None` leaves it. Kept of calls for
    /// packing, where [`Policy::NEEDS`] names [`Memory`](crate::Need::Memory).
    fn remember(&self, _call: &RankCall<'_>) -> Option<Vec<u8>> {
        None
    }

    /// The whole call. The default asks [`cost`](Self::cost) and [`exclude`](Self::exclude) per row and claim.
    fn rank(&self, call: &RankCall<'_>) -> Result<Rankings, PolicyError> {
        let memory = self.remember(call);
        if Self::LOOKS_AT_CLAIMS || asked(call) <= call.offerings.price.len() {
            let items = call.rounds().map(|round| rank_claim(self, &round));
            return Ok(answer(items.collect(), memory));
        }
        let Some(first) = call.rounds().next() else {
            return Ok(answer(Vec::new(), memory));
        };
        let rows = Rows::of(self, &first);
        let items = call
            .rounds()
            .map(|round| rows.ranking(round.claim, self.note(&round)));
        Ok(answer(items.collect(), memory))
    }
}

fn answer(items: Vec<Ranking>, memory: Option<Vec<u8>>) -> Rankings {
    Rankings {
        memory,
        ..Rankings::of(items)
    }
}

impl Rankings {
    /// Answers for all claims of a call, in order.
    pub fn of(items: Vec<Ranking>) -> Self {
        Self {
            items,
            memory: None,
            extra: Vec::new(),
        }
    }
}

/// Everything that a call is given.
#[derive(Debug, Clone, Copy)]
pub struct RankCall<'a> {
    /// Clock, cluster, seed, memory.
    pub context: &'a Context,
    /// What can be bought.
    pub offerings: &'a Offerings,
    /// Nodes that there are.
    pub usage: UsageView<'a>,
    /// Pods of the claims by owner; without rows unless the policy needs them.
    pub workloads: WorkloadsView<'a>,
    /// What is to be bought.
    pub claims: &'a [Claim],
}

impl<'a> RankCall<'a> {
    /// The claims, each with what may be looked at for it.
    pub fn rounds(&self) -> impl Iterator<Item = RankRound<'a>> + use<'a> {
        let Self {
            context,
            offerings,
            usage,
            workloads,
            claims,
        } = *self;
        (0_u32..)
            .zip(claims)
            .map(move |(position, claim)| RankRound {
                context,
                offerings,
                usage,
                workloads,
                claim,
                position,
            })
    }

    /// A view of one row.
    pub fn offering(&self, row: u32) -> Offering<'a> {
        Offering {
            table: self.offerings,
            usage: self.usage,
            row,
        }
    }

    /// The answer of a policy whose costs hang on the row alone: `costs` of all rows, in order.
    pub fn ranked_by(&self, costs: &[f64]) -> Rankings {
        let claims = self.claims.iter();
        Rankings::of(claims.map(|claim| claim.ranked_by(costs)).collect())
    }
}

/// What a policy may look at beside the row itself.
#[derive(Debug, Clone, Copy)]
pub struct RankRound<'a> {
    /// Clock, cluster, seed, memory.
    pub context: &'a Context,
    /// The whole table.
    pub offerings: &'a Offerings,
    /// Nodes that there are.
    pub usage: UsageView<'a>,
    /// Pods of all claims of the call by owner.
    pub workloads: WorkloadsView<'a>,
    /// The claim to rank for.
    pub claim: &'a Claim,
    position: u32,
}

impl<'a> RankRound<'a> {
    /// Name of the claim's NodePool.
    pub fn node_pool(&self) -> &'a str {
        self.offerings.symbol(self.claim.nodepool)
    }

    /// When the ranking is asked for.
    pub fn stage(&self) -> Stage {
        self.claim.stage
    }

    /// A label of the claim's template.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        label(&self.offerings.symbols, &self.claim.labels, key)
    }

    /// A label of the NodePool object.
    pub fn node_pool_label(&self, key: &str) -> Option<&'a str> {
        label(&self.offerings.symbols, &self.claim.nodepool_labels, key)
    }

    /// The pods of the claim by owner: before packing all that wait. Needs [`Workloads`](crate::Need::Workloads).
    pub fn own_workloads(&self) -> impl Iterator<Item = Workload<'a>> + use<'a> {
        self.workloads.of(self.position)
    }

    /// Free addresses of the class's subnets in a zone; `None` where nothing is known. Needs
    /// [`FreeAddresses`](crate::Need::FreeAddresses).
    pub fn free_addresses(&self, zone: &str) -> Option<u32> {
        let known = self.claim.free_addresses.iter();
        let mut known = known.filter(|(sym, _)| self.offerings.symbol(*sym) == zone);
        known.next().map(|(_, free)| *free)
    }

    /// The candidates, in the order in which scores are given.
    pub fn candidates(&self) -> impl Iterator<Item = Offering<'a>> + use<'a> {
        let Self {
            offerings,
            claim,
            usage,
            ..
        } = *self;
        // An empty list stands for every row.
        let all = if claim.candidates.is_empty() {
            offerings.rows()
        } else {
            0
        };
        let listed = claim.candidates.iter().copied();
        (0..all).chain(listed).map(move |row| Offering {
            table: offerings,
            usage,
            row,
        })
    }

    /// A view of one row.
    pub fn offering(&self, row: u32) -> Offering<'a> {
        Offering {
            table: self.offerings,
            usage: self.usage,
            row,
        }
    }
}

/// How an offering is bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityType {
    /// At the list price, not taken back.
    OnDemand,
    /// At the spot price, may be interrupted.
    Spot,
    /// From a capacity reservation.
    Reserved,
    /// In a way that is newer than this SDK: none of the others.
    Unknown,
}

impl CapacityType {
    pub(crate) fn of(code: u8) -> Self {
        match code {
            0 => Self::OnDemand,
            1 => Self::Spot,
            2 => Self::Reserved,
            _ => Self::Unknown,
        }
    }

    /// The word of the label; empty where it is not known.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
            Self::Reserved => "reserved",
            Self::Unknown => "",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Offering<'a> {
    table: &'a Offerings,
    usage: UsageView<'a>,
    row: u32,
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])* #[inline] pub fn $name(&self) -> &'a str {
            text_at(&self.table.symbols, &self.table.$name, self.row)
        })*
    };
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])* #[inline] pub fn $name(&self) -> $type { at(&self.table.$name, self.row) })*
    };
}

impl<'a> Offering<'a> {
    texts! {
        /// Instance type, such as `m7g.large`.
        instance_type,
        /// Instance family, such as `m7g`.
        family,
        /// Who makes the CPU, such as `aws`; empty when unknown.
        cpu_manufacturer,
        /// Availability zone.
        zone,
        /// `amd64` or `arm64`.
        arch,
    }

    numbers! {
        /// Generation of the family, such as 7; 0 when unknown.
        generation: u32,
        /// USD an hour after overlays.
        price: f64,
        /// USD an hour on demand; 0 when unknown.
        on_demand_price: f64,
        /// CPU of the type.
        cpu_milli: u32,
        /// Memory of the type.
        memory_mib: u32,
        /// Accelerators of the type.
        gpus: u32,
        /// Pods the kubelet will take.
        max_pods: u32,
        /// Free slots of a capacity reservation.
        reservation_slots: u32,
        /// Insufficient-capacity answers in the observation window.
        ice_count: u32,
        /// Effective hourly cost so far; where a policy starts from.
        prior: f64,
    }

    /// The row's index in the table.
    pub fn row(&self) -> u32 {
        self.row
    }

    /// How it is bought.
    pub fn capacity_type(&self) -> CapacityType {
        CapacityType::of(at(&self.table.capacity_type, self.row))
    }

    /// Nodes of the cluster on this offering, those on their way included. It goes over the usage table each time:
    /// a policy that asks for every row counts once in `rank` instead.
    pub fn in_use(&self) -> u32 {
        let sym = |column: &[u32]| column.get(self.row as usize).copied().unwrap_or(NO_SYM);
        let capacity_type: u8 = at(&self.table.capacity_type, self.row);
        let own = (
            sym(&self.table.instance_type),
            sym(&self.table.zone),
            capacity_type,
        );
        self.usage.in_use(own)
    }

    /// Seconds since the latest insufficient-capacity answer.
    pub fn ice_age_seconds(&self) -> Option<u32> {
        self.table
            .ice_age
            .get(self.row as usize)
            .copied()
            .filter(|&age| age != NEVER)
    }

    /// Expected interruptions per node and 30 days, when known.
    pub fn interruption_rate(&self) -> Option<f64> {
        self.table
            .interruption_rate
            .get(self.row as usize)
            .copied()
            .filter(|&rate| rate >= 0.0)
    }

    /// A number of a column this SDK has no method for.
    pub fn extra_number(&self, column: &str) -> Option<f64> {
        extra_number(&self.table.extra, column, self.row)
    }

    /// A text of a column this SDK has no method for.
    pub fn extra_text(&self, column: &str) -> Option<&'a str> {
        extra_text(&self.table.symbols, &self.table.extra, column, self.row)
    }
}

impl Offerings {
    /// Number of rows.
    pub fn rows(&self) -> u32 {
        u32::try_from(self.price.len()).unwrap_or(u32::MAX)
    }

    /// The text of a symbol; empty for "none".
    pub fn symbol(&self, sym: u32) -> &str {
        text(&self.symbols, sym)
    }
}

impl Claim {
    /// The ranking by costs of all rows, for policies that compute them once a round.
    pub fn ranked_by(&self, costs: &[f64]) -> Ranking {
        let listed = |&row: &u32| costs.get(row as usize).copied().unwrap_or_default();
        Ranking {
            scores: if self.candidates.is_empty() {
                costs.to_vec()
            } else {
                self.candidates.iter().map(listed).collect()
            },
            excluded: Vec::new(),
            excluded_reason: Vec::new(),
            reasons: Vec::new(),
            note: None,
            extra: Vec::new(),
        }
    }
}

impl Ranking {
    /// Never to be launched: the candidate at a position, and why.
    pub fn exclude(&mut self, position: u32, reason: impl Into<String>) {
        self.excluded.push(position);
        self.excluded_reason
            .push(intern(&mut self.reasons, reason.into()));
    }
}

fn rank_claim<P: RankPolicy>(policy: &P, round: &RankRound<'_>) -> Ranking {
    let count = match round.claim.candidates.len() {
        0 => round.offerings.price.len(),
        listed => listed,
    };
    let mut ranking = Ranking {
        scores: Vec::with_capacity(count),
        excluded: Vec::new(),
        excluded_reason: Vec::new(),
        reasons: Vec::new(),
        note: policy.note(round),
        extra: Vec::new(),
    };
    for (position, offering) in (0_u32..).zip(round.candidates()) {
        ranking.scores.push(policy.cost(&offering, round));
        if let Some(reason) = policy.exclude(&offering, round) {
            ranking.exclude(position, reason);
        }
    }
    ranking
}

/// Rows that all claims together ask about.
fn asked(call: &RankCall<'_>) -> usize {
    let rows = |claim: &Claim| match claim.candidates.len() {
        0 => call.offerings.price.len(),
        listed => listed,
    };
    call.claims.iter().map(rows).sum()
}

/// The whole table judged once.
struct Rows {
    costs: Vec<f64>,
    /// Index into the reasons by row; empty where nothing is excluded.
    excluded: Vec<Option<u32>>,
    reasons: Vec<String>,
}

impl Rows {
    fn of<P: RankPolicy>(policy: &P, round: &RankRound<'_>) -> Self {
        let count = round.offerings.price.len();
        let mut rows = Self {
            costs: Vec::with_capacity(count),
            excluded: Vec::new(),
            reasons: Vec::new(),
        };
        for (index, row) in (0..round.offerings.rows()).enumerate() {
            let offering = round.offering(row);
            rows.costs.push(policy.cost(&offering, round));
            if let Some(reason) = policy.exclude(&offering, round) {
                rows.excluded.resize(count, None);
                rows.excluded[index] = Some(intern(&mut rows.reasons, reason));
            }
        }
        rows
    }

    fn ranking(&self, claim: &Claim, note: Option<String>) -> Ranking {
        let mut ranking = claim.ranked_by(&self.costs);
        ranking.note = note;
        if self.excluded.is_empty() {
            return ranking;
        }
        let reason = |row: usize| self.excluded.get(row).copied().flatten();
        for position in 0..ranking.scores.len() {
            let row = match claim.candidates.get(position) {
                Some(&row) => row as usize,
                None => position,
            };
            if let Some(reason) = reason(row) {
                ranking
                    .excluded
                    .push(u32::try_from(position).unwrap_or(u32::MAX));
                ranking.excluded_reason.push(reason);
            }
        }
        ranking.reasons.clone_from(&self.reasons);
        ranking
    }
}

fn intern(reasons: &mut Vec<String>, reason: String) -> u32 {
    let index = reasons
        .iter()
        .position(|known| *known == reason)
        .unwrap_or_else(|| {
            reasons.push(reason);
            reasons.len() - 1
        });
    u32::try_from(index).unwrap_or(u32::MAX)
}
