//! Queues and passes: what waits, and how long what is at work has taken. Answers to client-go's
//! `util/workqueue/metrics.go` and to the gauges of `pkg/controllers/provisioning/scheduling/metrics.go`.

use super::{Observation, Tell, count};
use crate::shell::runtime::work_queue::Load;

pub(super) fn depth(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    observation.known.queue_loads.each(|name, load| {
        let labels = [("name", name), ("controller", name), ("priority", "0")];
        emit(&labels, count(load.waiting));
    });
}

pub(super) fn unfinished_work(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    each(observation, emit, |load| load.unfinished.as_secs_f64());
}

pub(super) fn longest_work(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    each(observation, emit, |load| load.longest.as_secs_f64());
}

fn each(observation: &Observation<'_>, emit: &mut Tell<'_>, value: impl Fn(&Load) -> f64) {
    observation.known.queue_loads.each(|name, load| {
        emit(&[("name", name), ("controller", name)], value(load));
    });
}

pub(super) fn queue_depth(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    observation.known.passes.each(|controller, pass| {
        let labels = [("controller", controller), ("scheduling_id", &pass.id)];
        emit(&labels, count(pass.pods));
    });
}

pub(super) fn unfinished_passes(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    observation.known.passes.each(|controller, pass| {
        if let Some(began) = pass.began {
            let labels = [("controller", controller), ("scheduling_id", &*pass.id)];
            emit(&labels, began.elapsed().as_secs_f64());
        }
    });
}
