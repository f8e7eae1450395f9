//! `mortise policy status`: the bindings of a cluster, as their ConfigMaps tell it.

use std::process::ExitCode;

use anyhow::Context as _;
use controllers::{POLICY_LABEL, STATUS_ANNOTATION};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::arguments::StatusArguments;
use super::{exit_code, say};
use crate::cli::Output;

/// What the controller has not looked at yet.
const UNSEEN: &str = "Unseen";

pub(super) fn run(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rows = runtime.block_on(rows(arguments))?;
    let is_good = rows.iter().all(|row| row["state"] == "Ready");
    match arguments.output {
        Output::Json => say(&serde_json::to_string_pretty(&rows)?),
        Output::Text if rows.is_empty() => say(&nothing(arguments)),
        Output::Text => say(&table(&rows)),
    }
    Ok(exit_code(is_good))
}

fn nothing(arguments: &StatusArguments) -> String {
    if arguments.all_namespaces {
        return "No policies: the built-in defaults decide.".to_owned();
    }
    let namespace = &arguments.namespace;
    format!(
        "No policies in namespace {namespace}: the built-in defaults decide. -n NAMESPACE shows those of another, -A all."
    )
}

async fn rows(arguments: &StatusArguments) -> anyhow::Result<Vec<Value>> {
    let client = crate::controller::client(arguments.kubeconfig.as_deref()).await?;
    let api: Api<ConfigMap> = if arguments.all_namespaces {
        Api::all(client)
    } else {
        Api::namespaced(client, &arguments.namespace)
    };
    let labelled = ListParams::default().labels(POLICY_LABEL);
    let list = api
        .list(&labelled)
        .await
        .context("the ConfigMaps of policies cannot be listed")?;
    let mut rows: Vec<Value> = list.items.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row["namespace"].to_string(), row["name"].to_string()));
    Ok(rows)
}

fn row(config_map: ConfigMap) -> Value {
    let metadata = config_map.metadata;
    let annotations = metadata.annotations.unwrap_or_default();
    let status = annotations
        .get(STATUS_ANNOTATION)
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_else(|| json!({"state": UNSEEN, "message": "no controller has looked at it"}));
    let labels = metadata.labels.unwrap_or_default();
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
        "namespace": metadata.namespace,
        "name": metadata.name,
        "kind": labels.get(POLICY_LABEL),
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
