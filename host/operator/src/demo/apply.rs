//! Applies documents through the API server's own door, server-side, as `kubectl apply --server-side` would.
//!
//! What the server refuses is told with the object and its place, and the rest goes on.

use std::collections::BTreeSet;

use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective,
};
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};
use sim::ec2::DEMO_NAME;

use authoring::manifests::{Document, ManifestPlace};

const UNKNOWN_KIND: &str = ": no kind `";
/// How the API server begins the list of fields that a kind does not have.
const UNKNOWN_FIELDS: &str = "strict decoding error";

/// What becomes of an object with fields that its kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is refused, as `kubectl apply` does.
    Refuse,
    /// It is applied without them, as `kubectl apply --validate=warn` does; kinds that nobody serves are left out.
    Warn,
}

/// What was said of the documents, one line each.
#[derive(Debug, Default)]
pub(crate) struct AppliedDocuments {
    pub(crate) faults: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// Applies in the order namespaces, definitions, capacity, the rest.
pub(crate) async fn apply(
    client: &kube::Client,
    mut documents: Vec<Document>,
    system_namespace: &str,
    unknown: Unknown,
) -> anyhow::Result<AppliedDocuments> {
    documents.sort_by_key(|document| rank_of(&document.object));
    let mut applied = AppliedDocuments::default();
    let (first, rest): (Vec<_>, Vec<_>) = documents
        .into_iter()
        .partition(|document| rank_of(&document.object) == 0);
    let mut namespaces = missing_namespaces(first.iter().chain(&rest));
    namespaces.insert(system_namespace.to_owned());
    let discovery = Discovery::new(client.clone()).run().await?;
    for name in namespaces {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let place = ManifestPlace {
            file: "namespaces".to_owned(),
            line: 1,
        };
        applied
            .add(client, &discovery, Document { place, object }, unknown)
            .await;
    }
    for document in first {
        applied.add(client, &discovery, document, unknown).await;
    }
    // Definitions among the first may have added kinds.
    let discovery = Discovery::new(client.clone()).run().await?;
    for document in rest {
        applied.add(client, &discovery, document, unknown).await;
    }
    Ok(applied)
}

impl AppliedDocuments {
    async fn add(
        &mut self,
        client: &kube::Client,
        discovery: &Discovery,
        document: Document,
        unknown: Unknown,
    ) {
        let strict = ValidationDirective::Strict;
        let refusal = apply_one(client, discovery, &document, strict).await;
        match refusal {
            Some(warning) if unknown == Unknown::Warn && warning.contains(UNKNOWN_FIELDS) => {
                let lenient = ValidationDirective::Ignore;
                self.faults
                    .extend(apply_one(client, discovery, &document, lenient).await);
                self.warnings.push(without_head(&document, &warning));
            }
            // Objects of other programs have no say in where pods go.
            Some(warning) if unknown == Unknown::Warn && warning.contains(UNKNOWN_KIND) => {
                self.warnings.push(warning);
            }
            refusal => self.faults.extend(refusal),
        }
    }
}

/// The list of unknown fields alone, with its place.
fn without_head(document: &Document, warning: &str) -> String {
    let object = &document.object;
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (_, fields) = warning.split_once(UNKNOWN_FIELDS).unwrap_or_default();
    let fields = fields.trim_start_matches(": ");
    format!("{}: {kind} {name}: {fields}", document.place)
}

/// Namespaces that objects live in and that nothing defines: a demo makes them, as `kubectl create ns` would.
fn missing_namespaces<'a>(documents: impl Iterator<Item = &'a Document>) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut defined = BTreeSet::new();
    for document in documents {
        let object = &document.object;
        if object["kind"] == "Namespace" {
            defined.extend(object["metadata"]["name"].as_str().map(str::to_owned));
        } else {
            used.extend(object["metadata"]["namespace"].as_str().map(str::to_owned));
        }
    }
    used.difference(&defined).cloned().collect()
}

fn rank_of(object: &Value) -> u8 {
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" | "CustomResourceDefinition" => 0,
        "PriorityClass" | "StorageClass" | "EC2NodeClass" => 1,
        "NodePool"
        | "NodeOverlay"
        | "PersistentVolume"
        | "PersistentVolumeClaim"
        | "PodDisruptionBudget" => 2,
        _ => 3,
    }
}

async fn apply_one(
    client: &kube::Client,
    discovery: &Discovery,
    document: &Document,
    validation: ValidationDirective,
) -> Option<String> {
    let Document { place, object } = document;
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let Some(name) = object["metadata"]["name"]
        .as_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
    else {
        return Some(format!(
            "{place}: {kind} has no `metadata.name`; give it one"
        ));
    };
    let Some((resource, scope)) = resolve(discovery, &api_version, &kind) else {
        return Some(format!(
            "{place}: {kind} {name}: no kind `{kind}` in version `{api_version}` is served; \
             install its CustomResourceDefinition or mend `apiVersion` and `kind`"
        ));
    };
    let api: Api<DynamicObject> = match scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object["metadata"]["namespace"]
                .as_str()
                .unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    let params = PatchParams {
        field_validation: Some(validation),
        ..PatchParams::apply(DEMO_NAME).force()
    };
    match api.patch(&name, &params, &Patch::Apply(object)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(format!("{place}: {}", status.message)),
        Err(error) => Some(format!("{place}: {kind} {name}: {error}")),
    }
}

fn resolve(discovery: &Discovery, api_version: &str, kind: &str) -> Option<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    discovery
        .resolve_gvk(&gvk)
        .map(|(resource, capabilities)| (resource, capabilities.scope))
}
