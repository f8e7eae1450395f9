//! The order of a pool's rows: by cost, and by what else tells them apart.

use super::{BuyableRow, TypeRow};

/// Cheapest first; ties go to the newer generation, then to the names.
pub(super) fn sort_rows(rows: &mut [BuyableRow], types: &[TypeRow]) {
    let generations: Vec<u32> = types.iter().map(|t| t.instance_type.generation()).collect();
    let mut by_age: Vec<usize> = (0..types.len()).collect();
    by_age.sort_unstable_by(|a, b| {
        let name = |at: usize| &types[at].instance_type.name;
        generations[*b]
            .cmp(&generations[*a])
            .then_with(|| name(*a).cmp(name(*b)))
            .then(a.cmp(b))
    });
    let mut rank = vec![0_usize; types.len()];
    for (at, of_type) in by_age.into_iter().enumerate() {
        rank[of_type] = at;
    }
    let order = |a: &BuyableRow, b: &BuyableRow| {
        a.effective_cost_per_hour
            .total_cmp(&b.effective_cost_per_hour)
            .then_with(|| rank[a.type_index].cmp(&rank[b.type_index]))
    };
    rows.sort_unstable_by(|a, b| order(a, b).then(a.offering.cmp(&b.offering)));
    // Words are only compared where nothing else tells rows apart.
    for same in rows.chunk_by_mut(|a, b| order(a, b).is_eq()) {
        if same.len() > 1 {
            same.sort_by_cached_key(|row| sold(types, row));
        }
    }
}

fn sold<'a>(types: &'a [TypeRow], row: &BuyableRow) -> impl Ord + use<'a> {
    let offering = &types[row.type_index].instance_type.offerings[row.offering];
    (
        offering.zone(),
        offering.capacity_type(),
        offering.reservation_id(),
    )
}
