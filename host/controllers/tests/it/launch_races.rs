//! Claims that somebody changes while they are launched: nobody is told of a failure, as there is none.

use api_server::Resource;
use serde_json::json;

use crate::world::World;

/// What somebody does to a claim while its launch is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Race {
    /// It is deleted, and held by our finalizer.
    Deleted,
    /// It is deleted, and its finalizer taken off.
    Removed,
    /// Another process writes that it launches it.
    BegunElsewhere,
}

impl Race {
    fn happens(self, world: &World, claim: &str) {
        let claims = &Resource::NODE_CLAIMS;
        let patch = |change| world.api.patch_merge(claims, "", claim, change).unwrap();
        match self {
            Self::Deleted => world.delete(claims, claim),
            Self::Removed => {
                world.delete(claims, claim);
                patch(json!({"metadata": {"finalizers": null}}));
            }
            Self::BegunElsewhere => {
                let begun = json!({"mortise.dev/launch": "0/elsewhere"});
                patch(json!({"metadata": {"annotations": begun}}));
            }
        }
    }
}

/// Failed reconciles of the controller that launches, as its metrics count them.
fn failures(world: &World) -> Vec<f64> {
    let of_claims = ["controller=\"nodeclaim.lifecycle\""];
    world.values("controller_runtime_reconcile_errors_total", &of_claims)
}

/// Plays a race against a launch that is, or is not, yet to be written on its claim.
async fn play(race: Race, writes_attempts: bool) {
    let case = format!("{race:?}, {writes_attempts}");
    let world = World::new();
    world.cloud.with(|it| it.writes_attempts = writes_attempts);
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world
        .until("a launch is asked for", 30, |world| {
            world.cloud.with(|it| !it.asked.is_empty())
        })
        .await;
    race.happens(&world, &world.names(&Resource::NODE_CLAIMS)[0]);
    world
        .until("the pod runs", 120, |world| world.bound_pods() == 1)
        .await;
    world
        .until("one instance is left", 120, |world| {
            world.cloud.running() == 1
        })
        .await;
    assert_eq!(world.times_recorded("claim-launch-failed"), 0, "{case}");
    assert_eq!(failures(&world), [0.0], "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_its_claim_has_no_use_for_any_more_ends_without_a_word() {
    for race in [Race::Deleted, Race::Removed, Race::BegunElsewhere] {
        play(race, true).await;
    }
    // What was launched is ended, as its claim cannot be told of it.
    play(Race::Removed, false).await;
}
