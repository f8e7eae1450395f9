//! How long a solve takes: by family and size, with 400 and 1,200 types, and with 1,000 nodes in the way.
//!
//! `cargo bench -p scheduling`, or `-- plain` for one family. The table of goals is printed by the example `solve` of
//! the crate `solution-checker`.

#[path = "../tests/support/families.rs"]
mod families;

use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion};
use families::Family;
use scheduling::problem::Problem;
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, Prepared, TableCache, solve, solve_prepared};

const FAMILIES: [(&str, Family); 4] = [
    ("plain", Family::Plain),
    ("fleet", Family::Fleet),
    ("diverse", Family::Diverse),
    ("prefs", Family::Prefs),
];
const TYPES: [usize; 2] = [400, 1200];
const PODS: [usize; 3] = [500, 5_000, 20_000];
const NODES: usize = 1_000;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    by_family_and_size(&mut criterion);
    beside_nodes(&mut criterion);
    tables_kept(&mut criterion);
    criterion.final_summary();
}

fn measure(criterion: &mut Criterion, (name, label): (&str, &str), problem: &Problem) {
    let id = BenchmarkId::new(name, label);
    criterion.bench_with_input(id, problem, |bencher, problem| {
        // The answer is dropped outside of what is measured.
        bencher.iter_batched(
            || (),
            |()| solve(problem, &PriceRank, &Interrupt::never()),
            BatchSize::LargeInput,
        );
    });
}

fn by_family_and_size(criterion: &mut Criterion) {
    for types in TYPES {
        let catalogue = families::catalogue(1, types);
        for (name, family) in FAMILIES {
            for pods in PODS {
                let problem = families::problem(family, 1, pods, &catalogue);
                let label = format!("{pods} pods, {types} types");
                measure(criterion, (name, &label), &problem);
            }
        }
    }
}

fn beside_nodes(criterion: &mut Criterion) {
    let catalogue = families::catalogue(1, TYPES[0]);
    for (name, family) in FAMILIES {
        let mut problem = families::problem(family, 1, PODS[1], &catalogue);
        families::add_nodes(&mut problem, NODES);
        let label = format!("{} pods, {NODES} nodes", PODS[1]);
        measure(criterion, (name, &label), &problem);
    }
}

/// What a round costs when the tables of an earlier one are still good, as in a controller that runs.
fn tables_kept(criterion: &mut Criterion) {
    let catalogue = families::catalogue(1, TYPES[1]);
    let problem = families::problem(Family::Plain, 1, PODS[0], &catalogue);
    let tables = TableCache::default();
    criterion.bench_function("plain/500 pods, tables kept", |bencher| {
        bencher.iter(|| {
            let prepared = Prepared::new(&problem, &PriceRank, &tables);
            solve_prepared(&problem, &prepared, &Interrupt::never())
        });
    });
}
