//! A controller that dies at any of its writes leaves no trace: the next one ends where it would have ended.

use api_server::Resource;
use serde_json::json;

use crate::cloud::notice;
use crate::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    Launch,
    Replace,
    Interruption,
}

impl Story {
    /// Evicted pods come back one by one, and who looks between two of them may rightly buy two small nodes instead
    /// of a large one. Where pods are evicted before their new node is bought there is one of them.
    fn pods(self) -> usize {
        match self {
            Self::Launch | Self::Replace => 3,
            Self::Interruption => 1,
        }
    }
}

/// What is left when everything has come to rest.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    claims: usize,
    nodes: usize,
    bound_pods: usize,
    instances: usize,
    /// Nodes that bear marks of a command.
    marked: usize,
}

const SETTLES_SECONDS: u64 = 400;

/// Plays a story with a process that dies at a write; what is left, the writes and the launches.
async fn play(story: Story, dies_at: Option<usize>) -> (Left, usize, usize) {
    let mut world = World::new();
    if story == Story::Interruption {
        world.buy_only("spot");
    }
    world.pass(5).await;
    match story {
        Story::Launch => {
            world.process.dies_at(dies_at);
            world.keep(story.pods(), "900m");
        }
        Story::Replace | Story::Interruption => {
            world.keep(story.pods(), "900m");
            world.settle(120).await;
            assert_eq!(world.bound_pods(), story.pods());
            world.process.dies_at(dies_at);
        }
    }
    match story {
        Story::Launch => {}
        Story::Replace => {
            let changed = json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}});
            world
                .api
                .patch_merge(&Resource::NODE_POOLS, "", "default", changed)
                .unwrap();
        }
        Story::Interruption => {
            let instance = world.cloud.instance_ids()[0].clone();
            let now = world.clock.now();
            world.cloud.send(notice(
                cloudprovider::InterruptionKind::SpotInterrupted,
                &instance,
                now,
            ));
        }
    }
    world.settle(SETTLES_SECONDS).await;
    let is_marked = |node: &std::sync::Arc<serde_json::Value>| {
        let taints = node["spec"]["taints"].as_array().cloned();
        let taints = taints.unwrap_or_default();
        taints
            .iter()
            .any(|it| it["key"] == "karpenter.sh/disrupted")
    };
    let nodes = world.list(&Resource::NODES);
    let left = Left {
        claims: world.names(&Resource::NODE_CLAIMS).len(),
        nodes: nodes.len(),
        bound_pods: world.bound_pods(),
        instances: world.cloud.running(),
        marked: nodes.iter().filter(|it| is_marked(it)).count(),
    };
    (
        left,
        world.process.writes(),
        world.cloud.with(|it| it.launches),
    )
}

async fn dies_everywhere(story: Story) {
    let (reference, writes, launches) = play(story, None).await;
    assert_eq!(reference.instances, 1, "{story:?}: {reference:?}");
    assert_eq!(
        reference.bound_pods,
        story.pods(),
        "{story:?}: {reference:?}"
    );
    assert_eq!(reference.marked, 0, "{story:?}: {reference:?}");
    assert!(writes >= 5, "{story:?}: {writes}");
    for write in 1..=writes {
        let (left, _, launched) = play(story, Some(write)).await;
        assert_eq!(
            left, reference,
            "{story:?}, dead at write {write} of {writes}"
        );
        assert_eq!(
            launched, launches,
            "{story:?}, dead at write {write} of {writes}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_ends_the_same_whichever_write_the_controller_dies_at() {
    dies_everywhere(Story::Launch).await;
}

#[tokio::test(start_paused = true)]
async fn a_replacement_ends_the_same_whichever_write_the_controller_dies_at() {
    dies_everywhere(Story::Replace).await;
}

#[tokio::test(start_paused = true)]
async fn an_interruption_ends_the_same_whichever_write_the_controller_dies_at() {
    dies_everywhere(Story::Interruption).await;
}
