//! Components that are compiled and in use, and those that were refused: neither is compiled twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use crate::digest::digest;
use crate::guest::module::{Module, Origin};
use crate::load_error::LoadError;

/// Refused components whose reasons are kept.
const REFUSED_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct ModuleCache {
    /// The same bytes are compiled once while anybody uses them.
    modules: BTreeMap<String, Weak<Module>>,
    latest: Option<Arc<Module>>,
    /// The latest components that nobody need compile again to refuse them.
    refused: VecDeque<(String, LoadError)>,
}

impl ModuleCache {
    /// The module of a component, if it is known: compiled and in use, just compiled, or refused before.
    pub(crate) fn get(
        &self,
        digest: &str,
        origin: Origin,
    ) -> Option<Result<Arc<Module>, LoadError>> {
        let mut refused = self.refused.iter().filter(|(known, _)| known == digest);
        if let Some((_, error)) = refused.next() {
            return Some(Err(error.clone()));
        }
        let module = self.modules.get(digest).and_then(Weak::upgrade);
        module.filter(|it| it.origin == origin).map(Ok)
    }

    /// Keeps what came of compiling a component.
    pub(crate) fn keep(&mut self, bytes: &[u8], loaded: &Result<Arc<Module>, LoadError>) {
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
}
