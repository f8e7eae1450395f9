//! What the command line means by a policy: a folder, a manifest, a component, or one of the shelf.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use policy::binding_keys::{BUILTIN_KEY, PARTS_ANNOTATION, POLICY_LABEL};
use policy::{BUILTINS, BindingSource, OtherConfigMap, PolicyHost, PolicyKind};

use super::program;
use crate::config_map::of_config_map;
use crate::manifests::Manifests;

/// Manifest of a folder.
pub(super) const MANIFEST: &str = "policy.yaml";
/// Component of a folder.
pub(super) const COMPONENT: &str = "policy.wasm";
/// Cases of a folder.
pub(super) const CASES: &str = "cases.yaml";
const BUILTIN: &str = "builtin:";
const COMPONENT_KEYS: [(&str, &str); 3] = [
    (".wasm", "policy.wasm"),
    (".wasm.gz", "policy.wasm.gz"),
    (".wasm.zst", "policy.wasm.zst"),
];

/// The one policy that an argument names.
pub(super) fn source(
    host: &PolicyHost,
    argument: &str,
    kind: Option<PolicyKind>,
) -> anyhow::Result<BindingSource> {
    let mut found = sources(host, argument, kind)?;
    match (found.pop(), found.len()) {
        (Some(source), 0) => Ok(source),
        (_, more) => bail!(
            "{argument} holds {} policies; keep the one that is meant in a file of its own",
            more + 1
        ),
    }
}

/// The policies that an argument names; at least one.
pub fn sources(
    host: &PolicyHost,
    argument: &str,
    kind: Option<PolicyKind>,
) -> anyhow::Result<Vec<BindingSource>> {
    if let Some(name) = argument.strip_prefix(BUILTIN) {
        return of_builtin(name, kind).map(|source| vec![source]);
    }
    let path = Path::new(argument);
    if !path.exists() {
        bail!("there is no {argument}");
    }
    if path.is_dir() {
        let manifest = path.join(MANIFEST);
        if manifest.exists() {
            return of_manifests(&manifest);
        }
        bail!(
            "{argument} has no {MANIFEST}; `{} new` makes a folder that has one",
            program()
        );
    }
    let key = COMPONENT_KEYS
        .iter()
        .find(|(ending, _)| argument.ends_with(ending));
    match key {
        Some((ending, key)) => of_component(host, path, ending, key, kind).map(|it| vec![it]),
        None => of_manifests(path),
    }
}

/// The cases beside a policy.
pub(super) fn cases_beside(argument: &str) -> PathBuf {
    let path = Path::new(argument);
    if path.is_dir() {
        path.join(CASES)
    } else {
        path.with_file_name(CASES)
    }
}

fn of_builtin(name: &str, kind: Option<PolicyKind>) -> anyhow::Result<BindingSource> {
    let Some(builtin) = BUILTINS.iter().find(|it| it.name == name) else {
        let names: Vec<&str> = BUILTINS.iter().map(|it| it.name).collect();
        bail!(
            "no built-in policy is called {name}; there are {}",
            names.join(", ")
        );
    };
    let mut source = named(name, kind.unwrap_or(builtin.kind).as_str());
    source.data.insert(BUILTIN_KEY.to_owned(), name.to_owned());
    Ok(source)
}

fn named(name: &str, label: &str) -> BindingSource {
    BindingSource {
        namespace: crate::SYSTEM_NAMESPACE.to_owned(),
        name: name.to_owned(),
        labels: [(POLICY_LABEL.to_owned(), label.to_owned())].into(),
        ..BindingSource::default()
    }
}

