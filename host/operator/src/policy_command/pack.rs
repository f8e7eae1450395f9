//! `mortise policy pack`: the ConfigMap that puts a policy in charge, with its component compressed and its
//! digest beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::{BindingSource, BindingState, PolicyHost};
use sha2::{Digest, Sha256};

use super::arguments::PackArguments;
use super::{patient_host, say, target};

/// Level of compression: a component is packed once and kept in etcd.
pub(super) const LEVEL: i32 = 19;
const KEY: &str = "policy.wasm.zst";
/// What the API server takes, decoded.
const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Client-side apply writes the object into an annotation, whose limit is 256 KiB.
const CLIENT_SIDE_BYTES_MAX: usize = 190_000;

pub(super) fn run(arguments: &PackArguments) -> anyhow::Result<ExitCode> {
    let host = patient_host()?;
    let mut source = target::source(&host, &arguments.policy, arguments.kind.map(Into::into))?;
    change(&mut source, arguments)?;
    pack(&mut source)?;
    refuse_what_a_cluster_would(&host, &source)?;
    let text = manifest(source)?;
    match &arguments.out {
        Some(file) => {
            fs::write(file, &text).with_context(|| file.display().to_string())?;
            say(&apply_command(&text, &file.display().to_string()));
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
        order,
        config,
        out: _,
    } = arguments;
    if let Some(kind) = kind {
        let kind = policy::Kind::from(*kind).as_str().to_owned();
        source.labels.insert(target::LABEL_KIND.to_owned(), kind);
    }
    if let Some(name) = name {
        source.name.clone_from(name);
    }
    if let Some(namespace) = namespace {
        source.namespace.clone_from(namespace);
    }
    let order = order.map(|order| order.to_string());
    for (key, value) in [("mode", mode), ("nodepools", nodepools), ("order", &order)] {
        if let Some(value) = value {
            source
                .annotations
                .insert(format!("mortise.dev/{key}"), value.clone());
        }
    }
    if let Some(file) = config {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        source.data.insert("config".to_owned(), text);
    }
    Ok(())
}

fn pack(source: &mut BindingSource) -> anyhow::Result<()> {
    if source.binary_data.is_empty() {
        return Ok(());
    }
    let Some(component) = target::unpacked(source) else {
        // What is wrong with it is said when it is bound.
        return Ok(());
    };
    let packed = zstd::encode_all(&component[..], LEVEL)?;
    if packed.len() > CONFIG_MAP_BYTES_MAX {
        bail!(
            "the component has {} bytes packed, and a ConfigMap holds {CONFIG_MAP_BYTES_MAX}; build it for size",
            packed.len()
        );
    }
    let mut digits = String::new();
    for byte in Sha256::digest(&component) {
        write!(digits, "{byte:02x}")?;
    }
    source.data.insert("sha256".to_owned(), digits);
    source.binary_data = BTreeMap::from([(KEY.to_owned(), packed)]);
    Ok(())
}

fn refuse_what_a_cluster_would(host: &PolicyHost, source: &BindingSource) -> anyhow::Result<()> {
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

fn manifest(source: BindingSource) -> anyhow::Result<String> {
    let BindingSource {
        namespace,
        name,
        labels,
        annotations,
        data,
        binary_data,
    } = source;
    let binary_data: BTreeMap<String, ByteString> = binary_data
        .into_iter()
        .map(|(key, bytes)| (key, ByteString(bytes)))
        .collect();
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace),
            labels: Some(labels),
            annotations: Some(annotations).filter(|it| !it.is_empty()),
            ..ObjectMeta::default()
        },
        data: Some(data).filter(|it| !it.is_empty()),
        binary_data: Some(binary_data).filter(|it| !it.is_empty()),
        immutable: None,
    };
    let text = serde_saphyr::to_string(&config_map)?;
    let text = text.trim_start_matches("---\n").trim_end();
    Ok(format!("# {}\n{text}\n", apply_command(text, "-")))
}

fn apply_command(manifest: &str, file: &str) -> String {
    let option = if manifest.len() > CLIENT_SIDE_BYTES_MAX {
        " --server-side"
    } else {
        ""
    };
    format!("kubectl apply{option} -f {file}")
}
