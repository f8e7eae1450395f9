//! Input as people have it: YAML or JSON, several documents in one, `List`s, dumps that end too early, answers of the
//! AWS CLI. Makes single objects of it and says what could not be read.
//!
//! Opens no files. What a document means is nothing to this module.

use std::fmt;

use apis::manifest::split_documents;
use serde_json::{Value, json};

/// `apiVersion` under which objects of AWS' answers go, so that they have a kind and a name as all others.
pub(crate) const AWS: &str = "aws";

/// A file and the line at which a document begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// Name of the file, for people.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One object and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Where its document begins.
    pub place: SourcePlace,
    /// The object, with `apiVersion` and `kind`.
    pub object: Value,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Place where its document begins.
    pub place: SourcePlace,
    /// Fault of the document, and what to do.
    pub message: String,
}

/// All that was given: the objects, and what could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversionInput {
    /// Objects, in the order of the input.
    pub sources: Vec<Source>,
    /// Documents that could not be read.
    pub unread: Vec<Unread>,
}

impl ConversionInput {
    /// Adds the documents of a text; `file` is for people.
    pub fn add(&mut self, file: &str, text: &str) {
        let start = text.trim_start();
        if start.starts_with(['{', '[']) && self.add_json(file, start) {
            return;
        }
        for (line, document) in split_documents(text) {
            let place = SourcePlace {
                file: file.to_owned(),
                line,
            };
            self.add_yaml(place, document);
        }
    }

    /// Reads values of JSON that follow each other. False where it is no JSON, but perhaps YAML.
    fn add_json(&mut self, file: &str, text: &str) -> bool {
        let place = SourcePlace {
            file: file.to_owned(),
            line: 1,
        };
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut read = Vec::new();
        loop {
            let start = values.byte_offset();
            match values.next() {
                None => break,
                Some(Ok(value)) => read.push(value),
                Some(Err(error)) => {
                    let items = whole_json_items(text.get(start..).unwrap_or_default());
                    if read.is_empty() && items.is_empty() {
                        return false;
                    }
                    self.cut(&place, items.len(), &error.to_string());
                    read.extend(items);
                    break;
                }
            }
        }
        for value in read {
            self.push(&place, value);
        }
        true
    }

    fn add_yaml(&mut self, place: SourcePlace, document: &str) {
        match serde_saphyr::from_str::<Value>(document) {
            Ok(Value::Null) => {}
            // kubectl writes the kind behind the items: without it the last of them may be cut.
            Ok(value) if value["items"].is_array() && value["kind"].is_null() => {
                let mut items = whole_yaml_items(document);
                items.pop();
                self.cut(&place, items.len(), "nothing follows the items");
                for item in items {
                    self.push(&place, item);
                }
            }
            Ok(value) => self.push(&place, value),
            Err(error) => {
                let message = error.to_string();
                let message = message.lines().next().unwrap_or_default().trim();
                let items = whole_yaml_items(document);
                if items.is_empty() {
                    let message = format!("cannot be read: {message}");
                    self.unread.push(Unread { place, message });
                    return;
                }
                self.cut(&place, items.len(), message);
                for item in items {
                    self.push(&place, item);
                }
            }
        }
    }

    fn cut(&mut self, place: &SourcePlace, items: usize, why: &str) {
        let message = format!(
            "a part of the document cannot be read ({why}); the {items} whole objects before and after it were taken, \
             make the dump anew for the rest"
        );
        self.unread.push(Unread {
            place: place.clone(),
            message,
        });
    }

