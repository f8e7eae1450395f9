//! The host: starts with the built-in defaults, takes bindings, runs calls and notes what came of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use hooks::ranking::PolicyUse;
use wasmtime::component::Linker;

use crate::binding::{
    Authority, Binding, BindingError, BindingFacts, BindingKey, BindingSource, Mode,
    NodePoolLabels, OnFailure, PolicySource, Scope,
};
use crate::builtin;
use crate::call::{CallFailure, Called, Grant};
use crate::compiler::Compilers;
use crate::conformance;
use crate::engine::{Ticker, engine};
use crate::golden;
use crate::interface::Descriptor;
use crate::limits::{CallLimits, Kind, Limits};
use crate::linker::{State, linker};
use crate::memories::Memories;
use crate::module::{LoadError, Module, check_functions, digest};
use crate::needs::{PolicyNeeds, ProviderTells};
use crate::recording::Recording;
use crate::records::{CallRecord, PolicyEvent, PolicyStatistics, Records, ShadowDifference};
use crate::registry::{Active, BindingStatus, Bound, Program, Registry, Swaps, bound};
use crate::remembered::Remembered;
use crate::rule::Rule;
use crate::schema::ConfigSchema;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the policy engine: {0}")]
pub struct StartError(String);

/// Runs policies. Cheap to clone; all clones are one host.
#[derive(Clone)]
pub struct PolicyHost {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) limits: Limits,
    linker: Linker<State>,
    ticker: Ticker,
    compilers: Compilers,
    pub(crate) remembered: Remembered,
    pub(crate) recording: Recording,
    pub(crate) memories: Memories,
    provider: RwLock<ProviderTells>,
    registry: Mutex<Registry>,
    active: RwLock<Arc<Active>>,
    longest_wait_nanos: AtomicU64,
    records: Mutex<Records>,
    defaults: [OnceLock<Option<Arc<Bound>>>; 3],
}

impl std::fmt::Debug for PolicyHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyHost")
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

impl PolicyHost {
    /// Starts the engine and begins to load the defaults, each on a thread of its own; the first
    /// round of a kind waits for its default.
    pub fn new(limits: Limits) -> Result<Self, StartError> {
        let host = Self::on_demand(limits)?;
        for kind in Kind::ALL {
            let inner = Arc::clone(&host.inner);
            // Where no thread can be had, the first round loads.
            let spawned = thread::Builder::new()
                .name(format!("policy-{}", kind.as_str()))
                .spawn(move || drop(inner.default_of(kind)));
            drop(spawned);
        }
        Ok(host)
    }

    /// Starts the engine; a default is loaded when it is first asked. For tools, which may never ask it.
    pub fn on_demand(limits: Limits) -> Result<Self, StartError> {
        let started = |error: wasmtime::Error| StartError(format!("{error:#}"));
        let engine = engine(&limits).map_err(started)?;
        let inner = Arc::new(Inner {
            limits,
            linker: linker(&engine).map_err(started)?,
            ticker: Ticker::new(),
            compilers: Compilers::default(),
            remembered: Remembered::default(),
            recording: Recording::default(),
            memories: Memories::default(),
            provider: RwLock::default(),
            registry: Mutex::default(),
            active: RwLock::default(),
            longest_wait_nanos: AtomicU64::default(),
            records: Mutex::default(),
            defaults: [const { OnceLock::new() }; 3],
        });
        Ok(Self { inner })
    }

    /// What the cloud tells: policies that need more are refused from now on. Without this it is taken to tell
    /// everything.
    pub fn provided_by(self, tells: ProviderTells) -> Self {
        let provider = self.inner.provider.write();
        *provider.unwrap_or_else(PoisonError::into_inner) = tells;
        self
    }

    /// Waits until the defaults are loaded.
    pub fn warm_up(&self) {
        for kind in Kind::ALL {
            self.warm_up_kind(kind);
        }
    }

    /// Waits until the default of a kind is loaded.
    pub fn warm_up_kind(&self, kind: Kind) {
        self.inner.default_of(kind);
    }

    /// Loads what a ConfigMap names and puts it in charge, or says why not and leaves what there was.
    /// May take some hundred milliseconds.
    pub fn apply(&self, source: &BindingSource) -> BindingStatus {
        match Binding::parse(source, self.inner.limits.component_bytes_max) {
            Ok(binding) => self.apply_binding(binding),
            Err(error) => self.refuse(&source.key(), &error),
        }
    }

