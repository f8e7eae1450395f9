//! Objects of the book, on an API server in process with our definitions: whoever copies one is not refused.

use std::fs;
use std::sync::Arc;

use api_server::{ApiServer, Resource};
use jiff::Timestamp;
use serde_json::Value;
use tests::{run, workspace_root};

use super::page::{Block, Page};

/// Groups whose definitions are ours.
const GROUPS: [&str; 3] = ["karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io"];
const POLICY: &str = "mortise.dev/policy";
/// The word of blocks with values for the chart.
const VALUES: &str = "values";
/// The word of blocks with what is no more, or not yet, an object.
const NOT_AN_OBJECT: &str = "excerpt";

/// A server that knows our kinds, and their resources by kind.
struct Server {
    server: ApiServer,
    resources: Vec<(String, Resource)>,
}

impl Server {
    fn new() -> Self {
        let server = ApiServer::new(1, Arc::new(|| Timestamp::UNIX_EPOCH));
        let definitions = apis::crd::all();
        let resources = definitions.iter().map(|definition| {
            server.install_crd(definition).unwrap();
            let names = &definition.spec.names;
            let resource = Resource::new(definition.spec.group.clone(), names.plural.clone());
            (names.kind.clone(), resource)
        });
        Self {
            resources: resources.collect(),
            server,
        }
    }

    /// What the server says against an object of ours.
    fn refuses(&self, object: &Value) -> Option<String> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let Some((_, resource)) = self.resources.iter().find(|(it, _)| it == kind) else {
            return Some(format!("{kind} is no kind of ours"));
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let created = self.server.create(resource, namespace, object.clone());
        let refused = created.err().map(|it| it.to_string());
        let _ = self.server.delete(
            resource,
            namespace,
            name,
            &api_server::DeleteOptions::default(),
        );
        refused
    }
}

fn group(object: &Value) -> &str {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

fn documents(block: &Block) -> Vec<Value> {
    let documents = serde_saphyr::from_multiple(&block.text);
    documents.unwrap_or_else(|error| panic!("line {}: {error}", block.line))
}

/// Blocks in YAML with their pages.
fn each_block(word: Option<&str>, mut take: impl FnMut(&str, &Block)) {
    for page in Page::book() {
        let blocks = page.blocks.iter().filter(|it| it.language == "yaml");
        for block in blocks {
            let place = format!("{}:{}", page.name(), block.line);
            let is_other = [VALUES, NOT_AN_OBJECT].iter().find(|it| block.has_word(it));
            if is_other.copied() == word {
                take(&place, block);
            }
        }
    }
}

#[test]
fn objects_of_ours_are_such_as_an_api_server_takes() {
    let server = Server::new();
    let (mut faults, mut taken) = (Vec::new(), 0);
    each_block(None, |place, block| {
        for object in documents(block) {
            let is_whole = object["kind"].is_string() && object["metadata"]["name"].is_string();
            if !is_whole {
                faults.push(format!(
                    "{place}: no object: say `{NOT_AN_OBJECT}` or `{VALUES}`"
                ));
            } else if GROUPS.contains(&group(&object)) {
                taken += 1;
                let refused = server.refuses(&object);
                faults.extend(refused.map(|it| format!("{place}: {it}")));
            }
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(taken > 3, "{taken} objects were found");
}

#[test]
fn a_mistake_in_an_object_would_be_found() {
    let object = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}, spec: {template: {spec: {}}}}";
    let object: Value = serde_saphyr::from_str(object).unwrap();
    let refused = Server::new().refuses(&object).unwrap();
    assert!(refused.contains("nodeClassRef"), "{refused}");
}

#[test]
fn policies_are_such_as_a_cluster_lets_in() {
    let file = std::env::temp_dir().join(format!("mortise-book-{}.yaml", std::process::id()));
    each_block(None, |place, block| {
        let of_policies = documents(block).into_iter();
        for object in of_policies.filter(|it| it["metadata"]["labels"][POLICY].is_string()) {
            fs::write(&file, object.to_string()).unwrap();
            let checked = run(["policy", "check", file.to_str().unwrap()]);
            let said = checked.stdout() + &checked.stderr();
            assert!(checked.is_success(), "{place}: {said}");
        }
    });
    let _ = fs::remove_file(&file);
}

/// The path of a value that the chart does not have.
fn unknown(given: &Value, known: &Value, path: &str) -> Option<String> {
    let (Some(given), Some(known)) = (given.as_object(), known.as_object()) else {
        return None;
    };
    if known.is_empty() {
        return None;
    }
    given.iter().find_map(|(key, value)| {
        let path = format!("{path}.{key}");
        match known.get(key) {
            Some(known) => unknown(value, known, &path),
            None => Some(path),
        }
    })
}

#[test]
fn values_are_those_of_the_chart() {
    let values = fs::read_to_string(workspace_root().join("charts/mortise/values.yaml")).unwrap();
    let known: Value = serde_saphyr::from_str(&values).unwrap();
    each_block(Some(VALUES), |place, block| {
        for given in documents(block) {
            assert_eq!(unknown(&given, &known, ""), None, "{place}");
        }
    });
    let mistaken: Value = serde_saphyr::from_str("settings: {clusterNames: a}").unwrap();
    assert_eq!(
        unknown(&mistaken, &known, "").as_deref(),
        Some(".settings.clusterNames")
    );
}

#[test]
fn blocks_in_json_are_json() {
    for page in Page::book() {
        for block in page.blocks.iter().filter(|it| it.language == "json") {
            let read: Result<Value, _> = serde_json::from_str(&block.text);
            assert!(read.is_ok(), "{}:{}: {read:?}", page.name(), block.line);
        }
    }
}
