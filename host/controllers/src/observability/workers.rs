//! Queues and passes: what waits, and how long what is at work has taken. Answers to client-go's
//! `util/workqueue/metrics.go` and to the gauges of `pkg/controllers/provisioning/scheduling/metrics.go`.

use super::{Observation, Tell, count};
use crate::shell::metrics::labels::{
    ControllerLabel, PriorityLabel, QueueLabel, SchedulingIdLabel,
};
use crate::shell::runtime::work_queue::Load;

type LabelsOfQueue = (QueueLabel, ControllerLabel);
type LabelsOfPass = (ControllerLabel, SchedulingIdLabel);

pub(super) fn depth(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, (QueueLabel, ControllerLabel, PriorityLabel)>,
) {
    observation.known.queue_loads.each(|name, load| {
        let labels = (QueueLabel(name), ControllerLabel(name), PriorityLabel("0"));
        emit(labels, count(load.waiting));
    });
}

pub(super) fn unfinished_work(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfQueue>) {
    each(observation, emit, |load| load.unfinished.as_secs_f64());
}

pub(super) fn longest_work(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfQueue>) {
    each(observation, emit, |load| load.longest.as_secs_f64());
}

fn each(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfQueue>,
    value: impl Fn(&Load) -> f64,
) {
    observation.known.queue_loads.each(|name, load| {
        emit((QueueLabel(name), ControllerLabel(name)), value(load));
    });
}

pub(super) fn queue_depth(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfPass>) {
    observation.known.passes.each(|controller, pass| {
        let labels = (ControllerLabel(controller), SchedulingIdLabel(&*pass.id));
        emit(labels, count(pass.pods));
    });
}

pub(super) fn unfinished_passes(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfPass>) {
    observation.known.passes.each(|controller, pass| {
        if let Some(began) = pass.began {
            let labels = (ControllerLabel(controller), SchedulingIdLabel(&*pass.id));
            emit(labels, began.elapsed().as_secs_f64());
        }
    });
}
