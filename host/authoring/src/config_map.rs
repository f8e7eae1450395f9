//! ConfigMaps as manifests have them and as `pack` writes them: what a binding is made of, and nothing else of
//! Kubernetes, so that a program for authors is built without its types.

use std::collections::BTreeMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use policy::BindingSource;
use serde::{Deserialize, Serialize};

use crate::SYSTEM_NAMESPACE;
use crate::manifests::Document;

type Texts = BTreeMap<String, String>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigMap {
    api_version: String,
    kind: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Texts>,
    /// In base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_data: Option<Texts>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Texts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Texts>,
}

impl From<BindingSource> for ConfigMap {
    fn from(source: BindingSource) -> Self {
        let BindingSource {
            namespace,
            name,
            labels,
            annotations,
            data,
            binary_data,
            others: _,
        } = source;
        let binary_data = binary_data.into_iter();
        let binary_data: Texts = binary_data
            .map(|(key, bytes)| (key, STANDARD.encode(bytes)))
            .collect();
        let filled = |texts: Texts| Some(texts).filter(|it| !it.is_empty());
        Self {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            metadata: Metadata {
                name: Some(name),
                namespace: Some(namespace),
                labels: filled(labels),
                annotations: filled(annotations),
            },
            data: filled(data),
            binary_data: filled(binary_data),
        }
    }
}

/// A policy, or what a policy may name, of a manifest.
pub fn of_config_map(document: &Document) -> anyhow::Result<BindingSource> {
    let config_map = serde_json::from_value::<ConfigMap>(document.object.clone())
        .with_context(|| document.place.to_string())?;
    let metadata = config_map.metadata;
    let binary = config_map.binary_data.unwrap_or_default().into_iter();
    let decoded = binary.map(|(key, text)| {
        let bytes = STANDARD
            .decode(text.split_ascii_whitespace().collect::<String>())
            .with_context(|| format!("{}: binaryData.{key} is not base64", document.place))?;
        Ok((key, bytes))
    });
    Ok(BindingSource {
        namespace: metadata
            .namespace
            .unwrap_or_else(|| SYSTEM_NAMESPACE.to_owned()),
        name: metadata.name.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        data: config_map.data.unwrap_or_default(),
        binary_data: decoded.collect::<anyhow::Result<_>>()?,
        others: BTreeMap::new(),
    })
}
