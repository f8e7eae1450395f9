//! The scenarios of `scenarios/*.yaml`: a cluster in lines, and what one loop after another makes of it.
//!
//! A file is a list of stories. Each says what users complain about or what the reference's own suites test, in words.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use scheduling::instance_type::InstanceType;
use serde::Deserialize;
use state::ledger::{Ledger, Record, Subject, Why};

use super::*;
use invariants::{Hostile, Told, each_node_once, settles, violations};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    story: String,
    /// Lines for [`World`].
    cluster: String,
    /// The present moment; noon on a Friday if left away.
    #[serde(default)]
    now: Option<String>,
    #[serde(default)]
    spot_to_spot: bool,
    #[serde(default)]
    terminate_first: bool,
    /// Sick nodes are repaired, by the policies of [`world::repair_policies`].
    #[serde(default)]
    repair: bool,
    /// Commands as [`told`] words them.
    commands: String,
    /// Outcome id of nodes.
    #[serde(default)]
    outcomes: BTreeMap<String, String>,
    /// Words in the reasons of nodes.
    #[serde(default)]
    reasons: BTreeMap<String, String>,
    /// Words in the DisruptionBlocked events of nodes.
    #[serde(default)]
    events: BTreeMap<String, String>,
    /// Words that `mortise why node` tells of nodes.
    #[serde(default)]
    why: BTreeMap<String, Vec<String>>,
    /// What happens while the command waits for its validation, and what becomes of it.
    #[serde(default)]
    meanwhile: Option<Meanwhile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meanwhile {
    lines: String,
    /// `kept: NODE..`, or the kind of rejection.
    result: String,
    /// Words of the rejection.
    #[serde(default)]
    says: String,
}

fn types() -> std::sync::Arc<[std::sync::Arc<InstanceType>]> {
    world::catalogue()
}

fn world_of(story: &Story) -> World {
    let mut world = World::new(&story.cluster);
    world.gates = Gates {
        spot_to_spot: story.spot_to_spot,
        terminate_first_drift: story.terminate_first,
        terminate_first_repair: story.terminate_first,
        ..Gates::default()
    };
    world.repair = story.repair.then(|| Arc::new(world::repair_policies()));
    if let Some(now) = &story.now {
        world.now = now.parse().unwrap();
    }
    world
}

/// What `mortise why node NAME` prints after the loop.
fn why(world: &World, decision: &Decision, node: &str) -> String {
    let mut ledger = Ledger::default();
    let record = Record::DisruptionRound(decision.record(world.now));
    ledger.push(record);
    Why::of(&ledger, &Subject::Node(node.to_owned())).to_string()
}

/// Invariants on what was decided, again, by many threads, and under a policy that means ill; then to the end.
fn hold_invariants(about: &str, story: &Story, decision: &Decision) {
    let told_lines = Told::of(&story.cluster);
    let mut world = world_of(story);
    let broken = violations(&told_lines, &world, &decision.commands);
    assert!(broken.is_empty(), "{about}: {broken:?}");
    each_node_once(&world, decision);
    world.threads = 3;
    let again = world.decide();
    assert_eq!(again.commands, decision.commands, "{about}: I18");
    assert_eq!(again.outcomes, decision.outcomes, "{about}: I18");
    let hostile = PolicyHooks {
        consolidation: &Hostile,
        budgets: &Hostile,
        ..natively()
    };
    let misled = world.decide_by(hostile);
    let broken = violations(&told_lines, &world, &misled.commands);
    assert!(broken.is_empty(), "{about}, misled: {broken:?}");
    each_node_once(&world, &misled);
    settles(&mut world);
}

/// What is decided is held against the invariants story by story by `just deep` and in CI, which optimise; every day,
/// of one story in so many, and of those of [`METHODS`].
const STORIES_HELD: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// The stories of each method at its simplest.
const METHODS: &str = "methods.yaml";

