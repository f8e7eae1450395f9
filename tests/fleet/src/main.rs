//! Fleets of the problem families as Deployments: does the cluster come to what one solve plans, and stay there?
//!
//! `cargo run --release -p fleet -- MORTISE [OPTIONS]`, where MORTISE is the binary. Each row is one fleet in one
//! world: in `mortise demo`, or with `--kubeconfig` on a cluster that a controller of ours with simulated instances is
//! started for. Beside it stand `mortise simulate` of the same pods at the same prices, the least that any plan could
//! cost, and the goals. GPUs are left out: their nodes are the same either way.

#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

mod asked;
mod cluster;
mod demo;
#[path = "../../../host/scheduling/tests/support/families.rs"]
mod families;
mod goals;
mod manifests;
mod metrics;
mod mortise;
mod row;

use anyhow::ensure;
use asked::{Asked, Way};
use manifests::Fleet;
use row::Row;

fn main() -> anyhow::Result<()> {
    let asked = Asked::read(std::env::args().skip(1))?;
    let mut rows = Vec::new();
    if !asked.prints_json {
        println!("{}", Row::HEAD);
    }
    for family in &asked.families {
        for pods in &asked.pods {
            for seed in asked.seeds.clone() {
                let fleet = Fleet::write(family, *pods, seed)?;
                for way in &asked.ways {
                    let row = run(&asked, &fleet, *way)?;
                    if !asked.prints_json {
                        println!("{row}");
                    }
                    rows.push(row);
                }
            }
        }
    }
    let reached = rows.iter().filter(|it| it.is_reached()).count();
    if asked.prints_json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("{reached} of {} rows reach every goal", rows.len());
    }
    ensure!(
        reached >= asked.rows_min,
        "{reached} rows reach every goal, where {} have to",
        asked.rows_min
    );
    Ok(())
}

fn run(asked: &Asked, fleet: &Fleet, way: Way) -> anyhow::Result<Row> {
    let plan = mortise::plan(asked, fleet)?;
    let lived = match &asked.kubeconfig {
        Some(kubeconfig) => cluster::live(asked, fleet, kubeconfig)?,
        None => demo::live(asked, fleet, way)?,
    };
    Ok(Row::new(asked, fleet, way, plan, lived))
}
