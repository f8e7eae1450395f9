//! What rows offer for a label, and which rows satisfy a requirement: worked out when it is asked first, and kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use locks::lock;

use super::PoolRows;
use crate::requirements::{Requirement, is_negative};
use crate::solve::input::bitset::BitSet;

/// Answers about single requirements kept at most; hosts and other endless values must not fill the memory.
const ANSWERS_MAX: usize = 4096;

/// Rows by what they offer for one label.
#[derive(Debug)]
struct KeyColumn {
    /// `None` stands for rows without the label.
    offered: Vec<(Option<Requirement>, BitSet)>,
    /// Some row has the label.
    is_known: bool,
    /// Every row has at most one value for the label, so that choosing a row determines it.
    determines: bool,
}

/// What was asked before.
#[derive(Debug, Default)]
pub(super) struct Answers {
    columns: BTreeMap<String, Arc<KeyColumn>>,
    /// The rows that satisfy a requirement; `None` when no row knows the label, which the pool then decides.
    satisfying: BTreeMap<Requirement, Option<Arc<BitSet>>>,
}

impl PoolRows {
    /// The rows that satisfy one requirement; `None` when no row knows the label, which the pool then decides.
    pub(in crate::solve::input) fn rows_satisfying(
        &self,
        requirement: &Requirement,
    ) -> Option<Arc<BitSet>> {
        let mut answers = lock(&self.answers);
        if let Some(known) = answers.satisfying.get(requirement) {
            return known.clone();
        }
        let column = self.column(&mut answers, requirement.key());
        let satisfying = column.is_known.then(|| {
            let mut satisfying = BitSet::empty(self.rows.len());
            for (offered, rows) in &column.offered {
                let is_met = match offered {
                    Some(offered) => {
                        offered.has_intersection(requirement)
                            || (is_negative(offered.operator())
                                && is_negative(requirement.operator()))
                    }
                    None => is_negative(requirement.operator()),
                };
                if is_met {
                    satisfying.unite(rows);
                }
            }
            Arc::new(satisfying)
        });
        if answers.satisfying.len() >= ANSWERS_MAX {
            answers.satisfying.clear();
        }
        answers
            .satisfying
            .insert(requirement.clone(), satisfying.clone());
        satisfying
    }

    fn column(&self, answers: &mut Answers, key: &str) -> Arc<KeyColumn> {
        if let Some(known) = answers.columns.get(key) {
            return Arc::clone(known);
        }
        let offered = self.offered_by_rows(key);
        let is_known = offered.keys().any(Option::is_some);
        let is_single = |r: &Requirement| !r.is_complement() && r.values().len() <= 1;
        let column = Arc::new(KeyColumn {
            is_known,
            determines: is_known && offered.keys().all(|o| o.is_none_or(is_single)),
            offered: offered
                .into_iter()
                .map(|(offered, rows)| (offered.cloned(), rows))
                .collect(),
        });
        if answers.columns.len() >= ANSWERS_MAX {
            answers.columns.clear();
        }
        answers.columns.insert(key.to_owned(), Arc::clone(&column));
        column
    }

    /// What rows offer for a label: what their market says, else what their type says.
    fn offered_by_rows(&self, key: &str) -> BTreeMap<Option<&Requirement>, BitSet> {
        let mut known: BTreeMap<Option<&Requirement>, usize> = BTreeMap::new();
        let mut number = |offered| {
            let next = known.len();
            *known.entry(offered).or_insert(next)
        };
        let of_market = self.markets.iter().map(|m| m.requirements.find(key));
        let of_market: Vec<Option<usize>> = of_market.map(|r| Some(number(Some(r?)))).collect();
        let of_type = self.types.iter();
        let of_type = of_type.map(|t| number(t.instance_type.requirements.find(key)));
        let of_type: Vec<usize> = of_type.collect();
        let mut rows = vec![BitSet::default(); known.len()];
        for (index, row) in self.rows.iter().enumerate() {
            let at = of_market[row.market].unwrap_or(of_type[row.type_index]);
            if rows[at] == BitSet::default() {
                rows[at] = BitSet::empty(self.rows.len());
            }
            rows[at].insert(index);
        }
        let sets = known.into_iter();
        sets.filter(|(_, at)| rows[*at] != BitSet::default())
            .map(|(offered, at)| (offered, rows[at].clone()))
            .collect()
    }

    fn offered(&self, row: usize, key: &str) -> Option<&Requirement> {
        let row = &self.rows[row];
        let of_type = &self.types[row.type_index].instance_type;
        let own = self.markets.get(row.market).requirements.find(key);
        own.or_else(|| of_type.requirements.find(key))
    }

    /// Whether every row has at most one value for the label, so that choosing a row determines it.
    pub(crate) fn determines(&self, key: &str) -> bool {
        let mut answers = lock(&self.answers);
        self.column(&mut answers, key).determines
    }

    /// The value a row has for a label.
    pub(crate) fn value_of(&self, row: usize, key: &str) -> Option<String> {
        let offered = self.offered(row, key)?;
        if offered.is_complement() || offered.values().len() != 1 {
            return None;
        }
        offered.values().next().map(str::to_owned)
    }

    /// The values rows offer for a label, with their rows, as far as the template allows them.
    pub(crate) fn domains(
        &self,
        key: &str,
        of_template: Option<&Requirement>,
    ) -> BTreeMap<String, BitSet> {
        let column = {
            let mut answers = lock(&self.answers);
            self.column(&mut answers, key)
        };
        let mut domains: BTreeMap<String, BitSet> = BTreeMap::new();
        for (offered, rows) in &column.offered {
            for value in offered
                .iter()
                .filter(|o| !o.is_complement())
                .flat_map(Requirement::values)
            {
                match domains.get_mut(value) {
                    Some(known) => known.unite(rows),
                    None => {
                        domains.insert(value.to_owned(), rows.clone());
                    }
                }
            }
        }
        if let Some(template) = of_template {
            if domains.is_empty() && !template.is_complement() {
                let all = BitSet::full(self.rows.len());
                domains.extend(
                    template
                        .values()
                        .map(|value| (value.to_owned(), all.clone())),
                );
            }
            domains.retain(|value, _| template.has(value));
        }
        domains
    }
}
