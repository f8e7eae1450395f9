//! Reads the ConfigMap of a binding, and tells whether it says something else than before.
//!
//! Pure. Whether what it says makes sense is not judged here: that is the registry's.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hooks::binding::BindingSource;
use hooks::binding::keys::STATUS_ANNOTATION;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::status::StatusAnnotation;

/// A ConfigMap as plain maps.
pub fn source_of(config_map: &ConfigMap) -> BindingSource {
    let metadata = &config_map.metadata;
    BindingSource {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
        data: config_map.data.clone().unwrap_or_default(),
        binary_data: decoded(config_map.binary_data.clone()),
        others: BTreeMap::new(),
    }
}

/// The binding as somebody wrote it into its ConfigMap, without the status that is shown there.
pub(super) fn binding_of(config_map: &ConfigMap) -> BindingSource {
    let mut source = source_of(config_map);
    source.annotations.remove(STATUS_ANNOTATION);
    source
        .annotations
        .remove("kubectl.kubernetes.io/last-applied-configuration");
    source
}

pub(super) fn decoded(binary: Option<BTreeMap<String, ByteString>>) -> BTreeMap<String, Vec<u8>> {
    let binary = binary.into_iter().flatten();
    binary.map(|(name, bytes)| (name, bytes.0)).collect()
}

/// Status of a binding that is shown already.
pub(super) fn shown_of(config_map: &ConfigMap) -> Option<StatusAnnotation> {
    let shown = config_map.annotations().get(STATUS_ANNOTATION)?;
    serde_json::from_str(shown).ok()
}

/// Tells two readings apart that do not say the same, of one object or of two of the same name.
pub(super) fn fingerprint(config_map: &ConfigMap, source: &BindingSource) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&config_map.metadata.uid, source).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::policy_binding::status::{decide, tests::refused};

    #[test]
    fn the_status_annotation_is_no_part_of_the_binding() {
        let print = |it: &ConfigMap| fingerprint(it, &binding_of(it));
        let mut config_map = ConfigMap::default();
        let before = print(&config_map);
        let write = decide(refused(), None, Timestamp::UNIX_EPOCH).unwrap();
        let text = serde_json::to_string(&write.annotation).unwrap();
        config_map.metadata.annotations = Some([(STATUS_ANNOTATION.to_owned(), text)].into());
        config_map.metadata.resource_version = Some("2".to_owned());
        assert_eq!(print(&config_map), before);
        let shown = shown_of(&config_map).unwrap();
        assert_eq!(
            (shown.reason, shown.message),
            ("Why".to_owned(), "because".to_owned())
        );
        config_map.metadata.uid = Some("another".to_owned());
        let replaced = print(&config_map);
        assert_ne!(replaced, before);
        config_map.data = Some(BTreeMap::from([("rule".to_owned(), "1".to_owned())]));
        assert_ne!(print(&config_map), replaced);
    }
}
