//! Policies for a simulation: those that the flag names, ConfigMaps of the manifests.

use anyhow::{Context as _, bail};
use policy::{BindingSource, BindingState, PolicyHost};

use authoring::manifests::Document;
use authoring::{of_config_map, policies_of, sources};

/// Binds the policies of the manifests and those that the flag names; the first refusal is an error.
pub(super) fn bind(
    host: &PolicyHost,
    wanted: &[String],
    config_maps: &[Document],
) -> anyhow::Result<()> {
    let all: Vec<BindingSource> = config_maps
        .iter()
        .map(of_config_map)
        .collect::<Result<_, _>>()?;
    let mut found = policies_of(&all);
    for name in wanted {
        if found.iter().any(|it| it.name == *name) {
            continue;
        }
        let named = sources(host, name, None).with_context(|| {
            format!("--policy {name}: neither a policy nor a ConfigMap of the manifests")
        })?;
        found.extend(named);
    }
    for source in &found {
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
