//! `mortise policy status`: the bindings of a cluster, as their ConfigMaps tell it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use policy::BindingSource;
use policy::binding_keys::{POLICY_LABEL, STATUS_ANNOTATION};
use serde_json::{Value, json};

use super::{exit_code, program, say};
use crate::Output;
use crate::cluster::{ClusterAccess, StatusArguments};
use crate::config_map::of_config_map;
use crate::manifests::Manifests;

const KUBECTL: &str = "kubectl get configmaps -A -l mortise.dev/policy -o json";
/// What the controller has not looked at yet.
const UNSEEN: &str = "Unseen";

pub(super) fn run(
    arguments: &StatusArguments,
    cluster: Option<ClusterAccess>,
) -> anyhow::Result<ExitCode> {
    let mut rows: Vec<Value> = match cluster {
        _ if !arguments.files.is_empty() => of_files(arguments)?,
        Some(cluster) => (cluster.policies)(arguments)?,
        None => bail!(
            "this program reaches no cluster; {KUBECTL} | {} status -f -",
            program()
        ),
    }
    .iter()
    .map(row)
    .collect();
    rows.sort_by_key(|row| (row["namespace"].to_string(), row["name"].to_string()));
    let is_good = rows.iter().all(|row| row["state"] == "Ready");
    match arguments.output {
        Output::Json => say(&serde_json::to_string_pretty(&rows)?),
        Output::Text if rows.is_empty() => say(&nothing(arguments)),
        Output::Text => say(&table(&rows)),
    }
    Ok(exit_code(is_good))
}

/// The policies among the ConfigMaps of some files.
fn of_files(arguments: &StatusArguments) -> anyhow::Result<Vec<BindingSource>> {
    let manifests = Manifests::read(&arguments.files, &BTreeMap::new());
    if let Some(fault) = manifests.faults.first() {
        bail!("{fault}");
    }
    let config_maps = manifests.documents.iter();
    let config_maps = config_maps.filter(|it| it.object["kind"] == "ConfigMap");
    let mut sources: Vec<BindingSource> =
        config_maps.map(of_config_map).collect::<Result<_, _>>()?;
    sources.retain(|it| it.labels.contains_key(POLICY_LABEL));
    Ok(sources)
}

fn nothing(arguments: &StatusArguments) -> String {
    if !arguments.files.is_empty() {
        return "No policies there.".to_owned();
    }
    if arguments.all_namespaces {
        return "No policies: the built-in defaults decide.".to_owned();
    }
    let namespace = &arguments.namespace;
    format!(
        "No policies in namespace {namespace}: the built-in defaults decide. -n NAMESPACE shows those of another, -A all."
    )
}

fn row(source: &BindingSource) -> Value {
    let annotations = &source.annotations;
    let status = annotations
        .get(STATUS_ANNOTATION)
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_else(|| json!({"state": UNSEEN, "message": "no controller has looked at it"}));
    // What is in charge, or else what the binding asks for.
    let wanted = |key: &str| annotations.get(&format!("mortise.dev/{key}"));
    let in_charge = |field: &str, key: &str, default: Value| {
        let field = &status["inCharge"][field];
        let asked = || wanted(key).map_or(default, |text| json!(text));
        Some(field.clone())
            .filter(|it| !it.is_null())
            .unwrap_or_else(asked)
    };
    json!({
        "namespace": source.namespace,
        "name": source.name,
        "kind": source.labels.get(POLICY_LABEL),
        "mode": in_charge("mode", "mode", json!("enforce")),
        "order": in_charge("order", "order", json!(0)),
        "onFailure": in_charge("onFailure", "on-failure", json!("default")),
        "authority": in_charge("authority", "authority", json!("lower")),
        "appliesTo": status["appliesTo"],
        "nodePools": status["inCharge"]["nodePools"],
        "unmatched": status["inCharge"]["unmatched"],
        "state": status["state"],
        "reason": status["reason"],
        "calls": status["calls"],
        "failures": status["failures"],
        "counted": status["counted"],
        "digest": status["digest"],
        "since": status["since"],
        "message": status["message"],
    })
}

const COLUMNS: [&str; 11] = [
    "NAMESPACE",
    "NAME",
    "KIND",
    "MODE",
    "ORDER",
    "NODEPOOLS",
    "STATE",
    "CALLS",
    "FAILURES",
    "DIGEST",
    "MESSAGE",
];
/// `sha256:` and twelve digits tell two apart.
const DIGEST_CHARS: usize = 19;

fn table(rows: &[Value]) -> String {
    let text = |row: &Value, key: &str| match &row[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    for row in rows {
        let digest = text(row, "digest").chars().take(DIGEST_CHARS).collect();
        let state = match (text(row, "state"), text(row, "reason")) {
            (state, reason) if reason.is_empty() || reason == state => state,
            (state, reason) => format!("{state}/{reason}"),
        };
        lines.push([
            text(row, "namespace"),
            text(row, "name"),
            text(row, "kind"),
            text(row, "mode"),
            text(row, "order"),
            text(row, "appliesTo"),
            state,
            text(row, "calls"),
            text(row, "failures"),
            digest,
            text(row, "message"),
        ]);
    }
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let lines = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<String>>().join("\n")
}
