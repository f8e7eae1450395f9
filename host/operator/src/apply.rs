//! Applies documents through the API server's own door, server-side, as `kubectl apply --server-side` would.
//!
//! What the server refuses is told with the object and its place, and the rest goes on. Never deletes.

use std::collections::BTreeSet;

use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective,
};
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};
use sim::ec2::DEMO_NAME;

use authoring::manifests::{Document, ManifestPlace};

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
        let Err(refusal) = apply_one(client, discovery, &document, strict).await else {
            return;
        };
        match (refusal, unknown) {
            (DocumentRefusal::UnknownFields { fields, .. }, Unknown::Warn) => {
                let lenient = ValidationDirective::Ignore;
                let refusal = apply_one(client, discovery, &document, lenient).await.err();
                self.faults.extend(refusal.map(DocumentRefusal::into_line));
                self.warnings.push(fields);
            }
            // Objects of other programs have no say in where pods go.
            (DocumentRefusal::UnknownKind(line), Unknown::Warn) => self.warnings.push(line),
            (refusal, Unknown::Refuse | Unknown::Warn) => self.faults.push(refusal.into_line()),
        }
    }
}

/// Why a document was not applied: a line with its place.
#[derive(Debug)]
enum DocumentRefusal {
    /// Nobody serves its kind.
    UnknownKind(String),
    /// Its kind does not have some of its fields.
    UnknownFields {
        line: String,
        /// The list of fields alone, with its place.
        fields: String,
    },
    Other(String),
}

impl DocumentRefusal {
    /// The server's: it tells unknown fields from what else is wrong by its words alone.
    fn of_message(document: &Document, message: &str) -> Self {
        let Document { place, object } = document;
        let line = format!("{place}: {message}");
        let Some((_, fields)) = message.split_once(UNKNOWN_FIELDS) else {
            return Self::Other(line);
        };
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let fields = fields.trim_start_matches(": ");
        let fields = format!("{place}: {kind} {name}: {fields}");
        Self::UnknownFields { line, fields }
    }

    fn into_line(self) -> String {
        match self {
            Self::UnknownFields { line, .. } | Self::UnknownKind(line) | Self::Other(line) => line,
        }
    }
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
) -> Result<(), DocumentRefusal> {
    let Document { place, object } = document;
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let Some(name) = object["metadata"]["name"]
        .as_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
    else {
        return Err(DocumentRefusal::Other(format!(
            "{place}: {kind} has no `metadata.name`; give it one"
        )));
    };
    let Some((resource, scope)) = resolve(discovery, &api_version, &kind) else {
        return Err(DocumentRefusal::UnknownKind(format!(
            "{place}: {kind} {name}: no kind `{kind}` in version `{api_version}` is served; \
             install its CustomResourceDefinition or mend `apiVersion` and `kind`"
        )));
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
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => {
            Err(DocumentRefusal::of_message(document, &status.message))
        }
        Err(error) => Err(DocumentRefusal::Other(format!(
            "{place}: {kind} {name}: {error}"
        ))),
    }
}

fn resolve(discovery: &Discovery, api_version: &str, kind: &str) -> Option<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    discovery
        .resolve_gvk(&gvk)
        .map(|(resource, capabilities)| (resource, capabilities.scope))
}
