//! Compiled schemas of the built-in kinds, from the typed API: what a field must be, and which fields there are.
//!
//! Compiled when first asked for, and kept. Never decides what a wrong field comes to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::kinds;
use crate::served::schema::{References, Schema};
use crate::sync::lock;

/// Compiled schemas of the built-in kinds, made when first asked for.
struct CompiledSchemas {
    /// By group and kind.
    by_kind: BTreeMap<(String, String), Option<Arc<Schema>>>,
    /// What they refer to, by the names of the typed API: a pod's specification is part of seven kinds.
    definitions: BTreeMap<String, Arc<Schema>>,
}

static COMPILED: Mutex<CompiledSchemas> = Mutex::new(CompiledSchemas {
    by_kind: BTreeMap::new(),
    definitions: BTreeMap::new(),
});

/// The compiled schema of a built-in kind.
pub(crate) fn schema_of(group: &str, kind: &str) -> Option<Arc<Schema>> {
    let mut compiled = lock(&COMPILED);
    let CompiledSchemas {
        by_kind,
        definitions,
    } = &mut *compiled;
    let compile = || {
        let mut generator = kinds::schema_generator();
        let root = kinds::add_schema(group, kind, &mut generator)?;
        let mut references = BuiltinReferences {
            sources: &generator.take_definitions(true),
            compiled: definitions,
            within: Vec::new(),
        };
        Schema::compile_shared(&root.to_value(), &mut references).ok()
    };
    by_kind
        .entry((group.to_owned(), kind.to_owned()))
        .or_insert_with(compile)
        .clone()
}

/// Ends of the names of definitions whose type says too little: what stands there may be text, a number or anything.
const ANY: [&str; 3] = [".Quantity", ".IntOrString", ".JSON"];

/// What the schemas of the typed API refer to.
struct BuiltinReferences<'a> {
    sources: &'a Map<String, Value>,
    compiled: &'a mut BTreeMap<String, Arc<Schema>>,
    /// The definitions that are being compiled, from the outside in.
    within: Vec<Outer>,
}

/// A definition that is being compiled.
struct Outer {
    name: String,
    /// Whether it was met again below itself.
    is_repeated: bool,
}

fn name_of(reference: &Value) -> Option<&str> {
    reference["$ref"].as_str()?.rsplit('/').next()
}

impl References for BuiltinReferences<'_> {
    fn resolve(&mut self, source: &Value) -> Option<Result<Arc<Schema>, String>> {
        // A reference with a description beside it comes wrapped.
        let source = match source["allOf"].as_array().map(Vec::as_slice) {
            Some([only]) => only,
            _ => source,
        };
        Some(self.definition(name_of(source)?))
    }
}

impl BuiltinReferences<'_> {
    /// Whether the definition is being compiled, and so is around the reference to it that was met.
    fn is_around(&mut self, name: &str) -> bool {
        let Some(outer) = self.within.iter_mut().find(|outer| outer.name == name) else {
            return false;
        };
        outer.is_repeated = true;
        true
    }

    fn definition(&mut self, name: &str) -> Result<Arc<Schema>, String> {
        if let Some(known) = self.compiled.get(name) {
            return Ok(Arc::clone(known));
        }
        // These are read from values of several types.
        let is_any = ANY.iter().any(|any| name.ends_with(any));
        let Some(source) = self.sources.get(name).filter(|_| !is_any) else {
            return Ok(Arc::default());
        };
        // A schema within itself (JSONSchemaProps), or that or something else (JSONSchemaPropsOrBool).
        if self.is_around(name) {
            return Ok(Arc::new(Schema::of_outer(true)));
        }
        if name_of(&source["oneOf"][0]).is_some_and(|either| self.is_around(either)) {
            return Ok(Arc::new(Schema::of_outer(false)));
        }
        self.within.push(Outer {
            name: name.to_owned(),
            is_repeated: false,
        });
        let compiled = Schema::compile_shared(source, self);
        let is_repeated = self.within.pop().is_some_and(|outer| outer.is_repeated);
        let mut compiled = compiled?;
        if let Some(own) = Arc::get_mut(&mut compiled) {
            if is_repeated {
                own.mark_within_itself();
            }
            // What the typed API keeps as raw JSON has fields that it does not list.
            if source["properties"].is_null() {
                own.allow_other_fields();
            }
        }
        self.compiled.insert(name.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_kind_has_a_schema_that_knows_its_fields() {
        for kind in kinds::all().iter() {
            let name = format!("{}/{}", kind.group, kind.kind);
            let schema = schema_of(&kind.group, &kind.kind).unwrap_or_else(|| panic!("{name}"));
            let metadata = schema.field("metadata").unwrap_or_else(|| panic!("{name}"));
            assert!(metadata.field("labels").is_some(), "{name}");
        }
    }
}
