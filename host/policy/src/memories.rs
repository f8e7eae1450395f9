//! What policies want to be told the next time: a few bytes for each binding and kind, for as long as neither its
//! bytes nor its configuration change.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::binding::BindingKey;
use crate::limits::Kind;
use crate::needs::Need;
use crate::registry::Bound;

/// What a policy may have remembered at most.
pub(crate) const MEMORY_BYTES_MAX: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<(BindingKey, Kind), Memory>>);

struct Memory {
    /// Digests of the policy and of its configuration.
    identity: (String, String),
    bytes: Vec<u8>,
}

impl Memories {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<(BindingKey, Kind), Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a policy is told of its last call; nothing for one that does not need it.
    pub(crate) fn of(&self, bound: &Bound, kind: Kind) -> Vec<u8> {
        let Some(key) = key(bound, kind) else {
            return Vec::new();
        };
        let kept = self.kept();
        let own = kept.get(&key).filter(|it| it.identity == identity(bound));
        own.map(|it| it.bytes.clone()).unwrap_or_default()
    }

    /// Keeps what a policy answered; nothing leaves it as it is.
    pub(crate) fn keep(&self, bound: &Bound, kind: Kind, bytes: Option<&Vec<u8>>) {
        if let (Some(key), Some(bytes)) = (key(bound, kind), bytes) {
            let memory = Memory {
                identity: identity(bound),
                bytes: bytes.clone(),
            };
            self.kept().insert(key, memory);
        }
    }

    /// Has a policy remember something, for a case.
    pub(crate) fn told(&self, bound: &Bound, bytes: &[u8]) {
        for kind in &bound.kinds {
            self.keep(bound, *kind, Some(&bytes.to_vec()));
        }
    }

    /// Forgets a binding that is gone.
    pub(crate) fn forget(&self, binding: &BindingKey) {
        self.kept().retain(|(key, _), _| key != binding);
    }
}

fn key(bound: &Bound, kind: Kind) -> Option<(BindingKey, Kind)> {
    let key = bound.key.clone()?;
    bound.needs.has(Need::Memory).then_some((key, kind))
}

fn identity(bound: &Bound) -> (String, String) {
    let digest = bound.program.digest().to_owned();
    (digest, bound.config_digest.clone())
}
