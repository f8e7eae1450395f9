//! The ConfigMaps that a binding names beside itself.
//!
//! They come with the binding: nothing is fetched here.

use hooks::binding::{BindingSource, OtherConfigMap};

use super::error::BindingError;

/// Whether it may be the name of a ConfigMap.
pub(super) fn is_name(text: &str) -> bool {
    let is_known = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it);
    !text.is_empty() && text.bytes().all(is_known)
}

/// A ConfigMap that the binding names.
pub(super) fn other<'a>(
    source: &'a BindingSource,
    key: &'static str,
    name: &str,
) -> Result<&'a OtherConfigMap, BindingError> {
    let missing = || BindingError::NoSuchConfigMap {
        key,
        name: name.to_owned(),
        namespace: source.namespace.clone(),
    };
    source.others.get(name).ok_or_else(missing)
}
