//! Which policies are in charge: bindings, their states, and the set that rounds read.
//!
//! A round takes the set once and keeps it, so that a swap falls between two rounds. A binding that
//! cannot be loaded leaves its predecessor in charge; one that keeps failing is quarantined until its
//! bytes or configuration change.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hooks::ranking::Needs;

use crate::binding::{
    AppliesTo, Authority, Binding, BindingFacts, BindingKey, Mode, NodePoolLabels, OnFailure, Scope,
};
use crate::limits::{Kind, Limits};
use crate::module::{LoadError, Module, digest};
use crate::needs::{PolicyNeeds, united};
use crate::rule::Rule;

/// Refused components whose reasons are kept.
const REFUSED_MAX: usize = 16;

/// Longest message of a status: it goes into an annotation, which has its own bound.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

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
    /// What is in charge under this binding, if anything.
    pub in_charge: Option<InCharge>,
    /// Calls since the start, whatever bytes were in charge.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
}

/// How a policy is in charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCharge {
    /// What its answer does.
    pub mode: Mode,
    /// Place in the chain.
    pub order: i32,
    /// Who decides when it fails.
    pub on_failure: OnFailure,
    /// For budgets.
    pub authority: Authority,
    /// The NodePools it is for; `None` where nobody told what NodePools there are.
    pub applies_to: Option<AppliesTo>,
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
    pub(crate) scope: Scope,
    pub(crate) order: i32,
    pub(crate) on_failure: OnFailure,
    pub(crate) authority: Authority,
    pub(crate) program: Program,
    pub(crate) config: String,
    pub(crate) config_digest: String,
    /// What it is told beside the plain tables.
    pub(crate) needs: PolicyNeeds,
    /// What its binding tells it.
    pub(crate) facts: BindingFacts,
    /// Being tried: nobody waits for it, and a busy machine must not refuse a good one.
    pub(crate) is_on_trial: bool,
}

impl Bound {
    /// Whether it decides for the pool, or watches what others decide.
    pub(crate) fn is_for(&self, node_pool: &str) -> bool {
        let is_picked = match self.mode {
            // A pool stays on one side from round to round: what the canary prefers is not undone by the default.
            Mode::Canary { percent } => share_of(&self.name, node_pool) < u64::from(percent),
            Mode::Enforce | Mode::Shadow | Mode::Off => true,
        };
        is_picked && self.scope.contains(node_pool)
    }

    /// Whether there can be no pool that it is not for.
    pub(crate) fn is_for_all(&self) -> bool {
        let is_whole = match self.mode {
            Mode::Canary { percent } => percent >= 100,
            Mode::Enforce | Mode::Shadow | Mode::Off => true,
        };
        is_whole && self.scope.wanted.is_all()
    }

    /// Whether its answers count.
    pub(crate) fn decides(&self) -> bool {
        match self.mode {
            Mode::Enforce | Mode::Canary { .. } => true,
            Mode::Shadow | Mode::Off => false,
        }
    }

    fn in_charge(&self, pools: Option<&NodePoolLabels>) -> InCharge {
        let applies_to = |pools: &NodePoolLabels| AppliesTo {
            names: pools.keys().filter(|it| self.is_for(it)).cloned().collect(),
            total: pools.len(),
            unmatched: self.scope.wanted.unmatched(pools),
        };
        InCharge {
            mode: self.mode,
            order: self.order,
            on_failure: self.on_failure,
            authority: self.authority,
            applies_to: pools.map(applies_to),
        }
    }

    /// Everything that its decisions hang on.
    fn identity(&self) -> String {
        let Self {
            key: _,
            name,
            kinds: _,
            mode,
            scope,
            order,
            on_failure,
            authority,
            program,
            config: _,
            config_digest,
            needs: _,
            facts,
            is_on_trial: _,
        } = self;
        let facts = facts.texts();
        let place = format!("{mode} {order} {on_failure:?} {authority:?} {scope:?} {facts:?}");
        format!("{name} {} {config_digest} {place}\n", program.digest())
    }

    fn is_same_policy(&self, other: &Self) -> bool {
        self.program.digest() == other.program.digest() && self.config_digest == other.config_digest
    }
}

/// The policies of a round, each kind in the order of the chain.
#[derive(Default)]
pub(crate) struct Active {
    by_kind: BTreeMap<Kind, Vec<Arc<Bound>>>,
    /// Of what decides each kind.
    identities: BTreeMap<Kind, String>,
}

impl Active {
    fn new(by_kind: BTreeMap<Kind, Vec<Arc<Bound>>>) -> Self {
        let identity = |chain: &Vec<Arc<Bound>>| {
            let deciding = chain.iter().filter(|bound| bound.decides());
            let text: String = deciding.map(|bound| bound.identity()).collect();
            digest(text.as_bytes())
        };
        let identities = by_kind.iter();
        let identities = identities.map(|(kind, chain)| (*kind, identity(chain)));
        Self {
            identities: identities.collect(),
            by_kind,
        }
    }

