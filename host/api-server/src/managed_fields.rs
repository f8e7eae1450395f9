//! Who set which field: the sets behind server-side apply, in `metadata.managedFields`.
//!
//! Kept small: only writers that name themselves are recorded, and a change by others only takes fields away
//! from the owners it overruled. Answers to structured-merge-diff and apimachinery's `managedfields`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kinds::Kind;
use super::patch::strategic;
use super::schema::Schema;
use super::write::{Part, WriteOptions, time_text};

/// A path through an object, each step in the notation of `fieldsV1`: `f:name`, `k:{…}`, `v:…`.
pub(super) type Path = Vec<String>;

/// How the items of a list are told apart.
enum ListKeys {
    /// The list is one value.
    Atomic,
    /// By these fields.
    Fields(Vec<String>),
    /// By the items themselves.
    Set,
}

/// What a kind knows of its lists: its schema, or the table of the typed API.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    /// A built-in kind; the name of the field around.
    Builtin(&'a str),
    /// A custom kind's schema, as far as it reaches.
    Custom(Option<&'a Schema>),
}

impl<'a> Shape<'a> {
    pub(super) fn of(kind: &'a Kind) -> Self {
        match kind.stored_custom() {
            Some(version) => Self::Custom(Some(&version.schema)),
            None => Self::Builtin(""),
        }
    }

    pub(super) fn field(self, name: &'a str) -> Self {
        match self {
            Self::Builtin(_) => Self::Builtin(name),
            // Every kind has the metadata of the built-in ones.
            Self::Custom(_) if name == "metadata" => Self::Builtin(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(|s| s.field(name))),
        }
    }

    fn item(self) -> Self {
        match self {
            Self::Builtin(name) => Self::Builtin(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(Schema::item)),
        }
    }

    fn is_atomic_map(self) -> bool {
        match self {
            Self::Builtin(name) => {
                matches!(
                    name,
                    "selector" | "nodeSelector" | "labelSelector" | "resourceFieldRef"
                )
            }
            Self::Custom(schema) => schema.is_some_and(Schema::is_atomic),
        }
    }

    /// The keys of the list that is the field `name` under this shape.
    fn list_keys(self, name: &str) -> ListKeys {
        match self.field_of(name) {
            Self::Builtin(_) => match (name, self) {
                ("finalizers", _) => ListKeys::Set,
                ("taints" | "tolerations", _) => ListKeys::Atomic,
                ("ports", Self::Builtin("spec")) => fields(&["port", "protocol"]),
                ("ports", Self::Builtin("containers" | "initContainers")) => {
                    fields(&["containerPort", "protocol"])
                }
                ("topologySpreadConstraints", _) => fields(&["topologyKey", "whenUnsatisfiable"]),
                (_, Self::Builtin(parent)) => match strategic::merge_key(parent, name) {
                    Some(key) => fields(&[key]),
                    None => ListKeys::Atomic,
                },
                (_, Self::Custom(_)) => ListKeys::Atomic,
            },
            Self::Custom(schema) => match schema {
                Some(schema) if schema.is_set() => ListKeys::Set,
                Some(schema) => match schema.list_keys() {
                    Some(keys) => ListKeys::Fields(keys.to_vec()),
                    None => ListKeys::Atomic,
                },
                None => ListKeys::Atomic,
            },
        }
    }

    fn field_of(self, name: &str) -> Shape<'a> {
        match self {
            Self::Builtin(parent) => Self::Builtin(parent),
            Self::Custom(_) if name == "metadata" => Self::Builtin(""),
            Self::Custom(schema) => Self::Custom(schema.and_then(|s| s.field(name))),
        }
    }
}

fn fields(names: &[&str]) -> ListKeys {
    ListKeys::Fields(names.iter().map(|&n| n.to_owned()).collect())
}

