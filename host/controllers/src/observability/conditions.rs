//! Conditions as they are: how long each has had its status, and how long objects that go have been going.
//!
//! Answers to the gauges of `status/metrics.go` of awslabs/operatorpkg.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::{Observation, seconds};
use crate::status_conditions::{StatusKind, StatusSeen};

/// Value that a gauge shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Conditions, each as one.
    Conditions,
    /// For how long they have had their status.
    Ages,
    /// Since when an object goes.
    Terminations,
}

impl Shown {
    const ALL: [Self; 3] = [Self::Conditions, Self::Ages, Self::Terminations];

    /// Name behind that of the kind, and help.
    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Conditions => ("status_condition_count", "Conditions of an object"),
            Self::Ages => (
                "status_condition_current_status_seconds",
                "How long a condition has had its status",
            ),
            Self::Terminations => (
                "termination_current_time_seconds",
                "How long an object has been going",
            ),
        }
    }
}

/// A family: its name, what it shows, of which kinds, and whether it is one that tells kinds apart by labels.
struct ConditionGauge<'a> {
    name: String,
    shown: Shown,
    kinds: &'a [StatusKind],
    is_twin: bool,
}

pub(super) fn encode(
    observation: &Observation<'_>,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), fmt::Error> {
    for shown in Shown::ALL {
        for kind in StatusKind::ALL {
            let shape = ConditionGauge {
                name: format!("operator_{}_{}", kind.in_metrics(), shown.about().0),
                shown,
                kinds: &[kind],
                is_twin: false,
            };
            shape.encode(observation, encoder)?;
        }
        let twins = StatusKind::ALL.into_iter();
        let twins: Vec<_> = twins.filter(|it| it.has_deprecated()).collect();
        let shape = ConditionGauge {
            name: format!("operator_{}", shown.about().0),
            shown,
            kinds: &twins,
            is_twin: true,
        };
        shape.encode(observation, encoder)?;
    }
    Ok(())
}

impl ConditionGauge<'_> {
    fn encode(
        &self,
        observation: &Observation<'_>,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), fmt::Error> {
        let help = self.shown.about().1;
        let mut family = encoder.encode_descriptor(&self.name, help, None, MetricType::Gauge)?;
        let mut written = Ok(());
        let mut emit = |labels: &[(&str, &str)], value: f64| {
            if written.is_ok() {
                let series = family.encode_family(&labels);
                written = series.and_then(|mut series| series.encode_gauge(&value));
            }
        };
        for kind in self.kinds {
            observation.known.status_conditions.each(*kind, |seen| {
                self.emit(seen, observation, &mut emit);
            });
        }
        written
    }

    fn emit(
        &self,
        seen: &StatusSeen,
        observation: &Observation<'_>,
        emit: &mut impl FnMut(&[(&str, &str)], f64),
    ) {
        let now = observation.now;
        let [namespace, name] = [&seen.regarding.namespace, &seen.regarding.name]
            .map(|it| it.as_deref().unwrap_or_default());
        let mut labels = vec![("namespace", namespace), ("name", name)];
        if self.is_twin {
            let (group, kind) = seen.kind.name();
            labels.extend([("group", group), ("kind", kind)]);
        } else {
            // Of Nodes the model knows more, as what is written here comes back as no news.
            let node = observation.snapshot.node(name);
            let node = node.filter(|_| seen.kind == StatusKind::Node);
            let facts = node.and_then(|it| it.node());
            let extra = seen.kind.extra_labels().iter().zip(&seen.extra);
            labels.extend(extra.map(|((name, label), known)| {
                let now = facts.and_then(|it| it.labels.get(*label));
                (*name, now.unwrap_or(known).as_str())
            }));
        }
        if self.shown == Shown::Terminations {
            if let Some(deleted_at) = seen.deleted_at {
                emit(&labels, seconds(deleted_at, now));
            }
            return;
        }
        for (kind, condition) in &seen.conditions {
            let age = condition.since.map_or(0.0, |it| seconds(it, now));
            let value = if self.shown == Shown::Ages { age } else { 1.0 };
            let own = [
                ("type", &**kind),
                ("status", &condition.status),
                ("reason", &condition.reason),
            ];
            let labels: Vec<_> = labels.iter().copied().chain(own).collect();
            emit(&labels, value);
        }
    }
}
