//! The host: starts with the built-in defaults, takes bindings, and notes what came of calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use apis::ObjectKey;
use hooks::binding::{Authority, BindingListener, BindingSource, BindingStatus, NodePoolLabels};
use hooks::ranking::PolicyUse;
use wasmtime::component::Linker;

use crate::active_policy::{ActivePolicies, ActivePolicy};
use crate::binding::{Binding, BindingError};
use crate::call::Grant;
use crate::call_failure::CallFailure;
use crate::called::Called;
use crate::compiler::Compilers;
use crate::engine::{Ticker, engine};
use crate::guest_state::GuestState;
use crate::limits::{CallLimits, Limits, PolicyKind};
use crate::linker::linker;
use crate::memories::Memories;
use crate::module_cache::ModuleCache;
use crate::needs::ProviderFacts;
use crate::recording::{CallRecorder, Recording};
use crate::records::{CallRecord, PolicyEvent, PolicyRecords, PolicyStatistics, ShadowDifference};
use crate::registry::{Registry, Swaps};
use crate::remembered::AnswerCache;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the policy engine: {0}")]
pub struct StartError(String);

/// Runs policies. Cheap to clone; all clones are one host.
#[derive(Clone)]
pub struct PolicyHost {
    pub(crate) inner: Arc<HostState>,
}

