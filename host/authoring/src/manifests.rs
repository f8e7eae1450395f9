//! Manifests as people keep them: files and folders of YAML or JSON, several documents in one, `List`s.
//!
//! A document that does not parse is one fault with its place; the others go on. `${CLUSTER_NAME}` and
//! other `${NAME}` are replaced as `envsubst` would, because published Karpenter examples need it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use apis::manifest::split_documents;
use serde_json::Value;

/// One object to apply and where it came from.
#[derive(Debug, Clone)]
pub struct Document {
    pub place: ManifestPlace,
    pub object: Value,
}

/// A file and the line its document begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPlace {
    pub file: String,
    pub line: usize,
}

/// Something that could not be read.
#[derive(Debug, Clone)]
pub struct ManifestFault {
    pub place: ManifestPlace,
    pub message: String,
}

/// All that the arguments named: the objects and what went wrong.
#[derive(Debug, Default)]
pub struct Manifests {
    pub documents: Vec<Document>,
    pub faults: Vec<ManifestFault>,
}

impl fmt::Display for ManifestPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

impl Manifests {
    /// Reads every file and folder named; `variables` are what `${NAME}` stands for.
    pub fn read(paths: &[PathBuf], variables: &BTreeMap<String, String>) -> Self {
        let mut manifests = Self::default();
        for path in paths {
            manifests.read_path(path, variables);
        }
        manifests
    }

    /// Reads one text of documents.
    pub fn read_text(&mut self, file: &str, text: &str, variables: &BTreeMap<String, String>) {
        let text = substitute(text, variables);
        for (line, document) in split_documents(&text) {
            let place = ManifestPlace {
                file: file.to_owned(),
                line,
            };
            match serde_saphyr::from_str::<Value>(document) {
                Ok(Value::Null) => {}
                Ok(object) => self.push(place, object),
                Err(error) => self.faults.push(ManifestFault {
                    place,
                    message: first_lines(&error.to_string()),
                }),
            }
        }
    }

    /// Adds objects that were made and not read.
    pub fn push_objects(&mut self, file: &str, objects: Vec<Value>) {
        for (index, object) in objects.into_iter().enumerate() {
            self.push(
                ManifestPlace {
                    file: file.to_owned(),
                    line: index + 1,
                },
                object,
            );
        }
    }

    fn read_path(&mut self, path: &Path, variables: &BTreeMap<String, String>) {
        let name = path.display().to_string();
        if name == "-" {
            let mut text = String::new();
            match std::io::stdin().read_to_string(&mut text) {
                Ok(_) => self.read_text("standard input", &text, variables),
                Err(error) => self.fault(&name, &error.to_string()),
            }
        } else if path.is_dir() {
            match manifest_files(path) {
                Ok(files) if files.is_empty() => {
                    self.fault(&name, "the folder holds no .yaml, .yml or .json file");
                }
                Ok(files) => files
                    .iter()
                    .for_each(|file| self.read_path(file, variables)),
                Err(error) => self.fault(&name, &error.to_string()),
            }
        } else {
            match fs::read_to_string(path) {
                Ok(text) => self.read_text(&name, &text, variables),
                Err(error) => self.fault(&name, &format!("cannot be read: {error}")),
            }
        }
    }

    fn push(&mut self, place: ManifestPlace, mut object: Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if kind.ends_with("List") && object["items"].is_array() {
            if let Value::Array(items) = object["items"].take() {
                for item in items {
                    self.push(place.clone(), item);
                }
            }
            return;
        }
        let missing = ["apiVersion", "kind"]
            .into_iter()
            .find(|field| object[*field].as_str().is_none_or(str::is_empty));
        match missing {
            Some(field) => self.faults.push(ManifestFault {
                place,
                message: format!("the document is no Kubernetes object: `{field}` is not set"),
            }),
            None => self.documents.push(Document { place, object }),
        }
    }

    fn fault(&mut self, file: &str, message: &str) {
        let place = ManifestPlace {
            file: file.to_owned(),
            line: 1,
        };
        self.faults.push(ManifestFault {
            place,
            message: message.to_owned(),
        });
    }
}

fn manifest_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_manifest = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension));
        if path.is_file() && is_manifest {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What `${NAME}` stands for in the manifests of a simulated cluster.
pub fn variables(cluster_name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("CLUSTER_NAME".to_owned(), cluster_name.to_owned())])
}

/// Replaces `${NAME}` where the name is known, and leaves the rest as it is.
fn substitute(text: &str, variables: &BTreeMap<String, String>) -> String {
    variables
        .iter()
        .fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{name}}}"), value)
        })
}

/// The parser draws a picture of the place below its sentence; the sentence is enough in a list of faults.
fn first_lines(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Manifests {
        let mut manifests = Manifests::default();
        let variables = super::variables("demo");
        manifests.read_text("test.yaml", text, &variables);
        manifests
    }

    #[test]
    fn a_broken_document_is_a_fault_with_its_line_and_the_rest_goes_on() {
        let manifests =
            read("apiVersion: v1\nkind: Pod\n---\na: [1\n---\napiVersion: v1\nkind: Service\n");
        assert_eq!(manifests.documents.len(), 2);
        assert_eq!(manifests.faults.len(), 1);
        assert_eq!(manifests.faults[0].place.to_string(), "test.yaml:4");
    }

    #[test]
    fn lists_are_taken_apart_and_variables_replaced() {
        let manifests = read(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: \"${CLUSTER_NAME}\"}}\n",
        );
        assert_eq!(manifests.documents[0].object["metadata"]["name"], "demo");
    }

    #[test]
    fn a_document_without_a_kind_is_named() {
        let manifests = read("apiVersion: v1\nmetadata: {name: x}\n");
        assert!(manifests.faults[0].message.contains("`kind`"));
    }
}
