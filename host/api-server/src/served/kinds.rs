//! Which kinds are served: names, versions, scope and subresources, for built-in and custom resources alike.
//!
//! Holds facts about kinds and no objects. Built-in kinds come from `builtin::kinds`, custom ones from their
//! definitions.

mod events;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::resource::Resource;
use crate::served::schema::CustomVersion;

/// JSON paths of the scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// Wanted replicas, such as `.spec.replicas`.
    pub(crate) spec_replicas: String,
    /// Observed replicas, such as `.status.replicas`.
    pub(crate) status_replicas: String,
    /// Selector in text form, if the kind has one.
    pub(crate) selector: Option<String>,
}

/// A kind that the server serves.
#[derive(Debug, Clone)]
pub(crate) struct ServedKind {
    /// The table that holds its objects.
    pub(crate) resource: Resource,
    /// API group under which it is served; differs from the table's for events.k8s.io.
    pub(crate) group: String,
    /// Served versions, preferred first.
    pub(crate) versions: Vec<String>,
    /// Version in which objects are kept.
    pub(crate) storage_version: String,
    /// Name of the kind, such as `Pod`.
    pub(crate) kind: String,
    /// Name of its list, such as `PodList`.
    pub(crate) list_kind: String,
    /// Resource in the singular, such as `pod`.
    pub(crate) singular: String,
    /// Short names of the resource, such as `po`.
    pub(crate) short_names: Vec<String>,
    /// Categories that name several resources, such as `all`.
    pub(crate) categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub(crate) is_namespaced: bool,
    /// Fields by which lists and watches may select, beside name and namespace.
    pub(crate) selectable_fields: Vec<String>,
    /// Whether status is a subresource.
    pub(crate) has_status: bool,
    /// Whether changes outside metadata and status count generations.
    pub(crate) has_generation: bool,
    /// The scale subresource, if any.
    pub(crate) scale: Option<ScalePaths>,
    /// For custom resources: schema and columns of each version.
    pub(crate) custom: BTreeMap<String, Arc<CustomVersion>>,
}

impl ServedKind {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    /// Whether lists and watches may select by the field.
    pub(crate) fn is_selectable(&self, field: &str) -> bool {
        match field {
            "metadata.name" => true,
            "metadata.namespace" => self.is_namespaced,
            field => self.selectable_fields.iter().any(|own| own == field),
        }
    }

    /// Whether the kind came from a CustomResourceDefinition.
    pub(crate) fn is_custom(&self) -> bool {
        !self.custom.is_empty()
    }

    /// Schema and columns of the stored version.
    pub(crate) fn stored_custom(&self) -> Option<&Arc<CustomVersion>> {
        self.custom.get(&self.storage_version)
    }

    /// The object as it reads in `version`.
    pub(crate) fn to_wire<'a>(&self, object: &'a Value, version: &str) -> Cow<'a, Value> {
        let wanted = self.api_version(version);
        if object["apiVersion"].as_str() == Some(wanted.as_str()) {
            return Cow::Borrowed(object);
        }
        let mut converted = object.clone();
        if self.resource == Resource::EVENTS {
            events::to_group(&mut converted, &self.group);
        }
        converted["apiVersion"] = wanted.into();
        Cow::Owned(converted)
    }

    /// The object as it is kept, given one that arrived in `self`'s group.
    pub(crate) fn to_storage(&self, object: &mut Value) {
        if self.resource == Resource::EVENTS && !self.group.is_empty() {
            events::to_group(object, "");
        }
        let group = self.resource.group.as_ref();
        let api_version = if group.is_empty() {
            self.storage_version.clone()
        } else {
            format!("{group}/{}", self.storage_version)
        };
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), api_version.into());
            map.insert("kind".to_owned(), self.kind.clone().into());
        }
    }
}

/// All kinds that the server serves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds {
    /// By served group and plural.
    by_name: BTreeMap<(String, String), Arc<ServedKind>>,
}

impl Kinds {
    /// Adds a kind or replaces it.
    pub(crate) fn register(&mut self, kind: ServedKind) {
        let key = (kind.group.clone(), kind.resource.plural.to_string());
        self.by_name.insert(key, Arc::new(kind));
    }

    /// Stops to serve a kind.
    pub(crate) fn unregister(&mut self, resource: &Resource) {
        self.by_name
            .remove(&(resource.group.to_string(), resource.plural.to_string()));
    }

    /// The kind whose table this is.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&Arc<ServedKind>> {
        self.by_name
            .get(&(resource.group.to_string(), resource.plural.to_string()))
    }

    /// The kind served under group and plural.
    pub(crate) fn served(&self, group: &str, plural: &str) -> Option<&Arc<ServedKind>> {
        self.by_name.get(&(group.to_owned(), plural.to_owned()))
    }

    /// All kinds, by group and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ServedKind>> {
        self.by_name.values()
    }
}
