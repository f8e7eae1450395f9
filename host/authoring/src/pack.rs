//! `mortise policy pack`: the ConfigMap that puts a policy in charge, with its component compressed and its
//! digest beside it. A component larger than a ConfigMap goes into several, which the binding names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use policy::binding_keys::{
    AUTHORITY_ANNOTATION, CONFIG_FROM_KEY, CONFIG_KEY, MODE_ANNOTATION,
    NODE_POOL_SELECTOR_ANNOTATION, NODE_POOLS_ANNOTATION, ON_FAILURE_ANNOTATION, ORDER_ANNOTATION,
    PARTS_ANNOTATION, POLICY_LABEL, SHA256_KEY,
};
use policy::{BindingSource, BindingState, OtherConfigMap, PolicyHost};
use sha2::{Digest, Sha256};

use super::arguments::PackArguments;
use super::{say, target, unhurried_host};
use crate::config_map::ConfigMap;

/// Level of compression: a component is packed once and kept in etcd.
pub(super) const LEVEL: i32 = 19;
const KEY: &str = "policy.wasm.zst";
/// What the API server takes, decoded.
const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Of a component that is split.
const CHUNK_BYTES: usize = 900 << 10;
/// Label of a part; its value is the binding, so that old parts are found when a new version has come.
const LABEL_PART_OF: &str = "mortise.dev/part-of";
const LABEL_VALUE_BYTES_MAX: usize = 63;
/// Digits of the digest in the names of parts: those of two versions never meet.
const DIGEST_CHARS: usize = 8;
/// Client-side apply writes the object into an annotation, whose limit is 256 KiB.
const CLIENT_SIDE_BYTES_MAX: usize = 190_000;

pub(super) fn run(arguments: &PackArguments) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let mut source = target::source(&host, &arguments.policy, arguments.kind.map(Into::into))?;
    change(&mut source, arguments)?;
    let parts = pack(&mut source)?;
    refuse_what_a_cluster_would(&host, &source)?;
    let text = manifests(parts.into_iter().chain([source]))?;
    match &arguments.out {
        Some(file) => {
            fs::write(file, &text).with_context(|| file.display().to_string())?;
            say(&apply_command(text.len(), &file.display().to_string()));
        }
        None => say(&text),
    }
    Ok(ExitCode::SUCCESS)
}