    /// As [`apply`](Self::apply), for a binding already read.
    pub fn apply_binding(&self, binding: Binding) -> BindingStatus {
        let key = binding.key.clone();
        if binding.authority == Authority::Replace && !self.inner.limits.may_replace_budgets {
            return self.refuse(&key, &BindingError::AuthorityNotAllowed);
        }
        let loaded = self.inner.load(binding);
        let mut registry = self.inner.registry();
        let status = match loaded {
            Ok((bound, message)) => registry.accept(&key, bound, message),
            Err(error) => registry.refuse(&key, error.reason(), &error.to_string()),
        };
        self.inner.publish(&registry);
        drop(registry);
        self.counted(status)
    }

    fn refuse(&self, key: &BindingKey, error: &BindingError) -> BindingStatus {
        let mut registry = self.inner.registry();
        let status = registry.refuse(key, error.reason(), &error.to_string());
        drop(registry);
        self.counted(status)
    }

    fn counted(&self, mut status: BindingStatus) -> BindingStatus {
        (status.calls, status.failures) = self.inner.records().counts_of(&status.key.name);
        status
    }

    /// Takes a binding away: what it replaced decides from the next round. False when there was none.
    pub fn remove_binding(&self, key: &BindingKey) -> bool {
        let mut registry = self.inner.registry();
        let removed = registry.remove(key);
        self.inner.memories.forget(key);
        self.inner.publish(&registry);
        removed
    }

    /// Tells what NodePools there are, with their labels: from the next round on bindings are for those that they
    /// mean. Before that, and where nobody tells, names alone decide.
    pub fn tell_node_pools(&self, pools: NodePoolLabels) {
        let mut registry = self.inner.registry();
        registry.tell_node_pools(pools);
        self.inner.publish(&registry);
    }

    /// Where all bindings stand, by key.
    pub fn statuses(&self) -> Vec<BindingStatus> {
        let statuses = self.inner.registry().statuses();
        statuses.into_iter().map(|it| self.counted(it)).collect()
    }

    /// Where one binding stands.
    pub fn status(&self, key: &BindingKey) -> Option<BindingStatus> {
        self.statuses()
            .into_iter()
            .find(|status| status.key == *key)
    }

    /// Bindings put in charge and refused since the start.
    pub fn swaps(&self) -> Swaps {
        Swaps {
            longest_wait: Duration::from_nanos(
                self.inner.longest_wait_nanos.load(Ordering::Relaxed),
            ),
            ..self.inner.registry().swaps
        }
    }

    /// Counters of every policy that was asked, by kind and name.
    pub fn statistics(&self) -> Vec<PolicyStatistics> {
        self.inner.records().statistics()
    }

    /// The calls since the last time; the oldest are dropped when nobody asks.
    pub fn drain_records(&self) -> Vec<CallRecord> {
        self.inner.records().drain_calls()
    }

    /// The latest calls that were made for a decision; they stay.
    pub fn calls_of(&self, decision_id: &str) -> Vec<CallRecord> {
        self.inner.records().calls_of(decision_id)
    }

    /// Of the events since the last time, those of one binding; the others stay.
    pub fn drain_events_of(&self, key: &BindingKey) -> Vec<PolicyEvent> {
        self.inner.records().drain_events_of(Some(key))
    }

    /// Of the events since the last time, those of the built-in defaults.
    pub fn drain_events_of_defaults(&self) -> Vec<PolicyEvent> {
        self.inner.records().drain_events_of(None)
    }

    /// What an operator should see since the last time.
    pub fn drain_events(&self) -> Vec<PolicyEvent> {
        self.inner.records().drain_events()
    }
}

/// Which decision a call is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round<'a> {
    pub(crate) kind: Kind,
    pub(crate) decision_id: &'a str,
    pub(crate) now_seconds: u64,
}

