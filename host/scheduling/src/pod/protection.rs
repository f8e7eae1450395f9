//! Meaning of a pod's do-not-disrupt annotation, for whoever asks: disruption, its events, and policies.
//!
//! Says what counts; what it stops is for the methods of disruption to say. That of a node is `true` or nothing
//! ([`labels::has_do_not_disrupt`]). Answers to Karpenter's `pkg/utils/pod/scheduling.go` (IsDisruptable).

use std::collections::BTreeMap;
use std::str::FromStr;

use apis::duration::GoDuration;
use apis::labels;
use jiff::Timestamp;

use super::Pod;

/// Meaning of the do-not-disrupt annotation of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DoNotDisrupt {
    /// The pod has no such annotation.
    #[default]
    Unset,
    /// The annotation is `true`: the pod is protected for ever.
    Always,
    /// Protected for a while after its start.
    For(GoDuration),
    /// The value means nothing, so it is ignored, but the user should hear of it.
    Invalid,
}

impl DoNotDisrupt {
    /// Of a pod with these annotations.
    pub(super) fn of(annotations: &BTreeMap<String, String>) -> Self {
        let value = annotations.get(labels::DO_NOT_DISRUPT_ANNOTATION);
        match value.map(String::as_str) {
            None => Self::Unset,
            Some("true") => Self::Always,
            Some(text) => match GoDuration::from_str(text) {
                Ok(window) if window > GoDuration::ZERO => Self::For(window),
                Ok(_) | Err(_) => Self::Invalid,
            },
        }
    }
}

impl Pod {
    /// Protected from disruption at this moment.
    pub fn is_protected(&self, now: Timestamp) -> bool {
        match self.shape.do_not_disrupt {
            DoNotDisrupt::Unset | DoNotDisrupt::Invalid => false,
            DoNotDisrupt::Always => true,
            DoNotDisrupt::For(window) => self
                .started_at
                .is_none_or(|start| now.duration_since(start) < window.to_signed_duration()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn do_not_disrupt_takes_true_and_positive_durations() {
        let hour = GoDuration::from_seconds(3600);
        for (value, expected) in [
            (None, DoNotDisrupt::Unset),
            (Some("true"), DoNotDisrupt::Always),
            (Some("1h"), DoNotDisrupt::For(hour)),
            (Some("0s"), DoNotDisrupt::Invalid),
            (Some("-1h"), DoNotDisrupt::Invalid),
            (Some("yes"), DoNotDisrupt::Invalid),
            (Some("false"), DoNotDisrupt::Invalid),
        ] {
            let key = labels::DO_NOT_DISRUPT_ANNOTATION.to_owned();
            let annotations = value.map(|it: &str| (key, it.to_owned()));
            let annotations = annotations.into_iter().collect();
            assert_eq!(DoNotDisrupt::of(&annotations), expected, "{value:?}");
        }
    }
}
