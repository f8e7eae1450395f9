//! State that one host shares with all its clones: the engine, what is in charge, and what came of calls.
//!
//! How bindings come in is `host.rs`'s; how rounds are asked `ask.rs`'s.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::Instant;

use apis::ObjectKey;
use hooks::binding::BindingListener;
use hooks::policy_use::{PolicyKind, PolicyUse, UseOutcome};
use locks::{lock, read, write};
use wasmtime::component::Linker;

use crate::active_policy::{ActivePolicies, ActivePolicy};
use crate::after_failure::AfterFailure;
use crate::guest::call::Grant;
use crate::guest::call_failure::CallFailure;
use crate::guest::called::Called;
use crate::guest::compiler::Compilers;
use crate::guest::engine::Ticker;
use crate::guest::guest_state::GuestState;
use crate::guest::limits::{CallLimits, Limits};
use crate::guest::memories::Memories;
use crate::guest::module_cache::ModuleCache;
use crate::needs::ProviderFacts;
use crate::recording::Recording;
use crate::records::{CallRecord, PolicyEvent, PolicyRecords, ShadowDifference};
use crate::registry::Registry;
use crate::remembered::AnswerCache;

pub(crate) struct HostState {
    pub(crate) limits: Limits,
    pub(crate) linker: Linker<GuestState>,
    pub(super) ticker: Ticker,
    pub(crate) compilers: Compilers,
    pub(crate) remembered: AnswerCache,
    pub(crate) recording: Recording,
    pub(crate) memories: Memories,
    pub(crate) provider: RwLock<ProviderFacts>,
    pub(super) modules: Mutex<ModuleCache>,
    pub(super) registry: Mutex<Registry>,
    pub(super) active: RwLock<Arc<ActivePolicies>>,
    pub(super) longest_wait_nanos: AtomicU64,
    pub(super) records: Mutex<PolicyRecords>,
    pub(super) listener: RwLock<Option<BindingListener>>,
    pub(crate) defaults: [OnceLock<Option<Arc<ActivePolicy>>>; PolicyKind::ALL.len()],
}

/// Which decision a call is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundRef<'a> {
    pub(crate) kind: PolicyKind,
    pub(crate) decision_id: &'a str,
    pub(crate) now_seconds: u64,
}

impl HostState {
    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    pub(crate) fn modules(&self) -> MutexGuard<'_, ModuleCache> {
        lock(&self.modules)
    }

    pub(super) fn records(&self) -> MutexGuard<'_, PolicyRecords> {
        lock(&self.records)
    }

    pub(super) fn publish(&self, registry: &Registry) {
        let active = Arc::new(registry.active());
        *write(&self.active) = active;
    }

    /// The policy that decides under a binding, if one does.
    pub(crate) fn policy(&self, key: &ObjectKey) -> Option<Arc<ActivePolicy>> {
        self.registry().policy(key)
    }

    /// The policies of one round.
    pub(crate) fn active(&self) -> Arc<ActivePolicies> {
        let asked = Instant::now();
        let active = Arc::clone(&read(&self.active));
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
        let outcome = failure.map_or(UseOutcome::Ok, |it| UseOutcome::Fallback(it.told()));
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
            kind: round.kind,
            name: policy.name.clone(),
            digest: policy.program.digest().to_owned(),
            outcome,
        }
    }

    /// Notes what the call that was noted last has changed.
    pub(crate) fn note_change(&self, policy: &ActivePolicy, round: RoundRef<'_>, changed: String) {
        let mut records = self.records();
        records.note_change(round.decision_id, &policy.name, changed);
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
        let (name, after) = (&policy.name, AfterFailure::of(policy, round.kind));
        self.report(event(
            failure.reason(),
            format!("policy {name} {failure}; {}", after.told(round.decision_id)),
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
        let listener = read(&self.listener).clone();
        if let Some(listener) = listener {
            listener(&key);
        }
    }
}