/// A component by itself: what it exports says what it judges. One that does not load is taken for a
/// ranking policy, and refused with the reason when it is bound.
fn of_component(
    host: &PolicyHost,
    path: &Path,
    ending: &str,
    key: &str,
    kind: Option<PolicyKind>,
) -> anyhow::Result<BindingSource> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let file = path.file_name().and_then(|it| it.to_str());
    let name = file.unwrap_or("policy").trim_end_matches(ending);
    let mut source = named(name, kind.unwrap_or(PolicyKind::Rank).as_str());
    source.binary_data = [(key.to_owned(), bytes)].into();
    if kind.is_none() {
        let label = unpacked(&source)
            .and_then(|component| host.inspect(&component).ok())
            .map_or("rank", |found| label_of(&found.kinds));
        source
            .labels
            .insert(POLICY_LABEL.to_owned(), label.to_owned());
    }
    Ok(source)
}

fn label_of(kinds: &[PolicyKind]) -> &'static str {
    match kinds {
        [] => "rank",
        [kind] => kind.as_str(),
        _ if kinds.len() == PolicyKind::ALL.len() => "full",
        [kind, ..] => kind.as_str(),
    }
}

/// The component that a binding carries, if it carries one that unpacks.
pub(super) fn unpacked(source: &BindingSource) -> Option<Vec<u8>> {
    let bytes_max = policy::Limits::default().component_bytes_max;
    match policy::Binding::parse(source, bytes_max).ok()?.source {
        policy::PolicySource::Module(bytes) => Some(bytes),
        policy::PolicySource::Builtin(name) => {
            let builtin = BUILTINS.iter().find(|it| it.name == name)?;
            Some(builtin.component().to_vec())
        }
        policy::PolicySource::Rule(_) => None,
    }
}

fn of_manifests(path: &Path) -> anyhow::Result<Vec<BindingSource>> {
    let manifests = Manifests::read(&[path.to_owned()], &BTreeMap::new());
    if let Some(fault) = manifests.faults.first() {
        bail!("{fault}");
    }
    let config_maps = manifests.documents.iter();
    let config_maps = config_maps.filter(|it| it.object["kind"] == "ConfigMap");
    let all: Vec<BindingSource> = config_maps.map(of_config_map).collect::<Result<_, _>>()?;
    if all.is_empty() {
        bail!("{} holds no ConfigMap", path.display());
    }
    let is_labelled = all.iter().any(|it| it.labels.contains_key(POLICY_LABEL));
    // Without a label there is no telling them apart; what is missing is said when they are bound.
    let sources = if is_labelled { policies_of(&all) } else { all };
    let sources = sources.into_iter();
    sources
        .map(|source| with_component_beside(source, path))
        .collect()
}

/// The policies among ConfigMaps, each with those of the others that it names.
pub fn policies_of(all: &[BindingSource]) -> Vec<BindingSource> {
    let is_policy = |it: &&BindingSource| it.labels.contains_key(POLICY_LABEL);
    let mut policies: Vec<BindingSource> = all.iter().filter(is_policy).cloned().collect();
    for policy in &mut policies {
        let names = policy::references(policy);
        let beside = all.iter().filter(|it| it.namespace == policy.namespace);
        let named = beside.filter(|it| names.contains(&it.name));
        let others = named.map(|it| {
            let other = OtherConfigMap {
                data: it.data.clone(),
                binary_data: it.binary_data.clone(),
            };
            (it.name.clone(), other)
        });
        policy.others = others.collect();
    }
    policies
}

/// The manifest of a folder leaves the component out: it is the file beside it.
fn with_component_beside(mut source: BindingSource, path: &Path) -> anyhow::Result<BindingSource> {
    let names_one = ["rule", "exclude", "builtin", "module"]
        .iter()
        .any(|key| source.data.contains_key(*key))
        || !source.binary_data.is_empty()
        || source.annotations.contains_key(PARTS_ANNOTATION);
    let component = path.with_file_name(COMPONENT);
    if !names_one {
        if !component.exists() {
            bail!(
                "{} is not there yet; `{} build {}` makes it",
                component.display(),
                program(),
                path.parent().unwrap_or_else(|| Path::new(".")).display()
            );
        }
        let bytes = fs::read(&component).with_context(|| component.display().to_string())?;
        source.binary_data.insert(COMPONENT.to_owned(), bytes);
    }
    Ok(source)
}
