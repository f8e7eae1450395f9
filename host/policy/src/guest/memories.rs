//! Memory that policies ask to be told the next time: a few bytes for each binding and kind, for as long as neither its
//! bytes nor its configuration change.
//!
//! Nothing of it outlives the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use apis::ObjectKey;
use hooks::policy_use::PolicyKind;
use locks::lock;

use crate::active_policy::ActivePolicy;
use crate::needs::Need;
use crate::recording::PolicyIdentity;

/// Largest memory of a policy, bytes.
pub(crate) const MEMORY_BYTES_MAX: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<(ObjectKey, PolicyKind), KeptMemory>>);

struct KeptMemory {
    identity: PolicyIdentity,
    bytes: Vec<u8>,
}

impl Memories {
    fn lock_kept(&self) -> MutexGuard<'_, BTreeMap<(ObjectKey, PolicyKind), KeptMemory>> {
        lock(&self.0)
    }

    /// Memory that a policy answered last; nothing for one that does not need it.
    pub(crate) fn of(&self, policy: &ActivePolicy, kind: PolicyKind) -> Vec<u8> {
        let Some(key) = key(policy, kind) else {
            return Vec::new();
        };
        let kept = self.lock_kept();
        let own = kept
            .get(&key)
            .filter(|it| it.identity == PolicyIdentity::of(policy));
        own.map(|it| it.bytes.clone()).unwrap_or_default()
    }

    /// Keeps what a policy answered; nothing leaves it as it is.
    pub(crate) fn keep(&self, policy: &ActivePolicy, kind: PolicyKind, bytes: Option<&Vec<u8>>) {
        if let (Some(key), Some(bytes)) = (key(policy, kind), bytes) {
            let memory = KeptMemory {
                identity: PolicyIdentity::of(policy),
                bytes: bytes.clone(),
            };
            self.lock_kept().insert(key, memory);
        }
    }

    /// Has a policy remember something, for a case.
    pub(crate) fn remember(&self, policy: &ActivePolicy, bytes: &[u8]) {
        for kind in &policy.kinds {
            self.keep(policy, *kind, Some(&bytes.to_vec()));
        }
    }

    /// Forgets a binding that is gone.
    pub(crate) fn forget(&self, binding: &ObjectKey) {
        self.lock_kept().retain(|(key, _), _| key != binding);
    }
}

fn key(policy: &ActivePolicy, kind: PolicyKind) -> Option<(ObjectKey, PolicyKind)> {
    let key = policy.key.clone()?;
    policy.needs.has(Need::Memory).then_some((key, kind))
}
