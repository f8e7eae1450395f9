//! Tables of earlier rounds: taken over where everything that they are made of is the same, so that no answer depends
//! on what was kept.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Taint;

use crate::pod::PodShape;
use crate::problem::{Pool, Problem};
use crate::solve::input::admission::Admission;
use crate::solve::input::daemons;
use crate::solve::input::pool_rows::{PoolRows, RowParts};
use crate::solve::input::rank_round::OfferingCatalogue;
use crate::solve::input::vocabulary::Dimensions;
use crate::template::requirements_of_template;

/// How many rounds an unused table is kept: one decision asks in several (pools of other weights, simulations).
const ROUNDS_KEPT: u64 = 8;

/// Tables of earlier rounds, for any number of threads that run rounds over the same pools; dropping it costs time,
/// never answers.
#[derive(Debug, Default)]
pub struct TableCache(pub(super) Mutex<CachedTables>);

#[derive(Debug, Default)]
pub(super) struct CachedTables {
    round: u64,
    admissions: Vec<CacheEntry<Arc<Admission>>>,
    ranked: Vec<CacheEntry<Arc<RankedRows>>>,
    catalogues: Vec<CacheEntry<Arc<OfferingCatalogue>>>,
}

#[derive(Debug)]
struct CacheEntry<T> {
    round: u64,
    value: T,
}

/// All that makes a pool's rows what they are.
#[derive(Debug)]
pub(super) struct RowsOrigin {
    pub(super) admission: Arc<Admission>,
    pub(super) costs: Vec<f64>,
    pub(super) excluded: BTreeSet<usize>,
    pub(super) taints: Vec<Taint>,
    pub(super) daemons: Arc<[Arc<PodShape>]>,
    pub(super) dims: Dimensions,
}

/// Rows with where they come from.
#[derive(Debug)]
struct RankedRows {
    origin: RowsOrigin,
    rows: Arc<PoolRows>,
}

impl RowsOrigin {
    /// What is cheapest to compare comes first. Admissions are kept, so one is the same only where it is the very one.
    fn is_same(&self, other: &Self) -> bool {
        let Self {
            admission,
            costs,
            excluded,
            taints,
            daemons,
            dims,
        } = self;
        Arc::ptr_eq(admission, &other.admission)
            && *excluded == other.excluded
            && *dims == other.dims
            && *taints == other.taints
            && *daemons == other.daemons
            && *costs == other.costs
    }
}

impl CachedTables {
    pub(super) fn begin_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    pub(super) fn admission(&mut self, pool: &Pool, problem: &Problem) -> Arc<Admission> {
        let template = requirements_of_template(&pool.node_pool);
        let reserved = problem.options.reserved;
        if let Some(known) = self
            .admissions
            .iter_mut()
            .find(|it| it.value.is_of(pool, &template, reserved))
        {
            known.round = self.round;
            return Arc::clone(&known.value);
        }
        let value = Arc::new(Admission::new(pool, template, reserved));
        self.admissions.push(CacheEntry {
            round: self.round,
            value: Arc::clone(&value),
        });
        value
    }

    pub(super) fn catalogue(
        &mut self,
        round: &[(&Pool, Arc<Admission>)],
    ) -> Arc<OfferingCatalogue> {
        let admissions = || round.iter().map(|(_, admission)| admission);
        if let Some(known) = self
            .catalogues
            .iter_mut()
            .find(|it| it.value.is_of(admissions()))
        {
            known.round = self.round;
            return Arc::clone(&known.value);
        }
        let value = Arc::new(OfferingCatalogue::new(admissions().cloned().collect()));
        self.catalogues.push(CacheEntry {
            round: self.round,
            value: Arc::clone(&value),
        });
        value
    }

    pub(super) fn rows(&mut self, pool: &Pool, origin: RowsOrigin) -> Arc<PoolRows> {
        if let Some(known) = self
            .ranked
            .iter_mut()
            .find(|it| it.value.origin.is_same(&origin))
        {
            known.round = self.round;
            return Arc::clone(&known.value.rows);
        }
        let RowsOrigin {
            admission,
            costs,
            excluded,
            taints: _,
            daemons,
            dims,
        } = &origin;
        let overheads = daemons::overheads(pool, &admission.template, daemons, dims);
        let parts = RowParts {
            admission,
            costs,
            excluded,
            daemons: &overheads,
        };
        let rows = Arc::new(PoolRows::new(&parts, dims));
        self.ranked.push(CacheEntry {
            round: self.round,
            value: Arc::new(RankedRows {
                origin,
                rows: Arc::clone(&rows),
            }),
        });
        rows
    }

    /// Drops what was not used for long, and what is of types that a pool had before it got those of this round:
    /// lists of types follow each other, and one that was replaced does not come back.
    pub(super) fn forget(&mut self, round: u64) {
        let oldest = round.saturating_sub(ROUNDS_KEPT);
        let of_round = self.admissions.iter().filter(|it| it.round >= round);
        let current: Vec<Arc<Admission>> = of_round.map(|it| Arc::clone(&it.value)).collect();
        let is_replaced = |old: &Admission| current.iter().any(|new| new.replaces(old));
        self.admissions
            .retain(|it| it.round >= round || it.round >= oldest && !is_replaced(&it.value));
        let kept = &self.admissions;
        let is_kept = |of: &Arc<Admission>| kept.iter().any(|it| Arc::ptr_eq(&it.value, of));
        self.ranked
            .retain(|it| it.round >= oldest && is_kept(&it.value.origin.admission));
        self.catalogues
            .retain(|it| it.round >= oldest && it.value.admissions().all(is_kept));
    }
}
