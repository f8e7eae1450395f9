//! In which domains a node for pods could be bought, and at what price.
//!
//! Asks pools alone; what topology says of a domain is asked by those who assign it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::PoolId;
use crate::solve::input::topology::{DomainId, KeyId};
use crate::solve::input::views::exactly;
use crate::solve::input::vocabulary::SetId;
use crate::solve::solver::{FeasibleDomains, FeasibleKey, Pending, Solver};
use crate::taints;

impl Solver<'_> {
    /// The domains of a key in which a node for the pods can be bought.
    pub(super) fn feasible(
        &mut self,
        base: SetId,
        key: KeyId,
        pending: &Pending,
    ) -> FeasibleDomains {
        let group = pending.view.group;
        let tolerations = &self.view_of(pending.view).tolerations;
        let tolerated: Vec<bool> = self
            .pools
            .iter()
            .map(|table| taints::untolerated(&table.taints, tolerations).is_none())
            .collect();
        let of_group = &self.groups[group];
        let asked = FeasibleKey {
            requirements: base,
            key,
            requests: of_group.requests.clone(),
            tolerated,
            of_extras: of_group.has_extras().then_some(group),
        };
        if let Some(known) = self.feasible_domains.get(&asked) {
            return Arc::clone(known);
        }
        let name = self.topology.label(key).to_owned();
        let mut best: BTreeMap<DomainId, f64> = BTreeMap::new();
        for pool in PoolId::all(self.pools.len()) {
            let Some(rows) = self.rows_to_buy(pool, pending.view, base) else {
                continue;
            };
            let required = self.vocabulary.get(base).get(&name);
            for (value, mut of_domain) in self.domains_of(pool, key) {
                of_domain.intersect(&rows);
                if !required.has(&value)
                    || of_domain.is_empty()
                    || !self.keeps_min_values(pool, &of_domain)
                {
                    continue;
                }
                let Some(domain) = self.topology.domain(key, &value) else {
                    continue;
                };
                // A lighter pool only matters where a heavier one has nothing.
                if best.contains_key(&domain) {
                    continue;
                }
                let pin = exactly(&name, &value);
                let price = match self.vocabulary.with(base, pin) {
                    Some(set) => self.unit_price(pool, set).of(&self.groups[group].requests),
                    None => f64::MAX,
                };
                best.insert(domain, price);
            }
        }
        let feasible: FeasibleDomains = best.into_iter().collect();
        self.feasible_domains.insert(asked, Arc::clone(&feasible));
        feasible
    }

    /// The domains of a key that nodes of a pool could be in, with their rows: what they are sold with or labelled, or
    /// any that is known where the pool asks for the label and leaves its value open.
    fn domains_of(&self, pool: PoolId, key: KeyId) -> Vec<(String, BitSet)> {
        let (table, name) = (&self.pools[pool], self.topology.label(key));
        let offered = table.domains(name, &self.vocabulary);
        let asked = self.vocabulary.get(table.template).find(name);
        let Some(asked) = asked.filter(|it| offered.is_empty() && it.is_complement()) else {
            return offered;
        };
        let known = self.topology.domains(key).iter();
        known
            .filter(|value| asked.has(value))
            .map(|value| (value.clone(), BitSet::full(table.rows.len())))
            .collect()
    }
}