/// The step that names an item of a list, if it carries its keys.
fn item_step(keys: &ListKeys, item: &Value) -> Option<String> {
    match keys {
        ListKeys::Atomic => None,
        ListKeys::Set => Some(format!("v:{item}")),
        ListKeys::Fields(names) => {
            let mut id = Map::new();
            for name in names {
                match item.get(name) {
                    Some(value) => {
                        id.insert(name.clone(), value.clone());
                    }
                    // Protocols have a default, other keys have none.
                    None if name == "protocol" => {
                        id.insert(name.clone(), "TCP".into());
                    }
                    None if name == "whenUnsatisfiable" => {
                        id.insert(name.clone(), "DoNotSchedule".into());
                    }
                    None => return None,
                }
            }
            Some(format!("k:{}", Value::Object(id)))
        }
    }
}

/// All paths to values in an object, with the values.
pub(super) fn leaves<'a>(shape: Shape<'a>, object: &'a Value) -> Vec<(Path, &'a Value)> {
    leaves_unlike(shape, object, None)
}

/// The leaves of those parts of the object that another does not share: most writes change little.
fn leaves_unlike<'a>(
    shape: Shape<'a>,
    object: &'a Value,
    other: Option<&Value>,
) -> Vec<(Path, &'a Value)> {
    let mut found = Vec::new();
    let Some(map) = object.as_object() else {
        return found;
    };
    for (name, value) in map {
        if matches!(name.as_str(), "apiVersion" | "kind") {
            continue;
        }
        let other = other.and_then(|it| it.get(name));
        walk(shape, name, (value, other), &mut Vec::new(), &mut found);
    }
    found
}

/// Metadata that the server owns, whoever sends it.
const SERVER_OWNED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

fn walk<'a>(
    parent: Shape<'a>,
    name: &'a str,
    (value, other): (&'a Value, Option<&Value>),
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let is_server_owned =
        path.len() == 1 && path[0] == "f:metadata" && SERVER_OWNED.contains(&name);
    if is_server_owned || value.is_null() || other == Some(value) {
        return;
    }
    path.push(format!("f:{name}"));
    let shape = parent.field(name);
    match value {
        Value::Object(map) if !map.is_empty() && !shape.is_atomic_map() => {
            for (inner, value) in map {
                let other = other.and_then(|it| it.get(inner));
                walk(shape, inner, (value, other), path, found);
            }
        }
        Value::Array(items) => walk_list(parent, name, (value, items), path, found),
        _ => found.push((path.clone(), value)),
    }
    path.pop();
}

fn walk_list<'a>(
    parent: Shape<'a>,
    name: &'a str,
    (value, items): (&'a Value, &'a [Value]),
    path: &mut Path,
    found: &mut Vec<(Path, &'a Value)>,
) {
    let keys = parent.list_keys(name);
    let steps: Option<Vec<String>> = items.iter().map(|item| item_step(&keys, item)).collect();
    let Some(steps) = steps.filter(|steps| !steps.is_empty()) else {
        found.push((path.clone(), value));
        return;
    };
    let shape = parent.field(name).item();
    for (step, item) in steps.into_iter().zip(items) {
        path.push(step);
        // The item itself is owned, too: so it goes when its last owner lets go of it.
        let mut own = path.clone();
        own.push(".".to_owned());
        found.push((own, &Value::Null));
        match item.as_object() {
            Some(map) => {
                for (inner, value) in map {
                    walk(shape, inner, (value, None), path, found);
                }
            }
            None => found.push((path.clone(), item)),
        }
        path.pop();
    }
}

/// Paths as the nested object of `fieldsV1`.
pub(super) fn to_fields(paths: &BTreeSet<Path>) -> Value {
    let mut root = Map::new();
    for path in paths {
        let mut at = &mut root;
        for step in path {
            let next = at.entry(step.clone()).or_insert_with(|| json!({}));
            let Some(map) = next.as_object_mut() else {
                break;
            };
            at = map;
        }
    }
    Value::Object(root)
}

/// The paths in a `fieldsV1`.
pub(super) fn from_fields(fields: &Value) -> BTreeSet<Path> {
    let mut paths = BTreeSet::new();
    collect(fields, &mut Vec::new(), &mut paths);
    paths
}