    /// Takes lists and answers of the AWS CLI apart.
    fn push(&mut self, place: &SourcePlace, mut object: Value) {
        if let Value::Array(items) = object {
            for item in items {
                self.push(place, item);
            }
            return;
        }
        if let Some(Value::Array(items)) = object.get_mut("items").map(Value::take) {
            // What an API server answers names the kind once, for all items.
            let kind = object["kind"]
                .as_str()
                .and_then(|it| it.strip_suffix("List"));
            let kind = kind.filter(|it| !it.is_empty()).map(Value::from);
            for mut item in items {
                if let (Some(kind), Some(fields)) = (&kind, item.as_object_mut()) {
                    fields.entry("kind").or_insert_with(|| kind.clone());
                    fields
                        .entry("apiVersion")
                        .or_insert_with(|| object["apiVersion"].clone());
                }
                self.push(place, item);
            }
            return;
        }
        for (field, kind, name) in [
            (
                "AutoScalingGroups",
                "AutoScalingGroup",
                "AutoScalingGroupName",
            ),
            ("nodegroup", "Nodegroup", "nodegroupName"),
        ] {
            match object.get_mut(field).map(Value::take) {
                Some(Value::Array(items)) => {
                    for item in items {
                        self.push_aws(place, kind, name, &item);
                    }
                    return;
                }
                Some(item @ Value::Object(_)) => return self.push_aws(place, kind, name, &item),
                Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
                }
            }
        }
        let missing = ["apiVersion", "kind"]
            .into_iter()
            .find(|field| object[*field].as_str().is_none_or(str::is_empty));
        let place = place.clone();
        match missing {
            Some(_) if object["nodegroups"].is_array() => self.unread.push(Unread {
                place,
                message: "names of node groups only; give what `aws eks describe-nodegroup` prints of each".to_owned(),
            }),
            Some(field) => self.unread.push(Unread {
                place,
                message: format!("no Kubernetes object and no answer of AWS that is known: `{field}` is not set"),
            }),
            None => self.sources.push(Source { place, object }),
        }
    }

    fn push_aws(&mut self, place: &SourcePlace, kind: &str, name: &str, item: &Value) {
        let name = item[name].as_str().unwrap_or("without-a-name").to_owned();
        self.sources.push(Source {
            place: place.clone(),
            object: json!({"apiVersion": AWS, "kind": kind, "metadata": {"name": name}, "spec": item}),
        });
    }
}

/// The items of a list of JSON that ends before its end.
fn whole_json_items(text: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let Some((_, rest)) = text.split_once("\"items\"") else {
        return items;
    };
    let Some((_, mut rest)) = rest.split_once('[') else {
        return items;
    };
    loop {
        rest = rest.trim_start().trim_start_matches(',').trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(item)) = values.next() else {
            return items;
        };
        items.push(item);
        rest = rest.get(values.byte_offset()..).unwrap_or_default();
    }
}

/// The items of a list of YAML, each read by itself; those that cannot be read are left out.
fn whole_yaml_items(document: &str) -> Vec<Value> {
    let mut texts: Vec<String> = Vec::new();
    let mut indent = None;
    let lines = document
        .lines()
        .skip_while(|line| line.trim_end() != "items:")
        .skip(1);
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        let at = *indent.get_or_insert(depth);
        if depth == at && line.trim_start().starts_with("- ") {
            texts.push(format!("{}  {}", &line[..depth], &line[depth + 2..]));
        } else if depth > at || line.trim().is_empty() {
            if let Some(text) = texts.last_mut() {
                text.push('\n');
                text.push_str(line);
            }
        } else {
            break;
        }
    }
    texts
        .iter()
        .filter_map(|text| serde_saphyr::from_str(text).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ConversionInput {
        let mut input = ConversionInput::default();
        input.add("in", text);
        input
    }

    #[test]
    fn a_broken_document_is_named_with_its_line_and_the_rest_goes_on() {
        let input =
            read("apiVersion: v1\nkind: A\n---\na: [1\n---\napiVersion: v1\nkind: B\n---\nx: 1\n");
        assert_eq!(input.sources.len(), 2);
        let places: Vec<_> = input.unread.iter().map(|it| it.place.line).collect();
        assert_eq!(places, [4, 9]);
    }

    #[test]
    fn half_a_dump_gives_its_whole_objects() {
        let yaml = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n- apiVersion: v1\n  kind: B\n  spec:\n    a: b";
        let json = r#"{"apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "A"}, {"apiVersion": "v1", "ki"#;
        for text in [yaml, json] {
            let input = read(text);
            assert_eq!(input.sources.len(), 1, "{text}");
            assert_eq!(input.sources[0].object["kind"], "A");
            assert_eq!(input.unread.len(), 1);
        }
    }

    #[test]
    fn an_item_that_is_no_yaml_does_not_take_the_others_along() {
        let input = read(
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n- a: [\n- apiVersion: v1\n  kind: B\nkind: List\n",
        );
        assert_eq!(input.sources.len(), 2);
        assert_eq!(input.unread.len(), 1);
    }

    #[test]
    fn answers_of_aws_have_a_kind_and_a_name() {
        let input =
            read(r#"{"AutoScalingGroups": [{"AutoScalingGroupName": "a"}]}{"nodegroups": ["b"]}"#);
        assert_eq!(input.sources[0].object["metadata"]["name"], "a");
        assert!(input.unread[0].message.contains("describe-nodegroup"));
    }
}