/// What is told of a node that is no candidate.
fn told_of<'a>(decision: &'a Decision, node: &str) -> Vec<&'a str> {
    let blocked = decision.blocked.iter();
    let of_node = blocked.filter(|it| it.node.as_deref() == Some(node));
    of_node.filter_map(|it| it.event_message()).collect()
}

fn play(file: &str, story: &Story, holds_invariants: bool) {
    let about = format!("{file}: {}", story.story);
    let mut world = world_of(story);
    let decision = world.decide();
    assert_eq!(
        told(&decision),
        story.commands,
        "{about}: {:#?}",
        decision.outcomes
    );
    if holds_invariants {
        hold_invariants(&about, story, &decision);
    }
    for it in &decision.outcomes {
        let told = why(&world, &decision, &it.node);
        assert!(told.contains(it.outcome.meaning()), "{about}: {told}");
    }
    for (node, words) in &story.why {
        let told = why(&world, &decision, node);
        for word in words {
            assert!(told.contains(word), "{about}: {word:?} in {told}");
        }
    }
    for (node, expected) in &story.outcomes {
        assert_eq!(outcome(&decision, node), expected, "{about}: {node}");
    }
    for (node, words) in &story.reasons {
        let found = decision
            .outcomes
            .iter()
            .find(|it| it.node == *node)
            .unwrap();
        assert!(
            found.reason.contains(words),
            "{about}: {node}: {}",
            found.reason
        );
    }
    for (node, words) in &story.events {
        let told = told_of(&decision, node);
        let is_told = told.iter().any(|it| it.contains(words));
        assert!(is_told, "{about}: {node}: {told:?}");
    }
    play_on(&about, &mut world, story, &decision);
}

/// What becomes of the command that waits, where the story goes on.
fn play_on(about: &str, world: &mut World, story: &Story, decision: &Decision) {
    let Some(Meanwhile {
        lines,
        result,
        says,
    }) = &story.meanwhile
    else {
        return;
    };
    let command = decision.commands[0].clone();
    let mut told_lines = Told::of(&story.cluster);
    for line in lines.lines().filter(|it| !it.trim().is_empty()) {
        world.line(line.trim(), &types());
        told_lines.line(line.trim());
    }
    let validated = world.run(natively(), |input, hooks| {
        validate(input, hooks, &Interrupt::never(), command).survivor
    });
    let came = match &validated {
        Ok(command) => {
            let broken = violations(&told_lines, world, std::slice::from_ref(command));
            assert!(broken.is_empty(), "{about}, validated: {broken:?}");
            let nodes: Vec<&str> = command
                .candidates
                .iter()
                .map(|it| it.node.as_str())
                .collect();
            format!("kept: {}", nodes.join(" "))
        }
        Err(Rejection::Churn(_)) => "churn".to_owned(),
        Err(Rejection::Budget(_)) => "budget".to_owned(),
        Err(Rejection::Scheduling(_)) => "scheduling".to_owned(),
    };
    assert_eq!(came, *result, "{about}: {validated:?}");
    let told = validated.err().map(|it| it.to_string());
    let told = told.unwrap_or_default();
    assert!(told.contains(says), "{about}: {told}");
}

#[test]
fn every_scenario_ends_as_it_should() {
    let (mut played, mut failed) = (0, Vec::new());
    let mut files: Vec<_> = fs::read_dir("scenarios")
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        let stories: Vec<Story> = serde_saphyr::from_str(&text).unwrap();
        for (number, story) in stories.iter().enumerate() {
            let is_held = number.is_multiple_of(STORIES_HELD) || name.ends_with(METHODS);
            let played = std::panic::catch_unwind(|| play(&name, story, is_held));
            failed.extend(played.err().map(|_| story.story.as_str().to_owned()));
            // A complaint is answered, not only dealt with.
            let is_complaint = name.ends_with("complaints.yaml");
            assert!(!is_complaint || !story.why.is_empty(), "{}", story.story);
        }
        played += stories.len();
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(played >= 175, "{played}");
}
