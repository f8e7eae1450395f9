//! Solves a problem and tells nodes, bill, time and memory: the yardstick of the packer. Or prints the whole table.
//!
//! `cargo run --release -p solution-checker --example solve -- ARGUMENTS`, where the arguments are
//! - `problem.json types.json` for a file, either of them gzipped or not,
//! - `plain|fleet|diverse|prefs|groups SEED PODS` for a problem of the generator, 1,199 types,
//! - `table [DIRECTORY]` for a line of every yardstick, goal beside measured; the files of the directory if given.
//!
//! Options: `types=FILE`, `packing=karpenter`, `preferences=ignore`, `threads=N`, `plans=N`, `tolerance=SHARE`,
//! `repeats=N`, `check`, `quiet`.

#[path = "../../../../host/scheduling/tests/support/families.rs"]
mod families;
mod table;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use apis::CapacityType;
use families::Family;
use problem_file::{FileWorld, InstanceTypes};
use scheduling::problem::{Options, Packing, PreferencePolicy, Problem};
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, Solution, solve};

type Failure = Box<dyn std::error::Error>;

/// What `mortise` runs with, so that times and memory are of its kind.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Types of the generator's own: as many as EC2 has.
const TYPES: usize = 1199;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["table", rest @ ..] => table::print(rest.first().copied()),
        [family, seed, pods, flags @ ..] if Family::parse(family).is_some() => {
            let flags = Flags(flags);
            let family = Family::parse(family).ok_or("no such family")?;
            let types = match flags.value("types") {
                Some(file) => read_types(file)?.types,
                None => families::catalogue(1, TYPES),
            };
            let (seed, pods) = (seed.parse()?, pods.parse()?);
            run(families::problem(family, seed, pods, &types), &flags);
            Ok(())
        }
        [problem, types, flags @ ..] => {
            run(read_problem(problem, types)?, &Flags(flags));
            Ok(())
        }
        _ => Err("usage: solve problem.json types.json | FAMILY SEED PODS | table".into()),
    }
}

/// What follows the problem.
struct Flags<'a>(&'a [&'a str]);

impl Flags<'_> {
    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut words = self.0.iter();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.value(name)?.parse().ok()
    }
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn run(mut problem: Problem, flags: &Flags<'_>) {
    let options = &mut problem.options;
    if flags.value("packing") == Some("karpenter") {
        options.packing = Packing::Karpenter;
    }
    if flags.value("preferences") == Some("ignore") {
        options.preference_policy = PreferencePolicy::Ignore;
    }
    options.threads = flags.number("threads").unwrap_or(options.threads);
    let tuning = &mut options.tuning;
    tuning.plans_max = flags.number("plans").unwrap_or(tuning.plans_max);
    let tolerance = flags.value("tolerance").and_then(|word| word.parse().ok());
    tuning.nodes_tolerance = tolerance.unwrap_or(tuning.nodes_tolerance);
    let (mut best_ms, mut best_cpu_ms) = (f64::INFINITY, f64::INFINITY);
    let mut solution = Solution::default();
    for _ in 0..flags.number("repeats").unwrap_or(1).max(1) {
        drop(std::mem::take(&mut solution));
        let (start, cpu_start) = (Instant::now(), cpu_ms());
        solution = solve(&problem, &PriceRank, &Interrupt::never());
        best_ms = best_ms.min(start.elapsed().as_secs_f64() * 1000.0);
        best_cpu_ms = best_cpu_ms.min(cpu_ms() - cpu_start);
    }
    let peak = peak_mebibytes();
    let spot = solution
        .claims
        .iter()
        .filter(|claim| claim.best.capacity_type == Some(CapacityType::Spot));
    println!(
        "pods {} nodes {} errors {} bill {:.3} ms {best_ms:.1} cpu_ms {best_cpu_ms:.1} mib {peak} spot_types {} faults {}",
        problem.pods.len(),
        solution.claims.len(),
        solution.pod_errors.len(),
        solution.price_per_hour(),
        spot.map(|claim| claim.instance_types.len())
            .min()
            .unwrap_or(0),
        faults(&problem, &solution, flags),
    );
    if !flags.has("quiet") {
        describe(&solution);
    }
}

/// How many rules the answer breaks, where that was asked.
#[expect(clippy::print_stderr, reason = "printing is what this program is for")]
fn faults(problem: &Problem, solution: &Solution, flags: &Flags<'_>) -> String {
    if !flags.has("check") {
        return "unknown".to_owned();
    }
    let faults = solution_checker::check(problem, solution);
    for fault in faults.iter().take(5) {
        eprintln!("{fault}");
    }
    faults.len().to_string()
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn describe(solution: &Solution) {
    for (pod, error) in solution.pod_errors.iter().take(5) {
        println!("  {pod}: {error}");
    }
    let mut kinds: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for claim in &solution.claims {
        let best = &claim.best;
        let kind = (
            best.instance_type.as_str(),
            CapacityType::word(best.capacity_type),
        );
        let entry = kinds.entry(kind).or_default();
        entry.0 += 1;
        entry.1 += best.price_per_hour;
    }
    for ((name, capacity_type), (count, price)) in kinds {
        println!("  {count:4} {name} {capacity_type} {price:.3}");
    }
}

/// CPU time of this thread so far; zero where the system does not tell.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e6
}

/// The most memory the process ever held; zero where the system does not tell.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|l| l.trim().strip_suffix(" kB"));
    kibibytes.and_then(|k| k.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn read_problem(problem: &str, types: &str) -> Result<Problem, Failure> {
    let types = read_types(types)?;
    let world = FileWorld::read(&text(problem)?)?;
    if let Some(fault) = types.faults.first().or_else(|| world.faults.first()) {
        return Err(fault.to_string().into());
    }
    Ok(world.question(&types, Options::default()).problem)
}

fn read_types(path: &str) -> Result<InstanceTypes, Failure> {
    Ok(InstanceTypes::read(&text(path)?)?)
}

fn text(path: &str) -> Result<String, Failure> {
    let path = Path::new(path);
    if path.extension().is_some_and(|it| it == "gz") {
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path)?).read_to_string(&mut text)?;
        return Ok(text);
    }
    Ok(std::fs::read_to_string(path)?)
}
