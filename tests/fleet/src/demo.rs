//! A fleet in `mortise demo`: the production controller in virtual time.

use serde_json::Value;

use crate::asked::{Asked, Way};
use crate::manifests::Fleet;
use crate::mortise::{json_of, number};
use crate::row::{Full, Lived, Nodes};

/// All pods run within so many minutes of the last one's creation, or the row says that they do not.
const MINUTES_TO_RUN: u64 = 4;

pub(crate) fn live(asked: &Asked, fleet: &Fleet, way: Way) -> anyhow::Result<Lived> {
    let seed = fleet.seed.to_string();
    let rate = asked.pods_per_second.to_string();
    let streamed = match way {
        Way::AtOnce => 0,
        Way::Stream => fleet.pods / u64::from(asked.pods_per_second.max(1)),
    };
    let until = streamed + MINUTES_TO_RUN * 60 + asked.watched.as_secs();
    let until = format!("{until}s");
    let file = fleet.file.display().to_string();
    let mut words = vec!["demo", "-o", "json", "--speed", "max", "-f", &file];
    words.extend(["--seed", &seed, "--until", &until]);
    if way == Way::Stream {
        words.extend(["--pods-per-second", &rate]);
    }
    words.extend(asked.more.iter().map(String::as_str));
    Ok(lived(fleet, &json_of(asked, words)?))
}

fn lived(fleet: &Fleet, summary: &Value) -> Lived {
    let whole = |of: &Value, key: &str| of[key].as_u64().unwrap_or_default();
    let nodes = summary["nodes"].as_array().map_or(0, Vec::len);
    let full = &summary["allRunning"];
    let is_full = whole(full, "pods") == fleet.pods;
    Lived {
        all_running: is_full.then(|| Full {
            seconds: number(full, "seconds"),
            nodes: Nodes {
                nodes: whole(full, "nodes"),
                price_per_hour: number(full, "pricePerHour"),
            },
            launches: whole(full, "launches"),
            evictions: whole(full, "evictions"),
            slowest_pod: full["slowestPod"]["pod"].as_str().map(str::to_owned),
            slowest_pod_seconds: number(&full["slowestPod"], "seconds"),
            slowest_boot_seconds: number(full, "slowestBootSeconds"),
        }),
        end: Nodes {
            nodes: u64::try_from(nodes).unwrap_or(u64::MAX),
            price_per_hour: number(summary, "pricePerHour"),
        },
        launches: whole(summary, "launches"),
        terminations: whole(summary, "terminations"),
        evictions: whole(summary, "evictions"),
        pods_off_plan: whole(summary, "podsOffPlan"),
        claims_off_plan: whole(summary, "claimsOffPlan"),
        cpu_seconds: number(summary, "cpuSeconds"),
    }
}
