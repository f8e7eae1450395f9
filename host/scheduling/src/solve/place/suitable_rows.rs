//! Which rows of a pool suit pods: by requirements, size, host ports, volumes, limits, reservations and `minValues`.
//!
//! Everyone who opens or narrows a claim asks here, so that a rule is told once. Changes nothing.

use crate::pod::HostPort;
use crate::problem::MinValuesPolicy;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::input::pool_table::{MissedMinValues, PoolId};
use crate::solve::input::vocabulary::SetId;
use crate::solve::input::volumes::{AttachedVolumes, attaches};
use crate::solve::solver::{Solver, ViewId};
use crate::taints;

impl Solver<'_> {
    /// The rows of a pool on which one pod of a view fits under these requirements; `None` when there is none.
    pub(crate) fn rows_for(&mut self, pool: PoolId, of_view: ViewId, set: SetId) -> Option<BitSet> {
        let group = of_view.group;
        let view = self.view_of(of_view);
        let table = &self.pools[pool];
        if taints::untolerated(&table.taints, &view.tolerations).is_some()
            || table.admits(set, &self.vocabulary).is_err()
        {
            return None;
        }
        let mut rows = self.pools[pool]
            .rows_of(set, &self.vocabulary)
            .as_ref()
            .clone();
        self.pools[pool].retain_fitting(&mut rows, &self.groups[group].requests);
        self.retain_for_extras(pool, &mut rows, group, &AttachedVolumes::new());
        (!rows.is_empty()).then_some(rows)
    }

    /// The rows of a pool on which one pod of a view fits, as far as another node of them may be bought now; `None`
    /// when there is none.
    pub(crate) fn rows_to_buy(
        &mut self,
        pool: PoolId,
        of_view: ViewId,
        set: SetId,
    ) -> Option<BitSet> {
        if self.pools[pool].is_out_of_nodes() {
            return None;
        }
        let mut rows = self.rows_for(pool, of_view, set)?;
        self.retain_buyable(pool, &mut rows);
        (!rows.is_empty()).then_some(rows)
    }

    /// Drops rows that limits or used-up reservations rule out.
    pub(crate) fn retain_buyable(&self, pool: PoolId, rows: &mut BitSet) {
        let table = &self.pools[pool];
        if table.do_limits_bind {
            table.retain_within_limits(rows);
        }
        if !table.slots.is_empty() {
            let spent: Vec<usize> = rows.iter().filter(|row| table.is_spent(*row)).collect();
            for row in spent {
                rows.remove(row);
            }
        }
    }

    /// Drops rows whose daemons hold a wanted host port, and rows that cannot attach the volumes.
    pub(crate) fn retain_for_extras(
        &self,
        pool: PoolId,
        rows: &mut BitSet,
        group: PodGroupId,
        attached: &AttachedVolumes,
    ) {
        let group = &self.groups[group];
        let wanted = group.volumes.as_ref().map(|v| &v.attachments);
        if group.host_ports.is_empty() && wanted.is_none_or(AttachedVolumes::is_empty) {
            return;
        }
        let table = &self.pools[pool];
        let suits = |row: usize| {
            let of_type = table.type_of(row);
            let is_taken =
                |port: &HostPort| of_type.daemon_ports.iter().any(|p| p.conflicts_with(port));
            let limits = &of_type.instance_type.volume_attachment_limits;
            let attaches = wanted.is_none_or(|wanted| attaches(limits, attached, wanted));
            attaches && !group.host_ports.iter().any(is_taken)
        };
        let unsuited: Vec<usize> = rows.iter().filter(|row| !suits(*row)).collect();
        for row in unsuited {
            rows.remove(row);
        }
    }

    /// Whether the rows keep as many distinct values as the pool's `minValues` ask. `BestEffort` always does.
    pub(crate) fn keeps_min_values(&self, pool: PoolId, rows: &BitSet) -> bool {
        self.problem.options.min_values_policy == MinValuesPolicy::BestEffort
            || self.missed_min_values(pool, rows).is_none()
    }

    /// The first label with too few distinct values.
    pub(crate) fn missed_min_values(&self, pool: PoolId, rows: &BitSet) -> Option<MissedMinValues> {
        self.pools[pool].missed_min_values(rows, &self.vocabulary)
    }
}
