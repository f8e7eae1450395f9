//! Which policies are in charge: bindings, their states, and the set that rounds read.
//!
//! A round takes the set once and keeps it, so that a swap falls between two rounds. A binding that
//! cannot be loaded leaves its predecessor in charge; one that keeps failing is quarantined until its
//! bytes or configuration change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::binding::{Authority, Binding, BindingKey, Mode, OnFailure};
use crate::limits::{Kind, Limits};
use crate::module::{LoadError, Module, digest};
use crate::rule::Rule;

/// Refused components whose reasons are kept.
const REFUSED_MAX: usize = 16;

/// Where a binding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingState {
    /// It decides, or would if its mode let it.
    Ready,
    /// It was refused; what decided before goes on.
    Degraded,
    /// It failed too often and is not asked until it changes.
    Quarantined,
}

/// What became of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingStatus {
    /// Which.
    pub key: BindingKey,
    /// Where it stands.
    pub state: BindingState,
    /// Digest of the component in charge under this binding, if any.
    pub digest: Option<String>,
    /// CamelCase word.
    pub reason: String,
    /// One sentence.
    pub message: String,
}

/// What answers: a component or a rule.
#[derive(Clone)]
pub(crate) enum Program {
    Component(Arc<Module>),
    Rule(Arc<Rule>),
}

impl Program {
    pub(crate) fn digest(&self) -> &str {
        match self {
            Self::Component(module) => &module.digest,
            Self::Rule(rule) => &rule.digest,
        }
    }
}

/// A policy in charge: what answers, with its configuration and its place.
#[derive(Clone)]
pub(crate) struct Bound {
    /// `None` for a built-in default.
    pub(crate) key: Option<BindingKey>,
    pub(crate) name: String,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) mode: Mode,
    pub(crate) node_pools: Vec<String>,
    pub(crate) order: i32,
    pub(crate) on_failure: OnFailure,
    pub(crate) authority: Authority,
    pub(crate) program: Program,
    pub(crate) config: String,
    pub(crate) config_digest: String,
    /// Being tried: nobody waits for it, and a busy machine must not refuse a good one.
    pub(crate) is_on_trial: bool,
}

impl Bound {
    pub(crate) fn is_for(&self, node_pool: &str) -> bool {
        self.node_pools.is_empty() || self.node_pools.iter().any(|name| name == node_pool)
    }

    fn is_same_policy(&self, other: &Self) -> bool {
        self.program.digest() == other.program.digest() && self.config_digest == other.config_digest
    }
}

/// The policies of a round, each kind in the order of the chain.
#[derive(Default)]
pub(crate) struct Active {
    by_kind: BTreeMap<Kind, Vec<Arc<Bound>>>,
}

impl Active {
    /// The policies that decide this decision.
    pub(crate) fn deciding(&self, kind: Kind, decision_id: &str) -> Vec<Arc<Bound>> {
        self.of(kind)
            .filter(|bound| match bound.mode {
                Mode::Enforce => true,
                Mode::Canary { percent } => share_of(decision_id) < u64::from(percent),
                Mode::Shadow | Mode::Off => false,
            })
            .cloned()
            .collect()
    }

    /// The policies that only watch.
    pub(crate) fn shadows(&self, kind: Kind) -> Vec<Arc<Bound>> {
        self.of(kind)
            .filter(|bound| bound.mode == Mode::Shadow)
            .cloned()
            .collect()
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Arc<Bound>> {
        self.by_kind.get(&kind).into_iter().flatten()
    }
}

/// 0 to 99, by FNV-1a over the id: the same on every machine.
fn share_of(decision_id: &str) -> u64 {
    let hash = decision_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash >> 32) % 100
}

struct Entry {
    bound: Option<Arc<Bound>>,
    status: BindingStatus,
    /// Moments of the latest failures, in the time of the rounds.
    failures: VecDeque<u64>,
    is_quarantined: bool,
}

/// How many bindings were put in charge, and how many were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swaps {
    /// Put in charge.
    pub accepted: u64,
    /// Refused.
    pub refused: u64,
    /// The longest that a round waited to be told who decides.
    pub longest_wait: Duration,
}

/// All bindings.
#[derive(Default)]
pub(crate) struct Registry {
    entries: BTreeMap<BindingKey, Entry>,
    /// Bindings put in charge and refused since the start.
    pub(crate) swaps: Swaps,
    /// The same bytes are compiled once while anybody uses them.
    modules: BTreeMap<String, Weak<Module>>,
    latest: Option<Arc<Module>>,
    /// The latest components that nobody need compile again to refuse them.
    refused: VecDeque<(String, LoadError)>,
}

impl Registry {
    /// What is known of a component: compiled and in use, just compiled, or refused before.
    pub(crate) fn module(
        &self,
        digest: &str,
        is_trusted: bool,
    ) -> Option<Result<Arc<Module>, LoadError>> {
        let mut refused = self.refused.iter().filter(|(known, _)| known == digest);
        if let Some((_, error)) = refused.next() {
            return Some(Err(error.clone()));
        }
        let module = self.modules.get(digest).and_then(Weak::upgrade);
        module.filter(|it| it.is_trusted == is_trusted).map(Ok)
    }