impl Inner {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, registry: &Registry) {
        let active = Arc::new(registry.active());
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = active;
    }

    /// What decides under a binding.
    pub(crate) fn bound(&self, key: &BindingKey) -> Option<Arc<Bound>> {
        self.registry().bound(key)
    }

    /// The policies of one round.
    pub(crate) fn active(&self) -> Arc<Active> {
        let asked = Instant::now();
        let active = Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner));
        let waited = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.longest_wait_nanos.fetch_max(waited, Ordering::Relaxed);
        active
    }

    pub(crate) fn grant(&self, call: CallLimits) -> Grant<'_> {
        Grant {
            ticker: &self.ticker,
            limits: &self.limits,
            call,
        }
    }

    /// The built-in default of a kind; `None` when its component does not load, which only a broken
    /// build brings about. Native code decides then.
    pub(crate) fn default_of(&self, kind: Kind) -> Option<Arc<Bound>> {
        let slot = match kind {
            Kind::Rank => &self.defaults[0],
            Kind::Consolidation => &self.defaults[1],
            Kind::Budgets => &self.defaults[2],
        };
        slot.get_or_init(|| {
            let builtin = builtin::find(builtin::default_of(kind))?;
            match self.module(builtin.component(), true) {
                Ok(module) => Some(Arc::new(default_bound(kind, Program::Component(module)))),
                Err(error) => {
                    self.records().event(PolicyEvent {
                        binding: None,
                        kind,
                        reason: error.reason().to_owned(),
                        message: format!("the built-in default cannot be loaded: {error}"),
                    });
                    None
                }
            }
        })
        .clone()
    }

    pub(crate) fn module(&self, bytes: &[u8], is_trusted: bool) -> Result<Arc<Module>, LoadError> {
        let bytes_max = self.limits.component_bytes_max;
        if bytes.len() > bytes_max {
            return Err(LoadError::TooLarge {
                bytes: bytes.len(),
                bytes_max,
            });
        }
        // A built-in carried by a ConfigMap is not trusted for that: the two are kept apart.
        let known = self.registry().module(&digest(bytes), is_trusted);
        if let Some(known) = known {
            return known;
        }
        let loaded = if is_trusted {
            Module::trusted(&self.linker, bytes)
        } else {
            check_functions(bytes, self.limits.function_bytes_max).and_then(|()| {
                self.compilers
                    .compile(&self.linker, bytes, self.limits.compile)
            })
        };
        let loaded = loaded.map(Arc::new);
        self.registry().keep_module(bytes, &loaded);
        loaded
    }

    /// Everything that comes before a policy may decide.
    fn load(&self, binding: Binding) -> Result<(Bound, String), LoadError> {
        let expected = binding.sha256.as_deref();
        match &binding.source {
            PolicySource::Builtin(name) => {
                let component = builtin::find(name).map_or(&[][..], |builtin| builtin.component());
                let module = self.checked_module(component, true, expected)?;
                self.load_module(binding, &module)
            }
            PolicySource::Module(bytes) => {
                let module = self.checked_module(bytes, false, expected)?;
                self.load_module(binding, &module)
            }
            PolicySource::Rule(source) => {
                let rule = Arc::new(Rule::compile(source, &binding.kinds, &binding.config)?);
                check_digest(expected, &rule.digest)?;
                let message = rule.summary();
                let needs = rule.needs();
                self.check_needs(&needs, &binding)?;
                let bound = bound(binding, Program::Rule(rule), needs);
                golden::try_rule(self, &bound)?;
                self.conformant(bound, message)
            }
        }
    }

    fn load_module(
        &self,
        binding: Binding,
        module: &Arc<Module>,
    ) -> Result<(Bound, String), LoadError> {
        for kind in &binding.kinds {
            module.check_kind(*kind)?;
        }
        let descriptor = module.describe(self.grant(self.limits.load))?;
        let unchecked = held_to_schema(&descriptor, &binding.config)?;
        let warnings = module.validate(&binding.config, self.grant(self.limits.load))?;
        let needs = PolicyNeeds::parse(&descriptor.needs)?;
        self.check_needs(&needs, &binding)?;
        // The built-ins are held to it when they are built.
        let is_known = module.is_trusted;
        let bound = bound(binding, Program::Component(Arc::clone(module)), needs);
        for kind in &bound.kinds {
            let patient = self.limits.of(*kind).patient();
            golden::try_out(module, *kind, &bound, self.grant(patient))?;
        }
        let mut message = format!(
            "{} {}: {}",
            descriptor.name, descriptor.version, descriptor.summary
        );
        for warning in warnings {
            message = format!("{message}; data.config: {warning}");
        }
        for note in unchecked {
            message = format!("{message}; note: {note}");
        }
        if is_known {
            return Ok((bound, message));
        }
        self.conformant(bound, message)
    }

    fn check_needs(&self, needs: &PolicyNeeds, binding: &Binding) -> Result<(), LoadError> {
        let tells = *self.provider.read().unwrap_or_else(PoisonError::into_inner);
        Ok(needs.check(tells, binding.facts.has_rates())?)
    }

    /// Puts made-up rounds to what is to be bound; what is worth knowing of it goes into its message.
    fn conformant(&self, bound: Bound, message: String) -> Result<(Bound, String), LoadError> {
        let on_trial = Bound {
            is_on_trial: true,
            ..bound.clone()
        };
        let notes = conformance::gate(self, &on_trial)?;
        let message = notes
            .iter()
            .fold(message, |message, note| format!("{message}; note: {note}"));
        Ok((bound, message))
    }

    fn checked_module(
        &self,
        bytes: &[u8],
        is_trusted: bool,
        expected: Option<&str>,
    ) -> Result<Arc<Module>, LoadError> {
        if expected.is_some() {
            check_digest(expected, &digest(bytes))?;
        }
        self.module(bytes, is_trusted)
    }

    /// Notes a call: record, counters, and for a failure the event and what it leads to.
    pub(crate) fn note<T>(
        &self,
        bound: &Bound,
        round: Round<'_>,
        called: &Called<T>,
        shadow: Option<ShadowDifference>,
    ) -> PolicyUse {
        called.log.write(&bound.name, round.decision_id);
        let failure = called.result.as_ref().err();
        let outcome =
            failure.map_or_else(|| "ok".to_owned(), |it| format!("{}: {it}", it.reason()));
        self.records().call(CallRecord {
            kind: round.kind,
            decision_id: round.decision_id.to_owned(),
            name: bound.name.clone(),
            digest: bound.program.digest().to_owned(),
            config_digest: bound.config_digest.clone(),
            outcome: outcome.clone(),
            fuel: called.fuel,
            duration: called.duration,
            log: called.log.texts(),
            log_lines_dropped: called.log.dropped,
            shadow,
            mode: bound.mode,
            order: bound.order,
            changed: String::new(),
        });
        if let Some(failure) = failure {
            self.note_failure(bound, round, failure);
        }
        PolicyUse {
            kind: round.kind.as_str().to_owned(),
            name: bound.name.clone(),
            digest: bound.program.digest().to_owned(),
            outcome,
        }
    }

    /// Notes what the call that was noted last has changed.
    pub(crate) fn note_change(&self, bound: &Bound, round: Round<'_>, changed: String) {
        let mut records = self.records();
        records.changed(round.decision_id, &bound.name, changed);
    }

    fn note_failure(&self, bound: &Bound, round: Round<'_>, failure: &CallFailure) {
        let mut registry = self.registry();
        // What may pass by itself is no reason to give a policy up.
        let is_transient = matches!(
            failure,
            CallFailure::Refused {
                transient: true,
                ..
            }
        );
        let quarantined = !is_transient
            && registry.failed(bound, round.now_seconds, &self.limits, &failure.to_string());
        if quarantined {
            self.publish(&registry);
        }
        drop(registry);
        let event = |reason: &str, message: String| PolicyEvent {
            binding: bound.key.clone(),
            kind: round.kind,
            reason: reason.to_owned(),
            message,
        };
        let name = &bound.name;
        let mut records = self.records();
        records.event(event(
            failure.reason(),
            format!(
                "policy {name} {failure}; the built-in default decided {}",
                round.decision_id
            ),
        ));
        if quarantined {
            records.event(event(
                "Quarantined",
                format!("policy {name} failed too often"),
            ));
        }
    }
}

/// Refuses a configuration that the component's schema does not allow; gives what the host does not check of it.
fn held_to_schema(descriptor: &Descriptor, config: &str) -> Result<Vec<String>, LoadError> {
    let Some(schema) = ConfigSchema::parse(&descriptor.config_schema)? else {
        return Ok(Vec::new());
    };
    match schema.faults(config) {
        None => Ok(schema.notes().to_vec()),
        Some(faults) => Err(LoadError::Config(faults)),
    }
}

fn check_digest(expected: Option<&str>, found: &str) -> Result<(), LoadError> {
    match expected {
        Some(expected) if found.strip_prefix("sha256:") != Some(expected) => {
            Err(LoadError::Digest {
                expected: expected.to_owned(),
                found: found.to_owned(),
            })
        }
        Some(_) | None => Ok(()),
    }
}

fn default_bound(kind: Kind, program: Program) -> Bound {
    Bound {
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
