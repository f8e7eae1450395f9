//! The host: starts with the built-in defaults, takes bindings, and notes what came of calls.
//!
//! It never fails a round: whatever goes wrong with a policy, the default has the word, or nobody where its binding
//! says so. Knows no Kubernetes client.

mod host_state;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread;
use std::time::Duration;

use apis::ObjectKey;
use hooks::binding::{Authority, BindingListener, BindingSource, BindingStatus, NodePoolLabels};
use hooks::policy_use::PolicyKind;
use locks::write;

use crate::binding::{Binding, BindingError};
use crate::guest::compiler::Compilers;
use crate::guest::engine::{Ticker, engine};
use crate::guest::limits::Limits;
use crate::guest::linker::linker;
use crate::guest::memories::Memories;
use crate::needs::ProviderFacts;
use crate::recording::{CallRecorder, Recording};
use crate::records::{CallCounts, CallRecord, PolicyEvent, PolicyStatistics};
use crate::registry::Swaps;
use crate::remembered::AnswerCache;
pub(crate) use host_state::{HostState, RoundRef};

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the policy engine: {0}")]
pub struct StartError(String);

/// Runs policies. Cheap to clone; all clones are one host.
#[derive(Clone)]
pub struct PolicyHost {
    pub(crate) inner: Arc<HostState>,
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
            defaults: [const { OnceLock::new() }; PolicyKind::ALL.len()],
        });
        Ok(Self { inner })
    }

    /// Facts that the cloud tells: policies that need more are refused from now on. Without this it is taken to tell
    /// everything.
    pub fn provided_by(self, provided: ProviderFacts) -> Self {
        *write(&self.inner.provider) = provided;
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
    fn apply_binding(&self, binding: Binding) -> BindingStatus {
        let key = binding.key.clone();
        if binding.authority == Authority::Replace && !self.inner.limits.may_replace_budgets {
            return self.refuse(&key, &BindingError::AuthorityNotAllowed);
        }
        let loaded = self.inner.load(binding);
        let mut registry = self.inner.registry();
        let status = match loaded {
            Ok(loaded) => registry.accept(&key, loaded.policy, loaded.message),
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

    fn counted(&self, status: BindingStatus) -> BindingStatus {
        let CallCounts { calls, failures } = self.inner.records().counts_of(&status.key.name);
        BindingStatus {
            calls,
            failures,
            ..status
        }
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
        *write(&self.inner.listener) = Some(listener);
    }

    /// Events for the cluster's operator since the last call.
    pub fn drain_events(&self) -> Vec<PolicyEvent> {
        self.inner.records().drain_events()
    }
}
