//! The scenarios of `scenarios/*.yaml`: a cluster in lines, and what one loop after another makes of it.
//!
//! A file is a list of stories. Each says what users complain about or what the reference's own suites test, in words.

use std::collections::BTreeMap;
use std::fs;

use scheduling::instance_type::InstanceType;
use serde::Deserialize;

use super::*;

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
}

fn types() -> std::sync::Arc<[std::sync::Arc<InstanceType>]> {
    world::catalogue()
}

fn play(file: &str, story: &Story) {
    let about = format!("{file}: {}", story.story);
    let mut world = World::new(&story.cluster);
    world.gates = Gates {
        spot_to_spot: story.spot_to_spot,
        terminate_first_drift: story.terminate_first,
        terminate_first_repair: story.terminate_first,
    };
    world.repair = story.repair.then(world::repair_policies);
    if let Some(now) = &story.now {
        world.now = now.parse().unwrap();
    }
    let decision = world.decide();
    assert_eq!(
        told(&decision),
        story.commands,
        "{about}: {:#?}",
        decision.outcomes
    );
    let nodes = world.cluster.snapshot().nodes().len();
    assert_eq!(
        decision.outcomes.len(),
        nodes,
        "{about}: one outcome a node"
    );
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
    let Some(Meanwhile { lines, result }) = &story.meanwhile else {
        return;
    };
    let command = decision.commands[0].clone();
    for line in lines.lines().filter(|it| !it.trim().is_empty()) {
        world.line(line.trim(), &types());
    }
    let validated = world.run(natively(), |input, hooks| {
        validate(input, hooks, &Interrupt::never(), command)
    });
    let came = match &validated {
        Ok(command) => {
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
}

#[test]
fn every_scenario_ends_as_it_should() {
    let mut played = 0;
    let mut files: Vec<_> = fs::read_dir("scenarios")
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        let stories: Vec<Story> = serde_saphyr::from_str(&text).unwrap();
        for story in &stories {
            play(&name, story);
        }
        played += stories.len();
    }
    assert!(played >= 130, "{played}");
}