    /// The policies that decide.
    pub(crate) fn deciding(&self, kind: Kind) -> Vec<Arc<Bound>> {
        let deciding = self.chain(kind).filter(|bound| bound.decides());
        deciding.cloned().collect()
    }

    /// The policies that only watch.
    pub(crate) fn shadows(&self, kind: Kind) -> Vec<Arc<Bound>> {
        let watching = self.chain(kind).filter(|bound| bound.mode == Mode::Shadow);
        watching.cloned().collect()
    }

    /// What its policies must be told beside the plain tables, those that only watch included.
    pub(crate) fn needs(&self, kind: Kind) -> Needs {
        self.chain(kind).fold(Needs::default(), |needs, bound| {
            united(needs, bound.needs.tables())
        })
    }

    /// All that are asked, in their order.
    pub(crate) fn chain(&self, kind: Kind) -> impl Iterator<Item = &Arc<Bound>> {
        let all = self.by_kind.get(&kind).into_iter().flatten();
        all.filter(|bound| bound.mode != Mode::Off)
    }

    /// What decides a kind, as a text that is another when something else does; empty for the default.
    pub(crate) fn identity(&self, kind: Kind) -> &str {
        self.identities.get(&kind).map_or("", String::as_str)
    }
}

/// 0 to 99, by FNV-1a over policy and pool: the same on every machine, and other pools for another policy.
fn share_of(policy: &str, node_pool: &str) -> u64 {
    let bytes = policy.bytes().chain([b'/']).chain(node_pool.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) % 100
}

/// A message, cut where it is longer than anybody reads.
fn told(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    message
}

struct Entry {
    bound: Option<Arc<Bound>>,
    status: BindingStatus,
    /// Moments of the latest failures, in the time of the rounds.
    failures: VecDeque<u64>,
    is_quarantined: bool,
}

impl BindingStatus {
    fn new(key: &BindingKey) -> Self {
        Self {
            key: key.clone(),
            state: BindingState::Degraded,
            digest: None,
            reason: String::new(),
            message: String::new(),
            in_charge: None,
            calls: 0,
            failures: 0,
        }
    }
}

impl Entry {
    fn status(&self, pools: Option<&NodePoolLabels>) -> BindingStatus {
        let bound = self.bound.as_ref().filter(|_| !self.is_quarantined);
        BindingStatus {
            in_charge: bound.map(|bound| bound.in_charge(pools)),
            ..self.status.clone()
        }
    }
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
    /// What NodePools there are, where somebody tells.
    node_pools: Option<NodePoolLabels>,
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
        mut bound: Bound,
        message: String,
    ) -> BindingStatus {
        if let Some(pools) = &self.node_pools {
            bound.scope.tell(pools);
        }
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
                return entry.status(self.node_pools.as_ref());
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
            message: told(message),
            ..BindingStatus::new(key)
        };
        let entry = Entry {
            bound: Some(Arc::new(bound)),
            status,
            failures: VecDeque::new(),
            is_quarantined: false,
        };
        let status = entry.status(self.node_pools.as_ref());
        self.entries.insert(key.clone(), entry);
        status
    }

    /// Takes in what NodePools there are.
    pub(crate) fn tell_node_pools(&mut self, pools: NodePoolLabels) {
        for entry in self.entries.values_mut() {
            if let Some(bound) = &mut entry.bound {
                Arc::make_mut(bound).scope.tell(&pools);
            }
        }
        self.node_pools = Some(pools);
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
            status: BindingStatus::new(key),
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
        entry.status.message = format!("{}; {consequence}", told(message.to_owned()));
        entry.status(self.node_pools.as_ref())
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
        Active::new(by_kind)
    }

    /// What decides under a binding.
    pub(crate) fn bound(&self, key: &BindingKey) -> Option<Arc<Bound>> {
        self.entries.get(key)?.bound.clone()
    }

    pub(crate) fn statuses(&self) -> Vec<BindingStatus> {
        self.entries
            .values()
            .map(|entry| entry.status(self.node_pools.as_ref()))
            .collect()
    }
}

/// A binding and its program, to be tried.
pub(crate) fn bound(binding: Binding, program: Program, needs: PolicyNeeds) -> Bound {
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
        facts,
    } = binding;
    Bound {
        name: key.name.clone(),
        key: Some(key),
        kinds,
        mode,
        scope: Scope::new(node_pools),
        order,
        on_failure,
        authority,
        program,
        config_digest: config_digest(&config, &facts),
        config,
        needs,
        facts,
        is_on_trial: false,
    }
}

/// Of the settings, and of what else the binding tells: either makes it another policy.
fn config_digest(config: &str, facts: &BindingFacts) -> String {
    let facts = facts.texts().iter();
    let whole = facts.fold(config.to_owned(), |whole, (key, text)| {
        whole + "\n" + key + "\n" + text
    });
    digest(whole.as_bytes())
}