fn change(source: &mut BindingSource, arguments: &PackArguments) -> anyhow::Result<()> {
    let PackArguments {
        policy: _,
        kind,
        name,
        namespace,
        mode,
        nodepools,
        nodepool_selector,
        order,
        on_failure,
        authority,
        config,
        config_from,
        out: _,
    } = arguments;
    if let Some(kind) = kind {
        let kind = policy::PolicyKind::from(*kind).as_str().to_owned();
        source.labels.insert(POLICY_LABEL.to_owned(), kind);
    }
    if let Some(name) = name {
        source.name.clone_from(name);
    }
    if let Some(namespace) = namespace {
        source.namespace.clone_from(namespace);
    }
    let order = order.map(|order| order.to_string());
    for (key, value) in [
        (MODE_ANNOTATION, mode),
        (NODE_POOLS_ANNOTATION, nodepools),
        (NODE_POOL_SELECTOR_ANNOTATION, nodepool_selector),
        (ORDER_ANNOTATION, &order),
        (ON_FAILURE_ANNOTATION, on_failure),
        (AUTHORITY_ANNOTATION, authority),
    ] {
        if let Some(value) = value {
            source.annotations.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(file) = config {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        source.data.insert(CONFIG_KEY.to_owned(), text);
        source.data.remove(CONFIG_FROM_KEY);
    }
    if let Some(from) = config_from {
        source
            .data
            .insert(CONFIG_FROM_KEY.to_owned(), from.to_owned());
        source.data.remove(CONFIG_KEY);
    }
    Ok(())
}

/// Compresses the component; gives the parts that do not fit in.
fn pack(source: &mut BindingSource) -> anyhow::Result<Vec<BindingSource>> {
    let is_split = source.annotations.contains_key(PARTS_ANNOTATION);
    if source.binary_data.is_empty() && !is_split {
        return Ok(Vec::new());
    }
    let Some(component) = target::unpacked(source) else {
        // What is wrong with it is said when it is bound.
        return Ok(Vec::new());
    };
    let packed = zstd::encode_all(&component[..], LEVEL)?;
    let mut digits = String::new();
    for byte in Sha256::digest(&component) {
        write!(digits, "{byte:02x}")?;
    }
    source.annotations.remove(PARTS_ANNOTATION);
    source.binary_data.clear();
    source.data.insert(SHA256_KEY.to_owned(), digits.clone());
    let texts = source.data.iter().map(|(key, text)| key.len() + text.len());
    if packed.len() + texts.sum::<usize>() <= CONFIG_MAP_BYTES_MAX {
        source.binary_data.insert(KEY.to_owned(), packed);
        return Ok(Vec::new());
    }
    let stem = format!("{}-{}", source.name, &digits[..DIGEST_CHARS]);
    let parts: Vec<BindingSource> = packed
        .chunks(CHUNK_BYTES)
        .enumerate()
        .map(|(number, chunk)| BindingSource {
            namespace: source.namespace.clone(),
            name: format!("{stem}-{number}"),
            labels: part_of(&source.name),
            binary_data: [(format!("{KEY}.{number}"), chunk.to_vec())].into(),
            ..BindingSource::default()
        })
        .collect();
    let names: Vec<&str> = parts.iter().map(|it| it.name.as_str()).collect();
    source
        .annotations
        .insert(PARTS_ANNOTATION.to_owned(), names.join(","));
    for part in &parts {
        let other = OtherConfigMap {
            data: BTreeMap::new(),
            binary_data: part.binary_data.clone(),
        };
        source.others.insert(part.name.clone(), other);
    }
    Ok(parts)
}

/// Values of labels are shorter than names may be.
fn part_of(name: &str) -> BTreeMap<String, String> {
    let label = (LABEL_PART_OF.to_owned(), name.to_owned());
    let is_value = name.len() <= LABEL_VALUE_BYTES_MAX;
    is_value.then_some(label).into_iter().collect()
}

fn refuse_what_a_cluster_would(host: &PolicyHost, source: &BindingSource) -> anyhow::Result<()> {
    let from = source.data.get(CONFIG_FROM_KEY).map(|it| it.trim());
    let elsewhere = from
        .map(|it| it.split('/').next().unwrap_or_default())
        .filter(|name| !source.others.contains_key(*name));
    if let Some(name) = elsewhere {
        eprintln!(
            "note: ConfigMap {name} is not at hand, so the policy was not tried with its configuration"
        );
        return Ok(());
    }
    let status = host.apply(source);
    if status.state != BindingState::Ready {
        bail!(
            "a cluster would refuse {}: {}: {}",
            source.name,
            status.reason,
            status.message
        );
    }
    Ok(())
}

/// The parts come first, so that a binding never names one that is not there.
fn manifests(sources: impl Iterator<Item = BindingSource>) -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for source in sources {
        let text = serde_saphyr::to_string(&ConfigMap::from(source))?;
        texts.push(text.trim_start_matches("---\n").trim_end().to_owned());
    }
    let largest = texts.iter().map(String::len).max().unwrap_or(0);
    let text = texts.join("\n---\n");
    Ok(format!("# {}\n{text}\n", apply_command(largest, "-")))
}

fn apply_command(largest_bytes: usize, file: &str) -> String {
    let option = if largest_bytes > CLIENT_SIDE_BYTES_MAX {
        " --server-side"
    } else {
        ""
    };
    format!("kubectl apply{option} -f {file}")
}
