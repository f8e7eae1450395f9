//! A controller that dies anywhere between the creation of a claim and the registration of its node, at a write or at a
//! call of EC2: every claim gets one instance, ever, and nothing is left over.
//!
//! Worlds and deaths are drawn from seeds, so that what fails is told by its world and its deaths and fails again. The
//! provider is the real one on the simulated EC2, which claims ask together; what was sent arrives, whoever died since.

use std::sync::Mutex;

use sim::ec2::Ec2Faults;
use sim::random::SplitMix64;

use crate::process::Death;
use crate::region::{Case, Region, size};

/// Worlds that differ; each is left by many deaths.
const WORLDS: u64 = 25;
/// Deaths in all, where nobody asks for another number: a share of the 2,000 that a run of the whole has, and of that a
/// tenth where nothing is optimised.
const DEATHS: u64 = if cfg!(debug_assertions) { 25 } else { 250 };
/// Processes of one world that may die, one after another.
const DEATHS_PER_WORLD_MAX: usize = 4;
/// Calls of a process that starts in the middle until it has found its way.
const CALLS_OF_A_START: u64 = 40;

const CLASS_IS_READY_SECONDS: u64 = 8;
const SETTLES_SECONDS_MAX: u64 = 900;
/// Longer than two passes of garbage collection and what EC2 lists late.
const REST_SECONDS: u64 = 260;

/// A world as the seed has it.
fn case(seed: u64) -> Case {
    let mut chance = SplitMix64::new(seed, "crash-points");
    let sizes = ["1Gi", "5Gi", "9Gi"];
    let deployments = sizes[..size(chance.between(1, 3))].iter();
    let deployments = deployments.map(|memory| (chance.between(1, 4), *memory));
    let deployments = deployments.collect();
    let pick = |number: u64, of: &[f64]| of[size(number % of.len() as u64)];
    Case {
        deployments,
        capacity_type: ["on-demand", "spot"][size(chance.between(0, 1))],
        faults: Ec2Faults {
            visibility_delay_seconds_max: [0, 2, 15, 60][size(chance.between(0, 3))],
            throttling: chance.between(0, 3) == 0,
            internal_error_chance: pick(chance.next_u64(), &[0.0, 0.0, 0.03]),
            lost_answer_chance: pick(chance.next_u64(), &[0.0, 0.3]),
            ..Ec2Faults::calm()
        },
        has_queue: false,
        seed,
    }
}

/// What came of a world in which processes died.
struct Played {
    /// What the first process did until every claim had its node, or until it died.
    calls: Vec<String>,
    /// Who died, and of what.
    deaths: Vec<String>,
    faults: Vec<String>,
}

/// Plays a world in which the processes die so, one after another; the last one lives.
fn play(case: &Case, deaths: &[Death]) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut deaths = deaths.iter().copied();
        let mut death = deaths.next();
        let mut region = Region::new(case, death);
        region.pass(CLASS_IS_READY_SECONDS).await;
        region.deploy(case);
        let mut played = Played {
            calls: Vec::new(),
            deaths: Vec::new(),
            faults: Vec::new(),
        };
        for second in 0.. {
            if second == SETTLES_SECONDS_MAX {
                played.faults.push("not every pod got a node".to_owned());
                break;
            }
            if region.process.is_dead() {
                let of = region.process.calls();
                let at = death.map_or(0, |it| it.call);
                let when = if death.is_some_and(|it| it.is_sent) {
                    "after"
                } else {
                    "before"
                };
                played
                    .deaths
                    .push(format!("{when} call {at}, {}", of[at - 1]));
                death = deaths.next();
                region.restart(death);
            } else if region.is_registered(case) {
                break;
            }
            region.pass(1).await;
        }
        played.calls = region.process.calls();
        if death.is_some() {
            // One that was to die and came through would do so at rest, with nobody to follow it.
            region.restart(None);
        }
        region.pass(REST_SECONDS).await;
        played.faults.extend(region.faults().await);
        played
    })
}

/// Draws deaths of the processes of a world: the first between the first claim and the last node, the others from the
/// start of their process on.
fn draw(chance: &mut SplitMix64, calls: &[String]) -> Vec<Death> {
    let is_claim = |call: &&String| call.starts_with("POST") && call.ends_with("/nodeclaims");
    let first = calls.iter().position(|it| is_claim(&it)).unwrap() as u64 + 1;
    let last = calls.len() as u64;
    let mut deaths = Vec::new();
    while deaths.is_empty() || (deaths.len() < DEATHS_PER_WORLD_MAX && chance.between(0, 1) == 1) {
        let call = if deaths.is_empty() {
            chance.between(first, last)
        } else {
            chance.between(1, last - first + CALLS_OF_A_START)
        };
        deaths.push(Death {
            call: size(call),
            is_sent: chance.between(0, 1) == 1,
        });
    }
    deaths
}

/// Deaths of one world until there are enough; how many there were, and what went wrong.
fn kill(seed: u64, deaths_wanted: usize) -> (usize, Vec<String>) {
    let case = case(seed);
    let reference = play(&case, &[]);
    let mut wrong: Vec<String> = Vec::new();
    if !reference.faults.is_empty() {
        wrong.push(format!("{case:?} without a death: {:?}", reference.faults));
    }
    let mut chance = SplitMix64::new(seed, "deaths");
    let mut deaths = 0;
    while deaths < deaths_wanted && wrong.len() < 3 {
        let played = play(&case, &draw(&mut chance, &reference.calls));
        deaths += played.deaths.len();
        if !played.faults.is_empty() {
            wrong.push(format!(
                "{case:?}, dead {:?}: {:#?}",
                played.deaths, played.faults
            ));
        }
    }
    (deaths, wrong)
}

fn number(variable: &str, default: u64) -> u64 {
    let told = std::env::var(variable).ok();
    told.map_or(default, |it| it.parse().unwrap())
}

/// `MORTISE_CRASH_POINTS` sets how many deaths there are, `MORTISE_CRASH_SEED` which worlds.
#[test]
fn wherever_the_controller_dies_as_many_instances_are_launched_as_there_are_claims() {
    let wanted = size(number("MORTISE_CRASH_POINTS", DEATHS));
    let first = number("MORTISE_CRASH_SEED", 0);
    let seeds = Mutex::new(first..first + WORLDS);
    let found = Mutex::new((0, Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(seed) = seeds.lock().unwrap().next() else {
                        return;
                    };
                    let (deaths, wrong) = kill(seed, wanted.div_ceil(size(WORLDS)));
                    let mut found = found.lock().unwrap();
                    found.0 += deaths;
                    found.1.extend(wrong);
                }
            });
        }
    });
    let (deaths, wrong) = found.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(deaths >= wanted, "{deaths} of {wanted}");
}