    pub(crate) fn keep_module(&mut self, bytes: &[u8], loaded: &Result<Arc<Module>, LoadError>) {
        match loaded {
            Ok(module) => {
                self.modules.retain(|_, module| module.strong_count() > 0);
                self.modules
                    .insert(module.digest.clone(), Arc::downgrade(module));
                // Who looks at a component before binding it compiles it once.
                self.latest = Some(Arc::clone(module));
            }
            Err(error) if error.is_final() => {
                self.refused.truncate(REFUSED_MAX - 1);
                self.refused.push_front((digest(bytes), error.clone()));
            }
            Err(_) => {}
        }
    }

    /// Puts a loaded binding in charge.
    pub(crate) fn accept(
        &mut self,
        key: &BindingKey,
        bound: Bound,
        message: String,
    ) -> BindingStatus {
        let held_back = self.entries.get(key).is_some_and(|entry| {
            entry.is_quarantined
                && entry
                    .bound
                    .as_ref()
                    .is_some_and(|known| known.is_same_policy(&bound))
        });
        if held_back {
            // Only its place changed, and that is not what made it fail.
            if let Some(entry) = self.entries.get_mut(key) {
                entry.bound = Some(Arc::new(bound));
                return entry.status.clone();
            }
        }
        self.swaps.accepted += 1;
        let status = BindingStatus {
            key: key.clone(),
            state: BindingState::Ready,
            digest: Some(bound.program.digest().to_owned()),
            reason: match bound.mode {
                Mode::Enforce => "Enforcing",
                Mode::Shadow => "Shadowing",
                Mode::Canary { .. } => "Canary",
                Mode::Off => "Off",
            }
            .to_owned(),
            message,
        };
        let entry = Entry {
            bound: Some(Arc::new(bound)),
            status: status.clone(),
            failures: VecDeque::new(),
            is_quarantined: false,
        };
        self.entries.insert(key.clone(), entry);
        status
    }

    /// Notes that a binding cannot be loaded. What it replaced stays in charge.
    pub(crate) fn refuse(
        &mut self,
        key: &BindingKey,
        reason: &str,
        message: &str,
    ) -> BindingStatus {
        self.swaps.refused += 1;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            bound: None,
            status: BindingStatus {
                key: key.clone(),
                state: BindingState::Degraded,
                digest: None,
                reason: String::new(),
                message: String::new(),
            },
            failures: VecDeque::new(),
            is_quarantined: false,
        });
        let in_charge = entry.bound.as_ref().filter(|_| !entry.is_quarantined);
        let consequence = in_charge.map_or_else(
            || "the built-in default decides".to_owned(),
            |bound| format!("{} stays in charge", bound.program.digest()),
        );
        entry.status.state = BindingState::Degraded;
        entry.status.digest = in_charge.map(|bound| bound.program.digest().to_owned());
        reason.clone_into(&mut entry.status.reason);
        entry.status.message = format!("{message}; {consequence}");
        entry.status.clone()
    }

    pub(crate) fn remove(&mut self, key: &BindingKey) -> bool {
        self.entries.remove(key).is_some()
    }

    /// Notes a failure at work; true when it puts the binding into quarantine.
    pub(crate) fn failed(
        &mut self,
        bound: &Bound,
        now_seconds: u64,
        limits: &Limits,
        message: &str,
    ) -> bool {
        let entry = bound.key.as_ref().and_then(|key| self.entries.get_mut(key));
        // A binding replaced while its round ran has a new record.
        let Some(entry) = entry.filter(|entry| {
            !entry.is_quarantined
                && entry
                    .bound
                    .as_ref()
                    .is_some_and(|known| known.is_same_policy(bound))
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
            "failed {} times within {} s, last: {message}; the built-in default decides until its bytes or \
             configuration change",
            entry.failures.len(),
            limits.quarantine_window_seconds,
        );
        true
    }

    /// The set for the rounds to come.
    pub(crate) fn active(&self) -> Active {
        let mut by_kind: BTreeMap<Kind, Vec<Arc<Bound>>> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| !entry.is_quarantined) {
            let Some(bound) = &entry.bound else { continue };
            for kind in &bound.kinds {
                by_kind.entry(*kind).or_default().push(Arc::clone(bound));
            }
        }
        for chain in by_kind.values_mut() {
            chain.sort_by(|a, b| (a.order, &a.key).cmp(&(b.order, &b.key)));
        }
        Active { by_kind }
    }

    /// What decides under a binding.
    pub(crate) fn bound(&self, key: &BindingKey) -> Option<Arc<Bound>> {
        self.entries.get(key)?.bound.clone()
    }

    pub(crate) fn statuses(&self) -> Vec<BindingStatus> {
        self.entries
            .values()
            .map(|entry| entry.status.clone())
            .collect()
    }
}

/// A binding and its module, to be tried.
pub(crate) fn bound(binding: Binding, program: Program) -> Bound {
    let Binding {
        key,
        kinds,
        mode,
        node_pools,
        order,
        on_failure,
        authority,
        source: _,
        config,
        sha256: _,
    } = binding;
    Bound {
        name: key.name.clone(),
        key: Some(key),
        kinds,
        mode,
        node_pools,
        order,
        on_failure,
        authority,
        program,
        config_digest: crate::module::digest(config.as_bytes()),
        config,
        is_on_trial: false,
    }
}
