//! Which bindings there are, where each stands, and what decides under it.
//!
//! A binding that cannot be loaded leaves its predecessor in charge; one that keeps failing is quarantined until its
//! bytes or configuration change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apis::ObjectKey;
use hooks::binding::{BindingState, BindingStatus, Mode, NodePoolLabels};
use hooks::policy_use::PolicyKind;

use crate::active_policy::{ActivePolicies, ActivePolicy};
use crate::after_failure::in_quarantine;
use crate::guest::limits::Limits;

/// Longest message of a status: it goes into an annotation, which has its own bound.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// A message, cut where it is longer than anybody reads.
fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    message
}

struct RegistryEntry {
    policy: Option<Arc<ActivePolicy>>,
    status: BindingStatus,
    /// Moments of the latest failures, in the time of the rounds.
    failures: VecDeque<u64>,
    is_quarantined: bool,
}

impl RegistryEntry {
    fn status(&self, pools: Option<&NodePoolLabels>) -> BindingStatus {
        let policy = self.policy.as_ref().filter(|_| !self.is_quarantined);
        BindingStatus {
            in_charge: policy.map(|policy| policy.in_charge(pools)),
            ..self.status.clone()
        }
    }
}

/// How many bindings were put in charge, and how many were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swaps {
    /// Bindings that were put in charge.
    pub accepted: u64,
    pub refused: u64,
    /// The longest that a round waited to be told who decides.
    pub longest_wait: Duration,
}

/// All bindings, with the policies in charge under them.
#[derive(Default)]
pub(crate) struct Registry {
    entries: BTreeMap<ObjectKey, RegistryEntry>,
    /// Bindings put in charge and refused since the start.
    pub(crate) swaps: Swaps,
    /// NodePools of the cluster with their labels; `None` while nobody has told.
    node_pools: Option<NodePoolLabels>,
}

impl Registry {
    /// Puts a loaded binding in charge.
    pub(crate) fn accept(
        &mut self,
        key: &ObjectKey,
        mut policy: ActivePolicy,
        message: String,
    ) -> BindingStatus {
        if let Some(pools) = &self.node_pools {
            policy.scope.resolve(pools);
        }
        let held_back = self.entries.get(key).is_some_and(|entry| {
            entry.is_quarantined
                && entry
                    .policy
                    .as_ref()
                    .is_some_and(|known| known.is_same_policy(&policy))
        });
        if held_back {
            // Only its place changed, and that is not what made it fail.
            if let Some(entry) = self.entries.get_mut(key) {
                entry.policy = Some(Arc::new(policy));
                return entry.status(self.node_pools.as_ref());
            }
        }
        self.swaps.accepted += 1;
        let reason = match policy.mode {
            Mode::Enforce => "Enforcing",
            Mode::Shadow => "Shadowing",
            Mode::Canary { .. } => "Canary",
            Mode::Off => "Off",
        };
        let status = BindingStatus {
            state: BindingState::Ready,
            digest: Some(policy.program.digest().to_owned()),
            ..BindingStatus::refused(key.clone(), reason, cut(message))
        };
        let entry = RegistryEntry {
            policy: Some(Arc::new(policy)),
            status,
            failures: VecDeque::new(),
            is_quarantined: false,
        };
        let status = entry.status(self.node_pools.as_ref());
        self.entries.insert(key.clone(), entry);
        status
    }

    /// Takes in what NodePools there are.
    pub(crate) fn set_node_pools(&mut self, pools: NodePoolLabels) {
        for entry in self.entries.values_mut() {
            if let Some(policy) = &mut entry.policy {
                Arc::make_mut(policy).scope.resolve(&pools);
            }
        }
        self.node_pools = Some(pools);
    }

    /// Notes that a binding cannot be loaded. What it replaced stays in charge.
    pub(crate) fn refuse(&mut self, key: &ObjectKey, reason: &str, message: &str) -> BindingStatus {
        self.swaps.refused += 1;
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| RegistryEntry {
                policy: None,
                status: BindingStatus::refused(key.clone(), "", String::new()),
                failures: VecDeque::new(),
                is_quarantined: false,
            });
        let in_charge = entry.policy.as_ref().filter(|_| !entry.is_quarantined);
        let consequence = in_charge.map_or_else(
            || "the built-in default decides".to_owned(),
            |policy| format!("{} stays in charge", policy.program.digest()),
        );
        entry.status.state = BindingState::Degraded;
        entry.status.digest = in_charge.map(|policy| policy.program.digest().to_owned());
        reason.clone_into(&mut entry.status.reason);
        entry.status.message = format!("{}; {consequence}", cut(message.to_owned()));
        entry.status(self.node_pools.as_ref())
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) -> bool {
        self.entries.remove(key).is_some()
    }

    /// Notes a failure at work; true when it puts the binding into quarantine.
    pub(crate) fn failed(
        &mut self,
        policy: &ActivePolicy,
        now_seconds: u64,
        limits: &Limits,
        message: &str,
    ) -> bool {
        let entry = policy
            .key
            .as_ref()
            .and_then(|key| self.entries.get_mut(key));
        // A binding replaced while its round ran has a new record.
        let Some(entry) = entry.filter(|entry| {
            !entry.is_quarantined
                && entry
                    .policy
                    .as_ref()
                    .is_some_and(|known| known.is_same_policy(policy))
        }) else {
            return false;
        };
        entry.failures.push_back(now_seconds);
        let since = now_seconds.saturating_sub(limits.quarantine_window_seconds);
        entry.failures.retain(|moment| *moment >= since);
        if entry.failures.len() < limits.quarantine_failures {
            return false;
        }
        entry.is_quarantined = true;
        entry.status.state = BindingState::Quarantined;
        "Quarantined".clone_into(&mut entry.status.reason);
        entry.status.message = format!(
            "failed {} times within {} s, last: {message}; {} until its bytes or configuration change",
            entry.failures.len(),
            limits.quarantine_window_seconds,
            in_quarantine(policy),
        );
        true
    }

    /// The set for the rounds to come.
    pub(crate) fn active(&self) -> ActivePolicies {
        let mut by_kind: BTreeMap<PolicyKind, Vec<Arc<ActivePolicy>>> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| !entry.is_quarantined) {
            let Some(policy) = &entry.policy else {
                continue;
            };
            for kind in &policy.kinds {
                by_kind.entry(*kind).or_default().push(Arc::clone(policy));
            }
        }
        for chain in by_kind.values_mut() {
            chain.sort_by(|a, b| (a.order, &a.key).cmp(&(b.order, &b.key)));
        }
        ActivePolicies::new(by_kind)
    }

    /// The policy that decides under a binding, if one does.
    pub(crate) fn policy(&self, key: &ObjectKey) -> Option<Arc<ActivePolicy>> {
        self.entries.get(key)?.policy.clone()
    }

    pub(crate) fn status(&self, key: &ObjectKey) -> Option<BindingStatus> {
        let entry = self.entries.get(key)?;
        Some(entry.status(self.node_pools.as_ref()))
    }

    pub(crate) fn statuses(&self) -> Vec<BindingStatus> {
        self.entries
            .values()
            .map(|entry| entry.status(self.node_pools.as_ref()))
            .collect()
    }
}
