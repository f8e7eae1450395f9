//! How long pods waited until they ran, and instances until they took some.

use api_server::{ApiServer, Resource, Selection};
use jiff::Timestamp;
use serde_json::Value;
use sim::ec2::SimulatedEc2;

use super::frame::round;
use super::summary::SlowestPod;

/// The running pod that waited longest; the first by name of equals.
pub(super) fn slowest_pod(server: &ApiServer) -> SlowestPod {
    let mut slowest = SlowestPod::default();
    for pod in server.list(&Resource::PODS, &Selection::everything()) {
        let Some(seconds) = wait_seconds(&pod).filter(|it| *it > slowest.seconds) else {
            continue;
        };
        let metadata = &pod["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap_or_default();
        slowest = SlowestPod {
            pod: format!("{}/{}", text("namespace"), text("name")),
            seconds,
        };
    }
    slowest
}

/// From the creation of the pod until its containers ran.
fn wait_seconds(pod: &Value) -> Option<f64> {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let created_at = time(&pod["metadata"]["creationTimestamp"])?;
    let started_at = time(&pod["status"]["startTime"])?;
    Some(started_at.duration_since(created_at).as_secs_f64())
}

/// The longest that an instance took from its launch until its Node was ready.
pub(super) fn slowest_boot_seconds(ec2: &SimulatedEc2) -> f64 {
    let boots = ec2.each_instance(|it| it.ready_at.duration_since(it.launched_at).as_secs_f64());
    round(boots.into_iter().fold(0.0, f64::max), 3)
}
