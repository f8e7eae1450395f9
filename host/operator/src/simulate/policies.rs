//! Policies for a simulation: modules and ConfigMaps from files, ConfigMaps of the manifests.

use std::path::Path;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use policy::{BindingSource, BindingState, PolicyHost};

use crate::manifests::{Document, Manifests};

const LABEL_KIND: &str = "mortise.dev/policy";
const MODULE_KEYS: [(&str, &str); 3] = [
    (".wasm", "policy.wasm"),
    (".wasm.gz", "policy.wasm.gz"),
    (".wasm.zst", "policy.wasm.zst"),
];

/// Binds the policies of the manifests and those that the flag names; the first refusal is an error.
pub(super) fn bind(
    host: &PolicyHost,
    wanted: &[String],
    config_maps: &[Document],
) -> anyhow::Result<()> {
    let mut sources = Vec::new();
    for document in config_maps {
        let is_policy = document.object["metadata"]["labels"][LABEL_KIND].is_string();
        if is_policy {
            sources.push(of_config_map(document)?);
        }
    }
    for name in wanted {
        if sources.iter().any(|it: &BindingSource| it.name == *name) {
            continue;
        }
        let path = Path::new(name);
        if !path.exists() {
            bail!(
                "--policy {name}: there is no such file, and no ConfigMap of this name in the manifests"
            );
        }
        match MODULE_KEYS
            .iter()
            .find(|(ending, _)| name.ends_with(ending))
        {
            Some((ending, key)) => sources.push(of_module(path, ending, key)?),
            None => sources.extend(of_manifests(path)?),
        }
    }
    for source in &sources {
        let status = host.apply(source);
        if status.state != BindingState::Ready {
            bail!(
                "policy {}: {}: {}",
                source.name,
                status.reason,
                status.message
            );
        }
    }
    Ok(())
}

fn of_module(path: &Path, ending: &str, key: &str) -> anyhow::Result<BindingSource> {
    let bytes = std::fs::read(path).with_context(|| format!("--policy {}", path.display()))?;
    let file = path
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    Ok(BindingSource {
        namespace: crate::demo::SYSTEM_NAMESPACE.to_owned(),
        name: file.trim_end_matches(ending).to_owned(),
        labels: [(LABEL_KIND.to_owned(), "rank".to_owned())].into(),
        binary_data: [(key.to_owned(), bytes)].into(),
        ..BindingSource::default()
    })
}

fn of_manifests(path: &Path) -> anyhow::Result<Vec<BindingSource>> {
    let manifests = Manifests::read(&[path.to_owned()], &std::collections::BTreeMap::new());
    if let Some(fault) = manifests.faults.first() {
        bail!("--policy {fault}");
    }
    let is_config_map = |it: &&Document| it.object["kind"] == "ConfigMap";
    let documents = manifests.documents.iter().filter(is_config_map);
    let sources: Vec<_> = documents.map(of_config_map).collect::<Result<_, _>>()?;
    if sources.is_empty() {
        bail!("--policy {}: the file holds no ConfigMap", path.display());
    }
    Ok(sources)
}

fn of_config_map(document: &Document) -> anyhow::Result<BindingSource> {
    let object = serde_json::from_value::<ConfigMap>(document.object.clone())
        .with_context(|| document.place.to_string())?;
    let metadata = object.metadata;
    let binary = object.binary_data.unwrap_or_default();
    Ok(BindingSource {
        namespace: metadata
            .namespace
            .unwrap_or_else(|| crate::demo::SYSTEM_NAMESPACE.to_owned()),
        name: metadata.name.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        data: object.data.unwrap_or_default(),
        binary_data: binary
            .into_iter()
            .map(|(key, bytes)| (key, bytes.0))
            .collect(),
    })
}