pub(crate) struct HostState {
    pub(crate) limits: Limits,
    pub(crate) linker: Linker<GuestState>,
    ticker: Ticker,
    pub(crate) compilers: Compilers,
    pub(crate) remembered: AnswerCache,
    pub(crate) recording: Recording,
    pub(crate) memories: Memories,
    pub(crate) provider: RwLock<ProviderFacts>,
    modules: Mutex<ModuleCache>,
    registry: Mutex<Registry>,
    active: RwLock<Arc<ActivePolicies>>,
    longest_wait_nanos: AtomicU64,
    records: Mutex<PolicyRecords>,
    listener: RwLock<Option<BindingListener>>,
    pub(crate) defaults: [OnceLock<Option<Arc<ActivePolicy>>>; 3],
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
        for kind in PolicyKind::ALL {
            let inner = Arc::clone(&host.inner);
            // Where no thread can be had, the first round loads.
            let spawned = thread::Builder::new()
                .name(format!("policy-{}", kind.as_str()))
                .spawn(move || drop(inner.default_of(kind)));
            drop(spawned);
        }
        Ok(host)
    }

    /// Keeps every call from now on.
    pub fn record_to(&self, recorder: Arc<dyn CallRecorder>) {
        self.inner.recording.start(recorder);
    }

    /// Starts the engine; a default is loaded when it is first asked. For tools, which may never ask it.
    pub fn on_demand(limits: Limits) -> Result<Self, StartError> {
        let started = |error: wasmtime::Error| StartError(format!("{error:#}"));
        let engine = engine(&limits).map_err(started)?;
        let inner = Arc::new(HostState {
            limits,
            linker: linker(&engine).map_err(started)?,
            ticker: Ticker::new(),
            compilers: Compilers::default(),
            remembered: AnswerCache::default(),
            recording: Recording::default(),
            memories: Memories::default(),
            provider: RwLock::default(),
            modules: Mutex::default(),
            registry: Mutex::default(),
            active: RwLock::default(),
            longest_wait_nanos: AtomicU64::default(),
            records: Mutex::default(),
            listener: RwLock::default(),
            defaults: [const { OnceLock::new() }; 3],
        });
        Ok(Self { inner })
    }

    /// What the cloud tells: policies that need more are refused from now on. Without this it is taken to tell
    /// everything.
    pub fn provided_by(self, provided: ProviderFacts) -> Self {
        let provider = self.inner.provider.write();
        *provider.unwrap_or_else(PoisonError::into_inner) = provided;
        self
    }

    /// Waits until the defaults are loaded.
    pub fn warm_up(&self) {
        for kind in PolicyKind::ALL {
            self.warm_up_kind(kind);
        }
    }

    /// Waits until the default of a kind is loaded.
    pub fn warm_up_kind(&self, kind: PolicyKind) {
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
            Ok((policy, message)) => registry.accept(&key, policy, message),
            Err(error) => registry.refuse(&key, error.reason(), &error.to_string()),
        };
        self.inner.publish(&registry);
        drop(registry);
        self.counted(status)
    }

    fn refuse(&self, key: &ObjectKey, error: &BindingError) -> BindingStatus {
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
    pub fn remove_binding(&self, key: &ObjectKey) -> bool {
        let mut registry = self.inner.registry();
        let removed = registry.remove(key);
        self.inner.memories.forget(key);
        self.inner.publish(&registry);
        removed
    }

    /// Tells what NodePools there are, with their labels: from the next round on bindings are for those that they
    /// mean. Before that, and where nobody tells, names alone decide.
    pub fn set_node_pools(&self, pools: NodePoolLabels) {
        let mut registry = self.inner.registry();
        registry.set_node_pools(pools);
        self.inner.publish(&registry);
    }

    /// Where all bindings stand, by key.
    pub fn statuses(&self) -> Vec<BindingStatus> {
        let statuses = self.inner.registry().statuses();
        statuses.into_iter().map(|it| self.counted(it)).collect()
    }

    /// Where one binding stands.
    pub fn status(&self, key: &ObjectKey) -> Option<BindingStatus> {
        let status = self.inner.registry().status(key)?;
        Some(self.counted(status))
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
    pub fn drain_events_of(&self, key: &ObjectKey) -> Vec<PolicyEvent> {
        self.inner.records().drain_events_of(key)
    }

    /// From now on this is called when a binding failed at work, and nothing that was given before.
    pub(crate) fn set_listener(&self, listener: BindingListener) {
        let slot = self.inner.listener.write();
        *slot.unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// What an operator should see since the last time.
    pub fn drain_events(&self) -> Vec<PolicyEvent> {
        self.inner.records().drain_events()
    }
}

/// Which decision a call is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundRef<'a> {
    pub(crate) kind: PolicyKind,
    pub(crate) decision_id: &'a str,
    pub(crate) now_seconds: u64,
}

impl HostState {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn modules(&self) -> MutexGuard<'_, ModuleCache> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> MutexGuard<'_, PolicyRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, registry: &Registry) {
        let active = Arc::new(registry.active());
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = active;
    }

    /// What decides under a binding.
    pub(crate) fn policy(&self, key: &ObjectKey) -> Option<Arc<ActivePolicy>> {
        self.registry().policy(key)
    }

    /// The policies of one round.
    pub(crate) fn active(&self) -> Arc<ActivePolicies> {
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

    /// Notes a call: record, counters, and for a failure the event and what it leads to.
    pub(crate) fn note<T>(
        &self,
        policy: &ActivePolicy,
        round: RoundRef<'_>,
        called: &Called<T>,
        shadow: Option<ShadowDifference>,
    ) -> PolicyUse {
        called.log.write(&policy.name, round.decision_id);
        let failure = called.result.as_ref().err();
        let outcome =
            failure.map_or_else(|| "ok".to_owned(), |it| format!("{}: {it}", it.reason()));
        self.records().call(CallRecord {
            kind: round.kind,
            decision_id: round.decision_id.to_owned(),
            name: policy.name.clone(),
            digest: policy.program.digest().to_owned(),
            config_digest: policy.config_digest.clone(),
            outcome: outcome.clone(),
            fuel: called.fuel,
            duration: called.duration,
            log: called.log.texts(),
            log_lines_dropped: called.log.dropped,
            shadow,
            mode: policy.mode,
            order: policy.order,
            changed: String::new(),
        });
        if let Some(failure) = failure {
            self.note_failure(policy, round, failure);
        }
        PolicyUse {
            kind: round.kind.as_str().to_owned(),
            name: policy.name.clone(),
            digest: policy.program.digest().to_owned(),
            outcome,
        }
    }

    /// Notes what the call that was noted last has changed.
    pub(crate) fn note_change(&self, policy: &ActivePolicy, round: RoundRef<'_>, changed: String) {
        let mut records = self.records();
        records.changed(round.decision_id, &policy.name, changed);
    }

    fn note_failure(&self, policy: &ActivePolicy, round: RoundRef<'_>, failure: &CallFailure) {
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
            && registry.failed(
                policy,
                round.now_seconds,
                &self.limits,
                &failure.to_string(),
            );
        if quarantined {
            self.publish(&registry);
        }
        drop(registry);
        let event = |reason: &str, message: String| PolicyEvent {
            binding: policy.key.clone(),
            kind: round.kind,
            reason: reason.to_owned(),
            message,
        };
        let name = &policy.name;
        self.report(event(
            failure.reason(),
            format!(
                "policy {name} {failure}; the built-in default decided {}",
                round.decision_id
            ),
        ));
        if quarantined {
            self.report(event(
                "Quarantined",
                format!("policy {name} failed too often"),
            ));
        }
    }

    /// Hands on what a person should see. Built-in defaults have no binding that could show it.
    pub(crate) fn report(&self, event: PolicyEvent) {
        let about = event.binding.clone();
        let Some(key) = about else {
            let (kind, reason) = (event.kind.as_str(), event.reason.as_str());
            tracing::error!(kind, reason, "{}", event.message);
            return self.records().event(event);
        };
        self.records().event(event);
        let listener = self.listener.read();
        let listener = listener.unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(&key);
        }
    }
}
