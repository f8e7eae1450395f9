//! Server-side apply.

use std::sync::Arc;

use serde_json::Value;

use super::kinds::Kind;
use super::status::Status;
use super::store::{ObjectKey, Store};
use super::write::WriteOptions;

/// Applies an intent.
pub(super) fn run(
    store: &mut Store,
    kind: &Arc<Kind>,
    key: &ObjectKey,
    (intent, _is_forced): (&Value, bool),
    options: &WriteOptions,
) -> Result<Arc<Value>, Status> {
    match store.get(&kind.resource, key).cloned() {
        None => store.create(kind, &key.namespace, intent.clone(), options),
        Some(old) => {
            let mut object = (*old).clone();
            super::patch::merge::apply(&mut object, intent);
            store.update(kind, key, object, options)
        }
    }
}
