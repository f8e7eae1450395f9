//! Why pods found no place: each pool is asked again, rule by rule, for its reason and the nearest miss.
//!
//! Runs only for pods that failed, once a group. Answers to the error building in Karpenter's
//! `scheduling/nodeclaim.go`.

use std::collections::BTreeSet;

use apis::labels;
use apis::resources::Resources;

use crate::error::{NearestMiss, PodError, PoolCause, PoolFailure, TopologyKind, TypeCounts};
use crate::instance_type::{Availability, InstanceType};
use crate::pod::HostPort;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::input::pool_table::{MissedMinValues, PoolId};
use crate::solve::input::topology::{TopologyGroupId, TopologyRule};
use crate::solve::input::vocabulary::{SetId, add_times};
use crate::solve::input::volumes::AttachedVolumes;
use crate::solve::solver::{Pending, Solver};
use crate::taints;

impl Solver<'_> {
    /// The reason for pods that went through every step of relaxation.
    pub(crate) fn diagnose(&mut self, pending: &Pending) -> PodError {
        // The last view asks least, so what it fails on is what stands in the way.
        let mut last = pending.clone();
        last.view.step = self.groups[pending.view.group].views.len() - 1;
        if self.pools.is_empty() {
            return PodError::NoPools;
        }
        let failures: Vec<PoolFailure> = PoolId::all(self.pools.len())
            .map(|pool| {
                let (cause, nearest_miss) = self.cause(pool, &last);
                PoolFailure {
                    pool: self.pools[pool].name.clone(),
                    cause,
                    nearest_miss,
                }
            })
            .collect();
        PodError::Pools(failures)
    }

    fn cause(&mut self, pool: PoolId, pending: &Pending) -> (PoolCause, Option<NearestMiss>) {
        let view = self.view_of(pending.view).clone();
        let table = &self.pools[pool];
        if let Some(taint) = taints::untolerated(&table.taints, &view.tolerations) {
            let (key, effect) = (taint.key.clone(), taint.effect.clone());
            let value = taint.value.clone().unwrap_or_default();
            let miss = self
                .would_take(pool, pending.view.group, view.set)
                .then(|| NearestMiss::Tolerate {
                    key: key.clone(),
                    value: value.clone(),
                    effect: effect.clone(),
                });
            return (PoolCause::Taint { key, value, effect }, miss);
        }
        if let Err(incompatible) = table.admits(view.set, &self.vocabulary) {
            let miss = NearestMiss::DropRequirement(incompatible_key(&incompatible));
            return (PoolCause::Requirements(incompatible), Some(miss));
        }
        if table.is_out_of_nodes() {
            let miss = NearestMiss::RaiseLimit {
                resource: labels::RESOURCE_NODES.to_owned(),
                short: "1".to_owned(),
            };
            return (PoolCause::NodeLimit, Some(miss));
        }
        let mut set = view.set;
        if let Some(alternative) = self.groups[pending.view.group]
            .alternatives
            .first()
            .copied()
        {
            let volume = self.vocabulary.get(alternative);
            if let Err(incompatible) = self.vocabulary.get(set).intersects(volume) {
                return (PoolCause::Volumes(incompatible), None);
            }
            set = self.vocabulary.merge(set, alternative).unwrap_or(set);
        }
        self.cause_among_types(pool, pending, set)
    }

    /// Whether the pool has a type for the group, were it not for its taints.
    fn would_take(&mut self, pool: PoolId, group: PodGroupId, set: SetId) -> bool {
        let table = &mut self.pools[pool];
        if table.is_out_of_nodes() || table.admits(set, &self.vocabulary).is_err() {
            return false;
        }
        let mut rows = table.rows_of(set, &self.vocabulary).as_ref().clone();
        table.retain_fitting(&mut rows, &self.groups[group].requests);
        table.retain_within_limits(&mut rows);
        !rows.is_empty()
    }

    fn cause_among_types(
        &mut self,
        pool: PoolId,
        pending: &Pending,
        set: SetId,
    ) -> (PoolCause, Option<NearestMiss>) {
        let by_requirements = self.pools[pool].rows_of(set, &self.vocabulary);
        let requests = self.groups[pending.view.group].requests.clone();
        let mut fitting = by_requirements.as_ref().clone();
        self.pools[pool].retain_fitting(&mut fitting, &requests);
        let mut within = fitting.clone();
        self.pools[pool].retain_within_limits(&mut within);
        let mut buyable = within.clone();
        self.retain_buyable(pool, &mut buyable);
        let mut suiting = buyable.clone();
        self.retain_for_extras(
            pool,
            &mut suiting,
            pending.view.group,
            &AttachedVolumes::new(),
        );
        let steps = [by_requirements.as_ref(), &fitting, &within];
        let counts = self.counts(pool, set, steps, &requests);
        if buyable.is_empty() && !within.is_empty() {
            let cause = PoolCause::NoInstanceType(counts);
            return (cause, None);
        }
        if within.is_empty() {
            let sold_out = fitting
                .is_empty()
                .then(|| self.sold_out(pool, set, &requests));
            let miss = sold_out
                .flatten()
                .or_else(|| self.nearest_miss(pool, &by_requirements, &fitting, &requests));
            let exclusions = &self.pools[pool].exclusions;
            if fitting.is_empty() && exclusions.total() > 0 && by_requirements.is_empty() {
                return (PoolCause::Excluded(exclusions.as_ref().clone()), None);
            }
            return (PoolCause::NoInstanceType(counts), miss);
        }
        if suiting.is_empty() {
            let port = self.groups[pending.view.group].host_ports.first();
            let port = port.map_or(0, |p: &HostPort| p.port);
            return (PoolCause::HostPort { port }, None);
        }
        if let Some(MissedMinValues { key, needed, have }) = self.missed_min_values(pool, &suiting)
        {
            return (PoolCause::MinValues { key, needed, have }, None);
        }
        (self.topology_cause(pending), None)
    }

    fn topology_cause(&self, pending: &Pending) -> PoolCause {
        let membership = &self.view_of(pending.view).membership;
        // Of the terms that only look at the pod, those that repel it are all that can stand in its way.
        let keeps_out = |id: &TopologyGroupId| {
            self.topology.group(*id).rule == TopologyRule::AntiAffinity { is_required: true }
        };
        let blamed = membership
            .owned
            .iter()
            .map(|o| o.group)
            .chain(membership.selected.iter().copied().filter(keeps_out))
            .next();
        match blamed {
            Some(group) => {
                let (kind, key, counts) = self.topology.describe(group);
                PoolCause::Topology { kind, key, counts }
            }
            None => PoolCause::Topology {
                kind: TopologyKind::AntiAffinity,
                key: labels::HOSTNAME.to_owned(),
                counts: String::new(),
            },
        }
    }

    /// How many types each rule leaves out. The steps are the rows left by requirements, resources and limits.
    fn counts(
        &mut self,
        pool: PoolId,
        set: SetId,
        steps: [&BitSet; 3],
        requests: &[i64],
    ) -> TypeCounts {
        let asked = self.asked(pool, set);
        let asked = self.vocabulary.get(asked);
        let table = &self.pools[pool];
        let names = |rows: &BitSet| -> BTreeSet<&str> {
            rows.iter()
                .map(|row| table.type_of(row).instance_type.name.as_str())
                .collect()
        };
        let [offered, fitting, within] = steps.map(names);
        let mut counts = TypeCounts {
            considered: table.considered,
            requests: self.dims.resources(requests),
            ..TypeCounts::default()
        };
        let pool = self.problem.pool(&table.name);
        let all = pool.map(|it| &it.instance_types);
        for instance_type in all.into_iter().flat_map(|it| it.iter()) {
            let name = instance_type.name.as_str();
            let left_out_by = if within.contains(name) {
                continue;
            } else if fitting.contains(name) {
                &mut counts.by_limits
            } else if offered.contains(name) {
                &mut counts.by_resources
            } else if !asked.meets(&instance_type.requirements) {
                &mut counts.by_requirements
            } else if self.is_large_enough(instance_type, requests) {
                &mut counts.by_offerings
            } else {
                &mut counts.by_resources
            };
            *left_out_by += 1;
        }
        counts
    }

    /// What the pool's template and the pod ask together.
    fn asked(&mut self, pool: PoolId, set: SetId) -> SetId {
        let template = self.pools[pool].template;
        self.vocabulary.merge(template, set).unwrap_or(set)
    }

    fn is_large_enough(&self, instance_type: &InstanceType, requests: &[i64]) -> bool {
        let available = self.dims.amounts(&instance_type.allocatable());
        requests.iter().zip(&available).all(|(ask, has)| ask <= has)
    }

    /// The cheapest offering that nothing speaks against but that it cannot be bought now.
    fn sold_out(&mut self, pool: PoolId, set: SetId, requests: &[i64]) -> Option<NearestMiss> {
        let asked = self.asked(pool, set);
        let asked = self.vocabulary.get(asked);
        let pool = self.problem.pool(&self.pools[pool].name)?;
        let types = pool.instance_types.iter();
        let suiting =
            types.filter(|it| asked.meets(&it.requirements) && self.is_large_enough(it, requests));
        let offerings =
            suiting.flat_map(|it| it.offerings.iter().map(move |offering| (it, offering)));
        let sold_out = offerings.filter(|(_, offering)| {
            offering.availability == Availability::Unavailable
                && asked.meets(&offering.requirements)
        });
        let (instance_type, offering) =
            sold_out.min_by(|(_, a), (_, b)| a.price_per_hour.total_cmp(&b.price_per_hour))?;
        Some(NearestMiss::Unavailable {
            instance_type: instance_type.name.clone(),
            zone: offering.zone()?.to_owned(),
            capacity_type: offering.capacity_type()?,
        })
    }

    /// The type that lacks least, or the limit that is exceeded least.
    fn nearest_miss(
        &self,
        pool: PoolId,
        by_requirements: &BitSet,
        fitting: &BitSet,
        requests: &[i64],
    ) -> Option<NearestMiss> {
        let table = &self.pools[pool];
        if let Some(row) = fitting.first() {
            let remaining = table.remaining.as_ref()?;
            let capacity = &table.type_of(row).instance_type.capacity;
            let (resource, short) = remaining
                .iter()
                .map(|(name, left)| (name, capacity.get(name).saturating_sub(left)))
                .find(|(_, short)| *short > 0)?;
            let short = quantity(resource, short);
            return Some(NearestMiss::RaiseLimit {
                resource: resource.to_owned(),
                short,
            });
        }
        let lack = |row: usize| {
            let has = &table.type_of(row).allocatable;
            let mut missing = self.dims.zero();
            add_times(&mut missing, requests, 1);
            add_times(&mut missing, has, -1);
            let shares = missing
                .iter()
                .zip(requests)
                .enumerate()
                .map(|(index, (lack, ask))| (*lack as f64 / (*ask).max(1) as f64, index, *lack));
            shares
                .filter(|(.., lack)| *lack > 0)
                .max_by(|a, b| a.0.total_cmp(&b.0))
        };
        let (_, index, short, row) = by_requirements
            .iter()
            .filter_map(|row| lack(row).map(|(share, index, short)| (share, index, short, row)))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.3.cmp(&b.3)))?;
        let resource = self.dims.name(index);
        Some(NearestMiss::Resource {
            instance_type: table.type_of(row).instance_type.name.clone(),
            resource: resource.to_owned(),
            short: quantity(resource, short),
        })
    }
}

fn quantity(resource: &str, amount: i64) -> String {
    let list: Resources = [(resource, amount)].into_iter().collect();
    list.to_list()
        .remove(resource)
        .map(|q| q.0)
        .unwrap_or_default()
}

fn incompatible_key(incompatible: &crate::requirements::Incompatible) -> String {
    match incompatible {
        crate::requirements::Incompatible::Undefined { key, .. } => key.clone(),
        crate::requirements::Incompatible::Disjoint { incoming, .. } => incoming.clone(),
    }
}
