//! Which lists are maps, sets or one value: what a kind's schema, or the table of the typed API, knows of its lists.

use crate::served::kinds::ServedKind;
use crate::served::schema::Schema;
use crate::write::list_kind::{ListKind, list_kind};

/// How the items of a list are told apart.
pub(crate) enum ListKeys {
    /// The list is one value.
    Atomic,
    /// Items are told apart by these fields.
    Fields(Vec<String>),
    /// Items are told apart by their whole values.
    Set,
}

/// What a kind knows of its lists: its schema, or the table of the typed API.
#[derive(Clone, Copy)]
pub(crate) enum FieldSchema<'a> {
    /// A built-in kind; the name of the field around.
    Builtin(&'a str),
    /// A custom kind's schema, as far as it reaches.
    Custom(Option<&'a Schema>),
}

impl<'a> FieldSchema<'a> {
    pub(crate) fn of(kind: &'a ServedKind) -> Self {
        match kind.stored_custom() {
            Some(version) => Self::Custom(Some(&version.schema)),
            None => Self::Builtin(""),
        }
    }

    pub(crate) fn field(self, name: &'a str) -> Self {
        match self {
            Self::Builtin(_) => Self::Builtin(name),
            // Every kind has the metadata of the built-in ones.
            Self::Custom(_) if name == "metadata" => Self::Builtin(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(|s| s.field(name))),
        }
    }

    pub(crate) fn item(self) -> Self {
        match self {
            Self::Builtin(name) => Self::Builtin(name),
            Self::Custom(schema) => Self::Custom(schema.and_then(Schema::item)),
        }
    }

    pub(crate) fn is_atomic_map(self) -> bool {
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
    pub(crate) fn list_keys(self, name: &str) -> ListKeys {
        match self.field_of(name) {
            Self::Builtin(parent) => match list_kind(parent, name) {
                ListKind::Atomic => ListKeys::Atomic,
                ListKind::Set { .. } => ListKeys::Set,
                ListKind::Map { keys, .. } => {
                    ListKeys::Fields(keys.iter().map(|&it| it.to_owned()).collect())
                }
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

    fn field_of(self, name: &str) -> FieldSchema<'a> {
        match self {
            Self::Builtin(parent) => Self::Builtin(parent),
            Self::Custom(_) if name == "metadata" => Self::Builtin(""),
            Self::Custom(schema) => Self::Custom(schema.and_then(|s| s.field(name))),
        }
    }
}
