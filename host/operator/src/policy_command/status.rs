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
        Output::Text if rows.is_empty() => {
            say("No policies: the built-in defaults decide.");
        }
        Output::Text => say(&table(&rows)),
    }
    Ok(exit_code(is_good))
}

async fn rows(arguments: &StatusArguments) -> anyhow::Result<Vec<Value>> {
    let client = crate::controller::client(arguments.kubeconfig.as_deref()).await?;
    let api: Api<ConfigMap> = match &arguments.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
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
    let mode = annotations.get("mortise.dev/mode").map(String::as_str);
    json!({
        "namespace": metadata.namespace,
        "name": metadata.name,
        "kind": labels.get(POLICY_LABEL),
        "mode": mode.unwrap_or("enforce"),
        "state": status["state"],
        "reason": status["reason"],
        "digest": status["digest"],
        "since": status["since"],
        "message": status["message"],
    })
}

const COLUMNS: [&str; 7] = [
    "NAMESPACE",
    "NAME",
    "KIND",
    "MODE",
    "STATE",
    "DIGEST",
    "MESSAGE",
];
/// `sha256:` and twelve digits tell two apart.
const DIGEST_CHARS: usize = 19;

fn table(rows: &[Value]) -> String {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
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
            state,
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
