//! A policy in charge, and the set of them that a round reads.
//!
//! A round takes the set once and keeps it, so that a swap falls between two rounds. What puts policies into the set is
//! `registry.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use apis::fnv::{OFFSET_BASIS, fnv_1a};
use hooks::binding::{AppliesTo, Authority, InCharge, Mode, NodePoolLabels, OnFailure};
use hooks::policy_use::PolicyKind;
use hooks::ranking::Needs;

use crate::binding::{Binding, BindingFacts, Scope};
use crate::builtin;
use crate::digest::digest;
use crate::guest::module::Module;
use crate::needs::{PolicyNeeds, united};
use crate::rule::PolicyRule;

/// Code of a policy: a component or a rule.
#[derive(Clone)]
pub(crate) enum Program {
    Component(Arc<Module>),
    Rule(Arc<PolicyRule>),
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
pub(crate) struct ActivePolicy {
    /// `None` for a built-in default.
    pub(crate) key: Option<ObjectKey>,
    pub(crate) name: String,
    pub(crate) kinds: Vec<PolicyKind>,
    pub(crate) mode: Mode,
    pub(crate) scope: Scope,
    pub(crate) order: i32,
    pub(crate) on_failure: OnFailure,
    pub(crate) authority: Authority,
    pub(crate) program: Program,
    pub(crate) config: String,
    pub(crate) config_digest: String,
    /// Facts beside the plain tables that it is told.
    pub(crate) needs: PolicyNeeds,
    /// Facts that its binding tells it.
    pub(crate) facts: BindingFacts,
    /// Whether it is being tried: nobody waits for it, and a busy machine must not refuse a good one.
    pub(crate) is_on_trial: bool,
}

impl ActivePolicy {
    /// A binding and its program, to be tried.
    pub(crate) fn of(binding: Binding, program: Program, needs: PolicyNeeds) -> Self {
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
        Self {
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

    /// The built-in default of a kind.
    pub(crate) fn default_of(kind: PolicyKind, program: Program) -> Self {
        Self {
            key: None,
            name: builtin::default_of(kind).to_owned(),
            kinds: vec![kind],
            mode: Mode::Enforce,
            scope: Scope::default(),
            order: 0,
            on_failure: OnFailure::Default,
            authority: Authority::Lower,
            program,
            config: String::new(),
            config_digest: digest(b""),
            needs: PolicyNeeds::default(),
            facts: BindingFacts::default(),
            is_on_trial: false,
        }
    }

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

    /// How it is in charge, in a cluster with these NodePools, if somebody told of any.
    pub(crate) fn in_charge(&self, pools: Option<&NodePoolLabels>) -> InCharge {
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
            applies_to: pools.map(applies_to).unwrap_or_default(),
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

    /// Whether it is another's bytes with another's configuration, whatever its place.
    pub(crate) fn is_same_policy(&self, other: &Self) -> bool {
        self.program.digest() == other.program.digest() && self.config_digest == other.config_digest
    }
}

/// The policies of a round, each kind in the order of the chain.
#[derive(Default)]
pub(crate) struct ActivePolicies {
    by_kind: BTreeMap<PolicyKind, Vec<Arc<ActivePolicy>>>,
    /// Of what decides each kind.
    identities: BTreeMap<PolicyKind, String>,
}

impl ActivePolicies {
    /// Chains in their order.
    pub(crate) fn new(by_kind: BTreeMap<PolicyKind, Vec<Arc<ActivePolicy>>>) -> Self {
        let identity = |chain: &Vec<Arc<ActivePolicy>>| {
            let deciding = chain.iter().filter(|policy| policy.decides());
            let text: String = deciding.map(|policy| policy.identity()).collect();
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
    pub(crate) fn deciding(&self, kind: PolicyKind) -> Vec<Arc<ActivePolicy>> {
        let deciding = self.chain(kind).filter(|policy| policy.decides());
        deciding.cloned().collect()
    }

    /// The policies that only watch.
    pub(crate) fn shadows(&self, kind: PolicyKind) -> Vec<Arc<ActivePolicy>> {
        let watching = self
            .chain(kind)
            .filter(|policy| policy.mode == Mode::Shadow);
        watching.cloned().collect()
    }

    /// Facts beside the plain tables that its policies need, those that only watch included.
    pub(crate) fn needs(&self, kind: PolicyKind) -> Needs {
        self.chain(kind).fold(Needs::default(), |needs, policy| {
            united(needs, policy.needs.tables())
        })
    }

    /// All that are asked, in their order.
    pub(crate) fn chain(&self, kind: PolicyKind) -> impl Iterator<Item = &Arc<ActivePolicy>> {
        let all = self.by_kind.get(&kind).into_iter().flatten();
        all.filter(|policy| policy.mode != Mode::Off)
    }

    /// Names and digests of the policies that decide a kind, as a text that is another when something else does; empty
    /// for the default.
    pub(crate) fn identity(&self, kind: PolicyKind) -> &str {
        self.identities.get(&kind).map_or("", String::as_str)
    }
}

/// 0 to 99, by FNV-1a over policy and pool: the same on every machine, and other pools for another policy.
fn share_of(policy: &str, node_pool: &str) -> u64 {
    let bytes = policy.bytes().chain([b'/']).chain(node_pool.bytes());
    (fnv_1a(OFFSET_BASIS, bytes) >> 32) % 100
}

/// Of the settings, and of what else the binding tells: either makes it another policy.
fn config_digest(config: &str, facts: &BindingFacts) -> String {
    let facts = facts.texts().iter();
    let whole = facts.fold(config.to_owned(), |whole, (key, text)| {
        whole + "\n" + key + "\n" + text
    });
    digest(whole.as_bytes())
}
