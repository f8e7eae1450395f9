//! The settings of a policy as its schema tells them, for `mortise policy check`.

use policy::{ConfigSchema, Descriptor, Setting};
use serde_json::{Value, json};

/// None, where the policy tells of none; a schema that cannot be read refuses the policy elsewhere.
pub(super) fn of(descriptor: &Descriptor) -> Vec<Setting> {
    let schema = ConfigSchema::parse(&descriptor.config_schema);
    schema
        .ok()
        .flatten()
        .map_or_else(Vec::new, |it| it.settings())
}

pub(super) fn text(setting: &Setting) -> String {
    let Setting {
        name,
        must_be,
        default,
        is_required,
        description,
    } = setting;
    let mut text = format!("{name}: {must_be}");
    if *is_required {
        text.push_str(", required");
    }
    if let Some(default) = default {
        text.push_str(", default ");
        text.push_str(default);
    }
    if !description.is_empty() {
        text.push_str("; ");
        text.push_str(description);
    }
    text
}

pub(super) fn json(setting: &Setting) -> Value {
    let Setting {
        name,
        must_be,
        default,
        is_required,
        description,
    } = setting;
    json!({
        "name": name,
        "mustBe": must_be,
        "default": default.as_ref().and_then(|it| serde_json::from_str::<Value>(it).ok()),
        "required": is_required,
        "description": description,
    })
}