fn collect(fields: &Value, path: &mut Path, paths: &mut BTreeSet<Path>) {
    match fields.as_object() {
        Some(map) if !map.is_empty() => {
            for (step, inner) in map {
                path.push(step.clone());
                collect(inner, path, paths);
                path.pop();
            }
        }
        _ if !path.is_empty() => {
            paths.insert(path.clone());
        }
        _ => {}
    }
}

/// One manager's entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) manager: String,
    /// `Apply` or `Update`.
    pub(super) operation: String,
    /// Empty, or `status`.
    pub(super) subresource: String,
    time: Value,
    pub(super) paths: BTreeSet<Path>,
}

impl Entry {
    pub(super) fn new(manager: &str, operation: &str, part: Part, now: Timestamp) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            subresource: if part == Part::Status {
                "status".to_owned()
            } else {
                String::new()
            },
            time: time_text(now).into(),
            paths: BTreeSet::new(),
        }
    }

    /// Whether two entries are of one manager in one role.
    pub(super) fn is_same_role(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
    }
}

/// The entries of an object.
pub(super) fn read(object: &Value) -> Vec<Entry> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| Entry {
            manager: text(&entry["manager"]),
            operation: text(&entry["operation"]),
            subresource: text(&entry["subresource"]),
            time: entry["time"].clone(),
            paths: from_fields(&entry["fieldsV1"]),
        })
        .collect()
}

/// Writes the entries into an object; managers that own nothing are dropped.
pub(super) fn write(object: &mut Value, entries: &[Entry]) {
    let api_version = object["apiVersion"].clone();
    let list: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.paths.is_empty())
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager, "operation": entry.operation,
                "apiVersion": api_version, "time": entry.time,
                "fieldsType": "FieldsV1", "fieldsV1": to_fields(&entry.paths),
            });
            if !entry.subresource.is_empty() {
                value["subresource"] = entry.subresource.as_str().into();
            }
            value
        })
        .collect();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if list.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), list.into());
    }
}

/// Records the fields of a new object, if its writer names itself.
pub(super) fn after_create(
    kind: &Kind,
    object: &mut Value,
    options: &WriteOptions,
    now: Timestamp,
) {
    if options.is_apply {
        return;
    }
    match &options.field_manager {
        Some(manager) => {
            let mut entry = Entry::new(manager, "Update", Part::Main, now);
            entry.paths = leaves(Shape::of(kind), object)
                .into_iter()
                .map(|(p, _)| p)
                .collect();
            write(object, &[entry]);
        }
        None => write(object, &[]),
    }
}

/// Moves the fields that an update changed to its writer.
pub(super) fn after_update(
    kind: &Kind,
    old: &Value,
    object: &mut Value,
    options: &WriteOptions,
    now: Timestamp,
) {
    let has_entries = object["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|l| !l.is_empty());
    if options.is_apply || (!has_entries && options.field_manager.is_none()) {
        return;
    }
    let shape = Shape::of(kind);
    let before: Vec<_> = leaves_unlike(shape, old, Some(object));
    let after: Vec<_> = leaves_unlike(shape, object, Some(old));
    let was: std::collections::BTreeMap<&Path, &Value> =
        before.iter().map(|(p, v)| (p, *v)).collect();
    let is: BTreeSet<&Path> = after.iter().map(|(p, _)| p).collect();
    let changed: BTreeSet<Path> = after
        .iter()
        .filter(|(path, value)| was.get(path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    let gone: BTreeSet<Path> = before
        .iter()
        .filter(|(path, _)| !is.contains(path))
        .map(|(p, _)| p.clone())
        .collect();
    if changed.is_empty() && gone.is_empty() {
        return;
    }
    let mut entries = read(object);
    for entry in &mut entries {
        entry
            .paths
            .retain(|path| !changed.contains(path) && !gone.contains(path));
    }
    if let Some(manager) = &options.field_manager {
        let mut mine = Entry::new(manager, "Update", options.part, now);
        mine.paths = changed;
        if let Some(at) = entries.iter().position(|e| e.is_same_role(&mine)) {
            mine.paths.append(&mut entries[at].paths);
            entries[at] = mine;
        } else {
            entries.push(mine);
        }
    }
    write(object, &entries);
}
