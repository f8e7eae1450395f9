//! How the conditions of an object change: times move with the status alone, and the root follows its dependents.
//!
//! Writes nothing to any cluster. Answers to `github.com/awslabs/operatorpkg/status`.

use super::{ConditionSet, Status, get, reason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};

/// Changes the conditions of one object by the set's rules. Made by [`ConditionSet::edit`].
#[derive(Debug)]
pub struct ConditionEditor<'a> {
    set: ConditionSet,
    conditions: &'a mut Vec<Condition>,
    generation: i64,
    created_at: Timestamp,
    is_deleting: bool,
    now: Timestamp,
    changed: bool,
}

impl ConditionSet {
    /// Starts to change the conditions of the object that `meta` belongs to; root and dependents that are missing
    /// are added as Unknown, as old as the object.
    pub fn edit<'a>(
        self,
        meta: &ObjectMeta,
        conditions: &'a mut Vec<Condition>,
        now: Timestamp,
    ) -> ConditionEditor<'a> {
        let now = whole_seconds(now);
        let mut editor = ConditionEditor {
            set: self,
            conditions,
            generation: meta.generation.unwrap_or(0),
            created_at: meta.creation_timestamp.as_ref().map_or(now, |time| time.0),
            is_deleting: meta.deletion_timestamp.is_some(),
            now,
            changed: false,
        };
        for condition_type in std::iter::once(self.root).chain(self.dependents.iter().copied()) {
            if get(editor.conditions, condition_type).is_none() {
                editor.set_unknown(condition_type);
            }
        }
        editor
    }
}

/// The wire keeps whole seconds; finer times would differ from what is read back.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

impl ConditionEditor<'_> {
    /// Sets a condition; returns whether anything changed.
    pub fn set(
        &mut self,
        condition_type: &str,
        status: Status,
        reason: &str,
        message: &str,
    ) -> bool {
        let previous = get(self.conditions, condition_type);
        let last_transition_time = match previous {
            Some(previous) if previous.status == status.as_str() => {
                previous.last_transition_time.clone()
            }
            None if self.is_essential(condition_type) => Time(self.created_at),
            Some(_) | None => Time(self.now),
        };
        let condition = Condition {
            type_: condition_type.to_owned(),
            status: status.as_str().to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time,
            observed_generation: Some(self.generation),
        };
        if previous == Some(&condition) {
            return false;
        }
        self.changed = true;
        self.conditions
            .retain(|other| other.type_ != condition_type);
        if self.is_deleting {
            for other in self.conditions.iter_mut() {
                other.observed_generation = Some(self.generation);
            }
        }
        self.conditions.push(condition);
        let root = self.set.root;
        self.conditions
            .sort_by_key(|other| (other.type_ == root, other.last_transition_time.0));
        // One that sums nothing up stands for itself.
        if condition_type != root && !self.set.dependents.is_empty() {
            self.recompute_root();
        }
        true
    }

    /// Whether nothing is known of a condition yet.
    pub fn is_unknown(&self, condition_type: &str) -> bool {
        let known = get(self.conditions, condition_type);
        known.is_none_or(|it| it.status == Status::Unknown.as_str())
    }

    /// Sets a condition True, with its own type as the reason.
    pub fn set_true(&mut self, condition_type: &str) -> bool {
        self.set(condition_type, Status::True, condition_type, "")
    }

    /// Sets a condition True for a reason.
    pub fn set_true_with_reason(
        &mut self,
        condition_type: &str,
        reason: &str,
        message: &str,
    ) -> bool {
        self.set(condition_type, Status::True, reason, message)
    }

    /// Sets a condition False for a reason.
    pub fn set_false(&mut self, condition_type: &str, reason: &str, message: &str) -> bool {
        self.set(condition_type, Status::False, reason, message)
    }

    /// Sets a condition Unknown, awaiting reconciliation.
    pub fn set_unknown(&mut self, condition_type: &str) -> bool {
        self.set_unknown_with_reason(
            condition_type,
            reason::AWAITING_RECONCILIATION,
            reason::AWAITING_RECONCILIATION_MESSAGE,
        )
    }

    /// Sets a condition Unknown for a reason.
    pub(super) fn set_unknown_with_reason(
        &mut self,
        condition_type: &str,
        reason: &str,
        message: &str,
    ) -> bool {
        self.set(condition_type, Status::Unknown, reason, message)
    }

    /// Removes a condition; root and dependents stay. Returns whether anything changed.
    pub fn clear(&mut self, condition_type: &str) -> bool {
        if self.is_essential(condition_type) {
            return false;
        }
        let count = self.conditions.len();
        self.conditions
            .retain(|condition| condition.type_ != condition_type);
        let removed = self.conditions.len() != count;
        self.changed |= removed;
        removed
    }

    /// Whether anything changed since the editor was made, missing conditions added then included.
    pub const fn changed(&self) -> bool {
        self.changed
    }

    fn is_essential(&self, condition_type: &str) -> bool {
        condition_type == self.set.root || self.set.dependents.contains(&condition_type)
    }

    fn recompute_root(&mut self) {
        let mut unhealthy: Vec<&Condition> = self
            .conditions
            .iter()
            .filter(|condition| self.set.dependents.contains(&condition.type_.as_str()))
            .filter(|condition| {
                condition.status != Status::True.as_str()
                    || condition.observed_generation != Some(self.generation)
            })
            .collect();
        // While the set is first filled, a dependent that is not there yet keeps the root from being True.
        let is_complete = self
            .set
            .dependents
            .iter()
            .all(|dependent| get(self.conditions, dependent).is_some());
        if unhealthy.is_empty() && is_complete {
            self.set_true(self.set.root);
            return;
        }
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.last_transition_time.0));
        let is_false = unhealthy.iter().any(|condition| {
            condition.status == Status::False.as_str()
                && condition.observed_generation == Some(self.generation)
        });
        let message = unhealthy
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect::<Vec<_>>()
            .join(", ");
        let (status, reason) = if is_false {
            (Status::False, reason::UNHEALTHY_DEPENDENTS)
        } else {
            (Status::Unknown, reason::RECONCILING_DEPENDENTS)
        };
        self.set(self.set.root, status, reason, &message);
    }
}
